//! Pieces add up to a whole.

use rustc_hash::FxHashMap;

use super::monitor::{Conn, Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant::{self as rule, Key};
use crate::source::Diagnostics;

/// Longest text that is put together; past that the whole is not judged.
const MAX_BYTES: usize = 1 << 20;

/// Memory: the open texts, at most [`MAX_BYTES`] each.
pub(super) struct Concatenation {
    name: String,
    decides: Vec<String>,
    piece: (Matcher, Pointer),
    whole: (Matcher, Pointer),
    keys: Option<(Pointer, Pointer)>,
    open: FxHashMap<(Conn, Option<String>), String>,
}

impl Concatenation {
    pub fn new(rule: &rule::Concatenation, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            decides: rule.decides.clone(),
            piece: b.place(&rule.piece)?,
            whole: b.place(&rule.whole)?,
            keys: rule.key.as_ref().map(|key| match key {
                Key::Same(at) => (at.clone(), at.clone()),
                Key::Each(piece, whole) => (piece.clone(), whole.clone()),
            }),
            open: FxHashMap::default(),
        })
    }
}

impl Monitor for Concatenation {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let key = |at: Option<&Pointer>| at.and_then(|at| at.get(seen.body)).map(key_text);
        if seen.is(&self.piece.0)
            && let Some(piece) = self.piece.1.get(seen.body).and_then(serde_json::Value::as_str)
        {
            let text = self.open.entry((seen.conn, key(self.keys.as_ref().map(|keys| &keys.0)))).or_default();
            if text.len() <= MAX_BYTES {
                text.push_str(piece);
            }
        }
        if seen.is(&self.whole.0)
            && let Some(whole) = self.whole.1.get(seen.body).and_then(serde_json::Value::as_str)
            && let Some(text) = self.open.remove(&(seen.conn, key(self.keys.as_ref().map(|keys| &keys.1))))
            && text.len() <= MAX_BYTES
        {
            findings.exercise(&self.decides);
            if text != whole {
                let message = "the pieces do not add up to the whole".to_owned();
                if let Some(violation) = findings.broken(&self.name, &self.decides, seen.event, message) {
                    violation.expected = Some(text.into());
                    violation.actual = Some(whole.into());
                }
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        self.open.retain(|(known, _), _| *known != conn);
    }
}
