//! Pieces add up to a whole.

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Longest text that is put together; past that the whole is not judged.
const MAX_BYTES: usize = 1 << 20;

/// Memory: a window of the open texts, at most [`MAX_BYTES`] each, and of the keys of each session.
///
/// A connection that was opened when a text had begun in its session, or that joined in the midst of a turn and is the first to get a
/// piece, has missed pieces: what it got is the end of the whole.
#[derive(Clone)]
pub(super) struct Concatenation {
    check: Check,
    decides: Vec<String>,
    loose: bool,
    piece: (Matcher, Pointer),
    whole: (Matcher, Pointer),
    keys: Keys,
    open: BoundedMap<Text>,
    /// How many connections had been opened when the first piece of a key came in a session.
    begun: BoundedMap<u32>,
}

/// A text as far as it has come.
#[derive(Clone, Default)]
struct Text {
    text: String,
    /// It is too long, or its beginning may be forgotten.
    unsure: bool,
    /// The connection may not have got its beginning.
    joined_late: bool,
}

impl Concatenation {
    pub fn new(rule: &rule::Concatenation, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            decides: rule.decides.clone(),
            loose: rule.loose,
            piece: b.place(&rule.piece)?,
            whole: b.place(&rule.whole)?,
            keys: Keys::new(rule.key.as_ref(), b)?,
            open: BoundedMap::default(),
            begun: BoundedMap::default(),
        })
    }

    /// Whether a connection that gets its first piece of a key may not have got the pieces before.
    fn joins_late(&mut self, seen: &Observation<'_>, key: Option<&str>) -> bool {
        let session = seen.session.id.0;
        let unknown = seen.session.gaps.are_any() || self.begun.may_have_forgotten(session);
        match self.begun.get(session, key) {
            Some(opened) => unknown || seen.conn.0 >= *opened,
            None => {
                self.begun.insert(session, key, seen.opened, 0);
                unknown || seen.session.gaps.late
            }
        }
    }
}

/// Whether one of the texts has a line of the other in it. A blank text is akin to everything.
fn is_similar(pieces: &str, whole: &str) -> bool {
    let has_line = |of: &str, text: &str| {
        let mut lines = of.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.any(|line| text.contains(line))
    };
    pieces.trim().is_empty() || has_line(pieces, whole) || has_line(whole, pieces)
}

impl Monitor for Concatenation {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let (of_piece, of_whole) = (self.keys.of(seen, Part::Begins), self.keys.of(seen, Part::Follows));
        if seen.is(&self.piece.0)
            && let Some(piece) = self.piece.1.get(seen.body).and_then(serde_json::Value::as_str)
        {
            let (place, key) = (seen.conn.0, of_piece.as_deref());
            let joined_late = self.joins_late(seen, key);
            if !self.open.has(place, key) {
                let unsure = self.open.may_have_forgotten(place);
                self.open.insert(place, key, Text { unsure, joined_late, ..Text::default() }, 0);
            }
            if let Some(open) = self.open.get(place, key).filter(|open| !open.unsure) {
                open.text.push_str(piece);
                open.unsure = open.text.len() > MAX_BYTES;
                if open.unsure {
                    open.text = String::new();
                }
                self.open.grow(place, key, piece.len());
            }
        }
        if seen.is(&self.whole.0)
            && let Some(whole) = self.whole.1.get(seen.body).and_then(serde_json::Value::as_str)
            && let Some(Text { text, unsure: false, joined_late }) =
                self.open.remove(seen.conn.0, of_whole.as_deref())
        {
            tally.exercise(&self.decides);
            let holds = if self.loose { is_similar(&text, whole) } else { text == whole };
            let holds = holds || (joined_late && whole.ends_with(&text));
            if !holds {
                let how = if self.loose { "have nothing in common with" } else { "do not add up to" };
                let message = format!("the pieces {how} the whole");
                if let Some(violation) = tally.broken(&self.check, &self.decides, seen.event, message) {
                    violation.expected = Some(text.into());
                    violation.actual = Some(whole.into());
                }
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
        self.open.leave(conn.0);
    }

    fn memory(&self) -> Memory {
        self.open.memory() + self.begun.memory() + self.keys.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::is_similar;

    #[test]
    fn akin_texts_share_a_line() {
        for (pieces, whole, akin) in [
            ("", "anything", true),
            (" \n", "anything", true),
            ("one\ntwo", "Result: two.", true),
            ("Result: one, and more", "one", true),
            ("one", "", false),
            ("one\ntwo", "three", false),
        ] {
            assert_eq!(is_similar(pieces, whole), akin, "{pieces:?} and {whole:?}");
        }
    }
}
