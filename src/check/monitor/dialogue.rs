//! A shown history agrees with the conversation.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::Memory;
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::frame::Pointer;
use crate::protocol::rules as rule;
use crate::protocol::{Matcher, is_subset};
use crate::results::Check;
use crate::source::Diagnostics;

/// Longest conversation that is remembered, in bytes; a longer one is not judged any more.
const MAX_BYTES: usize = 1 << 20;
/// What a turn takes besides its texts, about, in bytes.
const TURN: usize = 64;

/// Memory: the texts of each connection, at most [`MAX_BYTES`] each.
#[derive(Clone)]
pub(super) struct Dialogue {
    check: Check,
    rule: Arc<rule::Dialogue>,
    history: (Matcher, Pointer),
    question: (Matcher, Pointer),
    piece: (Matcher, Pointer),
    over: Matcher,
    unsure: Vec<Matcher>,
    conns: FxHashMap<Conn, Talk>,
    forgotten: u64,
}

/// What was said on a connection.
#[derive(Clone, Default)]
struct Talk {
    /// Questions and answers.
    turns: Vec<(String, String)>,
    /// The last answer is not over.
    open: bool,
    unsure: bool,
    bytes: usize,
}

impl Dialogue {
    pub fn new(rule: &rule::Dialogue, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            history: b.place(&rule.history)?,
            question: b.place(&rule.question)?,
            piece: b.place(&rule.piece)?,
            over: b.pattern(&rule.over)?,
            unsure: rule.unsure.iter().map(|pattern| b.pattern(pattern)).collect::<Result<_, _>>()?,
            rule: Arc::new(rule.clone()),
            conns: FxHashMap::default(),
            forgotten: 0,
        })
    }

    /// The questions and answers of a shown history. Answers before the first question are left out.
    fn shown(&self, list: &[Value]) -> Vec<(String, String)> {
        let mut turns: Vec<(String, String)> = Vec::new();
        for element in list {
            let text = self.rule.text.get(element).and_then(Value::as_str).unwrap_or_default();
            if is_subset(&self.rule.asked, element) {
                turns.push((text.to_owned(), String::new()));
            } else if is_subset(&self.rule.answered, element)
                && let Some((_, answer)) = turns.last_mut()
            {
                answer.push_str(text);
            }
        }
        turns
    }

    fn compare(&self, seen: &Observation<'_>, talk: &Talk, tally: &mut Tally) {
        // Where nothing was said, any history agrees: that proves nothing.
        if talk.turns.is_empty() {
            return;
        }
        let Some(list) = self.history.1.get(seen.body).and_then(Value::as_array) else { return };
        tally.exercise(&self.rule.decides);
        let shown = self.shown(list);
        let (finished, open) = talk.turns.split_at(talk.turns.len() - usize::from(talk.open));
        let agrees = match open.first() {
            None => shown.ends_with(finished),
            // A question that has just been asked may not be there yet.
            Some((question, answer)) => {
                let absent = shown.last().is_none_or(|(asked, _)| asked != question || !finished.is_empty());
                absent && shown.ends_with(finished)
                    || shown.split_last().is_some_and(|((asked, so_far), before)| {
                        let part = answer.starts_with(so_far.as_str()) || so_far.starts_with(answer.as_str());
                        asked == question && part && before.ends_with(finished)
                    })
            }
        };
        if !agrees {
            let message = "the history does not agree with the messages sent and received".to_owned();
            if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
                violation.expected = Some(json!(talk.turns));
                violation.actual = Some(json!(shown));
            }
        }
    }
}

impl Monitor for Dialogue {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let text = |at: &Pointer| at.get(seen.body).and_then(Value::as_str);
        let talk = self.conns.entry(seen.conn).or_default();
        let too_long = talk.bytes > MAX_BYTES;
        if self.unsure.iter().any(|pattern| seen.is(pattern)) || too_long {
            self.forgotten += if too_long { talk.turns.len() as u64 } else { 0 };
            *talk = Talk { unsure: true, ..Talk::default() };
        }
        if talk.unsure {
            return;
        }
        if seen.is(&self.question.0)
            && let Some(question) = text(&self.question.1)
        {
            talk.unsure = talk.open;
            talk.open = true;
            talk.bytes += question.len() + TURN;
            talk.turns.push((question.to_owned(), String::new()));
        } else if seen.is(&self.piece.0)
            && let (Some(piece), Some((_, answer))) = (text(&self.piece.1), talk.turns.last_mut())
        {
            talk.bytes += piece.len();
            answer.push_str(piece);
        } else if seen.is(&self.over) {
            talk.open = false;
        } else if seen.is(&self.history.0)
            && let Some(talk) = self.conns.get(&seen.conn)
        {
            self.compare(seen, talk, tally);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.conns.remove(&conn);
    }

    fn memory(&self) -> Memory {
        let entries = self.conns.values().map(|talk| talk.turns.len()).sum();
        Memory { entries, forgotten: self.forgotten }
    }
}
