//! Cases behind a preamble (ISO/IEC 9646: what brings the server into the state in which a test begins): the steps of one case are
//! done before those of another. So everything that the other looks at is also looked at after a denial, in a later turn and so on.

use std::borrow::Cow;
use std::sync::Arc;

use super::LoadedCase;
use super::case::{Step, Verb};
use super::file::Words;
use crate::results::case_id;

/// Every preamble.
pub const ANY: &str = "*";

/// What may be before a case, and what it may be before.
#[derive(Debug, Clone, Default)]
pub struct Beginning {
    /// What is done in it may be done before other cases.
    pub is_preamble: bool,
    /// Preambles that it is not run behind.
    pub not_behind: Vec<String>,
    /// What the user says before every cue.
    pub words: Option<Words>,
}

impl LoadedCase {
    /// Whether it makes sense to run this case behind a preamble: it is none itself, begins with the same `open`, is run once, and does not
    /// say that it is not run behind this one.
    pub fn may_stand_behind(&self, preamble: &Self) -> bool {
        let (own, before) = (&self.case, &preamble.case);
        let excludes = own.beginning.not_behind.iter().any(|name| name == ANY || name == preamble.name());
        !own.beginning.is_preamble
            && !excludes
            && own.rounds.sweep.is_none()
            && own.rounds.repeat.is_none()
            && own.steps.first().zip(before.steps.first()).is_some_and(|(one, other)| open_alike(one, other))
    }

    /// This case behind a preamble behind which it may stand.
    pub fn behind(&self, preamble: &Arc<Self>) -> Self {
        let before = &preamble.case;
        let mut case = self.case.clone();
        case.steps.splice(0..1, before.steps.iter().cloned());
        case.turns.extend(before.turns.clone());
        case.vars.extend(before.vars.clone());
        merge(&mut case.needs, &before.needs);
        merge(&mut case.suspend, &before.suspend);
        case.beginning.words = before.beginning.words.clone().or(case.beginning.words);
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
        // The preamble's steps stand for the case's first one.
        let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
        (self, Cow::Owned(format!("/steps/{}{rest}", index - before + 1)))
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

/// Whether both steps connect the same client in the same way.
fn open_alike(one: &Step, other: &Step) -> bool {
    let is_conditional = one.common.when.is_some() || other.common.when.is_some();
    match (&one.verb, &other.verb) {
        (Verb::Open(one), Verb::Open(other)) => one == other && !is_conditional,
        _ => false,
    }
}

fn merge(all: &mut Vec<String>, more: &[String]) {
    for name in more {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
}
