//! What a case covers and no step decides; turns whose end is asked for on behalf of something lighter.

use std::collections::BTreeSet;

use super::{Linter, Rule, ungroup};
use crate::protocol::Protocol;
use crate::scenario::TURN_END;
use crate::scenario::case::{Step, Verb};
use crate::source::Part;
use crate::trace::Direction;

pub(super) fn look(linter: &mut Linter<'_>) {
    undecided(linter);
    light(linter);
}

/// The requirements that steps can be held against the server by; `None`: one of them takes those of its case.
fn blamed<'s>(protocol: &'s Protocol, steps: impl Iterator<Item = &'s Step>) -> Option<BTreeSet<&'s str>> {
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    for step in steps {
        let own = &step.common.covers;
        ids.extend(own.iter().map(String::as_str));
        ids.extend(blamed(protocol, step.verb.inner())?);
        if !own.is_empty() {
            continue;
        }
        match &step.verb {
            Verb::Expect(verb) => {
                let absent = absent(protocol, &verb.awaited.names);
                if absent.is_empty() || verb.awaited.with.is_some() || verb.awaited.schema.is_some() {
                    return None;
                }
                ids.extend(absent);
            }
            verb if verb.judges() => return None,
            _ => {}
        }
    }
    Some(ids)
}

/// What the absence of a message breaks by itself.
fn absent<'s>(protocol: &'s Protocol, names: &'s [String]) -> Vec<&'s str> {
    if names.iter().any(|name| name == TURN_END) {
        return protocol.extension.turn.covers.iter().map(String::as_str).collect();
    }
    let indices = names.iter().filter_map(|name| protocol.index_of(name, Direction::Recv));
    indices.flat_map(|index| protocol.messages[index].absent.iter().map(String::as_str)).collect()
}

fn undecided(linter: &mut Linter<'_>) {
    let (protocol, case) = (linter.protocol, &linter.case.case);
    let Some(ids) = blamed(protocol, case.steps.iter().map(AsRef::as_ref)) else { return };
    let lost: Vec<usize> = (0..case.covers.len())
        .filter(|index| {
            let id = case.covers[*index].as_str();
            !ids.contains(id) && linter.deciders.of(id).is_empty()
        })
        .collect();
    for index in lost {
        let message =
            format!("no step of the case decides {}, and no rule of the protocol", case.covers[index]);
        let hint = "give the step that does `covers`, or remove the requirement";
        linter.found(Rule::UndecidedCovers, &format!("/covers/{index}"), Part::Value, message, hint);
    }
}

/// The first end of a turn that the case asks for is held against something that is no MUST, which the turn's end is.
fn light(linter: &mut Linter<'_>) {
    let requirements = &linter.protocol.requirements;
    if !requirements.fails(&linter.protocol.extension.turn.covers) {
        return;
    }
    let is_end = |step: &Step| matches!(&step.verb, Verb::Expect(verb) if verb.awaited.names == [TURN_END]);
    let case = linter.case;
    let steps = ungroup(&case.case.steps, "/steps");
    let Some((step, place)) = steps.iter().find(|(step, _)| is_end(step)) else { return };
    let covers = &step.common.covers;
    if covers.is_empty() || requirements.fails(covers) {
        return;
    }
    let message =
        format!("a server whose turns never end would be reported as violating {}", covers.join(" and "));
    let hint = "let a turn end before this step, in a step without `covers`";
    linter.found(Rule::LightTurnEnd, &format!("{place}/covers"), Part::Value, message, hint);
}
