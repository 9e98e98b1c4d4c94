//! Playing a turn: the model's responses, token by token, and the calls between them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::faults::Defect;
use super::session::{Inner, Session};
use super::styles::Style;
use crate::cue::{self, Call, Fail, Step};
use crate::reference::engine::Happening;
use crate::reference::engine::{Agent, Cancel, Cancelled, Chunk, Speech, notes};
use crate::reference::faults::mutate;

/// How long the IDE may take over a call, unless the tool itself says how long it takes.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// The turn is over before its script is.
struct Over;

impl From<Cancelled> for Over {
    fn from(_: Cancelled) -> Self {
        Self
    }
}

/// Begins a turn, or keeps the text until the turn that is under way is over.
pub(super) fn begin(session: &Arc<Session>, inner: &mut Inner, text: &str) {
    let mut deaf = false;
    session.behaviour.mutate(&mut deaf, |defect, deaf| match defect {
        Defect::DedupesByText => *deaf = inner.said.as_deref() == Some(text),
        Defect::StuckAfterRejection => *deaf = inner.rejected,
        Defect::NextTextIsFeedback => *deaf = inner.owes_feedback,
        Defect::StuckAfterApproval => *deaf = inner.approved,
        Defect::QueueHoldsOne => *deaf = inner.busy && !inner.queue.is_empty(),
        _ => {}
    });
    inner.said = Some(text.to_owned());
    inner.owes_feedback = false;
    if deaf {
        return;
    }
    if inner.busy {
        inner.queue.push_back(text.to_owned());
        return;
    }
    inner.busy = true;
    tokio::spawn(play(Arc::clone(session), text.to_owned()));
}

async fn play(session: Arc<Session>, mut text: String) {
    loop {
        session.behaviour.note(Happening::Turn);
        let mut turn = Turn {
            session: Arc::clone(&session),
            cancel: Cancel::never(),
            said: cue::without(&text),
            results: Vec::new(),
            texts: 0,
            unfinished: false,
            held: Vec::new(),
            spoke: false,
            calls_follow: false,
        };
        if session.style(Style::Switches) {
            session.switched(&mut session.lock(), "coder", "the task is about code");
        }
        // Over early or not: the next text may come.
        let _ = turn.play(cue::responses(&text)).await;
        let mut inner = session.lock();
        session.give_up(&mut inner);
        inner.abandoned = false;
        inner.rounds = 0;
        for (outbox, error) in inner.late_errors.drain(..) {
            outbox.send(error);
        }
        match inner.queue.pop_front() {
            Some(next) => text = next,
            None => {
                inner.busy = false;
                return;
            }
        }
    }
}

struct Turn {
    session: Arc<Session>,
    /// Nothing cancels a turn; the document has no such message.
    cancel: Cancel,
    /// The user's text.
    said: String,
    /// What the turn's calls have come to so far.
    results: Vec<String>,
    /// Texts of this response that have not begun.
    texts: usize,
    /// This response's text gets no final token.
    unfinished: bool,
    /// What a defect keeps back until the response is said.
    held: Vec<Value>,
    /// Something of this response was said.
    spoke: bool,
    /// Calls follow this response's text.
    calls_follow: bool,
}

impl Turn {
    fn has(&self, defect: Defect) -> bool {
        self.session.has(defect)
    }

    #[allow(dead_code, reason = "a style is asked for where it matters, and that may be elsewhere")]
    fn style(&self, style: Style) -> bool {
        self.session.style(style)
    }

    fn emit(&self, frame: Value) {
        let session = &self.session;
        session.emit(&mut session.lock(), frame);
    }

    /// Says it now, or, with a defect, once the response is complete.
    fn later(&mut self, frame: Value) {
        if self.has(Defect::SaysAllAtTheEnd) || self.has(Defect::SaysAllAtOnce) {
            self.held.push(frame);
        } else {
            self.emit(frame);
        }
    }

    fn fill(&self, chunk: &str) -> String {
        let between = if self.style(Style::OtherWords) { "\n---\n" } else { "; " };
        cue::fill(chunk, &self.results.join(between), &self.said)
    }

    fn apply_chunk_faults(&self, mut chunks: Vec<String>) -> Vec<String> {
        let limit = |chunks: &mut Vec<String>, last| {
            chunks.iter_mut().for_each(|chunk| *chunk = mutate::limit(chunk, last));
        };
        self.session.behaviour.mutate(&mut chunks, |defect, chunks| match defect {
            Defect::SaysAllAtOnce => *chunks = vec![chunks.concat()],
            Defect::ContinuesInOnePiece if !self.results.is_empty() => *chunks = vec![chunks.concat()],
            Defect::CallsAfterOnePiece if self.calls_follow => *chunks = vec![chunks.concat()],
            Defect::SwapsTokens if chunks.len() > 2 => chunks.swap(0, 1),
            Defect::TrimsTokens => {
                chunks.iter_mut().for_each(|chunk| *chunk = chunk.trim().to_owned());
            }
            Defect::AsciiOnly => limit(chunks, mutate::ASCII),
            Defect::LatinOnly => limit(chunks, mutate::LATIN_1),
            _ => {}
        });
        chunks
    }

    fn token(&self, token: &str, is_final: bool) -> Value {
        let mut frame = json!({ "type": "assistant_message", "token": token, "is_final": is_final });
        if self.session.behaviour.strikes(Defect::TokenUnderAnotherName) {
            mutate::rename(&mut frame, "token", "content");
            return frame;
        }
        let Some(map) = frame.as_object_mut() else { return frame };
        if !is_final && self.session.behaviour.strikes(Defect::EveryTokenIsFinal) {
            map.insert("is_final".into(), json!(true));
        } else if is_final && self.session.behaviour.strikes(Defect::NothingIsFinal) {
            map.insert("is_final".into(), json!(false));
        } else if self.session.behaviour.strikes(Defect::FinalAsText) {
            map.insert("is_final".into(), json!(is_final.to_string()));
        } else if !is_final && self.session.behaviour.strikes(Defect::FinalOnlyWhenTrue) {
            map.remove("is_final");
        } else if self.session.behaviour.strikes(Defect::TokenInAList) {
            map.insert("token".into(), json!([token]));
        } else if self.session.behaviour.strikes(Defect::TokenHasExtra) {
            map.insert("content".into(), json!(token));
        } else if self.session.behaviour.strikes(Defect::TokenWithoutType) {
            map.remove("type");
        }
        frame
    }

    /// Waits until something holds.
    async fn until(&self, holds: impl Fn(&Inner) -> bool) {
        loop {
            let changed = self.session.changed.notified();
            if holds(&self.session.lock()) {
                return;
            }
            changed.await;
        }
    }
}

impl Agent for Turn {
    type Stop = Over;

    fn cancel(&mut self) -> &mut Cancel {
        &mut self.cancel
    }

    fn begins(&mut self, response: &cue::Response) {
        let calls_follow = response.iter().any(|step| matches!(step, Step::Call { .. }));
        self.spoke = false;
        self.calls_follow = calls_follow;
        self.texts = response.iter().filter(|step| matches!(step, Step::Say { .. })).count();
        self.session.lock().after_text = self.texts > 0;
        self.unfinished = response.iter().any(|step| matches!(step, Step::Hang { .. } | Step::Fail { .. }))
            || (calls_follow && self.texts > 0 && self.has(Defect::TextBeforeCallsStaysOpen));
    }

    /// Chunks are tokens.
    fn chunks(&mut self, _speech: Speech, chunks: Vec<String>) -> Vec<String> {
        self.texts -= 1;
        let chunks = self.apply_chunk_faults(chunks.iter().map(|chunk| self.fill(chunk)).collect());
        super::variants::recut(&self.session.behaviour, chunks)
    }

    fn say(&mut self, chunk: Chunk) {
        self.spoke = true;
        let is_last = self.texts == 0 && !self.unfinished && chunk.index + 1 == chunk.count;
        let is_final = is_last && !(chunk.count > 3 && self.has(Defect::LongResponsesAreNotFinal));
        if chunk.index == 2 && !is_final && self.has(Defect::LosesTokens) {
            return;
        }
        if chunk.index == 0 && self.style(Style::EmptyFirst) {
            self.later(self.token("", false));
        }
        let ends_empty = is_final && self.style(Style::EmptyFinal);
        let frame = self.token(&chunk.text, is_final && !ends_empty);
        self.later(frame);
        if ends_empty {
            self.later(self.token("", true));
        }
        if is_final && self.has(Defect::FinalTwice) {
            self.emit(self.token("", true));
        }
        if is_final && self.has(Defect::SaysDone) {
            self.emit(json!({ "type": "done" }));
        }
    }

    /// The document has no reasoning: the agent hands over instead.
    async fn think(&mut self, _chunks: Vec<String>, _every: Duration) -> Result<(), Over> {
        self.session.switched(&mut self.session.lock(), "coder", "the task is about code");
        Ok(())
    }

    fn text_ended(&mut self) {
        for frame in std::mem::take(&mut self.held) {
            self.emit(frame);
        }
    }

    async fn fail(&mut self, fail: Fail) -> Over {
        self.held.clear();
        if !self.has(Defect::FailuresAreSilent) {
            let content = format!("the agent failed: {}", fail.message);
            if self.style(Style::FailsInWords) {
                self.emit(self.token(&content, true));
                return Over;
            }
            if self.style(Style::ClosesBeforeError) && self.spoke {
                self.emit(self.token("", true));
            }
            self.emit(json!({ "type": "error", "content": content }));
        }
        Over
    }

    /// Until every client is gone.
    async fn hang(&mut self) -> Over {
        self.until(|inner| inner.clients.is_empty()).await;
        Over
    }

    /// Makes calls, and waits for what they come to.
    async fn call(&mut self, mut calls: Vec<Call>) -> Result<(), Over> {
        if calls.iter().any(|call| call.name.contains('.')) && self.has(Defect::DropsDottedCalls) {
            calls.retain(|call| !call.name.contains('.'));
        }
        if self.style(Style::CallsReversed) {
            calls.reverse();
        }
        let rounds: Vec<Vec<Call>> = match self.style(Style::OneByOne) {
            true => calls.into_iter().map(|call| vec![call]).collect(),
            false => vec![calls],
        };
        let before = self.results.len();
        for calls in rounds {
            let results = self.call_together(calls).await?;
            self.results.extend(results);
        }
        if self.style(Style::CallsReversed) {
            // The model gets the results in its own order.
            self.results[before..].reverse();
        }
        Ok(())
    }
}

impl Turn {
    /// Makes calls at the same time; what they came to.
    async fn call_together(&mut self, calls: Vec<Call>) -> Result<Vec<String>, Over> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let limits = calls.iter().map(|call| notes::duration(&call.name, &call.args));
        let limit = limits.filter(|limit| !limit.is_zero()).min().unwrap_or(CALL_LIMIT);
        {
            let mut inner = self.session.lock();
            self.session.announce(&mut inner, calls.into_iter().map(|call| (call.name, call.args)).collect());
            self.session.presume(&mut inner);
        }
        let mut answered = pin!(
            self.until(|inner| inner.abandoned || inner.calls.iter().all(|call| call.outcome.is_some()))
        );
        let waits_for_ever = self.session.lock().calls.iter().any(|call| call.guarded);
        let mut in_time = !waits_for_ever && tokio::time::timeout(limit, &mut answered).await.is_ok();
        if waits_for_ever || !in_time && self.has(Defect::CallsNeverTimeOut) {
            answered.await;
            in_time = true;
        }
        if !in_time {
            if self.style(Style::GivesUpInWords) {
                self.emit(self.token("The IDE did not answer in time.", true));
                return Err(Over);
            }
            let content = "TOOL_EXECUTION_ERROR: the IDE did not answer in time";
            self.emit(json!({ "type": "error", "content": content }));
            return Err(Over);
        }
        let inner = self.session.lock();
        if inner.abandoned {
            return Err(Over);
        }
        let outcomes: Vec<String> = inner.calls.iter().filter_map(|call| call.outcome.clone()).collect();
        drop(inner);
        self.goes_on(&outcomes)?;
        Ok(outcomes)
    }

    /// Whether the turn goes on after these results, or ends as a style has it.
    fn goes_on(&self, outcomes: &[String]) -> Result<(), Over> {
        if self.style(Style::ErrorForErrors) && outcomes.iter().any(|outcome| outcome.starts_with("error: "))
        {
            self.emit(json!({ "type": "error", "content": "TOOL_EXECUTION_ERROR: the tool failed" }));
            return Err(Over);
        }
        if self.session.take_rejection() && self.style(Style::RejectionEnds) {
            self.emit(self.token("As you like. ", false));
            self.emit(self.token("Anything else?", true));
            return Err(Over);
        }
        Ok(())
    }
}
