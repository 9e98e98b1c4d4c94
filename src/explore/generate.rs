//! Walks from a seed: among the legal moves each kind is chosen alike, and among the moves of a kind each.

use super::model::Model;
use super::table::Table;
use super::walk::{Act, Actor, ClosingChecks, Move, Walk};
use crate::protocol::Protocol;
use crate::synthesis::rng::SeededRng;

/// Tries of a random move before all legal ones are looked up.
const TRIES: usize = 64;
/// In so many of a hundred tries a state is entered.
const ENTERING: usize = 25;

/// The walk of a number. It depends on the seed, the number and the table, and on nothing else.
pub fn walk(protocol: &Protocol, table: &Table, seed: u64, index: u64, most: usize) -> Walk {
    let mut rng = SeededRng::new(seed, index);
    let mut model = Model::new(protocol, table);
    let mut moves = Vec::new();
    // Short walks are cheap to shrink, long ones see more.
    let length = (1 + rng.below(most.max(1))).max(most / 2);
    while moves.len() < length {
        let Some(step) = next(&mut rng, &model, table) else { break };
        model.apply(&step);
        moves.push(step);
    }
    Walk { moves, closing: ClosingChecks::Full }
}

fn next(rng: &mut SeededRng, model: &Model<'_>, table: &Table) -> Option<Move> {
    for _ in 0..TRIES {
        let by = match rng.below(10) {
            0..=4 => Actor::Alice,
            5..=7 => Actor::Bob,
            _ => Actor::Bystander,
        };
        // Nobody does anything before it has come.
        let act = if model.is_connected(by) {
            // What happens in a state is what turns alone do not show.
            let entering = table.kinds().iter().find(|kind| matches!(kind[..], [Act::Enter(_), ..]));
            let kind = match entering.filter(|_| rng.chance(ENTERING)) {
                Some(entering) => entering,
                None => rng.pick(table.kinds())?,
            };
            rng.pick(kind)?.clone()
        } else {
            Act::Open
        };
        let watched = rng.chance(30);
        let step = Move { by, act, watched };
        let plain = Move { watched: false, ..step.clone() };
        if let Some(step) = [step, plain].into_iter().find(|step| model.is_legal(step)) {
            return Some(step);
        }
    }
    // Where hardly anything is legal, one of what is.
    let acts = table.kinds().iter().flatten();
    let all = acts.flat_map(|act| Actor::ALL.map(|by| Move { by, act: act.clone(), watched: false }));
    let legal: Vec<Move> = all.filter(|step| model.is_legal(step)).collect();
    rng.pick(&legal).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::alone::each_alone;
    use crate::protocol::LoadOptions;
    use crate::scenario::synthetic;
    use crate::source::Document;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn each_protocol(mut check: impl FnMut(&Arc<Protocol>, &Table)) {
        for name in Protocol::embedded_names() {
            let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
            let table = Table::new(&protocol, BTreeSet::new());
            check(&protocol, &table);
        }
    }

    #[test]
    fn walks_are_valid_and_the_same_for_the_same_seed() {
        each_protocol(|protocol, table| {
            for index in 0..40 {
                let made = walk(protocol, table, 7, index, 25);
                assert!(made.moves.len() >= 12, "{made:?}");
                assert!(made.is_valid(protocol, table), "{made:?}");
                assert_eq!(made, walk(protocol, table, 7, index, 25));
                assert_ne!(made, walk(protocol, table, 8, index, 25));
            }
        });
    }

    /// All clients of a server with one session are in that one.
    #[test]
    fn a_server_with_one_session_is_asked_for_no_other() {
        for name in Protocol::embedded_names() {
            let mut protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
            let others = |protocol: &Arc<Protocol>| {
                let table = Table::new(protocol, BTreeSet::new());
                let walks = (0..40).flat_map(|index| walk(protocol, &table, 7, index, 25).moves);
                walks.filter(|step| table.session_of(step.by) != 0).count()
            };
            let before = others(&protocol);
            Arc::get_mut(&mut protocol).expect("nobody else has it").set_single_session();
            assert_eq!(others(&protocol), 0, "{name}: {before} before");
        }
    }

    #[test]
    fn a_walk_is_a_scenario() {
        let document = Arc::new(Document::parse("explore", "{}").expect("a map"));
        each_protocol(|protocol, table| {
            let alone = each_alone(protocol, table).into_iter().map(|(_, walk)| walk);
            let long = (0..10).map(|index| walk(protocol, table, 3, index, 25));
            for made in alone.chain(long) {
                let case = made.render(protocol, table, "walk", "A walk").case;
                let loaded = synthetic::unplaced(&case, "explore", &document, protocol);
                assert!(loaded.is_ok(), "{made:?}: {:?}", loaded.err());
            }
        });
    }

    #[test]
    fn what_is_left_of_a_walk_is_valid() {
        each_protocol(|protocol, table| {
            let mut rng = SeededRng::new(11, 0);
            for index in 0..20 {
                let mut moves = walk(protocol, table, 5, index, 25).moves;
                moves.retain(|_| rng.chance(60));
                let left = Walk::repaired(moves, ClosingChecks::Brief, protocol, table);
                assert!(left.is_valid(protocol, table), "{left:?}");
            }
        });
    }

    #[test]
    fn an_illegal_move_is_known_as_one() {
        each_protocol(|protocol, table| {
            let step = |by, act| Move { by, act, watched: false };
            for moves in [
                vec![step(Actor::Alice, Act::Open)],
                vec![step(Actor::Alice, Act::Wait)],
                vec![step(Actor::Alice, Act::Exit(None))],
                vec![step(Actor::Bob, Act::Leave)],
                vec![step(Actor::Bob, Act::Turn("clean".to_owned(), crate::explore::walk::Text::Plain))],
            ] {
                let made = Walk { moves, closing: ClosingChecks::Brief };
                assert!(!made.is_valid(protocol, table), "{made:?}");
            }
        });
    }

    #[test]
    fn a_state_is_left_before_the_next_turn() {
        each_protocol(|protocol, table| {
            let states = protocol.extension.fuzzing.states.iter();
            for (name, _) in states.filter(|(_, state)| !state.leave.is_empty()) {
                let step = |act| Move { by: Actor::Alice, act, watched: false };
                let turn = step(Act::Turn("clean".to_owned(), crate::explore::walk::Text::Plain));
                let enter = step(Act::Enter(name.clone()));
                let walk = |moves| Walk { moves, closing: ClosingChecks::Brief };
                let left = vec![enter.clone(), step(Act::Exit(None)), turn.clone()];
                assert!(walk(left).is_valid(protocol, table), "{name}");
                assert!(!walk(vec![enter, turn]).is_valid(protocol, table), "{name}");
            }
        });
    }
}
