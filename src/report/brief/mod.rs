//! A frame in one line: within so many columns what matters of it is kept, and the cue is told in words.

mod named;
mod tree;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::escape::terminal;
use crate::cue::{CLOSE, OPEN, words};
use crate::results::event::{Failure, FrameRecord, Way};
use tree::Node;

/// Characters of a text, and of a long id, that are left while there is no room for more.
const SHORT: usize = 24;
const SHORT_ID: usize = 8;
/// Longest texts that are tried before fields are left out.
const LENGTHS: [usize; 4] = [usize::MAX, 160, 80, 40];
/// Longest text that is an id, or says as much as one.
const WORD: usize = 40;
/// Fields among which those that are shown are chosen.
const CHOICE: usize = 200;

/// Why a part of a line stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emphasis {
    Plain,
    /// It is not what it was in the frame of the same type before.
    Changed,
    /// The failure is about it.
    Violating,
}

/// A part of a line, ready for a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    pub emphasis: Emphasis,
}

/// A frame as it is known.
#[derive(Clone, Copy)]
pub(super) struct Shown<'f> {
    /// The message's type.
    pub kind: Option<&'f str>,
    pub text: &'f str,
    /// Bytes that were not kept.
    pub cut: usize,
}

impl<'f> From<&'f FrameRecord> for Shown<'f> {
    fn from(line: &'f FrameRecord) -> Self {
        Self { kind: line.kind.as_deref(), text: &line.text, cut: line.cut }
    }
}

/// What stood where in the frames before: by client, way and type, the value at each place.
#[derive(Default)]
pub(super) struct Before<'f>(FxHashMap<(&'f str, Way, &'f str), FxHashMap<u64, &'f str>>);

impl<'f> Before<'f> {
    /// A frame in one line, whose changes are those since the last one of its type.
    pub fn line(&mut self, line: &'f FrameRecord, room: Option<usize>, failures: &[&Failure]) -> Vec<Piece> {
        let nodes = tree::nodes(&line.text);
        let (Some(nodes), Some(kind)) = (&nodes, &line.kind) else {
            return brief(line.into(), nodes.as_deref(), room, failures, |_| false);
        };
        let values = nodes.iter().filter(|node| !node.is_container);
        let values = values.map(|node| (node.path, &line.text[node.value.clone()])).collect();
        let before = self.0.insert((&line.client, line.way, kind), values);
        let is_changed = |node: &Node| {
            let before = before.as_ref().and_then(|before| before.get(&node.path));
            let value = node.plain(&line.text);
            // Numbers, times and ids are others each time.
            let is_word = value.len() <= WORD && !value.contains(|c: char| c.is_ascii_digit());
            is_word && before.is_some_and(|before| *before != &line.text[node.value.clone()])
        };
        brief(line.into(), Some(nodes), room, failures, is_changed)
    }
}

/// A frame in one line.
pub(super) fn line(shown: Shown<'_>, room: Option<usize>, failures: &[&Failure]) -> Vec<Piece> {
    brief(shown, tree::nodes(shown.text).as_deref(), room, failures, |_| false)
}

fn brief(
    shown: Shown<'_>,
    nodes: Option<&[Node]>,
    room: Option<usize>,
    failures: &[&Failure],
    is_changed: impl Fn(&Node) -> bool,
) -> Vec<Piece> {
    let Some(nodes) = nodes else { return vec![cut(&shown, room)] };
    let mut marks = vec![Emphasis::Plain; nodes.len()];
    for (mark, node) in marks.iter_mut().zip(nodes) {
        if !node.is_container && is_changed(node) {
            *mark = Emphasis::Changed;
        }
    }
    for failure in failures {
        let named = named::named(shown.text, nodes, failure);
        for (at, _) in named.into_iter().enumerate().filter(|(_, named)| *named) {
            marks[at] = Emphasis::Violating;
        }
    }
    let frame = Frame { text: shown.text, kind: shown.kind, nodes, marks };
    frame.within(room.unwrap_or(usize::MAX))
}

/// A text that cannot be taken apart: its beginning.
fn cut(shown: &Shown<'_>, room: Option<usize>) -> Piece {
    let text = terminal(&in_words(shown.text)).into_owned();
    let more = if shown.cut > 0 { format!("… (+{} bytes)", shown.cut) } else { String::new() };
    let text = match room {
        Some(room) if text.chars().count() + more.chars().count() > room => {
            text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
        }
        _ => text + &more,
    };
    Piece { text, emphasis: Emphasis::Plain }
}

/// A text with its cue in words.
fn in_words(text: &str) -> Cow<'_, str> {
    let Some(words) = words::words(text) else { return Cow::Borrowed(text) };
    let Some((before, rest)) = text.split_once(OPEN) else { return Cow::Borrowed(text) };
    let after = rest.split_once(CLOSE).map_or("", |(_, after)| after);
    Cow::Owned(format!("{before}[[the model {words}]]{after}"))
}

struct Frame<'f> {
    text: &'f str,
    kind: Option<&'f str>,
    nodes: &'f [Node],
    marks: Vec<Emphasis>,
}

impl Frame<'_> {
    fn within(&self, room: usize) -> Vec<Piece> {
        let all = vec![true; self.nodes.len()];
        for longest in LENGTHS {
            let pieces = self.pieces(&all, longest);
            if length(&pieces) <= room {
                return pieces;
            }
        }
        let mut choice: Vec<usize> = (1..self.nodes.len()).collect();
        choice.sort_by_key(|at| (std::cmp::Reverse(self.worth(*at)), *at));
        let mut shown = vec![false; self.nodes.len()];
        for at in choice.into_iter().take(CHOICE) {
            let before = shown.clone();
            let mut above = at;
            while !shown[above] {
                shown[above] = true;
                above = self.nodes[above].parent;
            }
            if length(&self.pieces(&shown, SHORT)) > room {
                shown = before;
            }
        }
        let pieces = self.pieces(&shown, SHORT);
        if length(&pieces) <= room {
            pieces
        } else {
            vec![Piece { text: "{…}".to_owned(), emphasis: Emphasis::Plain }]
        }
    }

    /// How much a field matters: what is wrong, the type, ids, short values, long ones, what is nested.
    fn worth(&self, at: usize) -> usize {
        let node = &self.nodes[at];
        let near = 9_usize.saturating_sub(node.depth);
        let name = node.name(self.text);
        let plain = node.plain(self.text);
        let is_kind = node.depth == 1 && (self.kind == Some(plain) || (self.kind.is_none() && at == 1));
        let class = match () {
            () if self.marks[at] == Emphasis::Violating => 9,
            () if self.is_within_marked(at) => 8,
            () if node.is_container => 0,
            () if is_kind => 7,
            () if self.marks[at] == Emphasis::Changed => 6,
            () if is_id(name) && plain.len() <= WORD => 5,
            () if plain.len() <= WORD => 3,
            () => 2,
        };
        class * 10 + near
    }

    fn is_within_marked(&self, at: usize) -> bool {
        let mut at = at;
        while at != self.nodes[at].parent {
            at = self.nodes[at].parent;
            if self.marks[at] == Emphasis::Violating {
                return true;
            }
        }
        false
    }

    fn pieces(&self, shown: &[bool], longest: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.write(0, shown, longest, Emphasis::Plain, &mut pieces);
        pieces
    }

    fn write(&self, at: usize, shown: &[bool], longest: usize, outer: Emphasis, out: &mut Vec<Piece>) {
        let node = &self.nodes[at];
        let emphasis = if outer == Emphasis::Violating { outer } else { self.marks[at] };
        let mut add = |text: &str| push(out, text, emphasis);
        if !node.key.is_empty() {
            add(&terminal(&shortened(&self.text[node.key.clone()], longest)));
            add(":");
        }
        let value = &self.text[node.value.clone()];
        if !node.is_container {
            let is_long_id = is_id(node.name(self.text)) && value.len() > 2 * SHORT_ID;
            let longest = if longest == SHORT && is_long_id { 1 + SHORT_ID } else { longest };
            return add(&terminal(&shortened(&in_words(value), longest)));
        }
        let (open, close) = if value.starts_with('{') { ("{", "}") } else { ("[", "]") };
        add(open);
        let (mut first, mut gap) = (true, false);
        for &child in &node.children {
            if !shown[child] {
                gap = true;
                continue;
            }
            let between = match (first, std::mem::take(&mut gap)) {
                (true, true) => "…,",
                (true, false) => "",
                (false, true) => ",…,",
                (false, false) => ",",
            };
            first = false;
            push(out, between, emphasis);
            self.write(child, shown, longest, emphasis, out);
        }
        let end = match (gap, first) {
            (true, true) => "…",
            (true, false) => ",…",
            (false, _) => "",
        };
        push(out, end, emphasis);
        push(out, close, emphasis);
    }
}

fn push(out: &mut Vec<Piece>, text: &str, emphasis: Emphasis) {
    match out.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.emphasis == emphasis => last.text.push_str(text),
        _ => out.push(Piece { text: text.to_owned(), emphasis }),
    }
}

/// Whether a field of this name is an id.
fn is_id(name: &str) -> bool {
    name.eq_ignore_ascii_case("id") || ["_id", "-id", "Id", "ID"].iter().any(|end| name.ends_with(end))
}

/// A text of at most so many characters, with its closing quote if it has one.
fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(longest) else { return Cow::Borrowed(text) };
    if text.chars().count() <= longest.saturating_add(2) {
        return Cow::Borrowed(text);
    }
    let quote = if text.starts_with('"') { "\"" } else { "" };
    Cow::Owned(format!("{}…{quote}", &text[..end]))
}

fn length(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.text.chars().count()).sum()
}

#[cfg(test)]
mod tests;
