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
    doubt: Doubt,
    bytes: usize,
    /// Of each history that is asked for and has not come: how many turns there were, and whether the last answer was not over; none, if
    /// that is not known.
    asked: VecDeque<Option<(usize, bool)>>,
}

/// Whether it is known what was said.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Doubt {
    #[default]
    None,
    /// Not before the answers of so many questions are over, and that of one at least.
    Until(usize),
    Forever,
}

impl Talk {
    /// What was said is not known any more, until the answers of so many questions are over.
    fn lose(&mut self, questions: usize) {
        self.asked.iter_mut().for_each(|asked| *asked = None);
        let (asked, bytes) = (std::mem::take(&mut self.asked), self.asked.len() * TURN);
        *self = Self { doubt: Doubt::Until(questions), asked, bytes, ..Self::default() };
    }

    fn ask(&mut self, question: &str) {
        match &mut self.doubt {
            Doubt::Until(questions) => *questions += 1,
            Doubt::None if self.open => self.lose(2),
            Doubt::None => {
                self.open = true;
                self.bytes += question.len() + TURN;
                self.turns.push((question.to_owned(), String::new()));
            }
            Doubt::Forever => {}
        }
    }

    /// An answer is over.
    fn end(&mut self) {
        self.open = false;
        self.doubt = match self.doubt {
            Doubt::Until(1) => Doubt::None,
            Doubt::Until(questions) => Doubt::Until(questions.saturating_sub(1)),
            doubt => doubt,
        };
    }

    /// How much was said so far, if that is known.
    fn so_far(&self) -> Option<(usize, bool)> {
        (self.doubt == Doubt::None).then_some((self.turns.len(), self.open))
    }
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
        if talk.bytes > MAX_BYTES {
            self.forgotten += talk.turns.len() as u64;
            *talk = Talk { doubt: Doubt::Forever, ..Talk::default() };
        }
        if talk.doubt == Doubt::Forever {
            return;
        }
        if self.unsure.iter().any(|pattern| seen.is(pattern)) {
            let open =
                if let Doubt::Until(questions) = talk.doubt { questions } else { usize::from(talk.open) };
            return talk.lose(open);
        }
        if seen.is(&self.question.0)
            && let Some(question) = text(&self.question.1)
        {
            talk.ask(question);
        } else if seen.is(&self.piece.0)
            && let (Some(piece), Some((_, answer))) = (text(&self.piece.1), talk.turns.last_mut())
        {
            talk.bytes += piece.len();
            answer.push_str(piece);
        } else if seen.is(&self.over) {
            talk.end();
        } else if seen.is_any(self.request.as_ref()) {
            talk.bytes += TURN;
            talk.asked.push_back(talk.so_far());
        } else if seen.is(&self.history.0) {
            let asked = talk.asked.pop_front().unwrap_or_else(|| talk.so_far());
            if let (Some(asked), Some(talk)) = (asked, self.conns.get(&seen.conn)) {
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
