//! What `{{NAME}}` stands for in a running case.

use std::collections::{BTreeSet, HashMap};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::run::case::client::Client;
use crate::run::case::connections::Connections;
use crate::run::case::context::CaseContext;
use crate::run::case::server_ids::ServerIds;
use crate::scenario::{template, turn};

/// `{{number}}` begins here or above: numbers that are written in scenarios and openings are smaller.
const BELOW_NUMBERS: u64 = 1_000_000;

/// The values that templates stand for. The same seed and salt give the same ones.
pub(crate) struct Variables {
    values: HashMap<String, Value>,
    /// Names that a message was to give which did not come, and whether one of them was asked for.
    missed: BTreeSet<String>,
    asked_missed: bool,
    /// The last value that was expanded has a `last_seen` of a client that has seen nothing.
    nothing_seen: bool,
    /// What `{{number}}` gives next.
    next_number: Option<u64>,
    rng: ChaCha8Rng,
    /// Ids that the server has told, for `{{seen.NAME}}`.
    pub ids: ServerIds,
}

/// What templates may refer to beside the variables.
pub(crate) struct Scope<'s> {
    pub cx: &'s CaseContext<'s>,
    pub conns: &'s Connections,
    /// The client that they are about.
    pub client: &'s str,
}

impl Variables {
    pub fn new(cx: &CaseContext<'_>, seed: u64) -> Self {
        let given = cx.loaded.case.vars.iter();
        Self {
            missed: BTreeSet::new(),
            asked_missed: false,
            nothing_seen: false,
            next_number: None,
            values: given.map(|(name, value)| (name.clone(), value.clone())).collect(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            ids: ServerIds::default(),
        }
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.values.insert(name.to_owned(), value.into());
    }

    /// Sets variables, or removes those without a value, and returns what they were.
    pub fn replace(&mut self, values: Vec<(String, Option<Value>)>) -> Vec<(String, Option<Value>)> {
        let replaced = values.into_iter().map(|(name, value)| {
            let before = match value {
                Some(value) => self.values.insert(name.clone(), value),
                None => self.values.remove(&name),
            };
            (name, before)
        });
        replaced.collect()
    }

    /// Fills in the templates of a value; `with`: names that come before all others.
    ///
    /// # Errors
    /// The name that stands for nothing.
    pub fn expand(
        &mut self,
        value: &Value,
        scope: &Scope<'_>,
        with: Option<&Value>,
    ) -> Result<Value, String> {
        self.asked_missed = false;
        let mut nothing_seen = false;
        // A client that has seen no event says so by null, unless the template says something else.
        let mut unset = |name: &str| {
            let is_seen = name.split('.').next() == Some("last_seen");
            nothing_seen |= is_seen;
            is_seen.then_some(Value::Null)
        };
        let expanded = template::expand_or(value, &mut |name| self.lookup(name, scope, with), &mut unset);
        self.nothing_seen = nothing_seen;
        expanded.map_err(|error| error.to_string())
    }

    /// Whether the last expanded value has a `last_seen` that is null, as its client has seen no event.
    pub fn saw_nothing(&self) -> bool {
        self.nothing_seen
    }

    /// A new UUID, of a session for example. It differs from run to run: a server may remember those of the last one.
    pub fn uuid(&mut self, scope: &Scope<'_>) -> String {
        let mut bytes = [0; 16];
        self.rng.fill_bytes(&mut bytes);
        bytes.iter_mut().zip(scope.cx.options.salt.to_le_bytes()).for_each(|(byte, salt)| *byte ^= salt);
        let id = uuid::Builder::from_random_bytes(bytes).into_uuid().to_string();
        scope.note_marker(&id);
        id
    }

    /// A short id that is unique to the case, and to this run of it.
    fn uid(&mut self, scope: &Scope<'_>) -> String {
        let of_case = self.rng.next_u32();
        match scope.cx.options.salt {
            0 => format!("u{of_case:08x}"),
            salt => format!("u{of_case:08x}{:08x}", salt as u32),
        }
    }

    /// Where the numbers of this case begin, so that two cases hardly have one in common. They fit into 32 bits.
    fn first_number(&mut self, scope: &Scope<'_>) -> u64 {
        let drawn = u64::from(self.rng.next_u32()) ^ scope.cx.options.salt;
        BELOW_NUMBERS + drawn % (1 << 30)
    }

    fn lookup(&mut self, name: &str, scope: &Scope<'_>, with: Option<&Value>) -> Option<Value> {
        if let Some(value) = with.and_then(|with| template::dig(with, name)) {
            return Some(value);
        }
        let (root, rest) = name.split_once('.').map_or((name, None), |(root, rest)| (root, Some(rest)));
        if let Some(value) = self.values.get(root) {
            return match rest {
                Some(rest) => template::dig(value, rest),
                None => Some(value.clone()),
            };
        }
        match root {
            "uuid" => Some(json!(self.uuid(scope))),
            "number" => {
                let number = self.next_number.unwrap_or_else(|| self.first_number(scope));
                self.next_number = Some(number + 1);
                Some(json!(number))
            }
            "uid" => {
                let uid = self.uid(scope);
                self.set("uid", uid.as_str());
                Some(json!(uid))
            }
            "cue" => self.cue(rest, scope),
            "calls" => self.calls(rest?, scope),
            "tools" => scope.tool(rest?),
            "target" => scope.cx.protocol.parameter_at(rest?),
            "session" => {
                let own = scope.conns.get(scope.client).map(Client::session);
                Some(json!(scope.conns.sessions.id(rest.or(own)?)))
            }
            "seen" => self.ids.value(rest?, scope.client),
            "last_seen" => {
                let client = scope.conns.get(rest.unwrap_or(scope.client));
                client.and_then(|client| client.turn.last_seen).map(Value::from)
            }
            _ => {
                self.asked_missed |= self.missed.contains(root);
                None
            }
        }
    }

    /// What a name stands for, if that is known already.
    pub fn known(&self, name: &str) -> Option<Value> {
        let (root, rest) = name.split_once('.').map_or((name, None), |(root, rest)| (root, Some(rest)));
        let value = self.values.get(root)?;
        rest.map_or_else(|| Some(value.clone()), |rest| template::dig(value, rest))
    }

    /// What was to give these values did not come.
    pub fn miss<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        self.missed.extend(names.cloned());
    }

    /// Whether a value was asked for that such a message was to give.
    pub fn has_missed(&self) -> bool {
        self.asked_missed
    }

    fn cue(&mut self, name: Option<&str>, scope: &Scope<'_>) -> Option<Value> {
        let (case, run) = (scope.cx.loaded, scope.cx.run);
        let steps = case.case.turn_named(name)?;
        if let Some(prompt) = run.options.prompts.of(&case.id, name) {
            return Some(Value::from(prompt));
        }
        let lookup = &mut |name: &str| self.lookup(name, scope, None);
        let cue = turn::cue_text(steps, &scope.cx.protocol, lookup).ok()?;
        let words = case.case.beginning.words.as_ref();
        let cue = words.map_or_else(String::new, |words| words.text.repeat(words.times.into())) + &cue;
        scope.note_marker(&cue);
        if steps.iter().any(|step| step.hang.is_some()) {
            // The model is asked with what the server is shown.
            let shown = case.case.beginning.pseudolocale.as_ref().map(|locale| locale.apply(&cue));
            scope.cx.hangs.sends(shown.as_ref().unwrap_or(&cue));
        }
        Some(Value::String(cue))
    }

    /// `0.args`: of the first call of the case's turn; `NAME.0.args`: of its turn of that name. The calls are those of the cue,
    /// with the target's own names and arguments.
    fn calls(&mut self, path: &str, scope: &Scope<'_>) -> Option<Value> {
        let case = &scope.cx.loaded.case;
        let (turn, path) = match path.split_once('.') {
            Some((name, rest)) if case.turns.contains_key(name) => (Some(name), rest),
            _ => (None, path),
        };
        let lookup = &mut |name: &str| self.lookup(name, scope, None);
        let calls = turn::calls(case.turn_named(turn)?, &scope.cx.protocol, lookup).ok()?;
        template::dig(&json!(calls), path)
    }
}

impl Scope<'_> {
    /// Notes that nobody else sends this text.
    fn note_marker(&self, text: &str) {
        if let Some(probe) = &self.cx.probe {
            probe.note_sent(self.client, text);
        }
    }

    /// `CLASS` or `CLASS.FIELD`.
    fn tool(&self, path: &str) -> Option<Value> {
        let tools = &self.cx.protocol.extension.tools;
        let (class, field) = path.split_once('.').map_or((path, None), |(class, field)| (class, Some(field)));
        let tool = json!(tools.get(class)?);
        match field {
            Some(field) => template::dig(&tool, field),
            None => Some(tool),
        }
    }
}
