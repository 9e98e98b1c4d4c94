//! Pieces of a text are increments, not the text so far.

use std::sync::Arc;

use super::key::{Keys, Part};
use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// How often a piece must repeat all that came before until that is no accident.
const ENOUGH: u32 = 2;
/// How long the repeated text must be, in bytes, until that is no accident: 1, 10, 100 may be increments.
const TELLING: usize = 8;

/// Judged when the text is over (with the connection or the trace): any piece that does not repeat what came before
/// shows that all are increments.
///
/// Memory: a window of the newest piece of each text.
#[derive(Clone)]
pub(super) struct Increments {
    check: Check,
    rule: Arc<rule::Increments>,
    on: Matcher,
    texts: BoundedMap<Text>,
    keys: Keys,
}

#[derive(Clone)]
struct Text {
    newest: String,
    event: u64,
    /// The event before.
    related: u64,
    /// The longest text that was repeated, in bytes.
    longest: usize,
    /// How many pieces repeated what came before; `None`: one did not, so that the pieces are increments, or the beginning
    /// may be forgotten.
    repeats: Option<u32>,
}

impl Increments {
    pub fn new(rule: &rule::Increments, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let on = b.pattern(&rule.message)?;
        let keys = Keys::new(Some(&rule.key), b)?;
        let (check, texts) = (b.check.clone(), BoundedMap::default());
        Ok(Self { check, on, rule: Arc::new(rule.clone()), texts, keys })
    }

    /// Judges a text that is over.
    fn judge(&self, text: &Text, tally: &mut Tally) {
        if text.repeats.is_none_or(|repeats| repeats < ENOUGH) || text.longest < TELLING {
            return;
        }
        let message = "each piece repeats the whole text so far".to_owned();
        tally.push(Violation {
            event: Some(text.event),
            related: Some(text.related),
            actual: Some(crate::protocol::shorten(&text.newest.as_str().into()).into()),
            ..Violation::new(&self.check, &self.rule.decides, message)
        });
    }
}

impl Monitor for Increments {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let key = self.keys.of(seen, Part::Follows);
        if !seen.is(&self.on) {
            return;
        }
        let piece = self.rule.at.get(seen.body).and_then(serde_json::Value::as_str);
        let (Some(piece), Some(key)) = (piece, key) else { return };
        let place = seen.conn.0;
        let sure = !self.texts.may_have_forgotten(place);
        let Some(text) = self.texts.get(place, Some(&key)) else {
            let newest = if sure { piece.to_owned() } else { String::new() };
            let (event, related, longest) = (seen.event, seen.event, 0);
            let text = Text { newest, event, related, longest, repeats: sure.then_some(0) };
            self.texts.insert(place, Some(&key), text, if sure { piece.len() } else { 0 });
            return;
        };
        tally.exercise(&self.rule.decides);
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
        let longer = piece.len() - text.newest.len();
        text.longest = text.longest.max(text.newest.len());
        piece.clone_into(&mut text.newest);
        text.repeats = Some(repeats.saturating_add(u32::from(!begins)));
        self.texts.grow(place, Some(&key), longer);
    }

    fn closed(&mut self, conn: Conn, tally: &mut Tally) {
        self.keys.closed(conn);
        for (_, text) in self.texts.take(conn.0) {
            self.judge(&text, tally);
        }
    }

    fn finish(&mut self, _end: &End<'_>, tally: &mut Tally) {
        self.texts.iter().for_each(|(_, _, text)| self.judge(text, tally));
    }

    fn memory(&self) -> Memory {
        self.texts.memory() + self.keys.memory()
    }
}
