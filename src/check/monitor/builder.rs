//! What a monitor is built with.

use std::sync::Arc;
use std::time::Duration;

use crate::frame::Pointer;
use crate::protocol::{ConnectionEvent, Matcher, Pattern, Protocol, Time, extension};
use crate::results::Check;
use crate::source::Diagnostics;
use crate::trace::Direction;

/// Compiles patterns and remembers them as interests.
pub(in crate::check) struct MonitorBuilder<'p> {
    /// The check that its violations are of.
    pub check: Check,
    pub protocol: &'p Arc<Protocol>,
    interests: Vec<Matcher>,
}

impl<'p> MonitorBuilder<'p> {
    pub fn new(check: Check, protocol: &'p Arc<Protocol>) -> Self {
        Self { check, protocol, interests: Vec::new() }
    }

    /// The patterns that were compiled: the messages that the monitor wants to see.
    pub fn into_interests(self) -> Vec<Matcher> {
        self.interests
    }

    pub fn pattern(&mut self, pattern: &Pattern) -> Result<Matcher, Diagnostics> {
        let matcher = Matcher::of_connection(pattern, self.protocol)?;
        self.matcher(&matcher);
        Ok(matcher)
    }

    /// A pattern that has been compiled.
    pub fn matcher(&mut self, matcher: &Matcher) {
        self.interests.extend(matcher.alternatives().iter().cloned());
    }

    /// The end of a connection, whoever makes it.
    pub fn end(&mut self) -> [Matcher; 2] {
        let of = |dir| Matcher::of_event(ConnectionEvent::Close, dir, self.protocol);
        let both = [Direction::Recv, Direction::Send].map(of);
        both.iter().for_each(|one| self.matcher(one));
        both
    }

    /// A time of the protocol's.
    pub fn time(&self, time: Option<&Time>) -> Result<Option<Duration>, Diagnostics> {
        time.map(|time| self.protocol.time(&time.0)).transpose()
    }

    pub fn optional(&mut self, pattern: Option<&Pattern>) -> Result<Option<Matcher>, Diagnostics> {
        pattern.map(|pattern| self.pattern(pattern)).transpose()
    }

    pub fn place(&mut self, at: &extension::At) -> Result<(Matcher, Pointer), Diagnostics> {
        Ok((self.pattern(&at.message)?, at.at.clone()))
    }

    pub fn places(&mut self, places: &[extension::At]) -> Result<Vec<(Matcher, Pointer)>, Diagnostics> {
        places.iter().map(|place| self.place(place)).collect()
    }

    /// The messages of the protocol's log.
    pub fn log(&mut self) -> Result<(), Diagnostics> {
        let Some(log) = &self.protocol.extension.log else { return Ok(()) };
        self.pattern(&log.message).map(drop)
    }
}
