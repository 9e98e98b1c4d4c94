//! What decides a requirement, apart from the cases of a suite.

use std::fmt;

use rustc_hash::FxHashMap;

use super::Protocol;
use super::refs::Refs;

/// Something in a protocol file that decides a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider<'p> {
    /// A place in the schema of this message.
    Schema(&'p str),
    /// What every frame must be: an `object`, a `message`, valid by its `schema`.
    Frames(&'static str),
    /// An invariant.
    Invariant {
        /// Its name.
        name: &'p str,
        /// The property in one sentence.
        about: &'p str,
    },
    /// What the server selects of the sub-protocols that are offered.
    Upgrade,
    /// An exchange that opens a connection.
    Opening(&'p str),
    /// The end of every turn that is waited for.
    Turn,
    /// That the server ends no connection unless a step awaits it.
    Connections,
}

impl fmt::Display for Decider<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(message) => write!(f, "schema of {message}"),
            Self::Frames(rule) => write!(f, "every frame ({rule})"),
            Self::Invariant { name, about } => write!(f, "invariant {name}: {about}"),
            Self::Upgrade => f.write_str("every connection (the sub-protocol)"),
            Self::Opening(name) => write!(f, "opening {name}"),
            Self::Turn => f.write_str("every turn that is waited for"),
            Self::Connections => f.write_str("every connection that is to stay open"),
        }
    }
}

/// What decides each requirement of a protocol.
pub struct Deciders<'p>(FxHashMap<&'p str, Vec<Decider<'p>>>);

impl<'p> Deciders<'p> {
    /// Looks through the protocol once.
    pub fn index(protocol: &'p Protocol) -> Self {
        let mut index = Self(FxHashMap::default());
        for message in &protocol.messages {
            message.decides().for_each(|id| index.add(id, Decider::Schema(&message.name)));
        }
        let frames = &protocol.extension.frames;
        let frames = [
            ("object", &frames.object),
            ("discriminator", &frames.discriminator),
            ("message", &frames.message),
            ("schema", &frames.schema),
        ];
        for (rule, ids) in frames {
            index.add_all(ids, Decider::Frames(rule));
        }
        for (name, invariant) in &protocol.extension.invariants {
            let decider = Decider::Invariant { name, about: &invariant.about };
            Refs::of(invariant).ids.iter().for_each(|(_, ids)| index.add_all(ids, decider));
        }
        if let Some(upgrade) = &protocol.extension.upgrade {
            index.add_all(&upgrade.covers, Decider::Upgrade);
        }
        for (name, steps) in &protocol.extension.openings {
            steps.iter().for_each(|step| index.add_all(&step.covers, Decider::Opening(name)));
        }
        index.add_all(&protocol.extension.turn.covers, Decider::Turn);
        index.add_all(&protocol.extension.frames.ended, Decider::Connections);
        index
    }

    /// What decides a requirement.
    pub fn of(&self, id: &str) -> &[Decider<'p>] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }

    fn add_all(&mut self, ids: &'p [String], decider: Decider<'p>) {
        ids.iter().for_each(|id| self.add(id, decider));
    }

    fn add(&mut self, id: &'p str, decider: Decider<'p>) {
        let known = self.0.entry(id).or_default();
        if known.last() != Some(&decider) {
            known.push(decider);
        }
    }
}
