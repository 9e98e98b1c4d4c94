//! Cases behind a preamble (ISO/IEC 9646: what brings the server into the state in which a test begins): the steps of one case are
//! done before those of another. So everything that the other looks at is also looked at after a denial, in a later turn and so on.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::LoadedCase;
use super::case::{Common, Cut, Relation, Step, Verb};
use super::file::Words;
use crate::cue::pseudolocale::{Alphabet, Pseudolocale};
use crate::frame::Pointer;
use crate::protocol::script::TurnStep;
use crate::results::case_id;

/// Every preamble.
pub const ANY: &str = "*";
/// The class of tools that take their time.
const SLOW: &str = "slow";

/// What may be before a case, and what it may be before.
#[derive(Debug, Clone, Default)]
pub struct Beginning {
    /// What is done in it may be done before other cases.
    pub is_preamble: bool,
    /// Preambles whose events occur in this one, too.
    pub contains: Vec<String>,
    /// Preambles that it is not run behind.
    pub not_behind: Vec<String>,
    /// What the user says before every cue.
    pub words: Option<Words>,
    /// What the model thinks first in each turn of a case behind it.
    pub thoughts: Vec<String>,
    /// What the model says first in each turn of a case behind it that begins with a call.
    pub preface: Vec<String>,
    /// The texts of cues as the server is shown them.
    pub pseudolocale: Option<Pseudolocale>,
    /// Each message is sent right behind a query.
    pub pipelined: bool,
    /// Messages are written in another way that JSON and RFC 6455 allow.
    pub respelled: bool,
    /// Members that messages have besides those that the document knows.
    pub further: Option<Further>,
    /// How long clients wait before each message of the case.
    pub think_time: Option<Duration>,
    /// How long the connections stay open at the end.
    pub linger: Option<Duration>,
}

/// Members that messages have besides those that the document knows.
#[derive(Debug, Clone)]
pub struct Further {
    /// The members. One that a message has already stays as it is.
    pub members: serde_json::Map<String, Value>,
    /// The objects of a message that they are added to.
    pub at: Vec<Pointer>,
    /// They are added only while this holds.
    pub when: Option<Relation>,
}

impl Further {
    /// Adds them to a message.
    pub fn add_to(&self, message: &mut Value) {
        for place in &self.at {
            if let Some(Value::Object(object)) = message.pointer_mut(place.as_str()) {
                for (name, value) in &self.members {
                    object.entry(name.as_str()).or_insert_with(|| value.clone());
                }
            }
        }
    }
}

impl LoadedCase {
    /// Whether it makes sense to run this case behind a preamble: it is none itself, begins with an `open`, is run once, and does not
    /// say that it is not run behind this one, or one whose events occur in this one.
    pub fn may_stand_behind(&self, preamble: &Self) -> bool {
        let (own, before) = (&self.case, &preamble.case);
        let excludes =
            own.beginning.not_behind.iter().any(|name| {
                name == ANY || name == preamble.name() || before.beginning.contains.contains(name)
            });
        !own.beginning.is_preamble
            && !excludes
            && own.rounds.sweep.is_none()
            && own.rounds.repeat.is_none()
            && (own.settle || !before.beginning.pipelined)
            && before.beginning.pseudolocale.as_ref().is_none_or(|locale| self.can_be_shown(locale))
            && own
                .steps
                .first()
                .is_some_and(|step| matches!(step.verb, Verb::Open(_)) && step.common.when.is_none())
    }

    /// Whether there are texts of the model that the server can be shown in another way: none of the characters that stand for letters
    /// then is one of the case's own.
    fn can_be_shown(&self, locale: &Pseudolocale) -> bool {
        let given = self.document.value.pointer(&self.pointer);
        let mut texts = Vec::new();
        for key in ["turn", "turns", "vars", "steps"] {
            given.and_then(|case| case.get(key)).into_iter().for_each(|value| strings(value, &mut texts));
        }
        let has_texts = !locale.fields.is_empty() || texts.iter().any(|text| text.contains("{{cue"));
        has_texts && !texts.iter().any(|text| locale.is_used_in(text))
    }

    /// Whether the model or a tool does something at a time of its own, before which or after which a client may do something.
    fn keeps_time(&self) -> bool {
        let turns = self.case.turns.values().chain(&self.case.turn).flatten();
        turns.into_iter().any(|step| {
            let takes = step.call.as_ref().is_some_and(|call| {
                call.get("class").is_some_and(|class| class == SLOW) || call.pointer("/args/ms").is_some()
            });
            takes || step.pause_ms.is_some() || step.every_ms.is_some() || step.flood.is_some()
        })
    }

    /// Whether a step of it has such a verb.
    fn has(&self, is_such: fn(&Verb) -> bool) -> bool {
        self.case.steps.iter().any(|step| step.any(is_such))
    }

    /// This case behind a preamble behind which it may stand.
    pub fn behind(&self, preamble: &Arc<Self>) -> Self {
        let before = &preamble.case;
        let mut case = self.case.clone();
        // Its client goes on in the case, or leaves it to others, or comes back in another way.
        let leaves = match (case.steps.first(), before.steps.first()) {
            (Some(own), Some(first)) if !open_alike(own, first) => leave(first),
            _ => None,
        };
        let replaced = usize::from(leaves.is_none());
        case.steps.splice(..replaced, before.steps.iter().cloned().chain(leaves.map(Arc::new)));
        let (mut preface, thoughts) = (&before.beginning.preface[..], &before.beginning.thoughts[..]);
        // What a case demands of a whole text is not what another text before it makes of it.
        if !preface.is_empty() && self.has(|verb| matches!(verb, Verb::Joined(_))) {
            preface = &[];
        }
        case.turns.values_mut().chain(&mut case.turn).for_each(|turn| begin_turn(turn, thoughts, preface));
        case.turns.extend(before.turns.clone());
        case.vars.extend(before.vars.clone());
        merge(&mut case.needs, &before.needs);
        merge(&mut case.suspend, &before.suspend);
        case.beginning.words = before.beginning.words.clone().or(case.beginning.words);
        // A server may cut a text into pieces of any size, and a loop ends after so many of them.
        let is_counted = || self.has(|verb| matches!(verb, Verb::Repeat(_)));
        let shown = before.beginning.pseudolocale.clone();
        let shown = shown.filter(|locale| locale.alphabet != Alphabet::Long || !is_counted());
        case.beginning.pseudolocale = shown.or(case.beginning.pseudolocale);
        case.beginning.pipelined |= before.beginning.pipelined;
        case.beginning.respelled |= before.beginning.respelled;
        case.beginning.further = before.beginning.further.clone().or(case.beginning.further);
        // Where what happens takes a time that the case has chosen, a message later may mean another thing.
        if !self.keeps_time() {
            case.beginning.think_time = case.beginning.think_time.or(before.beginning.think_time);
        }
        case.beginning.linger = before.beginning.linger.or(case.beginning.linger);
        let id = case_id::behind(&self.id, preamble.name());
        Self { id, case, preamble: Some(Arc::clone(preamble)), ..self.clone() }
    }

    /// What a preamble and this case would both give a value or a turn to.
    pub fn collides(&self, preamble: &Self) -> Option<&str> {
        let turn = self.case.turns.keys().find(|name| preamble.case.turns.contains_key(*name));
        turn.or_else(|| self.case.vars.keys().find(|name| preamble.case.vars.contains_key(*name)))
            .map(String::as_str)
    }

    /// The case in whose file a step stands, and the step's pointer there.
    pub(super) fn origin<'p>(&self, below: &'p str) -> (&Self, Cow<'p, str>) {
        let Some(preamble) = &self.preamble else { return (self, Cow::Borrowed(below)) };
        let inside = below.strip_prefix("/steps/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        let Some((Ok(index), rest)) = inside.map(|(index, rest)| (index.parse::<usize>(), rest)) else {
            return (self, Cow::Borrowed(below));
        };
        let before = preamble.case.steps.len();
        if index < before {
            return (preamble, Cow::Borrowed(below));
        }
        let own = self.case.steps.len() - before;
        let written = self.document.value.pointer(&format!("{}/steps", self.pointer));
        let written = written.and_then(Value::as_array).map_or(own, Vec::len);
        // The preamble's steps stand for the case's first one, or its client leaves behind them.
        let Some(index) = (index + written).checked_sub(before + own) else {
            return (preamble, Cow::Borrowed("/preamble"));
        };
        let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
        (self, Cow::Owned(format!("/steps/{index}{rest}")))
    }

    /// Whether a step, given by its pointer, is one of a preamble: it leads to where the case begins, and decides nothing.
    pub fn is_in_preamble(&self, below: &str) -> bool {
        self.origin(below).0.case.beginning.is_preamble
    }

    /// The file in which a step stands, given by its pointer.
    pub fn file_of(&self, below: &str) -> &str {
        &self.origin(below).0.file
    }
}

/// Thoughts before what a turn does otherwise, unless it has some, and a text before its first call.
fn begin_turn(turn: &mut Vec<TurnStep>, thoughts: &[String], preface: &[String]) {
    let calls_first = turn.first().is_some_and(|step| step.call.is_some());
    if calls_first && !preface.is_empty() {
        turn.insert(0, TurnStep { say: Some(preface.to_vec()), ..TurnStep::default() });
    }
    if !thoughts.is_empty() && turn.iter().all(|step| step.think.is_none()) {
        turn.insert(0, TurnStep { think: Some(thoughts.to_vec()), ..TurnStep::default() });
    }
}

/// The texts of a value.
fn strings<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether both steps connect the same client in the same way.
fn open_alike(one: &Step, other: &Step) -> bool {
    let is_conditional = one.common.when.is_some() || other.common.when.is_some();
    match (&one.verb, &other.verb) {
        (Verb::Open(one), Verb::Open(other)) => one == other && !is_conditional,
        _ => false,
    }
}

/// The client of an `open` leaves.
fn leave(open: &Step) -> Option<Step> {
    let Verb::Open(open) = &open.verb else { return None };
    let cut = Cut { client: open.client.clone(), after: None, noticed: true, leaves: true };
    Some(Step { verb: Verb::Drop(cut), common: Common::default() })
}

fn merge(all: &mut Vec<String>, more: &[String]) {
    for name in more {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
}
