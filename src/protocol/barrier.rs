//! Barriers (`x-frameproof.barrier`): queries whose answers prove that something did not come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extension::{Exchange, Extension, OneOrMany};
use super::refs::{Refer, Refs};
use super::{Matcher, Protocol};
use crate::frame::Pointer;
use crate::source::{Diagnostic, Diagnostics, Document, Part};
use crate::template;
use crate::trace::Direction;

/// The variable of a query that is made for one value.
pub const PER: &str = "per";
const PLACE: &str = "/x-frameproof/barrier";

/// A query whose answer comes after what the server has sent before: after all of it (a list of steps), or after a part of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Barrier {
    /// The answer comes after everything that was sent before. It says nothing of work that goes on: what that must not send takes a `window` of
    /// `never`.
    Whole(Vec<Exchange>),
    /// The answer overtakes some messages that were due before it, because the server does several things at the same time.
    Partial(PartialBarrier),
}

/// A query whose answer other messages may overtake. It has `orders` or `per`. For messages that it does not order, a silence is used instead.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PartialBarrier {
    /// The query.
    pub query: Vec<Exchange>,
    /// The types of messages that come before its answer if they come at all.
    pub orders: Option<OneOrMany>,
    /// A place of messages: the answer comes after everything that has the same value there. `{{per}}` is the value in the query. It is
    /// used where a step says the value: `never` with `with`.
    pub per: Option<Pointer>,
}

impl Barrier {
    /// The query.
    pub fn query(&self) -> &[Exchange] {
        match self {
            Self::Whole(query) | Self::Partial(PartialBarrier { query, .. }) => query,
        }
    }

    /// Whether its answer comes after everything.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }

    /// The place of the value that each query is made for, if it is made for one.
    pub fn per(&self) -> Option<&Pointer> {
        match self {
            Self::Partial(partial) => partial.per.as_ref(),
            Self::Whole(_) => None,
        }
    }

    /// Whether its answer comes after all messages of a type of the server's.
    pub fn orders(&self, name: &str) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Partial(partial) => partial.ordered().iter().any(|known| known == name),
        }
    }
}

impl PartialBarrier {
    fn ordered(&self) -> &[String] {
        self.orders.as_ref().map(OneOrMany::as_slice).unwrap_or_default()
    }
}

impl Extension {
    /// The query of the barrier; none: no steps.
    pub fn barrier_query(&self) -> &[Exchange] {
        self.barrier.as_ref().map(Barrier::query).unwrap_or_default()
    }

    /// Where the query of the barrier stands in the file.
    pub(super) fn barrier_place(&self) -> String {
        let below = if self.barrier.as_ref().is_some_and(Barrier::is_whole) { "" } else { "/query" };
        format!("{PLACE}{below}")
    }

    /// Whether there is a barrier whose answer comes after everything.
    pub fn has_whole_barrier(&self) -> bool {
        self.barrier.as_ref().is_some_and(Barrier::is_whole)
    }
}

impl Protocol {
    /// Whether the barrier's answer comes after each message that a pattern means.
    pub(crate) fn barrier_orders(&self, pattern: &Matcher) -> bool {
        let Some(barrier) = &self.extension.barrier else { return false };
        let of_messages = |messages: &[usize]| {
            let mut messages = messages.iter().map(|message| self.messages.get(*message));
            messages.all(|message| message.is_some_and(|one| barrier.orders(&one.name)))
        };
        barrier.is_whole() || pattern.alternatives().iter().all(|one| one.messages().is_some_and(of_messages))
    }
}

impl Refer for Barrier {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        match self {
            Self::Whole(query) => query.refer(refs),
            Self::Partial(PartialBarrier { query, orders: _, per: _ }) => refs.field("query", query),
        }
    }
}

/// A barrier must ask something, and say what its answer proves.
pub(super) fn verify_barrier(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let Some(barrier) = &protocol.extension.barrier else { return };
    let (query, at) = (barrier.query(), protocol.extension.barrier_place());
    if !query.iter().any(|step| step.expect.is_some()) {
        let message = "a barrier is a query: it needs a message to `expect`";
        let hint = "[{ send: { type: ping } }, { expect: pong }]";
        errors.push(Diagnostic::new(message).at(api, &at, Part::Value).hint(hint));
    }
    let asks_per = query.iter().flat_map(|step| template::names(step.send.as_ref().unwrap_or(&Value::Null)));
    let asks_per = asks_per.into_iter().any(|name| name == PER);
    let Barrier::Partial(partial) = barrier else {
        if asks_per {
            let message = "undefined variable `per`";
            let hint = "`barrier: { query: […], per: /id }` makes the query for the value at a place";
            errors.push(Diagnostic::new(message).at(api, &at, Part::Value).hint(hint));
        }
        return;
    };
    let hint = "`orders: [TYPE, …]`: the messages that come before the answer; or `per: /id`: those with the same value at a place. A list \
                of steps in place of the map stands for everything";
    match (partial.orders.as_ref(), &partial.per) {
        (Some(_), Some(_)) => {
            let message = "a barrier has `orders` or `per`, not both";
            errors.push(Diagnostic::new(message).at(api, &format!("{PLACE}/per"), Part::Key).hint(hint));
        }
        (None, None) => {
            let message = "the barrier does not say what it orders";
            errors.push(Diagnostic::new(message).at(api, PLACE, Part::Value).hint(hint));
        }
        (Some(orders), None) if orders.as_slice().is_empty() => {
            let message = "the barrier orders nothing";
            errors.push(Diagnostic::new(message).at(api, &format!("{PLACE}/orders"), Part::Value).hint(hint));
        }
        (None, Some(per)) if !asks_per => {
            let message = format!("the query does not ask for the value at {per}");
            let hint = "a message that it sends has `{{per}}` in the place of the value";
            errors.push(Diagnostic::new(message).at(api, &format!("{PLACE}/query"), Part::Value).hint(hint));
        }
        _ => {}
    }
    for (index, name) in partial.ordered().iter().enumerate() {
        if let Err(unknown) = protocol.message_named(name, Direction::Recv) {
            let at = if matches!(partial.orders, Some(OneOrMany::One(_))) {
                format!("{PLACE}/orders")
            } else {
                format!("{PLACE}/orders/{index}")
            };
            errors.0.extend(unknown.0.into_iter().map(|one| one.at(api, &at, Part::Value)));
        }
    }
}
