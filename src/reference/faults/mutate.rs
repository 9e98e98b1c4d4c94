//! What the defects of several dialects do to a message or a text.

use serde_json::Value;

/// Moves a field of an object to another name; what is no object stays.
pub(in crate::reference) fn rename(message: &mut Value, from: &str, to: &str) {
    if let Some(map) = message.as_object_mut() {
        let value = map.remove(from).unwrap_or_default();
        map.insert(to.to_owned(), value);
    }
}

/// Whether a name differs from a known one by letter case or by white space around it only.
pub(in crate::reference) fn resembles(name: &str, known: &str) -> bool {
    name != known && name.trim().eq_ignore_ascii_case(known)
}

/// The text with `?` for each character beyond `last`.
pub(in crate::reference) fn limit(text: &str, last: char) -> String {
    text.chars().map(|c| if c <= last { c } else { '?' }).collect()
}

/// The last character of ASCII, and of Latin-1.
pub(in crate::reference) const ASCII: char = '\x7f';
pub(in crate::reference) const LATIN_1: char = 'ÿ';
