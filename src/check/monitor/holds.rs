//! Conditions on a single message: a schema, two values that relate, a share of a whole.

use std::borrow::Cow;

use serde_json::Value;

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory, bytes_of};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules::{self as rule, Spot};
use crate::results::Check;
use crate::source::received_schema::loadable;
use crate::source::schema::{Problem, Schema, Violation as SchemaViolation};
use crate::source::{Diagnostic, Diagnostics};

/// Most undeclared properties that a message names.
const MAX_NAMES: usize = 8;

/// Every message of a pattern satisfies a JSON Schema. Memory: of schemas that come in messages a window, by their keys; else none.
#[derive(Clone)]
pub(super) struct Holds {
    check: Check,
    decides: Vec<String>,
    on: Matcher,
    at: Option<Spot>,
    by: By,
}

/// Whose schema it is.
#[derive(Clone)]
enum By {
    Own(Schema),
    ReceivedSchemas(Box<ReceivedSchemas>),
}

/// Schemas that come in messages.
#[derive(Clone)]
struct ReceivedSchemas {
    on: Matcher,
    at: Pointer,
    keys: Keys,
    known: BoundedMap<(Schema, usize)>,
}

/// Most steps that validating by a schema of the server's may take: the parts of the schema times the size of the value.
const MOST_WORK: usize = 1 << 31;
/// About how many times the memory of its source a compiled schema takes.
const COMPILED: usize = 8;

impl ReceivedSchemas {
    /// Takes in a schema that a message brings, and tells which one holds for a value of this message, if it is safe to use.
    fn schema(&mut self, seen: &Observation<'_>, is_about: bool, value: &Value) -> Option<Schema> {
        let brings = seen.is(&self.on);
        if !brings && !is_about {
            // What a third message tells of a key is taken in.
            self.keys.of(seen, Part::Follows);
            return None;
        }
        let place = seen.conn.0;
        if brings {
            let key = self.keys.of(seen, Part::Begins);
            if key.is_none() && self.keys.are_distinguished() {
                return None;
            }
            match self.at.get(seen.body).and_then(|schema| Some((loadable(schema)?, bytes_of(schema)))) {
                Some((known, bytes)) => {
                    self.known.insert(place, key.as_deref(), known, bytes.saturating_mul(COMPILED));
                }
                None => drop(self.known.remove(place, key.as_deref())),
            }
            return None;
        }
        let key = self.keys.of(seen, Part::Follows);
        if key.is_none() && self.keys.are_distinguished() {
            return None;
        }
        let (schema, parts) = self.known.get(place, key.as_deref())?;
        (parts.saturating_mul(bytes_of(value)) <= MOST_WORK).then(|| schema.clone())
    }
}

impl Holds {
    pub fn new(rule: &rule::Holds, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let on = b.pattern(&rule.message)?;
        let by = match (&rule.schema, &rule.told) {
            (_, Some(told)) => {
                let (on, at) = b.place(told)?;
                let keys = Keys::new(rule.key.as_ref(), b)?;
                By::ReceivedSchemas(Box::new(ReceivedSchemas { on, at, keys, known: BoundedMap::default() }))
            }
            (given, None) => {
                // Loading the protocol reports one that lacks.
                let schema = b.protocol.schema(given.as_ref().unwrap_or(&Value::Bool(true)));
                By::Own(schema.map_err(|error| {
                    Diagnostic::new(format!("invariant `{}`: no JSON Schema: {error}", b.check.name()))
                })?)
            }
        };
        Ok(Self { check: b.check.clone(), decides: rule.decides.clone(), on, at: rule.spot(), by })
    }
}

impl Monitor for Holds {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let is_about = seen.is(&self.on);
        if !is_about && matches!(self.by, By::Own(_)) {
            return;
        }
        let value = match &self.at {
            _ if !is_about => None,
            None => Some(Cow::Borrowed(seen.body)),
            Some(at) => at.get(seen.body),
        };
        let schema = match &mut self.by {
            By::Own(schema) => Some(schema.clone()),
            By::ReceivedSchemas(told) => {
                told.schema(seen, value.is_some(), value.as_deref().unwrap_or(&Value::Null))
            }
        };
        let (Some(value), Some(schema)) = (value, schema) else { return };
        tally.exercise(&self.decides);
        if schema.is_valid(&value) {
            return;
        }
        let violations = schema.violations_within(&value);
        let message = violations.first().map_or_else(String::new, |violation| {
            let shown = value.pointer(&violation.at).map(crate::protocol::shorten).unwrap_or_default();
            let place = self.at.as_ref().map(|at| at.place().to_string()).unwrap_or_default();
            let problem = describe(violation, &violations);
            match format!("{place}{}", violation.at).as_str() {
                "" => format!("{shown}: {problem}"),
                at => format!("{at}: {shown} {problem}"),
            }
        });
        if let Some(violation) = tally.broken(&self.check, &self.decides, seen.event, message) {
            violation.actual = Some(crate::check::evidence(seen.body));
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        if let By::ReceivedSchemas(told) = &mut self.by {
            told.keys.closed(conn);
            told.known.leave(conn.0);
        }
    }

    fn memory(&self) -> Memory {
        match &self.by {
            By::Own(_) => Memory::default(),
            By::ReceivedSchemas(told) => told.keys.memory() + told.known.memory(),
        }
    }
}

/// What is wrong at a place; all of its undeclared properties.
fn describe(first: &SchemaViolation, all: &[SchemaViolation]) -> String {
    let undeclared =
        all.iter().filter(|other| other.at == first.at).filter_map(|other| match &other.problem {
            Problem::Undeclared(name) => Some(format!("`{name}`")),
            _ => None,
        });
    let names: Vec<String> = undeclared.take(MAX_NAMES).collect();
    match (&first.problem, names.len()) {
        (Problem::Undeclared(_), 2..) => format!("{} are not declared", names.join(", ")),
        (problem, _) => problem.to_string(),
    }
}
