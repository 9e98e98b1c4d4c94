//! The table of monitors: from a rule of the protocol file to what checks it.

use std::sync::Arc;

use super::{
    Monitor, MonitorBuilder, absence, agreement, bracket, cadence, concatenation, constant, correlation,
    cued, dialogue, echo, existence, holds, increasing, increments, precedence, projection, proportion,
    relation, replay, response, series, server_requests, states, unique,
};
use crate::protocol::rules::Rule;
use crate::protocol::{Matcher, Protocol};
use crate::results::Check;
use crate::source::Diagnostics;

/// Builds the monitor of a rule, and says which messages it wants to see.
pub(in crate::check) fn build(
    check: Check,
    rule: &Rule,
    protocol: &Arc<Protocol>,
) -> Result<(Box<dyn Monitor>, Vec<Matcher>), Diagnostics> {
    let mut builder = MonitorBuilder::new(check, protocol);
    let b = &mut builder;
    let monitor: Box<dyn Monitor> = match rule {
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
        Rule::Holds(rule) => Box::new(holds::Holds::new(rule, b)?),
        Rule::Relation(rule) => Box::new(relation::Relation::new(rule, b)?),
        Rule::Proportion(rule) => Box::new(proportion::Proportion::new(rule, b)?),
        Rule::Projection(rule) => Box::new(projection::Projection::new(rule, b)?),
        Rule::Cadence(rule) => Box::new(cadence::Cadence::new(rule, b)?),
        Rule::Echo(rule) => Box::new(echo::Echo::new(rule, b)?),
        Rule::ServerRequests(rule) => Box::new(server_requests::ServerRequests::new(rule, b)?),
        Rule::Series(rule) => Box::new(series::Series::new(rule, b)?),
        Rule::Increments(rule) => Box::new(increments::Increments::new(rule, b)?),
        Rule::Concatenation(rule) => Box::new(concatenation::Concatenation::new(rule, b)?),
        Rule::Cued(rule) => Box::new(cued::Cued::new(rule, b)?),
        Rule::Dialogue(rule) => Box::new(dialogue::Dialogue::new(rule, b)?),
    };
    Ok((monitor, builder.into_interests()))
}
