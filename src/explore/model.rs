//! The expected state of sessions and clients during a walk: what is legal, and what comes of it.

use super::table::{Ends, Loses, Table};
use super::walk::{Act, Actor, ClosingChecks, Move, Walk};
use crate::protocol::{Protocol, Situation};

/// The state of a session at rest, in tables.
pub const REST: &str = "at rest";

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: a turn can begin.
    Rest,
    /// It is in a state of the protocol's `fuzzing.states`.
    In {
        /// The state's name.
        state: String,
        /// Who has brought it there.
        owner: Actor,
    },
}

/// What is known of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Client {
    is_connected: bool,
    /// It has been there since the session's state was entered.
    has_seen: bool,
}

/// Sessions and clients in the course of a walk.
#[derive(Clone)]
pub struct Model<'m> {
    protocol: &'m Protocol,
    table: &'m Table,
    clients: [Client; 3],
    phases: [Phase; 3],
}

impl<'m> Model<'m> {
    /// The beginning: `alice` is connected, and her session at rest.
    pub fn new(protocol: &'m Protocol, table: &'m Table) -> Self {
        let clients = [Client { is_connected: true, has_seen: true }, Client::default(), Client::default()];
        Self { protocol, table, clients, phases: [Phase::Rest, Phase::Rest, Phase::Rest] }
    }

    /// What a client's session is doing.
    pub fn phase(&self, actor: Actor) -> &Phase {
        &self.phases[self.table.session_of(actor)]
    }

    /// The name of the state of a client's session.
    pub fn state_name(&self, actor: Actor) -> &str {
        match self.phase(actor) {
            Phase::Rest => REST,
            Phase::In { state, .. } => state,
        }
    }

    /// The state of a client's session, if it is in one, and who has brought it there.
    pub fn situation(&self, actor: Actor) -> Option<(&'m Situation, Actor)> {
        match self.phase(actor) {
            Phase::Rest => None,
            Phase::In { state, owner } => {
                self.protocol.extension.fuzzing.states.get(state).map(|found| (found, *owner))
            }
        }
    }

    /// Whether a client has a connection.
    pub fn is_connected(&self, actor: Actor) -> bool {
        self.clients[actor as usize].is_connected
    }

    /// Whether a client has seen how its session came into its state.
    pub fn has_seen(&self, actor: Actor) -> bool {
        self.clients[actor as usize].has_seen
    }

    /// The other connected clients of a client's session.
    pub fn others(&self, actor: Actor) -> Vec<Actor> {
        let session = self.table.session_of(actor);
        let same = |other: &Actor| {
            *other != actor && self.table.session_of(*other) == session && self.is_connected(*other)
        };
        Actor::ALL.into_iter().filter(same).collect()
    }

    /// Whether a move is legal now.
    pub fn is_legal(&self, step: &Move) -> bool {
        let Move { by, act, watched } = step;
        (!watched || self.can_be_watched(*by, act))
            && !self.table.without().contains(&act.to_string())
            && match act {
                Act::Open => {
                    let has_session = self.table.session_of(*by) == 0 || !self.table.is_single;
                    has_session && !self.is_connected(*by) && self.may_join(*by)
                }
                _ => self.is_connected(*by) && self.is_legal_when_connected(*by, act),
            }
    }

    fn is_legal_when_connected(&self, by: Actor, act: &Act) -> bool {
        let is_at_rest = *self.phase(by) == Phase::Rest;
        match act {
            Act::Open => false,
            Act::Reopen(..) => self.may_be_lost(by),
            // Somebody must stay.
            Act::Leave => by != Actor::Alice && self.may_be_lost(by),
            Act::Turn(..) | Act::Scripted(_) => is_at_rest,
            Act::Enter(state) => is_at_rest && self.protocol.extension.fuzzing.states.contains_key(state),
            Act::Exit(way) => self.situation(by).is_some_and(|(state, owner)| {
                Table::ends(state) == Ends::ByLeaving
                    && (owner == by || self.table.is_shared)
                    && way.as_ref().is_none_or(|way| state.ways.contains_key(way))
            }),
            Act::Wait => {
                let passes = |(state, _): (&Situation, _)| Table::ends(state) == Ends::ByItself;
                self.situation(by).is_some_and(passes) && self.has_seen(by)
            }
            Act::Query => self.table.has_state || !self.shown(by).is_empty(),
            Act::Message(_) => true,
        }
    }

    /// What can be seen of the state in which a client's session is.
    pub fn shown(&self, actor: Actor) -> &'m [crate::protocol::extension::Exchange] {
        match self.situation(actor) {
            Some((state, _)) => &state.shows,
            None => &self.protocol.extension.explore.at_rest,
        }
    }

    /// Whether a client may come to its session now.
    fn may_join(&self, actor: Actor) -> bool {
        self.situation(actor).is_none_or(|(state, _)| state.outlives)
    }

    /// Whether a client may lose its connection now: the session's state must outlive it, or end with it, and somebody must be left
    /// who sees how a passing one ends.
    fn may_be_lost(&self, actor: Actor) -> bool {
        let Some((state, _)) = self.situation(actor) else { return true };
        if self.table.loses == Loses::Everything {
            return true;
        }
        let is_seen = || self.others(actor).into_iter().any(|other| self.has_seen(other));
        state.outlives && (Table::ends(state) != Ends::ByItself || is_seen())
    }

    /// Whether a move can be watched by the other session: it is there, and does nothing that changes by itself.
    fn can_be_watched(&self, by: Actor, act: &Act) -> bool {
        let is_still = match self.situation(Actor::Bystander) {
            Some((state, _)) => Table::ends(state) != Ends::ByItself,
            None => true,
        };
        let acts = matches!(act, Act::Turn(..) | Act::Scripted(_) | Act::Exit(_) | Act::Wait);
        self.table.has_state
            && self.table.is_isolated
            && by != Actor::Bystander
            && self.is_connected(Actor::Bystander)
            && is_still
            && acts
    }

    /// What comes of a legal move.
    pub fn apply(&mut self, step: &Move) {
        let session = self.table.session_of(step.by);
        match &step.act {
            Act::Open | Act::Reopen(..) => {
                if self.table.loses == Loses::Everything {
                    self.phases[session] = Phase::Rest;
                }
                self.clients[step.by as usize] =
                    Client { is_connected: true, has_seen: self.phases[session] == Phase::Rest };
            }
            Act::Leave => {
                if self.table.loses == Loses::Everything {
                    self.phases[session] = Phase::Rest;
                }
                self.clients[step.by as usize] = Client::default();
            }
            Act::Enter(name) => self.enter(step.by, name),
            Act::Exit(_) | Act::Wait => self.rest(session),
            Act::Turn(..) | Act::Scripted(_) | Act::Query | Act::Message(_) => {}
        }
    }

    fn enter(&mut self, by: Actor, name: &str) {
        let session = self.table.session_of(by);
        let Some(state) = self.protocol.extension.fuzzing.states.get(name) else { return };
        if Table::ends(state) == Ends::AtOnce {
            return;
        }
        self.phases[session] = Phase::In { state: name.to_owned(), owner: by };
        if state.reopen.is_some() {
            self.clients[by as usize].has_seen = false;
        }
    }

    fn rest(&mut self, session: usize) {
        self.phases[session] = Phase::Rest;
        for actor in Actor::ALL {
            if self.table.session_of(actor) == session {
                self.clients[actor as usize].has_seen = self.is_connected(actor);
            }
        }
    }

    /// What must be done until every session is at rest.
    pub fn leaving(&self) -> Vec<Move> {
        let mut model = self.clone();
        let mut moves = Vec::new();
        for by in Actor::ALL {
            for act in [Act::Exit(None), Act::Wait] {
                let step = Move { by, act, watched: false };
                if model.is_legal(&step) {
                    model.apply(&step);
                    moves.push(step);
                }
            }
        }
        moves
    }
}

impl Walk {
    /// The walk without the moves that are not legal where they stand.
    #[must_use]
    pub fn repaired(moves: Vec<Move>, closing: ClosingChecks, protocol: &Protocol, table: &Table) -> Self {
        let mut model = Model::new(protocol, table);
        let legal = |mut step: Move| {
            step.watched = step.watched && model.can_be_watched(step.by, &step.act);
            let legal = model.is_legal(&step);
            if legal {
                model.apply(&step);
            }
            legal.then_some(step)
        };
        let moves = moves.into_iter().filter_map(legal).collect();
        Self { moves, closing }
    }

    /// Whether every move is legal where it stands.
    pub fn is_valid(&self, protocol: &Protocol, table: &Table) -> bool {
        Self::repaired(self.moves.clone(), self.closing, protocol, table) == *self
    }
}
