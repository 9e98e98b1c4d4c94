//! A YAML text as JSON, with places.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::node::Node;
use super::{Diagnostic, Diagnostics, syntax};

/// Longest text that is read, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// Bytes of the text, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Which part of a map entry a diagnostic points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A parsed text. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Document {
    /// What messages call it: a path as the user gave it.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
    /// The value.
    pub value: Arc<Value>,
    /// Of a text that ships with the binary, found when first asked for.
    places: Arc<OnceLock<HashMap<String, Places>>>,
    /// Where its lines are, found when first asked for.
    lines: Arc<OnceLock<Lines>>,
    origin: Origin,
    /// Merge patches on it, the last one last.
    patches: Arc<[Document]>,
    /// Keys that are written otherwise than they are called in `value`, by the pointer of their value there.
    written: Arc<HashMap<String, String>>,
}

/// Where the lines of a text begin, so that a file with very many mistakes is not counted through for each.
#[derive(Debug)]
struct Lines {
    /// In bytes, the first at 0.
    starts: Vec<usize>,
    /// A character is a byte.
    is_ascii: bool,
}

/// Where a text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A user: anything may be wrong with it.
    User,
    /// The binary: tests see to it that nothing is.
    Binary,
}

/// Line and character column, from 1, of an entry's key and value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub key: (usize, usize),
    pub value: (usize, usize),
}

impl Document {
    /// Parses YAML (or JSON, which is YAML). A byte order mark is passed over; lines may end as they like.
    ///
    /// # Errors
    /// Broken syntax, duplicate keys, an alias bomb, too deep or too large a text, one that says nothing.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let text = &*plain(text);
        let bare = |value, places| Self::with_places(name, text, value, places);
        if text.len() > MAX_BYTES {
            let message = format!("{name} has {} bytes, over the limit of {MAX_BYTES}", text.len());
            return Err(Diagnostic::new(message).into());
        }
        let node = nodes(text).map_err(|error| {
            let error = error.without_snippet();
            let document = bare(Value::Null, HashMap::new());
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
            let message = syntax::too_much(&message).or_else(|| syntax::twice(&message)).unwrap_or(message);
            let mut diagnostic = Diagnostic::new(message).label("the YAML is invalid from here on");
            if let Some(location) = error.location() {
                let line = location.line() as usize;
                let start = document.offset((line, location.column() as usize));
                diagnostic.place = Some((document.clone(), document.token(start)));
                diagnostic.hint = syntax::advice(&diagnostic.message, text, line);
            }
            Diagnostics::from(diagnostic)
        })?;
        let mut places = HashMap::new();
        let value = node.into_value(&mut String::new(), None, &mut places);
        if value.is_null() {
            let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
            let what = if text.trim().is_empty() {
                "the file is empty"
            } else if text.lines().all(is_blank) {
                "the file has only comments"
            } else {
                "the file has only null"
            };
            let message = format!("{name}: {what}");
            return Err(Diagnostic::new(message)
                .hint("was it written to the end, and is it the right one?")
                .into());
        }
        Ok(bare(value, places))
    }

    /// A text in another language than YAML, only to point at places in it.
    pub fn foreign(name: &str, text: &str) -> Self {
        Self::with_places(name, text, Value::Null, HashMap::new())
    }

    pub(super) fn with_places(name: &str, text: &str, value: Value, places: HashMap<String, Places>) -> Self {
        Self {
            name: name.to_owned(),
            text: text.into(),
            value: Arc::new(value),
            places: Arc::new(OnceLock::from(places)),
            lines: Arc::default(),
            origin: Origin::User,
            patches: Arc::new([]),
            written: Arc::default(),
        }
    }

    /// A text that ships with the binary, and what it says.
    pub(super) fn shipped(name: &str, text: &str, value: Value) -> Self {
        let document = Self::with_places(name, text, value, HashMap::new());
        Self { places: Arc::default(), origin: Origin::Binary, ..document }
    }

    /// Whether it ships with the binary and nothing was patched: then all has been checked.
    pub(crate) fn is_shipped(&self) -> bool {
        self.origin == Origin::Binary && self.patches.is_empty()
    }

    fn places(&self) -> &HashMap<String, Places> {
        self.places.get_or_init(|| {
            let mut places = HashMap::new();
            if let Ok(node) = nodes(&self.text) {
                node.into_value(&mut String::new(), None, &mut places);
            }
            places
        })
    }

    /// The same, but what JSON Merge Patches write is pointed at where they write it.
    #[must_use]
    pub fn patched(&self, patches: &[Self]) -> Self {
        Self { patches: patches.into(), ..self.clone() }
    }

    /// The same with another value, in which keys are called otherwise than they are written: by the pointer of their value, the key in the text.
    pub(super) fn renamed(&self, value: Value, written: HashMap<String, String>) -> Self {
        Self { value: Arc::new(value), written: Arc::new(written), ..self.clone() }
    }

    /// A pointer into the value as one into the text.
    fn as_written<'p>(&self, pointer: &'p str) -> Cow<'p, str> {
        if self.written.is_empty() {
            return Cow::Borrowed(pointer);
        }
        let ends = pointer.match_indices('/').skip(1).map(|(at, _)| at).chain([pointer.len()]);
        let mut text = String::with_capacity(pointer.len());
        let mut start = 0;
        for end in ends {
            match self.written.get(&pointer[..end]) {
                Some(key) => text.extend(["/", key]),
                None => text.push_str(&pointer[start..end]),
            }
            start = end;
        }
        Cow::Owned(text)
    }

    /// The text that says what stands at a JSON Pointer: the last patch that writes it or, as a whole, what it is in. A map
    /// that is only added to is the document's own.
    pub(super) fn writer(&self, pointer: &str) -> &Self {
        let writes = |patch: &&Self| {
            let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
            let both = ends
                .map(|end| &pointer[..end])
                .map(|above| (patch.value.pointer(above), self.value.pointer(above)));
            for (patch, own) in both {
                match (patch, own) {
                    (None, _) => return false,
                    (Some(Value::Object(_)), Some(Value::Object(_))) => {}
                    _ => return true,
                }
            }
            false
        };
        self.patches.iter().rev().find(writes).unwrap_or(self)
    }

    /// Reads and parses a file.
    ///
    /// # Errors
    /// As [`Document::parse`], and a file that cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Diagnostics> {
        let name = path.display().to_string();
        let bytes = crate::input::read(path, crate::input::DOCUMENT)
            .map_err(|error| Diagnostic::new(format!("{name} cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let utf16 = matches!(error.as_bytes(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
            let hint = if utf16 { "it looks like UTF-16: save it as UTF-8" } else { "save it as UTF-8" };
            Diagnostic::new(format!("{name} is not UTF-8: bad byte at offset {at}")).hint(hint)
        })?;
        Self::parse(&name, &text)
    }

    /// Where the value at a JSON Pointer stands; the nearest existing parent where it does not exist.
    pub fn span(&self, pointer: &str, part: Part) -> Span {
        let pointer = self.as_written(pointer);
        let mut pointer = &*pointer;
        let mut part = part;
        loop {
            if let Some(places) = self.places().get(pointer) {
                let place = if part == Part::Key { places.key } else { places.value };
                return self.token(self.offset(place));
            }
            match pointer.rfind('/') {
                Some(at) => pointer = &pointer[..at],
                None => return Span { start: 0, end: 0 },
            }
            part = Part::Key;
        }
    }

    /// Line and column, both from 1 (columns in characters), and the source line, of a byte offset.
    pub fn place(&self, offset: usize) -> (usize, usize, &str) {
        let offset = (0..=offset.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at));
        let (offset, lines) = (offset.unwrap_or(0), self.lines());
        let line = lines.starts.partition_point(|start| *start <= offset);
        let line_start = lines.starts[line - 1];
        let column = match lines.is_ascii {
            true => offset - line_start + 1,
            false => self.text[line_start..offset].chars().count() + 1,
        };
        let source = self.text[line_start..].lines().next().unwrap_or("");
        (line, column, source)
    }

    /// Where something stands in the value at a JSON Pointer: `find` looks for it in the text from there on, of so many
    /// lines. The value's own span where it is not found.
    pub fn span_within(
        &self,
        pointer: &str,
        lines: usize,
        find: impl Fn(&str) -> Option<std::ops::Range<usize>>,
    ) -> Span {
        let own = self.span(pointer, Part::Value);
        let rest = &self.text[own.start..];
        let end = rest.match_indices('\n').nth(lines.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
        find(&rest[..end])
            .map_or(own, |found| Span { start: own.start + found.start, end: own.start + found.end })
    }

    fn offset(&self, (line, column): (usize, usize)) -> usize {
        let lines = self.lines();
        let start = line.checked_sub(1).and_then(|index| lines.starts.get(index));
        let Some(&start) = start else { return self.text.len() };
        let end = lines.starts.get(line).copied().unwrap_or(self.text.len());
        let column = column.saturating_sub(1);
        match lines.is_ascii {
            true => (start + column).min(end),
            false => {
                let text = &self.text[start..end];
                start + text.char_indices().nth(column).map_or(text.len(), |(at, _)| at)
            }
        }
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines {
            starts: std::iter::once(0).chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
            is_ascii: self.text.is_ascii(),
        })
    }

    /// The word, or the quoted text, that begins at `start`.
    fn token(&self, start: usize) -> Span {
        let rest = &self.text[start..];
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let length = match quote {
            Some(quote) => rest[1..].find([quote, '\n']).map_or(rest.len(), |at| at + 2),
            None => rest.find([',', '}', ']', '\n', '#', ':']).unwrap_or(rest.len()),
        };
        let word = rest.get(..length).unwrap_or(rest).trim_end();
        // A word of nothing but blanks (a no-break space is one) still has a first character, of one to four bytes.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        Span { start, end: start + word.len().max(first) }
    }
}

fn nodes(text: &str) -> Result<Node, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// A text without a byte order mark, and with line ends that everybody sees: YAML ends a line at a lone carriage return,
/// too. Byte for byte as long behind the mark, so that places stay.
fn plain(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lone = |at: usize| !text[at + 1..].starts_with('\n');
    if !text.match_indices('\r').any(|(at, _)| lone(at)) {
        return Cow::Borrowed(text);
    }
    let ends = text.char_indices().map(|(at, c)| if c == '\r' && lone(at) { '\n' } else { c });
    Cow::Owned(ends.collect())
}

/// A key as a JSON Pointer token.
pub(crate) fn escape_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The key that a JSON Pointer token stands for.
pub(crate) fn unescape_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_mistake_is_where_it_is_written() {
        let parse = |name: &str, text: &str| Document::parse(name, text).expect("YAML");
        let base = parse("base", "a: { list: [{ x: 1 }, { x: 2 }], map: { x: 1 } }");
        let patched = base.patched(&[
            parse("one", "a: { list: [{ x: 3 }] }"),
            parse("two", "a: { map: { y: 2 }, new: { z: 1 } }"),
        ]);
        for (at, name) in [
            ("", "base"),
            ("/a", "base"),
            ("/a/list", "one"),
            ("/a/list/0/x", "one"),
            ("/a/map", "base"),
            ("/a/map/x", "base"),
            ("/a/map/y", "two"),
            ("/a/new", "two"),
            ("/a/new/none", "two"),
            ("/a/none", "base"),
        ] {
            assert_eq!(patched.writer(at).name, name, "{at}");
        }
    }

    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_values_and_places() {
        let text = "a: 1\nlist:\n  - { x: yes, y: \"q\" }\n  - off\nb/c: 1.5\n";
        let document = Document::parse("t.yaml", text).expect("valid");
        assert_eq!(*document.value, json!({ "a": 1, "list": [{ "x": "yes", "y": "q" }, "off"], "b/c": 1.5 }));
        let at = |pointer, part| {
            let span = document.span(pointer, part);
            &text[span.start..span.end]
        };
        assert_eq!(at("/list/0/y", Part::Value), "\"q\"");
        assert_eq!(at("/list/0/y", Part::Key), "y");
        assert_eq!(at("/b~1c", Part::Value), "1.5");
        assert_eq!(at("/list/1", Part::Value), "off");
        assert_eq!(document.place(document.span("/list/1", Part::Value).start), (4, 5, "  - off"));
    }

    #[test]
    fn marks_and_line_ends_do_not_matter() {
        let plain = Document::parse("t.yaml", "a: 1\nb:\n  c: x\n").expect("valid");
        for text in ["\u{feff}a: 1\nb:\n  c: x\n", "a: 1\rb:\r  c: x\r", "\u{feff}a: 1\r\nb:\r\n  c: x"] {
            let document = Document::parse("t.yaml", text).expect(text);
            assert_eq!(document.value, plain.value, "{text:?}");
            let (line, column, source) = document.place(document.span("/b/c", Part::Value).start);
            assert_eq!((line, column, source), (3, 6, "  c: x"), "{text:?}");
        }
    }

    #[test]
    fn a_file_that_says_nothing_is_refused() {
        for (text, expected) in [
            ("", "is empty"),
            (" \n", "is empty"),
            ("\u{feff}", "is empty"),
            ("# a\n", "only comments"),
            ("~", "only null"),
        ] {
            let error = Document::parse("t.yaml", text).expect_err(text).to_string();
            assert!(error.contains(expected) && error.contains("t.yaml"), "{text:?}: {error}");
        }
    }

    #[test]
    fn places_are_the_same_whatever_the_characters() {
        for text in ["a: 1\nbc: [2,\n  3]\n", "ä: 1\nb€: [2,\n  😀]\n", "", "\n", "a"] {
            let document = Document::foreign("t", text);
            for at in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
                let before = &text[..at];
                let start = before.rfind('\n').map_or(0, |at| at + 1);
                let (line, column, _) = document.place(at);
                assert_eq!(line, before.matches('\n').count() + 1, "{text:?} {at}");
                assert_eq!(column, text[start..at].chars().count() + 1, "{text:?} {at}");
                assert_eq!(document.offset((line, column)), at, "{text:?}");
            }
            assert_eq!(document.offset((99, 1)), text.len());
        }
    }

    #[test]
    fn spans_end_between_characters() {
        for text in
            ["a: \u{a0}\n", "\u{a0}: 1\n", "a:\n  \u{2003}: [1\n", "a: \u{3000}", "a: \"\u{a0}\"\n", "a:"]
        {
            match Document::parse("t.yaml", text) {
                Ok(document) => {
                    for (pointer, places) in document.places().iter() {
                        for part in [Part::Key, Part::Value] {
                            let span = document.span(pointer, part);
                            assert!(text.get(span.start..span.end).is_some(), "{text:?} {places:?} {span:?}");
                            let error = Diagnostic::new("here").at(&document, pointer, part);
                            assert!(Diagnostics::from(error).to_string().contains("t.yaml:"), "{text:?}");
                        }
                    }
                }
                Err(errors) => assert!(errors.to_string().contains("t.yaml:"), "{text:?}"),
            }
        }
    }

    #[test]
    fn refuses_what_is_no_plain_yaml() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..9 {
            let last = level - 1;
            bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{last}"); 10].join(","));
        }
        for (text, expected) in
            [("a: 1\na: 2\n", "twice"), ("a: [1, 2\n", ""), ("a: b: c\n", ""), (bomb.as_str(), "")]
        {
            let error = Document::parse("t.yaml", text).expect_err(text).to_string();
            assert!(error.to_lowercase().contains(expected), "{error}");
        }
    }
}
