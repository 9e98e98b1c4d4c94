//! Playing one turn: the model's responses, and how the turn ends.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::watch;

use super::faults::Defect;
use super::session::{AGENT, Call, Job, Session};
use super::tool;
use crate::cue::{self, Step};

/// How often a transient error is tried again.
const RETRIES: u64 = 2;

/// How a turn leaves its path.
pub(super) enum Stop {
    Cancelled,
    /// The provider failed.
    Failed(String),
    /// The provider will not have this session any more.
    Fatal(String),
}

/// Waits for cancels from now on.
pub(super) struct Cancelled(watch::Receiver<u64>, u64);

impl Cancelled {
    pub fn from(session: &Session) -> Self {
        let receiver = session.cancels.subscribe();
        let seen = *receiver.borrow();
        Self(receiver, seen)
    }

    pub async fn wait(&mut self) {
        let seen = self.1;
        // An error: the session is gone, and this job with it.
        let _ = self.0.wait_for(|count| *count != seen).await;
    }

    pub fn is_set(&self) -> bool {
        *self.0.borrow() != self.1
    }

    /// Waits, unless there is a cancel first.
    pub async fn sleep(&mut self, time: Duration) -> Result<(), Stop> {
        if self.is_set() {
            return Err(Stop::Cancelled);
        }
        if time.is_zero() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.wait() => Err(Stop::Cancelled),
        }
    }
}

/// Begins a turn; the caller has seen to it that none is under way.
pub(super) fn start(session: &Arc<Session>, content: &str) {
    let mut inner = session.lock();
    inner.busy = true;
    inner.turns += 1;
    inner.remember("user", content);
    if session.has(Defect::TokensStartAnew) {
        inner.output_tokens = 0;
    }
    if session.has(Defect::CallIdsRepeat) {
        inner.calls = 0;
    }
    drop(inner);
    let player =
        Player { session: Arc::clone(session), cancelled: Cancelled::from(session), tools_ran: false };
    session.spawn(Box::pin(player.play(cue::responses(content))));
}

struct Player {
    session: Arc<Session>,
    cancelled: Cancelled,
    tools_ran: bool,
}

impl Player {
    async fn play(mut self, responses: Vec<cue::Response>) {
        let mut result = Ok(());
        for response in responses {
            result = self.respond(response).await;
            if matches!(result, Err(Stop::Fatal(_))) && self.session.has(Defect::FatalGoesOn) {
                self.session.die("the provider refused the credentials");
                let text = json!({ "type": "TextDelta", "agent_id": AGENT, "content": "Anyway" });
                self.session.send(text);
                return;
            }
            if result.is_err() {
                break;
            }
        }
        self.end(result);
    }

    async fn respond(&mut self, response: cue::Response) -> Result<(), Stop> {
        let mut calls = Vec::new();
        let mut begins = true;
        for step in response {
            self.cancelled.sleep(Duration::ZERO).await?;
            match step {
                Step::Say { say, every_ms } => {
                    self.say(say, every_ms, begins).await?;
                    begins = false;
                }
                Step::Think { think, every_ms } => self.think(think, every_ms).await?,
                Step::Pause { pause_ms } => self.cancelled.sleep(Duration::from_millis(pause_ms)).await?,
                Step::Fail { fail } => return Err(self.fail(fail.status, fail.message).await),
                Step::Hang { .. } => {
                    self.cancelled.wait().await;
                    return Err(Stop::Cancelled);
                }
                Step::Call { call } => calls.push(call),
            }
        }
        if calls.is_empty() { Ok(()) } else { self.call(calls).await }
    }

    async fn say(&mut self, chunks: Vec<String>, every_ms: Option<u64>, begins: bool) -> Result<(), Stop> {
        let mut chunks = chunks;
        let mut lost = None;
        let mut so_far = String::new();
        match self.session.defect {
            Some(Defect::WholeAnswers) => chunks = vec![chunks.concat()],
            // Only a longer answer shows these.
            Some(Defect::SwapsPieces) if chunks.len() > 3 => chunks.swap(1, 2),
            Some(Defect::LosesPieces) if chunks.len() > 3 => lost = Some(2),
            Some(Defect::SilentAfterTools) if self.tools_ran => return Ok(()),
            _ => {}
        }
        for (index, chunk) in chunks.into_iter().enumerate() {
            self.pause(every_ms, index).await?;
            self.session.lock().answer(&chunk, begins && index == 0);
            so_far.push_str(&chunk);
            let content = if self.session.has(Defect::PiecesPileUp) { so_far.clone() } else { chunk };
            if lost != Some(index) {
                self.session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": content }));
            }
        }
        Ok(())
    }

    async fn think(&mut self, chunks: Vec<String>, every_ms: Option<u64>) -> Result<(), Stop> {
        let kind = if self.session.has(Defect::ThinksAloud) { "TextDelta" } else { "ThinkingDelta" };
        for (index, chunk) in chunks.into_iter().enumerate() {
            self.pause(every_ms, index).await?;
            self.session.lock().think(&chunk);
            self.session.send(json!({ "type": kind, "agent_id": AGENT, "content": chunk }));
        }
        Ok(())
    }

    async fn pause(&mut self, every_ms: Option<u64>, index: usize) -> Result<(), Stop> {
        let time = every_ms.filter(|_| index > 0).unwrap_or(0);
        self.cancelled.sleep(Duration::from_millis(time)).await
    }

    /// The provider answers with an HTTP error: a transient one is tried again, in vain.
    async fn fail(&mut self, status: u16, message: String) -> Stop {
        match status {
            401 | 403 => return Stop::Fatal(message),
            429 | 503 | 529 => {}
            _ => return Stop::Failed(message),
        }
        for attempt in 1..=RETRIES {
            let attempt = if self.session.has(Defect::AttemptsStand) { 1 } else { attempt };
            self.session
                .send(json!({ "type": "Retrying", "agent_id": AGENT, "attempt": attempt, "error": message }));
            if let Err(stop) = self.cancelled.sleep(Duration::from_millis(1)).await {
                return stop;
            }
        }
        Stop::Failed(message)
    }

    /// Runs the calls of one response side by side; background calls go on by themselves.
    async fn call(&mut self, calls: Vec<crate::cue::Call>) -> Result<(), Stop> {
        let session = &self.session;
        let made: Vec<Call> = {
            let mut inner = session.lock();
            let make = |call: crate::cue::Call| {
                inner.calls += 1;
                let mut params = call.args;
                let background = params.remove("background").is_some_and(|value| value == true);
                // Ids are unique on the whole server, not only in the session.
                let id = match session.defect {
                    Some(Defect::CallIdsRepeat) => format!("call_{}", inner.calls),
                    _ => format!("call_{}", uuid::Uuid::new_v4().simple()),
                };
                Call { id, tool: call.name, params, background }
            };
            calls.into_iter().map(make).collect()
        };
        tool::request(session, &made);
        let (background, here): (Vec<Call>, Vec<Call>) = made.into_iter().partition(|call| call.background);
        for call in background {
            let session = Arc::clone(session);
            let cancelled = Cancelled::from(&session);
            let mut job: Job = Box::pin(async move {
                // Nobody waits for it.
                let _ = tool::perform(&session, &call, cancelled).await;
            });
            // It starts before the agent goes on.
            let pending = poll_fn(|context| Poll::Ready(job.as_mut().poll(context).is_pending()));
            if pending.await {
                self.session.spawn(job);
            }
        }
        let runs = here.iter().map(|call| tool::perform(session, call, Cancelled::from(session)));
        let results = join_all(runs).await;
        self.tools_ran = true;
        results.into_iter().collect()
    }

    fn end(&self, result: Result<(), Stop>) {
        let session = &self.session;
        match result {
            Err(Stop::Fatal(message)) => {
                session.lock().busy = false;
                session.die(&message);
                return;
            }
            Err(Stop::Failed(message)) if !session.has(Defect::FailsSilently) => {
                session.error(&format!("the provider failed: {message}"), false);
            }
            Err(Stop::Cancelled) => {
                if session.has(Defect::CancelLeavesBusy) {
                    let finished = session.finished(&mut session.lock());
                    session.send(finished);
                    return;
                }
                if session.has(Defect::CancelEndsInSilence) {
                    session.lock().busy = false;
                    return;
                }
            }
            _ => {}
        }
        let (finished, held) = {
            let mut inner = session.lock();
            inner.busy = false;
            (session.finished(&mut inner), std::mem::take(&mut inner.held))
        };
        session.send(finished);
        (0..held).for_each(|_| session.send(session.history()));
        match session.defect {
            Some(Defect::TextAfterFinished) => {
                session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "One more thing" }));
            }
            Some(Defect::ThinksAfterFinished) => {
                session
                    .send(json!({ "type": "ThinkingDelta", "agent_id": AGENT, "content": "Was that all?" }));
            }
            _ => {}
        }
    }
}
