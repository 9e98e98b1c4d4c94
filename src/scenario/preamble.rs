//! Cases behind a preamble (ISO/IEC 9646: what brings the server into the state in which a test begins): the steps of one case are
//! done before those of another. So everything that the other looks at is also looked at after a denial, in a later turn and so on.

use std::borrow::Cow;
use std::sync::Arc;

use super::LoadedCase;
use super::case::{Step, Verb};

/// Between the id of a case and the name of the preamble that it is run behind.
pub const BEHIND: char = '@';
/// Every preamble.
pub const ANY: &str = "*";

impl LoadedCase {
    /// This case behind a preamble; its id is `family/name@preamble`. `None` where it makes no sense: the case is a preamble itself, does
    /// not begin with the same `open`, is run many times, or says that it is not run behind this one.
    pub fn behind(&self, preamble: &Arc<Self>) -> Option<Self> {
        let (own, before) = (&self.case, &preamble.case);
        let is_often = own.rounds.sweep.is_some() || own.rounds.repeat.is_some();
        let excludes = own.beginning.not_behind.iter().any(|name| name == ANY || name == preamble.name());
        if own.beginning.is_preamble || !before.beginning.is_preamble || is_often || excludes {
            return None;
        }
        let (Some(first), Some(begins)) = (own.steps.first(), before.steps.first()) else { return None };
        if !opens_alike(first, begins) {
            return None;
        }
        let mut case = own.clone();
        case.steps.splice(0..1, before.steps.iter().cloned());
        case.turns.extend(before.turns.clone());
        case.vars.extend(before.vars.clone());
        merge(&mut case.needs, &before.needs);
        merge(&mut case.suspend, &before.suspend);
        case.beginning.words = before.beginning.words.clone().or(case.beginning.words);
        let id = format!("{}{BEHIND}{}", self.id, preamble.name());
        Some(Self { id, case, preamble: Some(Arc::clone(preamble)), ..self.clone() })
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
    pub fn is_preamble(&self, below: &str) -> bool {
        self.origin(below).0.case.beginning.is_preamble
    }

    /// The file in which a step stands, given by its pointer.
    pub fn file_of(&self, below: &str) -> &str {
        &self.origin(below).0.file
    }
}

/// Whether both steps connect the same client in the same way.
fn opens_alike(one: &Step, other: &Step) -> bool {
    let open = |step: &'_ Step| match &step.verb {
        Verb::Open(open) if step.common.when.is_none() => Some(open.clone()),
        _ => None,
    };
    open(one).is_some_and(|one| Some(one) == open(other))
}

fn merge(all: &mut Vec<String>, more: &[String]) {
    all.extend(more.iter().filter(|name| !all.contains(name)).cloned().collect::<Vec<_>>());
}
