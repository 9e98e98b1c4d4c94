//! Which moves were made in which states, and what came of them.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Model, REST};
use super::table::{Ends, Table};
use super::walk::{Act, Actor, Move, Walk};
use crate::protocol::Protocol;

/// How often each move was made in each state, by the state that followed: state, act, next state.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    seen: BTreeMap<(String, String), BTreeMap<String, u64>>,
}

impl Coverage {
    /// Adds the first `done` moves of a walk.
    pub fn add(&mut self, walk: &Walk, done: usize, protocol: &Protocol, table: &Table) {
        let mut model = Model::new(protocol, table);
        for step in walk.moves.iter().take(done) {
            let key = (model.state_name(step.by).to_owned(), step.act.to_string());
            model.apply(step);
            let next = model.state_name(step.by).to_owned();
            *self.seen.entry(key).or_default().entry(next).or_default() += 1;
        }
    }

    /// How often a move was made in a state.
    pub fn count(&self, state: &str, act: &str) -> u64 {
        let key = (state.to_owned(), act.to_owned());
        self.seen.get(&key).map_or(0, |next| next.values().sum())
    }

    /// Every act that was made.
    pub fn acts(&self) -> BTreeSet<&str> {
        self.seen.keys().map(|(_, act)| act.as_str()).collect()
    }

    /// Every state in which something was done.
    pub fn states(&self) -> BTreeSet<&str> {
        self.seen.keys().map(|(state, _)| state.as_str()).collect()
    }

    /// How often one state followed another.
    pub fn transitions(&self) -> BTreeMap<(&str, &str), u64> {
        let mut all = BTreeMap::new();
        for ((state, _), next) in &self.seen {
            for (next, count) in next {
                *all.entry((state.as_str(), next.as_str())).or_default() += count;
            }
        }
        all
    }

    /// What is legal and was never done: state and act.
    pub fn never(&self, protocol: &Protocol, table: &Table) -> Vec<(String, String)> {
        let possible = possible(protocol, table);
        possible.into_iter().filter(|(state, act)| self.count(state, act) == 0).collect()
    }
}

/// Every state with every act that is legal in it.
fn possible(protocol: &Protocol, table: &Table) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    let held =
        protocol.extension.fuzzing.states.iter().filter(|(_, state)| Table::ends(state) != Ends::AtOnce);
    let held = held.map(|(name, _)| Some(name));
    for state in std::iter::once(None).chain(held) {
        for present in [&[][..], &[Actor::Bob]] {
            let mut model = Model::new(protocol, table);
            let moves = present.iter().map(|by| (*by, Act::Open));
            let enter = state.map(|name| (Actor::Alice, Act::Enter(name.clone())));
            for (by, act) in moves.chain(enter) {
                let step = Move { by, act, watched: false };
                if model.is_legal(&step) {
                    model.apply(&step);
                }
            }
            if state.is_some_and(|name| model.state_name(Actor::Alice) != name) {
                continue;
            }
            for act in table.kinds().iter().flatten() {
                for by in [Actor::Alice, Actor::Bob] {
                    let at = model.state_name(by);
                    let is_here = at == state.map_or(REST, |name| name.as_str());
                    let step = Move { by, act: act.clone(), watched: false };
                    if is_here && model.is_legal(&step) {
                        all.insert((at.to_owned(), act.to_string()));
                    }
                }
            }
        }
    }
    all
}
