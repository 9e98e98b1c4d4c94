//! The parts of a JSON text and where they stand in it: nothing is lost, not a double key, not a digit.

use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;

use rustc_hash::FxHasher;

/// Parts of a text, and how deep they nest; what has more is no matter for one line.
const MOST: usize = 2_000;
const DEEPEST: usize = 64;

/// A value in a text.
pub(super) struct Node {
    /// The container that it is in; of the outermost its own.
    pub parent: usize,
    /// Its name with its quotes, in an object.
    pub key: Range<usize>,
    pub value: Range<usize>,
    /// Of a container.
    pub children: Vec<usize>,
    pub is_container: bool,
    pub depth: usize,
    /// The same for what stands at the same place in another text.
    pub path: u64,
}

impl Node {
    /// Its name.
    pub fn name<'t>(&self, text: &'t str) -> &'t str {
        text[self.key.clone()].trim_matches('"')
    }

    /// Its text, without the quotes of a string.
    pub fn plain<'t>(&self, text: &'t str) -> &'t str {
        let value = &text[self.value.clone()];
        value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
    }
}

/// The parts of an object or array, each behind the one that it is in. None: it is no such text, or a huge one.
pub(super) fn nodes(text: &str) -> Option<Vec<Node>> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let bytes = text.as_bytes();
    let (mut nodes, mut open, mut key) = (Vec::<Node>::new(), Vec::<usize>::new(), 0..0);
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'}' | b']' => {
                nodes[open.pop()?].value.end = at + 1;
                at += 1;
                continue;
            }
            b'"' => at + 1 + quoted(&bytes[at + 1..]),
            b'{' | b'[' => at + 1,
            byte if byte.is_ascii_whitespace() || b",:".contains(&byte) => {
                at += 1;
                continue;
            }
            _ => at + bytes[at..].iter().take_while(|byte| !b",]} \t\r\n".contains(byte)).count(),
        };
        let is_in_object = open.last().is_some_and(|top| bytes[nodes[*top].value.start] == b'{');
        if is_in_object && key.is_empty() {
            key = at..end;
        } else {
            let index = nodes.len();
            let parent = open.last().copied().unwrap_or(index);
            let name = std::mem::take(&mut key);
            let place = nodes.get(parent).map_or(0, |parent| parent.children.len());
            let mut path = FxHasher::default();
            (nodes.get(parent).map(|parent| parent.path), &text[name.clone()]).hash(&mut path);
            if name.is_empty() {
                place.hash(&mut path);
            }
            if let Some(parent) = nodes.get_mut(parent) {
                parent.children.push(index);
            }
            let is_container = matches!(bytes[at], b'{' | b'[');
            nodes.push(Node {
                parent,
                key: name,
                value: at..end,
                children: Vec::new(),
                is_container,
                depth: open.len(),
                path: path.finish(),
            });
            if is_container {
                open.push(index);
            }
        }
        if nodes.len() > MOST || open.len() > DEEPEST {
            return None;
        }
        at = end;
    }
    nodes.first().is_some_and(|first| first.is_container).then_some(nodes)
}

/// Bytes of a string's rest, its closing quote included.
fn quoted(rest: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
