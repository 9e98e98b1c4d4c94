//! A large value, as much of it as is looked through for what is wrong: each mistake that is told costs memory, and there may
//! be millions.

use serde_json::Value;

use super::schema::{Problem, Violation};
use crate::text::beginning;

/// Values with more than this many places are large.
const PLACES: usize = 4096;
/// Elements of an array, or fields of an object, that are looked at in a large value.
const WIDEST: usize = 256;
/// Longest text in it, in bytes.
const LONGEST_TEXT: usize = 64 << 10;
/// Longest key in it, in bytes: each mistake below it has it in its place.
const LONGEST_KEY: usize = 256;

/// The value without what is too much of it. `None`: nothing is.
pub(super) fn excerpt(value: &Value) -> Option<Value> {
    let mut left = PLACES;
    if is_small(value, &mut left) {
        return None;
    }
    let mut left = PLACES;
    Some(cut(value, &mut left))
}

fn is_small(value: &Value, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        Value::String(text) => text.len() <= LONGEST_TEXT,
        Value::Array(items) => items.iter().all(|item| is_small(item, left)),
        Value::Object(map) => {
            map.iter().all(|(key, value)| key.len() <= LONGEST_KEY && is_small(value, left))
        }
        _ => true,
    }
}

fn cut(value: &Value, left: &mut usize) -> Value {
    *left = left.saturating_sub(1);
    match value {
        Value::String(text) => Value::from(beginning(text, LONGEST_TEXT)),
        Value::Array(items) => {
            let mut kept = Vec::new();
            for item in items.iter().take(WIDEST) {
                if *left == 0 {
                    break;
                }
                kept.push(cut(item, left));
            }
            Value::Array(kept)
        }
        Value::Object(map) => {
            let mut kept = serde_json::Map::new();
            for (key, value) in map.iter().take(WIDEST) {
                if *left == 0 {
                    break;
                }
                kept.insert(beginning(key, LONGEST_KEY).to_owned(), cut(value, left));
            }
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

/// Whether what is wrong with the excerpt is wrong with the value, too: not what the excerpt only lacks.
pub(super) fn holds(found: &Violation, value: &Value, excerpt: &Value) -> bool {
    let (whole, part) = (value.pointer(&found.at), excerpt.pointer(&found.at));
    match &found.problem {
        Problem::Missing(name) => whole.is_none_or(|whole| whole.get(name).is_none()),
        Problem::Undeclared(_) | Problem::Type(_) => true,
        Problem::NotOneOf(_) | Problem::Other(_) => whole.is_none() || whole == part,
    }
}
