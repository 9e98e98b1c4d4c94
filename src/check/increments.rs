//! Pieces of a text are increments, not the text so far.

use rustc_hash::FxHashMap;

use super::monitor::{Conn, Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// How many texts are remembered; past that all are forgotten.
const WINDOW: usize = 4096;
/// How often a piece must repeat all that came before until that is no accident.
const ENOUGH: u32 = 2;

/// Memory: the newest piece of each text, at most [`WINDOW`].
pub(super) struct Increments {
    name: String,
    rule: rule::Increments,
    on: Matcher,
    texts: FxHashMap<(Conn, String), Text>,
}

struct Text {
    newest: String,
    event: u64,
    /// How many pieces repeated what came before; `None`: one did not, so that the pieces are increments.
    repeats: Option<u32>,
}

impl Increments {
    pub fn new(rule: &rule::Increments, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        let on = b.pattern(&rule.on)?;
        Ok(Self { name: b.name.clone(), on, rule: rule.clone(), texts: FxHashMap::default() })
    }
}

impl Monitor for Increments {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        if !seen.is(&self.on) {
            return;
        }
        let piece = self.rule.at.get(seen.body).and_then(serde_json::Value::as_str);
        let (Some(piece), Some(key)) = (piece, self.rule.key.get(seen.body)) else { return };
        if self.texts.len() >= WINDOW {
            self.texts.clear();
        }
        let place = (seen.conn, key_text(key));
        let Some(text) = self.texts.get_mut(&place) else {
            let text = Text { newest: piece.to_owned(), event: seen.event, repeats: Some(0) };
            self.texts.insert(place, text);
            return;
        };
        findings.exercise(&self.rule.decides);
        let related = std::mem::replace(&mut text.event, seen.event);
        let Some(repeats) = text.repeats else { return };
        // A text that begins with nothing has not begun.
        let begins = text.newest.is_empty();
        let repeated = piece.len() > text.newest.len() && piece.starts_with(&text.newest);
        if !begins && !repeated {
            *text = Text { newest: String::new(), event: seen.event, repeats: None };
            return;
        }
        piece.clone_into(&mut text.newest);
        text.repeats = Some(repeats + u32::from(!begins));
        if text.repeats == Some(ENOUGH) {
            let message = "piece after piece repeats the whole text so far".to_owned();
            if let Some(violation) = findings.broken(&self.name, &self.rule.decides, seen.event, message) {
                violation.related = Some(related);
                violation.actual = Some(seen.body.clone());
            }
        }
    }

    fn closed(&mut self, conn: Conn) {
        self.texts.retain(|(known, _), _| *known != conn);
    }
}
