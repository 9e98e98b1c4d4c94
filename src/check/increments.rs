//! Pieces of a text are increments, not the text so far.

use rustc_hash::FxHashMap;

use super::Violation;
use super::monitor::{Conn, End, Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// How many texts are remembered; past that all are forgotten.
const WINDOW: usize = 4096;
/// How often a piece must repeat all that came before until that is no accident.
const ENOUGH: u32 = 2;
/// How long the repeated text must be, in bytes, until that is no accident: 1, 10, 100 may be increments.
const TELLING: usize = 8;

/// Judged when the text is over (with the connection or the trace): any piece that does not repeat what came before
/// shows that all are increments.
///
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
    /// The event before.
    related: u64,
    /// The longest text that was repeated, in bytes.
    longest: usize,
    /// How many pieces repeated what came before; `None`: one did not, so that the pieces are increments.
    repeats: Option<u32>,
}

impl Increments {
    pub fn new(rule: &rule::Increments, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        let on = b.pattern(&rule.on)?;
        Ok(Self { name: b.name.clone(), on, rule: rule.clone(), texts: FxHashMap::default() })
    }

    /// Judges a text that is over.
    fn judge(&self, text: &Text, findings: &mut Findings) {
        if text.repeats.is_none_or(|repeats| repeats < ENOUGH) || text.longest < TELLING {
            return;
        }
        let message = "piece after piece repeats the whole text so far".to_owned();
        findings.push(Violation {
            event: Some(text.event),
            related: Some(text.related),
            actual: Some(crate::protocol::shorten(&text.newest.as_str().into()).into()),
            ..Violation::new(&self.name, &self.rule.decides, message)
        });
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
            let texts = std::mem::take(&mut self.texts);
            texts.values().for_each(|text| self.judge(text, findings));
        }
        let place = (seen.conn, key_text(key));
        let Some(text) = self.texts.get_mut(&place) else {
            let newest = piece.to_owned();
            let text = Text { newest, event: seen.event, related: seen.event, longest: 0, repeats: Some(0) };
            self.texts.insert(place, text);
            return;
        };
        findings.exercise(&self.rule.decides);
        text.related = std::mem::replace(&mut text.event, seen.event);
        let Some(repeats) = text.repeats else { return };
        // A text that begins with nothing has not begun.
        let begins = text.newest.is_empty();
        let repeated = piece.len() > text.newest.len() && piece.starts_with(&text.newest);
        if !begins && !repeated {
            text.newest = String::new();
            text.repeats = None;
            return;
        }
        text.longest = text.longest.max(text.newest.len());
        piece.clone_into(&mut text.newest);
        text.repeats = Some(repeats.saturating_add(u32::from(!begins)));
    }

    fn closed(&mut self, conn: Conn, findings: &mut Findings) {
        let (over, rest) =
            std::mem::take(&mut self.texts).into_iter().partition(|((known, _), _)| *known == conn);
        self.texts = rest;
        let over: FxHashMap<(Conn, String), Text> = over;
        over.values().for_each(|text| self.judge(text, findings));
    }

    fn finish(&mut self, _end: &End<'_>, findings: &mut Findings) {
        let texts = std::mem::take(&mut self.texts);
        texts.values().for_each(|text| self.judge(text, findings));
    }
}
