//! Short walks, each for one move.

use super::table::Table;
use super::walk::{Act, Actor, ClosingChecks, Move, Walk};
use crate::protocol::Protocol;

/// For each act the shortest walk that makes it, and the name under which it is left out if that fails.
pub(super) fn each_alone(protocol: &Protocol, table: &Table) -> Vec<(String, Walk)> {
    let by = |by: Actor, act: Act| Move { by, act, watched: false };
    let mut all = Vec::new();
    for act in table.kinds().iter().flatten() {
        let walks: Vec<Vec<Move>> = match act {
            Act::Open => vec![vec![by(Actor::Bob, Act::Open)]],
            Act::Leave => vec![vec![by(Actor::Bob, Act::Open), by(Actor::Bob, Act::Leave)]],
            Act::Wait | Act::Exit(None) => Vec::new(),
            Act::Exit(Some(way)) => {
                let states = protocol.extension.fuzzing.states.iter();
                let with = states.filter(|(_, state)| state.ways.contains_key(way));
                with.map(|(name, _)| {
                    vec![by(Actor::Alice, Act::Enter(name.clone())), by(Actor::Alice, act.clone())]
                })
                .collect()
            }
            _ => vec![vec![by(Actor::Alice, act.clone())]],
        };
        let walks = walks.into_iter().map(|moves| Walk { moves, closing: ClosingChecks::Brief });
        let walks = walks.filter(|walk| walk.is_valid(protocol, table));
        all.extend(walks.map(|walk| (act.to_string(), walk)));
    }
    all
}
