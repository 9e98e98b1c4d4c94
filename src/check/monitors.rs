//! From an invariant of the protocol file to a monitor.

use super::monitor::Monitor;
use super::{
    absence, agreement, bracket, cadence, concatenation, constant, correlation, dialogue, echo, existence,
    frame_rules, increasing, increments, precedence, projection, replay, response, series, states, unique,
};
use crate::frame::Pointer;
use crate::protocol::invariant::Rule;
use crate::protocol::{Matcher, Pattern, Protocol, extension};
use crate::results::Check;
use crate::source::Diagnostics;

/// A monitor, and the messages that it wants to see.
pub(super) struct Built {
    pub monitor: Box<dyn Monitor>,
    pub interests: Vec<Matcher>,
}

/// Compiles patterns and remembers them as interests.
pub(super) struct Builder<'p> {
    /// The check that its violations are of.
    pub check: Check,
    pub protocol: &'p Protocol,
    interests: Vec<Matcher>,
}

impl Builder<'_> {
    pub fn pattern(&mut self, pattern: &Pattern) -> Result<Matcher, Diagnostics> {
        let matcher = Matcher::new(pattern, self.protocol)?;
        self.interests.extend(matcher.alternatives().iter().cloned());
        Ok(matcher)
    }

    pub fn optional(&mut self, pattern: Option<&Pattern>) -> Result<Option<Matcher>, Diagnostics> {
        pattern.map(|pattern| self.pattern(pattern)).transpose()
    }

    pub fn place(&mut self, at: &extension::At) -> Result<(Matcher, Pointer), Diagnostics> {
        Ok((self.pattern(&at.on)?, at.at.clone()))
    }

    pub fn places(&mut self, places: &[extension::At]) -> Result<Vec<(Matcher, Pointer)>, Diagnostics> {
        places.iter().map(|place| self.place(place)).collect()
    }

    /// The messages of the protocol's log.
    pub fn log(&mut self) -> Result<(), Diagnostics> {
        let Some(log) = &self.protocol.extension.log else { return Ok(()) };
        self.pattern(&log.on).map(drop)
    }
}

/// Builds the monitor of an invariant.
pub(super) fn build(
    name: &str,
    invariant: &extension::Invariant,
    protocol: &Protocol,
) -> Result<Built, Diagnostics> {
    let mut builder = Builder { check: Check::Invariant(name.into()), protocol, interests: Vec::new() };
    let b = &mut builder;
    let monitor: Box<dyn Monitor> = match &invariant.monitor {
        Rule::Increasing(rule) => Box::new(increasing::Increasing::new(rule, b)?),
        Rule::Agreement(rule) => Box::new(agreement::Agreement::new(rule, b)?),
        Rule::Replay(rule) => Box::new(replay::Replay::new(rule, b)?),
        Rule::Correlation(rule) => Box::new(correlation::Correlation::new(rule, b)?),
        Rule::States(rule) => Box::new(states::States::new(rule, b)?),
        Rule::Precedence(rule) => Box::new(precedence::Precedence::new(rule, b)?),
        Rule::Absence(rule) => Box::new(absence::Absence::new(rule, b)?),
        Rule::Bracket(rule) => Box::new(bracket::Bracket::new(rule, b)?),
        Rule::Response(rule) => Box::new(response::Response::new(rule, b)?),
        Rule::Existence(rule) => Box::new(existence::Existence::new(rule, b)?),
        Rule::Unique(rule) => Box::new(unique::Unique::new(rule, b)?),
        Rule::Constant(rule) => Box::new(constant::Constant::new(rule, b)?),
        Rule::Holds(rule) => Box::new(frame_rules::Holds::new(rule, b)?),
        Rule::Relation(rule) => Box::new(frame_rules::Relation::new(rule, b)?),
        Rule::Proportion(rule) => Box::new(frame_rules::Proportion::new(rule, b)?),
        Rule::Projection(rule) => Box::new(projection::Projection::new(rule, b)?),
        Rule::Cadence(rule) => Box::new(cadence::Cadence::new(rule, b)?),
        Rule::Echo(rule) => Box::new(echo::Echo::new(rule, b)?),
        Rule::Series(rule) => Box::new(series::Series::new(rule, b)?),
        Rule::Increments(rule) => Box::new(increments::Increments::new(rule, b)?),
        Rule::Concatenation(rule) => Box::new(concatenation::Concatenation::new(rule, b)?),
        Rule::Dialogue(rule) => Box::new(dialogue::Dialogue::new(rule, b)?),
    };
    Ok(Built { monitor, interests: builder.interests })
}
