//! A value stays the same.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::monitor::{Conn, Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant::{self as rule, Scope};
use crate::source::Diagnostics;

/// Memory: one value a key and connection (or session).
pub(super) struct Constant {
    name: String,
    rule: rule::Constant,
    places: Vec<(Matcher, Pointer)>,
    restarts: Option<Matcher>,
    values: FxHashMap<u32, FxHashMap<String, (Value, u64)>>,
}

impl Constant {
    pub fn new(rule: &rule::Constant, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            places: b.places(&rule.values)?,
            restarts: b.optional(rule.restarts.as_ref())?,
            rule: rule.clone(),
            values: FxHashMap::default(),
        })
    }
}

impl Monitor for Constant {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let place = match self.rule.scope {
            Scope::Connection => seen.conn.0,
            Scope::Session => seen.session.0,
        };
        if seen.is_any(self.restarts.as_ref()) {
            self.values.remove(&place);
        }
        let key = match &self.rule.key {
            None => Cow::Borrowed(""),
            Some(at) => match at.get(seen.body) {
                Some(Value::String(key)) => Cow::Borrowed(key.as_str()),
                Some(key) => Cow::Owned(key_text(key)),
                None => return,
            },
        };
        let values = self.values.entry(place).or_default();
        for (on, at) in &self.places {
            if !seen.is(on) {
                continue;
            }
            let Some(value) = at.get(seen.body).filter(|value| !value.is_null()) else { continue };
            match values.get(&*key) {
                None => {
                    values.insert(key.clone().into_owned(), (value.clone(), seen.event));
                }
                Some((first, event)) => {
                    findings.exercise(&self.rule.decides);
                    if first != value {
                        let message = format!("{at} is {value}, but was {first}");
                        let (first, event) = (first.clone(), *event);
                        if let Some(violation) =
                            findings.broken(&self.name, &self.rule.decides, seen.event, message)
                        {
                            violation.related = Some(event);
                            violation.expected = Some(first);
                            violation.actual = Some(value.clone());
                        }
                    }
                }
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        if self.rule.scope == Scope::Connection {
            self.values.remove(&conn.0);
        }
    }
}
