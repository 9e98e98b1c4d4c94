//! A large value comes in numbered pieces.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::key::{Keys, Part};
use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::bounded::{BoundedMap, Memory, bytes_of};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::{self, counter_as};
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Longest text that is put together; past that the whole is not judged.
const MAX_BYTES: usize = 16 << 20;
/// What a piece takes besides its text, about, in bytes.
const PIECE: usize = 64;

/// Memory: a window of the values under way: one whole text of [`MAX_BYTES`], many of them if they are short.
#[derive(Clone)]
pub(super) struct Series {
    check: Check,
    rule: Arc<rule::Series>,
    on: Matcher,
    keys: Keys,
    open: BoundedMap<Whole>,
}

/// A value under way.
#[derive(Clone)]
struct Whole {
    first: u64,
    total: u64,
    same: Vec<Value>,
    parts: BTreeMap<u64, String>,
    bytes: usize,
    /// Something is wrong with it, or its beginning may be forgotten: nothing more is judged.
    broken: bool,
}

impl Series {
    pub fn new(rule: &rule::Series, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            on: b.pattern(&rule.message)?,
            keys: Keys::new(Some(&rule.key), b)?,
            rule: Arc::new(rule.clone()),
            open: BoundedMap::of_bytes(4 * MAX_BYTES),
        })
    }

    fn same(&self, body: &Value) -> Vec<Value> {
        self.rule.same.iter().map(|at| at.get(body).cloned().unwrap_or(Value::Null)).collect()
    }
}

/// Takes a piece in, or says what is wrong with it.
fn take(whole: &mut Whole, part: u64, text: &str, same: &[Value]) -> Result<(), String> {
    if !whole.same.iter().zip(same).all(|(first, here)| values::same(first, here)) {
        return Err("a piece differs from the first one of its value in a field that all share".to_owned());
    }
    if part > whole.total || (part == whole.total && whole.parts.contains_key(&0)) {
        return Err(format!("piece {part} comes, but there are only {}", whole.total));
    }
    if whole.parts.contains_key(&part) {
        return Err(format!("piece {part} comes twice"));
    }
    whole.bytes += text.len();
    let text = if whole.bytes > MAX_BYTES { String::new() } else { text.to_owned() };
    whole.parts.insert(part, text);
    if part == 0 && whole.parts.contains_key(&whole.total) {
        return Err(format!("there are both a piece 0 and a piece {}, of {0}", whole.total));
    }
    Ok(())
}

impl Monitor for Series {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let key = self.keys.of(seen, Part::Follows);
        if !seen.is(&self.on) {
            return;
        }
        let rule = &self.rule;
        let number = |at: &crate::frame::Pointer| at.get(seen.body).and_then(counter_as::<u64>);
        // What lacks its parts breaks its schema.
        let (Some(key), Some(part), Some(total), Some(text)) =
            (key, number(&rule.part), number(&rule.total), rule.text.get(seen.body).and_then(Value::as_str))
        else {
            return;
        };
        let same = self.same(seen.body);
        let place = seen.conn.0;
        if !self.open.has(place, Some(&key)) {
            let bytes = same.iter().map(bytes_of).sum();
            let (same, parts, broken) = (same.clone(), BTreeMap::new(), self.open.may_have_forgotten(place));
            let whole = Whole { first: seen.event, total, same, parts, bytes: 0, broken };
            self.open.insert(place, Some(&key), whole, bytes);
        }
        let Some(whole) = self.open.get(place, Some(&key)).filter(|whole| !whole.broken) else { return };
        if let Err(message) = take(whole, part, text, &same) {
            let first = whole.first;
            whole.broken = true;
            whole.parts.clear();
            if let Some(violation) = tally.broken(&self.check, &rule.complete, seen.event, message) {
                violation.related = Some(first);
            }
            return;
        }
        if whole.parts.len() as u64 != whole.total {
            self.open.grow(place, Some(&key), text.len() + PIECE);
            return;
        }
        let Some(whole) = self.open.remove(place, Some(&key)) else { return };
        tally.exercise(&rule.complete);
        if whole.bytes > MAX_BYTES {
            return;
        }
        tally.exercise(&rule.json);
        let text: String = whole.parts.into_values().collect();
        if let Err(error) = crate::frame::parse_within(&text) {
            let message = format!("the assembled pieces are not JSON: {error}");
            if let Some(violation) = tally.broken(&self.check, &rule.json, seen.event, message) {
                violation.related = Some(whole.first);
                violation.actual = Some(crate::protocol::shorten(&text.into()).into());
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
        self.open.leave(conn.0);
    }

    fn memory(&self) -> Memory {
        self.open.memory() + self.keys.memory()
    }

    /// A server may write the pieces of a large value between what else it has to say.
    fn is_owed(&self, end: &End<'_>) -> bool {
        self.open.iter().any(|(_, _, whole)| !whole.broken && end.owes(whole.first))
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        if !end.settled {
            return;
        }
        for whole in self.open.iter().map(|(_, _, whole)| whole).filter(|whole| !whole.broken) {
            let message = format!("only {} of {} pieces came", whole.parts.len(), whole.total);
            tally.push(Violation {
                event: Some(whole.first),
                ..Violation::new(&self.check, &self.rule.complete, message)
            });
        }
    }
}
