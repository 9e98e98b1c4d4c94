//! What only the protocol and the rest of the case can tell: names, variables, clients. What a step says for itself is checked
//! when it is compiled.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};

use super::file::{Assertion, Case, Step};
use super::frame::RawFrame;
use super::recovery::Gaps;
use super::template;
use crate::frame::MAX_BATCH;
use crate::protocol::extension::PatternWhere;
use crate::protocol::script::TurnStep;
use crate::protocol::{Matcher, Pattern, Protocol};
use crate::source::ordered::ordered;
use crate::source::schema::Schema;
use crate::source::{Diagnostic, Diagnostics, Document, Part, check_keywords, escape_token, nearest};
use crate::trace::Direction;

/// Variables that are always there.
const BUILT_IN: &[&str] =
    &["cue", "calls", "tools", "uuid", "number", "uid", "session", "last_seen", "seen", "target"];
/// Names that an `expect` knows beside message types.
pub(crate) const TURN_END: &str = "turn-end";
pub(crate) const CLOSE: &str = "close";
/// What `expect` calls the refusal of a connection.
pub(crate) const REFUSED: &str = "refused";
/// Whether a name means this word, and not a message of the server that has the same name.
pub(crate) fn means(name: &str, word: &str, protocol: &Protocol) -> bool {
    name == word && protocol.index_of(name, Direction::Recv).is_none()
}

/// Longest text that a flood may make, in bytes.
const MAX_FLOOD: u64 = 64 << 20;
/// How often words are said at most.
const MAX_TIMES: u16 = 10_000;
/// Mistakes in the templates of one text that are told.
const MAX_MISTAKES: usize = 100;

struct Checker<'c> {
    protocol: &'c Protocol,
    document: &'c Document,
    variables: BTreeSet<String>,
    clients: BTreeSet<String>,
    /// How many calls the case's turn (none) and its further turns have, by their names.
    calls: BTreeMap<Option<String>, usize>,
    /// The case has no `turn` of its own.
    turnless: bool,
    /// What is missing of the case: it may open and save what its words name.
    gaps: &'c Gaps,
    errors: &'c mut Diagnostics,
}

/// Checks one case. `gaps`: what is missing of it, for it had the wrong shape.
pub(super) fn case(
    case: &Case,
    protocol: &Protocol,
    document: &Document,
    at: &str,
    gaps: &Gaps,
    errors: &mut Diagnostics,
) {
    let mut variables: BTreeSet<String> = BUILT_IN.iter().map(|name| (*name).to_owned()).collect();
    variables.extend(case.vars.keys().cloned());
    variables.extend(case.sweep.clone());
    let turnless = case.turn.is_none() && gaps.words.is_empty();
    let count = |turn: &[TurnStep]| turn.iter().filter(|step| step.call.is_some()).count();
    let own = case.turn.iter().map(|turn| (None, count(turn)));
    let calls = own.chain(case.turns.iter().map(|(name, turn)| (Some(name.clone()), count(turn)))).collect();
    let clients = BTreeSet::new();
    let mut checker = Checker { protocol, document, variables, clients, calls, turnless, gaps, errors };
    if case.name.is_empty()
        || !case.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    {
        checker.error(
            &format!("{at}/name"),
            Part::Value,
            "a case's name has lower-case letters, digits and hyphens",
            "",
        );
    }
    checker.growth(case, at);
    checker.words(case, at);
    checker.pseudolocale(case, at);
    checker.preamble(case, at);
    checker.ids(&case.covers, &format!("{at}/covers"));
    for (index, need) in case.needs.iter().enumerate() {
        if !protocol.extension.capabilities.contains_key(need) {
            let known = protocol.extension.capabilities.keys().map(String::as_str);
            checker.push(
                Diagnostic::new(format!("unknown capability `{need}`")).suggest(need, known),
                &format!("{at}/needs/{index}"),
            );
        }
    }
    for (index, name) in case.suspend.iter().enumerate() {
        if !protocol.may_suspend(name) {
            checker.push(protocol.unknown_to_suspend(name), &format!("{at}/suspend/{index}"));
        }
    }
    for (index, step) in case.turn.iter().flatten().enumerate() {
        checker.turn_step(step, &format!("{at}/turn/{index}"));
    }
    for (name, turn) in &case.turns {
        for (index, step) in turn.iter().enumerate() {
            checker.turn_step(step, &format!("{at}/turns/{name}/{index}"));
        }
    }
    let is_step = |index: usize, step: &Step| step.verbs().len() == 1 || !gaps.steps.contains(&index);
    for (index, step) in case.steps.iter().enumerate().filter(|(index, step)| is_step(*index, step)) {
        checker.step(step, &format!("{at}/steps/{index}"));
    }
    checker.further(case, &format!("{at}/further"));
}

/// Whether a message of the server's is what was meant.
fn is_near(name: &str, protocol: &Protocol) -> bool {
    let received = protocol.messages.iter().filter(|message| message.dir == Direction::Recv);
    nearest(name, received.map(|message| message.name.as_str())).is_some()
}

impl Checker<'_> {
    fn push(&mut self, diagnostic: Diagnostic, at: &str) {
        self.errors.push(diagnostic.at(self.document, at, Part::Value));
    }

    fn error(&mut self, at: &str, part: Part, message: &str, hint: &str) {
        let mut diagnostic = Diagnostic::new(message).at(self.document, at, part);
        if !hint.is_empty() {
            diagnostic = diagnostic.hint(hint);
        }
        self.errors.push(diagnostic);
    }

    fn ids(&mut self, ids: &[String], at: &str) {
        for (index, id) in ids.iter().enumerate() {
            if self.protocol.requirements.get(id).is_none() {
                let known = self.protocol.requirements.0.keys().map(String::as_str);
                let diagnostic = Diagnostic::new(format!("unknown requirement `{id}`")).suggest(id, known);
                self.push(diagnostic, &format!("{at}/{index}"));
            }
        }
    }

    /// What grows is compared between repeats.
    fn growth(&mut self, case: &Case, at: &str) {
        if case.max_growth.is_some() && case.repeat.is_none_or(|times| times < 2) {
            let hint = "add `repeat: 20`: memory is compared between the first time and the last";
            self.error(&format!("{at}/max-growth"), Part::Value, "`max-growth` needs repeats", hint);
        }
    }

    fn words(&mut self, case: &Case, at: &str) {
        if let Some(words) = &case.words
            && !(1..=MAX_TIMES).contains(&words.times)
        {
            self.error(&format!("{at}/words/times"), Part::Value, "`times` is between 1 and 10,000", "");
        }
    }

    fn pseudolocale(&mut self, case: &Case, at: &str) {
        let fields = case.pseudolocale.iter().flat_map(|locale| &locale.fields).enumerate();
        for (index, _) in fields.filter(|(_, field)| !field.starts_with('/')) {
            let hint = "for example `/text` or `/params/name`";
            let place = format!("{at}/pseudolocale/fields/{index}");
            self.error(&place, Part::Value, "a field is a JSON Pointer, which begins with `/`", hint);
        }
    }

    /// Members that the document does not know. It is looked at last: `when` is about what steps have saved.
    fn further(&mut self, case: &Case, at: &str) {
        let Some(further) = &case.further else { return };
        for (key, is_empty) in [("members", further.members.is_empty()), ("at", further.at.is_empty())] {
            if is_empty {
                let hint = "for example `further: { members: { colour: red }, at: [''] }`";
                self.error(
                    &format!("{at}/{key}"),
                    Part::Value,
                    "without it no message has further members",
                    hint,
                );
            }
        }
        self.templates(&json!(further.when), &format!("{at}/when"));
    }

    /// What a preamble does is put before other cases, which have turns of their own.
    fn preamble(&mut self, case: &Case, at: &str) {
        if !case.preamble {
            let keys = [
                ("contains", !case.contains.is_empty()),
                ("thoughts", case.thoughts.is_some()),
                ("preface", case.preface.is_some()),
            ];
            for (key, _) in keys.into_iter().filter(|(_, is_there)| *is_there) {
                let message = format!("only a preamble has `{key}`");
                self.error(&format!("{at}/{key}"), Part::Key, &message, "add `preamble: true`");
            }
            return;
        }
        let place = format!("{at}/preamble");
        if case.steps.first().is_none_or(|step| step.open.is_none()) {
            let hint = "it stands in place of the `open` with which other cases begin";
            self.error(&place, Part::Value, "a preamble begins with `open`", hint);
        }
        let keys = [
            ("turn", case.turn.is_some(), "name its turns, with names that other cases do not have: `turns`"),
            ("sweep", case.sweep.is_some(), "it is done once before each case"),
            ("repeat", case.repeat.is_some(), "it is done once before each case"),
            ("not-behind", !case.not_behind.is_empty(), "it is run behind no other one"),
        ];
        for (key, given, hint) in keys {
            if given {
                self.error(&format!("{at}/{key}"), Part::Key, &format!("a preamble has no `{key}`"), hint);
            }
        }
    }

    fn turn_step(&mut self, step: &TurnStep, at: &str) {
        let actions = [
            step.say.is_some(),
            step.think.is_some(),
            step.call.is_some(),
            step.pause_ms.is_some(),
            step.fail.is_some(),
            step.hang.is_some(),
            step.flood.is_some(),
        ];
        if actions.iter().filter(|given| **given).count() != 1 {
            let hint = "one of say, think, call, pause_ms, fail, hang and flood";
            self.error(at, Part::Value, "a step of a turn does exactly one thing", hint);
        }
        if let Some(flood) = &step.flood
            && u64::from(flood.chunks) * u64::from(flood.chars) > MAX_FLOOD
        {
            let message = format!("a flood of {} times {} characters", flood.chunks, flood.chars);
            self.error(&format!("{at}/flood"), Part::Value, &message, "64 MiB is the most");
        }
        if let Some(call) = &step.call {
            self.templates(call, &format!("{at}/call"));
            if let Some(class) = call["class"].as_str()
                && !self.protocol.extension.tools.contains_key(class)
            {
                let known = self.protocol.extension.tools.keys().map(String::as_str);
                let diagnostic =
                    Diagnostic::new(format!("unknown tool class `{class}`")).suggest(class, known);
                self.push(diagnostic, &format!("{at}/call/class"));
            }
        }
    }

    fn templates(&mut self, value: &Value, at: &str) {
        match value {
            Value::String(text) => {
                let (mut looked, before) = (HashSet::new(), self.errors.0.len());
                for name in template::names(value) {
                    // Each place is looked for in the text, which may be long.
                    if self.errors.0.len() - before < MAX_MISTAKES && looked.insert(name.clone()) {
                        self.template(&name, text, at);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.templates(item, &format!("{at}/{index}"));
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    self.templates(item, &format!("{at}/{}", escape_token(key)));
                }
            }
            _ => {}
        }
    }

    /// Checks one variable of a text's templates.
    fn template(&mut self, name: &str, text: &str, at: &str) {
        let root = name.split('.').next().unwrap_or_default();
        let tools = &self.protocol.extension.tools;
        let diagnostic = if !self.variables.contains(root) {
            if self.gaps.words.contains(root) {
                return;
            }
            Diagnostic::new(format!("undefined variable `{name}`"))
                .suggest(root, self.variables.iter().map(String::as_str))
        } else if root == "target"
            && let Some(unknown) = self.protocol.unknown_parameter(name)
        {
            unknown
        } else if name == "cue" && self.turnless {
            Diagnostic::new("this case has no `turn` for `{{cue}}`")
                .hint("add `turn: [{ say: hello }]` beside `steps`: what the model is to do")
        } else if let Some(turn) = name.strip_prefix("cue.").filter(|turn| !self.has_turn(turn)) {
            Diagnostic::new(format!("the case has no turn `{turn}` among its `turns`"))
                .suggest(turn, self.calls.keys().flatten().map(String::as_str))
        } else if name.strip_prefix("calls").is_some_and(|path| !self.has_call(path)) {
            Diagnostic::new(format!("`{name}` names no call of the case's turns"))
                .hint("`{{calls.0.args}}` has the arguments of the first call in `turn`, `{{calls.NAME.0.args}}` in the turn NAME of `turns`")
        } else if let Some(class) = name.strip_prefix("tools.").and_then(|rest| rest.split('.').next())
            && !tools.contains_key(class)
        {
            Diagnostic::new(format!("unknown tool class `{class}`"))
                .suggest(class, tools.keys().map(String::as_str))
        } else {
            return;
        };
        // A folded or literal text stands on lines of its own below.
        let lines = text.matches('\n').count() + 2;
        let span = self.document.span_within(at, lines, |source| template::find(source, name));
        self.errors.push(Diagnostic { place: Some((self.document.clone(), span)), ..diagnostic });
    }

    fn has_turn(&self, name: &str) -> bool {
        self.calls.keys().flatten().any(|turn| turn == name)
    }

    /// `.0`, `.NAME.0`, and `.name` or `.args` behind it.
    fn has_call(&self, path: &str) -> bool {
        let mut parts = path.split('.').skip(1).peekable();
        let turn = parts.next_if(|part| self.has_turn(part)).map(str::to_owned);
        let count = self.calls.get(&turn).copied().unwrap_or_default();
        let index = parts.next().and_then(|index| index.parse::<usize>().ok());
        index.is_some_and(|index| index < count)
            && parts.next().is_none_or(|field| ["name", "args"].contains(&field))
    }

    fn steps(&mut self, steps: &[Step], at: &str) {
        for (index, step) in steps.iter().enumerate() {
            self.step(step, &format!("{at}/{index}"));
        }
    }

    fn step(&mut self, step: &Step, at: &str) {
        if step.verbs().len() != 1 {
            return;
        }
        self.ids(&step.covers, &format!("{at}/covers"));
        for (field, reading) in [("tolerated", &step.tolerated), ("allowed", &step.allowed)] {
            let Some(reading) = reading.as_ref().filter(|id| !self.protocol.readings.contains_key(*id))
            else {
                continue;
            };
            let known = self.protocol.readings.keys().map(String::as_str);
            let diagnostic = Diagnostic::new(format!("unknown reading `{reading}`")).suggest(reading, known);
            self.push(diagnostic, &format!("{at}/{field}"));
        }
        self.names(step, at);
        self.values(step, at);
        if step.open.is_some() {
            // What an opening saves is a variable from there on.
            let openings = self.protocol.extension.openings.values().flatten();
            self.variables.extend(openings.flat_map(|exchange| exchange.save.keys().cloned()));
        }
        self.variables.extend(step.save.keys().cloned());
        // What the steps of a group save is known behind them, variables of their own are not.
        let own: Vec<&String> = step.vars.keys().filter(|name| !self.variables.contains(*name)).collect();
        self.variables.extend(own.iter().copied().cloned());
        for (place, steps) in step.inner() {
            self.steps(steps, &format!("{at}/{place}"));
        }
        for name in own {
            self.variables.remove(name);
        }
    }

    /// Message types, openings and clients.
    fn names(&mut self, step: &Step, at: &str) {
        for (field, names) in [("expect", &step.expect), ("never", &step.never), ("until", &step.until)] {
            for name in names.iter().flat_map(|names| names.as_slice()) {
                if name == TURN_END || name == CLOSE || (name == REFUSED && field == "expect") {
                    continue;
                }
                if let Err(errors) = self.protocol.message_named(name, Direction::Recv) {
                    let special = nearest(name, [TURN_END, CLOSE]).filter(|_| !is_near(name, self.protocol));
                    for error in errors.0 {
                        let error = match special {
                            Some(near) => error.hint(format!("did you mean `{near}`?")),
                            None => error,
                        };
                        self.push(error, &format!("{at}/{field}"));
                    }
                }
            }
        }
        if let Some(opening) = step.opening.as_deref().filter(|opening| *opening != "none")
            && !self.protocol.extension.openings.contains_key(opening)
        {
            let known = self.protocol.extension.openings.keys().map(String::as_str);
            let known = known.chain(["none"]);
            let diagnostic = Diagnostic::new(format!("unknown opening `{opening}`")).suggest(opening, known);
            self.push(diagnostic, &format!("{at}/opening"));
        }
        if let Some(client) = &step.open {
            if client.is_empty() {
                let diagnostic = Diagnostic::new("a client needs a name").hint("such as alice");
                self.push(diagnostic, &format!("{at}/open"));
                return;
            }
            self.clients.insert(client.clone());
            return;
        }
        let named = [
            ("as", &step.client),
            ("close", &step.close),
            ("drop", &step.drop),
            ("stall", &step.stall),
            ("unstall", &step.unstall),
            ("settle", &step.settle),
            ("alive", &step.alive),
            ("ended", &step.ended),
            ("refusal", &step.refusal),
        ];
        for (field, client) in named {
            if let Some(client) = client
                && !self.clients.contains(client)
                && !self.gaps.words.contains(client)
            {
                let known: Vec<String> = self.clients.iter().cloned().collect();
                let diagnostic = Diagnostic::new(format!("client `{client}` was never opened"))
                    .suggest(client, known.iter().map(String::as_str));
                self.push(diagnostic, &format!("{at}/{field}"));
            }
        }
        let acts = step.frame.is_some()
            || step.bytes.is_some()
            || step.send.is_some()
            || step.raw.is_some()
            || step.expect.is_some()
            || step.never.is_some();
        if acts && step.client.is_none() && self.clients.is_empty() && self.gaps.steps.is_empty() {
            self.error(at, Part::Value, "no client has been opened yet", "begin with `- open: alice`");
        }
    }

    fn frame(&mut self, frame: &RawFrame, at: &str) {
        for (field, message, hint) in frame.mistakes() {
            self.error(&format!("{at}/{field}"), Part::Value, &message, hint);
        }
        if let Some(payload) = &frame.payload {
            self.templates(payload, &format!("{at}/payload"));
        }
        if let Some(between) = &frame.between {
            self.frame(between, &format!("{at}/between"));
        }
    }

    /// Templates, schemas and relations.
    fn values(&mut self, step: &Step, at: &str) {
        let fields = [
            ("send", &step.send),
            ("with", &step.with),
            ("where", &step.schema),
            ("reply", &step.reply),
            ("refuse", &step.refuse),
            ("after", &step.after),
            ("check", &step.check),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                self.templates(value, &format!("{at}/{field}"));
            }
        }
        if let Some(Value::Array(members)) = &step.send {
            self.batch(members, &format!("{at}/send"));
        }
        self.templates(&json!(step.headers), &format!("{at}/headers"));
        self.templates(&json!(step.vars), &format!("{at}/vars"));
        self.templates(&json!(step.protocols), &format!("{at}/protocols"));
        let texts = [
            ("raw", &step.raw),
            ("unseen", &step.unseen),
            ("expect_file", &step.expect_file),
            ("get", &step.get),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                self.templates(&Value::String(text.clone()), &format!("{at}/{field}"));
            }
        }
        if let Some(frame) = &step.frame {
            self.frame(frame, &format!("{at}/frame"));
        }
        for (field, schema) in [("check", &step.check), ("where", &step.schema)] {
            if let Some(schema) = schema {
                check_keywords(schema, self.document, &format!("{at}/{field}"), self.errors);
            }
        }
        // One without templates has been compiled. What the others come to is a part of a pattern, for example, which braces are not.
        let open = step.schema.as_ref().filter(|schema| !template::is_constant(schema));
        let open = open.and_then(|schema| {
            template::expand_or(schema, &mut |_| None, &mut |_| Some(Value::from("x"))).ok()
        });
        let compiled = |schema: &Value| ordered(schema).and_then(|schema| Schema::new(&schema));
        if let Some(Err(error)) = open.as_ref().map(compiled) {
            let message = format!("`where` is not a JSON Schema: {error}");
            self.error(&format!("{at}/where"), Part::Value, &message, "");
        }
        if let Some(joined) = &step.joined {
            self.templates(&json!(joined.of), &format!("{at}/joined/of"));
            if let Pattern::Where(PatternWhere { schema: Some(schema), .. }) = &joined.of {
                check_keywords(schema, self.document, &format!("{at}/joined/of/where"), self.errors);
            }
            if let Err(errors) = Matcher::new(&joined.of, self.protocol) {
                errors.0.into_iter().for_each(|error| self.push(error, &format!("{at}/joined/of")));
            }
        }
        for (field, assertion) in [("assert", &step.assert), ("when", &step.when)] {
            if let Some(assertion) = assertion {
                self.assertion(assertion, &format!("{at}/{field}"));
            }
        }
    }

    /// A list of messages, which are sent as one frame.
    fn batch(&mut self, members: &[Value], at: &str) {
        if !self.protocol.may_batch(Direction::Send) {
            let hint = "`batches: client` in `x-frameproof` declares that it does; `raw` sends any text";
            return self.error(at, Part::Value, "a client of this protocol sends no batches", hint);
        }
        if members.is_empty() || members.len() > MAX_BATCH {
            let message = format!("a batch has 1 to {MAX_BATCH} messages, not {}", members.len());
            self.error(at, Part::Value, &message, "`raw` sends any text");
        }
        for (index, _) in members.iter().enumerate().filter(|(_, member)| !member.is_object()) {
            let message = "a message of a batch is a map";
            self.error(&format!("{at}/{index}"), Part::Value, message, "`raw` sends any text");
        }
    }

    fn assertion(&mut self, assertion: &Assertion, at: &str) {
        let relations = [
            ("equal", assertion.equal.clone()),
            ("differ", assertion.differ.clone()),
            ("ascending", assertion.ascending.clone()),
            ("difference", assertion.difference.clone().map(Vec::from)),
        ];
        for (name, values) in relations.iter().filter_map(|(name, values)| Some((name, values.as_ref()?))) {
            for value in values {
                self.templates(value, &format!("{at}/{name}"));
            }
        }
    }
}
