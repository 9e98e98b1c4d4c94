//! What moves a protocol has, and what its sessions are like: all from its own data.

use std::collections::BTreeSet;

use super::scripts;
use super::walk::{Act, Actor, Loss, Text};
use crate::protocol::extension::Join;
use crate::protocol::{Protocol, Situation};

/// What becomes of a session whose client loses its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loses {
    /// Every connection is a session of its own: the next one begins anew.
    Everything,
    /// The session goes on, in the states that say so.
    Nothing,
}

/// What a session's states are like, for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The session is at rest again as soon as the state is entered.
    AtOnce,
    /// By itself, soon.
    ByItself,
    /// By what a client does.
    ByLeaving,
}

/// The moves of a protocol.
pub struct Table {
    /// Every act, whether it is legal at the moment or not; grouped by kind, so that each kind can be chosen alike.
    kinds: Vec<Vec<Act>>,
    /// What a lost connection loses.
    pub loses: Loses,
    /// Whether `bob` is in the session of `alice`.
    pub is_shared: bool,
    /// Whether the state of a session can be asked for.
    pub has_state: bool,
    /// Whether sessions are to be kept apart.
    pub is_isolated: bool,
    /// There is one session for all clients.
    pub is_single: bool,
    /// Acts that are left out.
    without: BTreeSet<String>,
}

impl Table {
    /// The moves of a protocol, but for those whose names are in `without`.
    pub fn new(protocol: &Protocol, without: BTreeSet<String>) -> Self {
        let extension = &protocol.extension;
        let (fuzzing, explore) = (&extension.fuzzing, &extension.explore);
        let loses = match extension.session.join {
            Join::Connection => Loses::Everything,
            Join::Field(_) | Join::Parameter(_) => Loses::Nothing,
        };
        let turns = scripts::turns(protocol);
        let turns = turns.keys().flat_map(|name| {
            let texts: &[Text] =
                if name == crate::synthesis::model_scripts::CLEAN { &Text::ALL } else { &[Text::Plain] };
            texts.iter().map(|text| Act::Turn(name.clone(), *text))
        });
        let mut reopened: Vec<Option<String>> = explore
            .reopen
            .iter()
            .filter(|way| protocol.extension.openings.contains_key(way.as_str()))
            .cloned()
            .map(Some)
            .collect();
        if reopened.is_empty() {
            reopened.push(None);
        }
        let reopen = reopened
            .into_iter()
            .flat_map(|way| [Act::Reopen(Loss::Cut, way.clone()), Act::Reopen(Loss::Closed, way)]);
        let ways: BTreeSet<&String> = fuzzing.states.values().flat_map(|state| state.ways.keys()).collect();
        let exits =
            std::iter::once(Act::Exit(None)).chain(ways.into_iter().cloned().map(|way| Act::Exit(Some(way))));
        let mut kinds: Vec<Vec<Act>> = vec![
            vec![Act::Open],
            reopen.collect(),
            vec![Act::Leave],
            turns.collect(),
            explore.turns.keys().cloned().map(Act::Scripted).collect(),
            fuzzing.states.keys().cloned().map(Act::Enter).collect(),
            exits.collect(),
            vec![Act::Wait],
            vec![Act::Query],
            explore.messages.keys().cloned().map(Act::Message).collect(),
        ];
        for kind in &mut kinds {
            kind.retain(|act| !without.contains(&act.to_string()));
        }
        kinds.retain(|kind| !kind.is_empty());
        Self {
            kinds,
            loses,
            is_shared: explore.shared.is_some(),
            has_state: extension.state.is_some(),
            is_isolated: !fuzzing.isolated.is_empty(),
            is_single: protocol.lacks_isolation().is_some(),
            without,
        }
    }

    /// Every act, by kind.
    pub fn kinds(&self) -> &[Vec<Act>] {
        &self.kinds
    }

    /// The names of the acts that are left out.
    pub fn without(&self) -> &BTreeSet<String> {
        &self.without
    }

    /// The session of a client: a number.
    pub fn session_of(&self, actor: Actor) -> usize {
        match actor {
            Actor::Alice => 0,
            Actor::Bob => usize::from(!self.is_shared),
            Actor::Bystander => 2,
        }
    }

    /// What the scenario calls the session of a client.
    pub fn session_name(&self, actor: Actor) -> Option<&'static str> {
        ["", "second", "other"].into_iter().nth(self.session_of(actor)).filter(|name| !name.is_empty())
    }

    /// How a state ends.
    pub fn ends(state: &Situation) -> Ends {
        if state.passing {
            Ends::ByItself
        } else if state.leave.is_empty() {
            Ends::AtOnce
        } else {
            Ends::ByLeaving
        }
    }
}
