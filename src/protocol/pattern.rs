//! Patterns, compiled.

use std::sync::Arc;

use serde_json::Value;

use super::extension::{PatternDirection, PatternWhere};
use super::{ConnectionEvent, OneOrMany, Pattern, Protocol};
use crate::frame::field;
use crate::source::schema::Schema;
use crate::source::{Diagnostic, Diagnostics};
use crate::trace::Direction;

/// A compiled [`Pattern`]. Cheap to clone. The default matches nothing.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    /// Of the first messages, those that can match: the first look, which most patterns fail.
    possible: Set,
    /// Those of them that match whatever their content.
    certain: Set,
    conditions: Arc<Conditions>,
}

/// Whether a pattern can mean an event of a connection that is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Events {
    Known,
    Unknown,
}

/// What a pattern says, in full.
#[derive(Debug)]
struct Conditions {
    direction: Direction,
    /// The messages that can match.
    messages: Vec<usize>,
    /// These are all of the direction, and what the protocol does not know can match, too.
    of_any_type: bool,
    with: Option<Value>,
    schema: Option<Schema>,
    /// Not empty: any of these matches, and nothing else is looked at.
    any: Vec<Matcher>,
}

impl Default for Conditions {
    fn default() -> Self {
        let (direction, messages, of_any_type) = (Direction::Recv, Vec::new(), false);
        Self { direction, messages, of_any_type, with: None, schema: None, any: Vec::new() }
    }
}

impl Matcher {
    /// Compiles a pattern against the protocol's messages.
    ///
    /// # Errors
    /// An unknown message type, or a `where` that is no JSON Schema. The diagnostics have no place: the caller
    /// knows where the pattern stands.
    pub fn new(pattern: &Pattern, protocol: &Protocol) -> Result<Self, Diagnostics> {
        Self::compiled(pattern, protocol, Events::Unknown)
    }

    /// The same for a pattern that can mean the beginning and the end of a connection, too: `open` and `close`.
    ///
    /// # Errors
    /// As [`Matcher::new`].
    pub fn of_connection(pattern: &Pattern, protocol: &Protocol) -> Result<Self, Diagnostics> {
        Self::compiled(pattern, protocol, Events::Known)
    }

    /// An event of a connection, whatever the protocol's messages are called.
    pub(crate) fn of_event(event: ConnectionEvent, direction: Direction, protocol: &Protocol) -> Self {
        let messages = vec![protocol.index_of_event(event)];
        let possible = messages.iter().copied().collect();
        let conditions = Conditions { direction, messages, ..Conditions::default() };
        Self { possible, certain: possible, conditions: Arc::new(conditions) }
    }

    fn compiled(pattern: &Pattern, protocol: &Protocol, events: Events) -> Result<Self, Diagnostics> {
        let conditions;
        let (types, conditions) = match pattern {
            Pattern::Type(one) => (Some(std::slice::from_ref(one)), &PatternWhere::default()),
            Pattern::Types(many) => (Some(many.as_slice()), &PatternWhere::default()),
            Pattern::Any(alternatives) => return Self::any(&alternatives.any, protocol, events),
            Pattern::Where(given) => {
                conditions = given;
                (given.types.as_ref().map(OneOrMany::as_slice), conditions)
            }
        };
        let direction = match conditions.dir {
            PatternDirection::Recv => Direction::Recv,
            PatternDirection::Send => Direction::Send,
        };
        let mut errors = Diagnostics::default();
        let messages: Option<Vec<usize>> = types.map(|types| {
            let mut named = |name: &String| match protocol.event_named(name, direction) {
                Some(event) if events == Events::Known => {
                    // Of several, one condition may be about another one.
                    let schema = conditions.schema.as_ref().filter(|_| types.len() == 1);
                    event.verify(direction, conditions.with.as_ref(), schema, &mut errors);
                    Some(protocol.index_of_event(event))
                }
                _ => errors.take(protocol.pattern_named(name, direction)),
            };
            types.iter().filter_map(&mut named).collect()
        });
        let schema = conditions.schema.as_ref().and_then(|schema| match protocol.schema(schema) {
            Ok(schema) => Some(schema),
            Err(error) => {
                errors.push(Diagnostic::new(format!("`where` is not a JSON Schema: {error}")));
                None
            }
        });
        let (with, any) = (conditions.with.clone(), Vec::new());
        let of_any_type = messages.is_none();
        let messages = messages.unwrap_or_else(|| {
            let all = protocol.messages.iter().enumerate();
            all.filter(|(_, message)| message.dir == direction).map(|(index, _)| index).collect()
        });
        let possible = messages.iter().copied().collect();
        let certain = if with.is_none() && schema.is_none() { possible } else { Set::default() };
        let conditions = Arc::new(Conditions { direction, messages, of_any_type, with, schema, any });
        errors.or(Self { possible, certain, conditions })
    }

    fn any(patterns: &[Pattern], protocol: &Protocol, events: Events) -> Result<Self, Diagnostics> {
        let mut errors = Diagnostics::default();
        let one = |pattern| Self::compiled(pattern, protocol, events);
        let any: Vec<Self> = patterns.iter().filter_map(|pattern| errors.take(one(pattern))).collect();
        if patterns.is_empty() {
            errors.push(Diagnostic::new("`any` lists no pattern"));
        }
        let possible = any.iter().fold(Set::default(), |all, one| all.or(one.possible));
        let certain = any.iter().fold(Set::default(), |all, one| all.or(one.certain));
        let conditions = Arc::new(Conditions { any, ..Conditions::default() });
        errors.or(Self { possible, certain, conditions })
    }

    /// The patterns of which one must match: those of `any`, or this one alone.
    pub fn alternatives(&self) -> &[Self] {
        if self.conditions.any.is_empty() { std::slice::from_ref(self) } else { &self.conditions.any }
    }

    /// Whether a message matches. `message` is its index in [`Protocol::messages`], `None` for an unknown one.
    #[inline]
    pub fn matches(&self, message: Option<usize>, dir: Direction, body: &Value) -> bool {
        match message {
            Some(first @ 0..FIRST) => {
                self.possible.has(first)
                    && (self.certain.has(first) || self.matches_closely(message, dir, body))
            }
            _ => self.matches_closely(message, dir, body),
        }
    }

    /// As [`Matcher::matches`], with a look at everything.
    fn matches_closely(&self, message: Option<usize>, dir: Direction, body: &Value) -> bool {
        let of = &*self.conditions;
        if !of.any.is_empty() {
            return of.any.iter().any(|one| one.matches(message, dir, body));
        }
        dir == of.direction
            && message.map_or(of.of_any_type, |message| of.messages.contains(&message))
            && of.with.as_ref().is_none_or(|with| is_subset(with, body))
            && of.schema.as_ref().is_none_or(|schema| schema.is_valid(body))
    }

    /// The indices of the messages that can match, for dispatch; `None`: any of its direction. Asked of each of
    /// the [`Matcher::alternatives`].
    pub fn messages(&self) -> Option<&[usize]> {
        (!self.conditions.of_any_type).then_some(&self.conditions.messages)
    }

    /// Whether a message of the server's can match, by its index.
    pub fn may_be(&self, message: usize) -> bool {
        let mut received = self.alternatives().iter().filter(|one| one.direction() == Direction::Recv);
        received.any(|one| one.messages().is_none_or(|messages| messages.contains(&message)))
    }

    /// Whether messages of this direction can match.
    pub fn direction(&self) -> Direction {
        self.conditions.direction
    }
}

/// So many messages of a protocol are told apart at the first look.
const FIRST: usize = 128;

/// A set of some of the [`FIRST`] messages.
#[derive(Debug, Clone, Copy, Default)]
struct Set([u64; FIRST / 64]);

impl Set {
    #[inline]
    fn has(self, message: usize) -> bool {
        self.0[message / 64] >> (message % 64) & 1 == 1
    }

    fn or(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }
}

impl FromIterator<usize> for Set {
    /// Of messages beyond the first, nothing is kept.
    fn from_iter<T: IntoIterator<Item = usize>>(messages: T) -> Self {
        let mut set = Self::default();
        for message in messages.into_iter().filter(|message| *message < FIRST) {
            set.0[message / 64] |= 1 << (message % 64);
        }
        set
    }
}

/// Whether every value of `part` is in `whole`, at the same place: objects by key, arrays by length and
/// element, scalars by equality (numbers by value).
pub fn is_subset(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, value)| field(whole, key).is_some_and(|other| is_subset(value, other)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_subset(part, whole))
        }
        (Value::Number(part), Value::Number(whole)) => part == whole || part.as_f64() == whole.as_f64(),
        (part, whole) => part == whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;
    use serde_json::json;

    #[test]
    fn any_of_either_side() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
        let pattern: Pattern =
            serde_json::from_value(json!({ "any": [{ "with": { "n": 1 } }, { "dir": "send" }] }))
                .expect("a pattern");
        let matcher = Matcher::new(&pattern, &protocol).expect("known types");
        assert_eq!(matcher.alternatives().len(), 2);
        for (dir, body, expected) in [
            (Direction::Recv, json!({ "n": 1 }), true),
            (Direction::Recv, json!({ "n": 2 }), false),
            (Direction::Send, json!({ "n": 2 }), true),
        ] {
            assert_eq!(matcher.matches(None, dir, &body), expected, "{body}");
        }
        let wrong: Pattern = serde_json::from_value(json!({ "any": ["no such type"] })).expect("a pattern");
        assert!(Matcher::new(&wrong, &protocol).is_err());
    }

    #[test]
    fn subset_goes_by_place_and_value() {
        let whole = json!({ "a": { "b": 1, "c": [1, { "d": 2, "e": 3 }] }, "n": null });
        for (part, expected) in [
            (json!({}), true),
            (json!({ "a": { "b": 1.0 } }), true),
            (json!({ "a": { "c": [1, { "d": 2 }] } }), true),
            (json!({ "a": { "c": [1] } }), false),
            (json!({ "n": null }), true),
            (json!({ "m": null }), false),
            (json!({ "a": 1 }), false),
        ] {
            assert_eq!(is_subset(&part, &whole), expected, "{part}");
        }
    }
}
