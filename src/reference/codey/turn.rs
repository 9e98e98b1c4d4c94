//! Playing one turn: the model's responses, and how the turn ends.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::faults::Defect;
use super::past::Request;
use super::session::{AGENT, Call, Job, Session};
use super::styles::Style;
use super::{tool, variants};
use crate::cue::{self, Fail};
use crate::reference::engine::Happening;
use crate::reference::engine::notes::{self, Class};
use crate::reference::engine::{Agent, Cancel, Cancelled, Chunk, Speech};

/// How often a transient error is tried again.
const RETRIES: u64 = 2;

/// How a turn leaves its path.
pub(super) enum Stop {
    Cancelled,
    /// The client denied a call (a style).
    Denied,
    /// The provider failed.
    Failed(String),
    /// The provider will not have this session any more.
    Fatal(String),
}

impl From<Cancelled> for Stop {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Begins a turn; the caller has seen to it that none is under way.
pub(super) fn start(session: &Arc<Session>, content: &str) {
    let mut inner = session.lock();
    inner.busy = true;
    inner.turns += 1;
    session.behaviour.note(Happening::Turn);
    inner.past.message = Some(content.to_owned());
    inner.remember("user", content);
    let calls = std::mem::take(&mut inner.calls);
    if inner.earlier_calls.is_empty() {
        inner.earlier_calls = calls;
    }
    if inner.output_tokens > 0 && session.has(Defect::TokensStartAnew) {
        inner.output_tokens = 0;
    }
    let greets = inner.turns == 1;
    drop(inner);
    if greets && session.has(Defect::GreetsAgainLater) {
        session.hello();
    }
    let player = Player {
        session: Arc::clone(session),
        cancelled: session.cancels.listen(),
        tools_ran: false,
        opens: false,
        so_far: String::new(),
        text: String::new(),
    };
    session.spawn(Box::pin(player.run(cue::responses(content))));
}

struct Player {
    session: Arc<Session>,
    cancelled: Cancel,
    tools_ran: bool,
    /// The next text is the first of its response.
    opens: bool,
    /// What was said of the step so far, and the text that it is to become.
    so_far: String,
    text: String,
}

impl Player {
    async fn run(mut self, responses: Vec<cue::Response>) {
        let result = self.play(responses).await;
        if matches!(result, Err(Stop::Fatal(_))) && self.session.has(Defect::FatalGoesOn) {
            self.session.die("the provider refused the credentials");
            self.session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "Anyway" }));
            return;
        }
        self.end(result);
    }

    fn end(&self, result: Result<(), Stop>) {
        let session = &self.session;
        let was_cancelled = matches!(result, Err(Stop::Cancelled));
        let stuck = matches!(result, Err(Stop::Failed(_))) && session.has(Defect::StuckAfterFailure);
        match result {
            Err(Stop::Fatal(message)) => {
                session.lock().busy = false;
                session.die(&message);
                return;
            }
            Err(Stop::Denied) => {}
            Err(Stop::Failed(message)) if !session.has(Defect::FailsSilently) => {
                if session.style(Style::FailureIsFatal) {
                    session.lock().busy = false;
                    session.die(&message);
                    return;
                }
                session.error(&format!("the provider failed: {message}"), false);
                if session.has(Defect::SpeaksAfterFailure) {
                    session.later(|session| {
                        session.send(
                            json!({ "type": "TextDelta", "agent_id": AGENT, "content": "Where was I?" }),
                        );
                    });
                }
                if session.style(Style::ErrorEnds) {
                    return self.over();
                }
                if session.style(Style::Apologizes) {
                    let apology = "That went wrong.";
                    session.lock().remember("assistant", apology);
                    session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": apology }));
                }
            }
            Err(Stop::Cancelled) => {
                self.cancelled();
                if session.style(Style::CancelledLeavesNoTrace) {
                    session.lock().forget_the_last_exchange();
                }
                if session.has(Defect::CancelLeavesBusy) {
                    let finished = session.finished(&mut session.lock());
                    session.send(finished);
                    return;
                }
                if session.has(Defect::CancelEndsInSilence) || session.style(Style::CancelInSilence) {
                    return self.over();
                }
                if session.style(Style::CancelByError) {
                    session.error("cancelled", false);
                    return self.over();
                }
            }
            _ => {}
        }
        let (finished, held) = {
            let mut inner = session.lock();
            inner.busy = stuck;
            (session.finished(&mut inner), std::mem::take(&mut inner.held))
        };
        session.send(finished);
        if !stuck {
            self.over();
        }
        (0..held).for_each(|_| session.send(session.history()));
        if session.behaviour.strikes(Defect::TextAfterFinished) {
            session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "One more thing" }));
        } else if session.behaviour.strikes(Defect::ThinksAfterFinished) {
            session.send(json!({ "type": "ThinkingDelta", "agent_id": AGENT, "content": "Was that all?" }));
        } else if was_cancelled && session.has(Defect::TextAfterCancelled) {
            session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "Oh, well" }));
        }
        if session.lock().past.has_denied && session.behaviour.prepares(Defect::SpeaksAfterDenials) {
            let messages = session.lock().messages;
            session.later(move |session| {
                if session.lock().messages == messages {
                    session.behaviour.took_effect();
                    session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "Why not?" }));
                }
            });
        }
    }
}

impl Player {
    /// What a defect makes of the cancel of a turn.
    fn cancelled(&self) {
        let session = &self.session;
        let rest = self.text.strip_prefix(&self.so_far).filter(|rest| !rest.is_empty());
        if let Some(rest) = rest.filter(|_| session.has(Defect::CancelFlushes)) {
            session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": rest }));
        }
        let mut inner = session.lock();
        let calls = inner.calls.clone();
        inner.past.cancelled_calls = calls;
        if inner.output_tokens > 0 && session.has(Defect::CancelForgetsTokens) {
            inner.output_tokens = 0;
        }
    }

    /// The turn is over; what was queued meanwhile begins.
    fn over(&self) {
        let mut inner = self.session.lock();
        inner.busy = false;
        let next = inner.queued.pop_front();
        drop(inner);
        if let Some(next) = next {
            start(&self.session, &next);
        }
    }
}

impl Agent for Player {
    type Stop = Stop;

    fn cancel(&mut self) -> &mut Cancel {
        &mut self.cancelled
    }

    fn begins(&mut self, _response: &cue::Response) {
        self.opens = true;
    }

    fn chunks(&mut self, speech: Speech, mut chunks: Vec<String>) -> Vec<String> {
        self.so_far.clear();
        self.session.behaviour.mutate(&mut chunks, |defect, chunks| match defect {
            _ if speech == Speech::Thought => {}
            Defect::WholeAnswers => *chunks = vec![chunks.concat()],
            // Only a longer answer shows this.
            Defect::SwapsPieces if chunks.len() > 3 => chunks.swap(1, 2),
            Defect::SwapsTheLast if chunks.len() > 3 => {
                let last = chunks.len() - 1;
                chunks.swap(last - 1, last);
            }
            Defect::SwapsAfterTools if chunks.len() > 1 && self.tools_ran => chunks.swap(0, 1),
            Defect::SilentAfterTools if self.tools_ran => chunks.clear(),
            _ => {}
        });
        self.text.clear();
        if speech == Speech::Text {
            chunks = variants::recut(&self.session.behaviour, chunks);
            self.text = chunks.concat();
        }
        chunks
    }

    fn say(&mut self, chunk: Chunk) {
        let Chunk { speech, text, index, count } = chunk;
        if speech == Speech::Text && index == 0 && self.session.style(Style::EmptyFirst) {
            self.session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "" }));
        }
        let mut kind = "TextDelta";
        if speech == Speech::Thought {
            let mut inner = self.session.lock();
            inner.think(&text);
            if self.session.has(Defect::HistoryThinks) {
                inner.remember("assistant", &text);
            }
            drop(inner);
            if !self.session.has(Defect::ThinksAloud) {
                kind = "ThinkingDelta";
            }
        } else {
            self.session.lock().answer(&text, std::mem::take(&mut self.opens));
            if std::mem::take(&mut self.session.lock().past.loses_text) {
                self.session.behaviour.took_effect();
                return;
            }
            // Only a longer answer shows this.
            if count > 3 && index == 2 && self.session.has(Defect::LosesPieces) {
                return;
            }
        }
        self.so_far.push_str(&text);
        let piles_up =
            speech == Speech::Text && self.so_far != text && self.session.has(Defect::PiecesPileUp);
        let content = if piles_up { &self.so_far } else { &text };
        self.session.send(json!({ "type": kind, "agent_id": AGENT, "content": content }));
    }

    /// A transient error is tried again, in vain.
    async fn fail(&mut self, Fail { status, message, .. }: Fail) -> Stop {
        match status {
            401 | 403 => return Stop::Fatal(message),
            429 | 503 | 529 if !self.session.style(Style::NoRetries) => {}
            _ => return Stop::Failed(message),
        }
        for attempt in 1..=RETRIES {
            let attempt = if attempt > 1 && self.session.has(Defect::AttemptsStand) { 1 } else { attempt };
            self.session
                .send(json!({ "type": "Retrying", "agent_id": AGENT, "attempt": attempt, "error": message }));
            if let Err(cancelled) = self.cancelled.sleep(Duration::from_millis(1)).await {
                return cancelled.into();
            }
        }
        if self.session.has(Defect::StuckAfterRetrying)
            && let Err(cancelled) = self.cancelled.sleep(Duration::MAX).await
        {
            return cancelled.into();
        }
        Stop::Failed(message)
    }

    /// Runs the calls of one response side by side; background calls go on by themselves.
    async fn call(&mut self, mut calls: Vec<cue::Call>) -> Result<(), Stop> {
        let session = &self.session;
        if session.style(Style::CallsReversed) {
            calls.reverse();
        }
        let mut made: Vec<Call> = {
            let mut inner = session.lock();
            let make = |call: cue::Call| {
                let mut params = call.args;
                let background = params.remove("background").is_some_and(|value| value == true);
                let repeated = inner.earlier_calls.get(inner.calls.len());
                let repeated = repeated.filter(|_| session.behaviour.strikes(Defect::CallIdsRepeat)).cloned();
                // Ids are unique on the whole server, not only in the session.
                let cancelled = inner.past.cancelled_calls.get(inner.calls.len());
                let again = cancelled.filter(|_| session.has(Defect::CancelledIdsReturn)).cloned();
                let id = repeated.or(again).unwrap_or_else(|| variants::call_id(&session.behaviour));
                inner.decisions.remove(&id);
                inner.calls.push(id.clone());
                Call { id, tool: call.name, params, background }
            };
            calls.into_iter().map(make).collect()
        };
        if let [first, .., last] = made.as_mut_slice()
            && notes::class(&first.tool) == Class::Open
            && first.content() == last.content()
            && session.has(Defect::TwinsShareAnId)
        {
            last.id.clone_from(&first.id);
        }
        let tools = made.iter().map(|call| call.tool.clone()).collect();
        session.lock().request = Request { tools, ..Request::default() };
        tool::request(session, &made);
        let (background, here): (Vec<Call>, Vec<Call>) = made.into_iter().partition(|call| call.background);
        for call in background {
            let session = Arc::clone(session);
            let mut cancelled = session.cancels.listen();
            let mut job: Job = Box::pin(async move {
                if session.style(Style::LateBackground) {
                    // Cancelled meanwhile: its end is told all the same.
                    let _ = cancelled.sleep(Duration::from_millis(10)).await;
                }
                // Nobody waits for it.
                let _ = tool::perform(&session, &call, cancelled).await;
            });
            // It starts before the agent goes on.
            let pending = poll_fn(|context| Poll::Ready(job.as_mut().poll(context).is_pending()));
            if pending.await {
                self.session.spawn(job);
            }
        }
        if self.session.style(Style::OneByOne) {
            for call in &here {
                tool::perform(session, call, session.cancels.listen()).await?;
            }
            self.tools_ran = true;
            return Ok(());
        }
        let runs = here.iter().map(|call| tool::perform(session, call, session.cancels.listen()));
        let results = join_all(runs).await;
        self.tools_ran = true;
        results.into_iter().collect()
    }
}
