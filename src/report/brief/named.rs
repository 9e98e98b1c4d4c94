//! The fields of a frame that a failure is about: those that its message names, and those that differ from what was expected.

use serde_json::Value;

use super::tree::Node;
use crate::results::event::Failure;

/// Parts of a message that are looked at.
const WORDS: usize = 200;

/// Which of these nodes the failure is about.
pub(super) fn named(text: &str, nodes: &[Node], failure: &Failure) -> Vec<bool> {
    let mut marked = vec![false; nodes.len()];
    let words = || failure.message.split(|c: char| c.is_whitespace() || "`\"'(),;".contains(c)).take(WORDS);
    for pointer in words().filter(|word| word.starts_with('/')) {
        if let Some(found) = resolve(text, nodes, pointer.trim_end_matches([':', '.'])) {
            marked[found] = true;
        }
    }
    for name in between(&failure.message, '`').take(WORDS) {
        (0..nodes.len())
            .filter(|&at| !nodes[at].key.is_empty() && nodes[at].name(text) == name)
            .for_each(|at| marked[at] = true);
    }
    let quoted: Vec<&str> = between(&failure.message, '"').take(WORDS).collect();
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_container) {
        let value = node.plain(text);
        let is_id = value.len() > 2 && value.chars().any(|c| c.is_ascii_digit() || c == '_' || c == '-');
        let is_text = text[node.value.clone()].starts_with('"');
        let is_named = quoted.contains(&value) || (is_id && words().any(|word| word == value));
        marked[at] |= is_text && is_named;
    }
    if let (Some(expected), Some(actual)) = (&failure.expected, &failure.actual) {
        differing(text, nodes, 0, expected, actual, &mut marked);
    }
    // All of the frame is no part of it.
    marked[0] = false;
    marked
}

/// What stands between two of these signs.
fn between(text: &str, sign: char) -> impl Iterator<Item = &str> {
    text.split(sign).skip(1).step_by(2)
}

fn child(text: &str, nodes: &[Node], of: usize, name: &str) -> Option<usize> {
    let by_name = |at: &&usize| !nodes[**at].key.is_empty() && nodes[**at].name(text) == name;
    let children = &nodes[of].children;
    let is_list = children.first().is_some_and(|first| nodes[*first].key.is_empty());
    // Of double keys the last one counts.
    let found = if is_list {
        name.parse().ok().and_then(|at: usize| children.get(at))
    } else {
        children.iter().rfind(by_name)
    };
    found.copied()
}

/// What a JSON Pointer leads to, as far as it leads.
fn resolve(text: &str, nodes: &[Node], pointer: &str) -> Option<usize> {
    let mut at = 0;
    for token in pointer.split('/').skip(1) {
        let token = crate::source::unescape_token(token);
        let Some(next) = child(text, nodes, at, &token) else { break };
        at = next;
    }
    (at > 0).then_some(at)
}

/// Marks what differs from what was expected there.
fn differing(text: &str, nodes: &[Node], at: usize, expected: &Value, actual: &Value, marked: &mut [bool]) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (name, expected) in expected {
                let (Some(actual), Some(next)) = (actual.get(name), child(text, nodes, at, name)) else {
                    continue;
                };
                differing(text, nodes, next, expected, actual, marked);
            }
        }
        _ => marked[at] |= expected != actual,
    }
}
