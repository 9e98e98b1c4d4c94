//! A shown history agrees with the conversation.

use std::collections::VecDeque;
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
    request: Option<Matcher>,
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
    /// Of each history that is asked for and has not come: how many turns there were, and whether the last answer was not over.
    asked: VecDeque<(usize, bool)>,
}

/// Whether a history shows these turns at its end. `open`: the last answer was not over.
fn shows(shown: &[(String, String)], turns: &[(String, String)], open: bool) -> bool {
    let (finished, open) = turns.split_at(turns.len() - usize::from(open));
    match open.first() {
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
    }
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
            request: b.optional(rule.request.as_ref())?,
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

    /// `asked`: how the conversation was when this history was asked for.
    fn compare(&self, seen: &Observation<'_>, talk: &Talk, asked: (usize, bool), tally: &mut Tally) {
        let (turns, was_open) = asked;
        // Where nothing was said, any history agrees: that proves nothing.
        if turns == 0 {
            return;
        }
        let Some(list) = self.history.1.get(seen.body).and_then(Value::as_array) else { return };
        tally.exercise(&self.rule.decides);
        let shown = self.shown(list);
        let last = talk.turns.len();
        let agrees = (turns..=last).any(|count| {
            let (was_open, is_open) = (count > turns || was_open, count == last && talk.open);
            let so_far = &talk.turns[..count];
            was_open && shows(&shown, so_far, true) || !is_open && shows(&shown, so_far, false)
        });
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
        } else if seen.is_any(self.request.as_ref()) {
            talk.bytes += TURN;
            talk.asked.push_back((talk.turns.len(), talk.open));
        } else if seen.is(&self.history.0) {
            let asked = talk.asked.pop_front().unwrap_or((talk.turns.len(), talk.open));
            if let Some(talk) = self.conns.get(&seen.conn) {
                self.compare(seen, talk, asked, tally);
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.conns.remove(&conn);
    }

    fn memory(&self) -> Memory {
        let entries = self.conns.values().map(|talk| talk.turns.len() + talk.asked.len()).sum();
        Memory { entries, forgotten: self.forgotten }
    }
}
