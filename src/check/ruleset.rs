//! The checks of a protocol, compiled.

use std::sync::Arc;

use super::Judge;
use super::history::History;
use super::monitor::{Monitor, registry};
use crate::frame::Limits;
use crate::protocol::{ConnectionEvent, Matcher, Protocol};
use crate::results::Check;
use crate::source::Diagnostics;
use crate::trace::Direction;

/// What a protocol's traces are judged by: its monitors, each with the messages that it wants to see.
///
/// Compiled once; the judges made from it share all that does not change while they judge.
pub struct Ruleset {
    pub(super) protocol: Arc<Protocol>,
    pub(super) rules: Vec<Rule>,
    /// A log of nothing.
    pub(super) history: History,
}

/// A monitor that has seen nothing.
pub(super) struct Rule {
    pub name: Arc<str>,
    pub monitor: Box<dyn Monitor>,
    interests: Vec<Matcher>,
}

/// Which monitors want which messages, by their place in the list of the judge.
#[derive(Clone, Default)]
pub(super) struct Dispatch {
    /// By message of the protocol, its parts behind them, and behind these the events of connections.
    by_message: Vec<Vec<usize>>,
    /// Those that want messages of a direction that the protocol does not know.
    unknown: [Vec<usize>; 2],
}

impl Ruleset {
    /// Compiles the monitors of a protocol.
    ///
    /// # Errors
    /// An invariant whose pattern does not compile (found when the protocol is loaded, too).
    pub fn compile(protocol: &Arc<Protocol>) -> Result<Arc<Self>, Diagnostics> {
        let mut rules = Vec::new();
        for (name, invariant) in &protocol.extension.invariants {
            let name: Arc<str> = name.as_str().into();
            let check = Check::Invariant(Arc::clone(&name));
            let (monitor, interests) = registry::build(check, &invariant.monitor, protocol)?;
            rules.push(Rule { name, monitor, interests });
        }
        let history = History::new(protocol);
        Ok(Arc::new(Self { protocol: Arc::clone(protocol), rules, history }))
    }

    /// A judge with all monitors but the suspended ones.
    pub fn judge(self: &Arc<Self>, limits: Limits, suspended: &[String]) -> Judge {
        let is_active = |rule: &&Rule| !suspended.iter().any(|name| **name == *rule.name);
        let active: Vec<&Rule> = self.rules.iter().filter(is_active).collect();
        Judge::of(self, limits, &active)
    }
}

impl Dispatch {
    pub fn new(protocol: &Protocol, rules: &[&Rule]) -> Self {
        let known = protocol.messages.len() + protocol.parts().len() + ConnectionEvent::ALL.len();
        let mut by_message = vec![Vec::new(); known];
        let mut unknown = [Vec::new(), Vec::new()];
        for (index, rule) in rules.iter().enumerate() {
            for interest in &rule.interests {
                match interest.messages() {
                    Some(messages) => messages.iter().for_each(|message| by_message[*message].push(index)),
                    None => {
                        let dir = interest.direction();
                        unknown[dir as usize].push(index);
                        let all =
                            protocol.messages.iter().enumerate().filter(|(_, message)| message.dir == dir);
                        all.for_each(|(message, _)| by_message[message].push(index));
                    }
                }
            }
        }
        for list in by_message.iter_mut().chain(&mut unknown) {
            list.sort_unstable();
            list.dedup();
        }
        Self { by_message, unknown }
    }

    /// The monitors that want a message: its index in the protocol, `None` for one that is unknown there.
    pub fn wanting(&self, message: Option<usize>, dir: Direction) -> &[usize] {
        match message {
            Some(message) => &self.by_message[message],
            None => &self.unknown[dir as usize],
        }
    }
}
