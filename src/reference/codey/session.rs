//! One session: what was said, which calls wait for a decision, what the model used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::Message;

use super::Behaviour;
use super::faults::Defect;
use super::frame_faults::apply_frame_fault;
use super::past::{Approvals, Badge, Past, Request};
use super::styles::Style;
use super::variants;
use crate::reference::engine::Canceller;
use crate::reference::engine::Happening;
use crate::reference::engine::clients::Outbox;
use crate::reference::engine::notes::{Notes, Outcome};
use crate::reference::faults::mutate;

/// The one agent of a session.
pub(super) const AGENT: i64 = 0;
/// How late a defect strikes that does not strike at once.
pub(super) const LATE: std::time::Duration = std::time::Duration::from_millis(250);
/// Characters of a text that are kept where a defect cuts it.
const CUT: usize = 100;
/// The tokens beyond which a defect does not count.
const MOST_TOKENS: u64 = 400;
/// Entries of the history that are kept.
const MAX_HISTORY: usize = 10_000;

/// A turn, or a background call.
pub(super) type Job = BoxFuture<'static, ()>;

pub(super) struct Session {
    pub behaviour: Behaviour,
    notes: Arc<Mutex<Notes>>,
    approvals: Arc<Mutex<Approvals>>,
    inner: Mutex<Inner>,
    /// A call was decided.
    pub decided: Notify,
    /// Cancels what is under way.
    pub cancels: Canceller,
    jobs: mpsc::UnboundedSender<Job>,
    outbox: Outbox,
}

#[derive(Default)]
pub(super) struct Inner {
    /// A turn is under way.
    pub busy: bool,
    pub turns: u64,
    /// How many messages the client has sent.
    pub messages: u64,
    /// The ids of the calls of the first turn that made any, and of those of the current one.
    pub earlier_calls: Vec<String>,
    pub calls: Vec<String>,
    /// Calls that await approval, in the order of asking.
    pub pending: Vec<Call>,
    /// Decided calls, and whether they were approved.
    pub decisions: BTreeMap<String, bool>,
    pub history: Vec<Entry>,
    pub output_tokens: u64,
    /// Context of the last request.
    pub cached: u64,
    /// The session ended with a fatal error.
    pub dead: bool,
    /// How many messages have named the agent (a behaviour).
    pub named: u64,
    /// Tools that an earlier approval allows, alone and with their params (a behaviour).
    pub allowed: BTreeSet<String>,
    /// Messages that came during a turn (a style).
    pub queued: std::collections::VecDeque<String>,
    /// Calls of the tool that writes, which have run (a behaviour).
    pub ran: Vec<Call>,
    /// The ids of the calls that run, and of those of them that were denied meanwhile (a behaviour).
    pub running: BTreeSet<String>,
    pub denied_while_running: BTreeSet<String>,
    /// The next call is denied (a behaviour).
    pub denies_next: bool,
    /// The calls of the newest request.
    pub request: Request,
    pub badge: Badge,
    /// What only defects remember.
    pub past: Past,
    /// A History that was sent during a turn (a behaviour).
    kept: Option<Value>,
    /// GetHistory queries that wait for the end of the turn (a behaviour).
    pub held: usize,
}

/// One message of the conversation.
pub(super) struct Entry {
    pub role: &'static str,
    pub content: String,
    pub timestamp: String,
}

/// A tool call.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub id: String,
    pub tool: String,
    pub params: Map<String, Value>,
    pub background: bool,
}

impl Call {
    /// The tool and its params.
    pub fn content(&self) -> String {
        json!([self.tool, self.params]).to_string()
    }
}

pub(super) fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// About four characters are a token.
fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

impl Session {
    pub fn new(
        behaviour: &Behaviour,
        notes: &Arc<Mutex<Notes>>,
        approvals: &Arc<Mutex<Approvals>>,
        outbox: &Outbox,
        jobs: mpsc::UnboundedSender<Job>,
    ) -> Self {
        let inner = Inner::default();
        Self {
            behaviour: behaviour.clone(),
            notes: Arc::clone(notes),
            approvals: Arc::clone(approvals),
            inner: Mutex::new(inner),
            decided: Notify::new(),
            cancels: Canceller::default(),
            jobs,
            outbox: outbox.clone(),
        }
    }

    pub fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    #[allow(dead_code, reason = "a style is asked for where it matters, and that may be elsewhere")]
    pub fn style(&self, style: Style) -> bool {
        self.behaviour.style(style)
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work to the connection's own task, which does it before it reads on.
    pub fn spawn(&self, job: Job) {
        // A connection that is gone does nothing more.
        let _ = self.jobs.send(job);
    }

    pub fn send(&self, frame: Value) {
        for frame in variants::shape(&self.behaviour, frame) {
            apply_frame_fault(&self.behaviour, frame).into_iter().for_each(|message| {
                self.outbox.send(message);
            });
        }
    }

    pub fn error(&self, message: &str, fatal: bool) {
        self.behaviour.note(Happening::Error);
        let is_first = {
            let errors = &mut self.lock().past.errors;
            *errors += 1;
            *errors == 1
        };
        let message = match is_first {
            false if self.has(Defect::LaterErrorsAreObjects) => json!({ "text": message }),
            _ => json!(message),
        };
        self.send(json!({ "type": "Error", "message": message, "fatal": fatal }));
    }

    /// Ends the session: nothing is usable after a fatal error.
    pub fn die(self: &Arc<Self>, message: &str) {
        let lives_on = self.has(Defect::FatalLivesOn);
        self.lock().dead = !lives_on;
        self.error(message, true);
        if lives_on {
            return;
        }
        if self.has(Defect::FatalFinishes) {
            let finished = self.finished(&mut self.lock());
            self.send(finished);
        } else if self.behaviour.prepares(Defect::FatalSpeaksLate) {
            return self.later(|session| {
                session.behaviour.took_effect();
                session.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "Still here" }));
                session.hang_up();
            });
        }
        if !self.has(Defect::FatalGoesOn) && !self.style(Style::DeathLeavesOpen) {
            self.hang_up();
        }
    }

    /// Closes the connection.
    pub fn hang_up(&self) {
        self.outbox.send(Message::Close(None));
    }

    /// Runs a tool on the shared notes.
    pub fn run(&self, call: &Call) -> Outcome {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut params = call.params.clone();
        self.behaviour.mutate(&mut params, |defect, params| {
            if let Some(Value::String(text)) = params.get_mut("text")
                && defect == Defect::RunsWithCutTexts
            {
                *text = text.chars().take(CUT).collect();
            }
        });
        notes.run(&call.tool, &params)
    }

    /// Decides a pending call, for a defect. `false`: no such call is pending.
    pub fn decide(&self, call_id: &str, approved: bool) -> bool {
        let mut inner = self.lock();
        let Some(index) = inner.pending.iter().position(|call| call.id == call_id) else { return false };
        let call = inner.pending.remove(index);
        inner.decisions.insert(call.id, approved);
        drop(inner);
        self.behaviour.note(Happening::Decided);
        self.decided.notify_waiters();
        true
    }

    /// The client has approved a call: a defect lets other sessions know.
    pub fn share_approval(&self, call: &Call, inner: &Inner) {
        if !self.behaviour.prepares(Defect::ApprovalIsShared) {
            return;
        }
        let mut approvals = self.approvals.lock().unwrap_or_else(PoisonError::into_inner);
        approvals.add(call.content(), inner.badge.number);
    }

    /// The client of another session has approved such a call.
    pub fn is_approved_elsewhere(&self, call: &Call) -> bool {
        let number = self.lock().badge.number;
        let approvals = self.approvals.lock().unwrap_or_else(PoisonError::into_inner);
        approvals.others_have(&call.content(), number)
    }

    pub fn hello(&self) {
        let (number, borrowed) = {
            let badge = &self.lock().badge;
            (badge.number, badge.borrowed.clone())
        };
        let id = if self.behaviour.strikes(Defect::SameSessionId) {
            "session-1".to_owned()
        } else if let Some(id) = borrowed {
            self.behaviour.took_effect();
            id
        } else if self.behaviour.strikes(Defect::EmptySessionId) {
            String::new()
        } else if self.style(Style::PlainSessionIds) {
            format!("session {}", uuid::Uuid::new_v4().as_u128() % 1_000_000_007)
        } else {
            uuid::Uuid::new_v4().to_string()
        };
        if self.has(Defect::SpeaksBeforeGreeting) {
            self.send(json!({ "type": "TextDelta", "agent_id": AGENT, "content": "Welcome!" }));
        }
        // Every third session differs from the others.
        let is_third = number % 3 == 2;
        let warning = json!({ "type": "Error", "message": "no configuration file", "fatal": false });
        if self.has(Defect::WarnsBeforeGreeting) {
            self.send(warning.clone());
        }
        if is_third && self.has(Defect::ThinksBeforeGreeting) {
            self.send(json!({ "type": "ThinkingDelta", "agent_id": AGENT, "content": "A guest?" }));
        }
        self.lock().badge.id.clone_from(&id);
        if self.has(Defect::NeverGreets) || (is_third && self.has(Defect::ForgetsToGreet)) {
            return;
        }
        let is_null = is_third && self.has(Defect::LaterIdsAreNull);
        let id = if is_null { Value::Null } else { json!(id) };
        self.send(json!({ "type": "Connected", "session_id": id }));
        if self.style(Style::WarnsAtOnce) {
            self.send(warning);
        }
    }

    pub fn state(&self) -> Value {
        let inner = self.lock();
        let pending = inner.pending.iter().map(|call| {
            let mut entry =
                json!({ "agent_id": AGENT, "call_id": call.id, "name": call.tool, "params": call.params });
            if self.style(Style::PendingBackground) {
                entry["background"] = json!(call.background);
            }
            entry
        });
        let is_idle = self.style(Style::IdleWhileAsking) && !inner.pending.is_empty();
        let mut is_streaming = inner.busy && !is_idle;
        self.behaviour.mutate(&mut is_streaming, |defect, is_streaming| match defect {
            Defect::NeverStreaming => *is_streaming = false,
            Defect::StaysStreaming => *is_streaming = inner.turns > 0,
            _ => {}
        });
        let name = self.style(Style::NamedAgent).then_some("main");
        let agent = if self.has(Defect::OtherAgentIds) { AGENT + 1 } else { AGENT };
        let mut agent = json!({ "id": agent, "name": name, "is_streaming": is_streaming });
        if is_streaming
            && self.has(Defect::NamelessAtWork)
            && let Some(agent) = agent.as_object_mut()
        {
            agent.remove("name");
        }
        json!({
            "type": "State",
            "agents": [agent],
            "pending_approvals": pending.collect::<Vec<_>>(),
        })
    }

    pub fn history(&self) -> Value {
        let mut inner = self.lock();
        if !inner.busy
            && let Some(kept) = inner.kept.take()
        {
            self.behaviour.took_effect();
            return kept;
        }
        let mut entries: Vec<Value> = inner
            .history
            .iter()
            .map(|entry| {
                let lossy = entry.role == "user" && !entry.content.is_ascii() && self.has(Defect::AsciiOnly);
                let content = match lossy {
                    true => mutate::limit(&entry.content, mutate::ASCII),
                    false => entry.content.clone(),
                };
                let timestamp = variants::timestamp(&self.behaviour, &entry.timestamp);
                json!({ "role": entry.role, "content": content, "timestamp": timestamp })
            })
            .collect();
        let last = entries.iter().rposition(|entry| entry["role"] == "assistant");
        if !inner.busy
            && let Some(last) = last
            && self.behaviour.strikes(Defect::HistoryLacksAnswer)
        {
            entries.remove(last);
        } else if inner.turns == 0 && self.behaviour.strikes(Defect::HistoryGreets) {
            let greeting =
                json!({ "role": "assistant", "content": "Hi!", "timestamp": "2024-01-15T10:30:00Z" });
            entries.insert(0, greeting);
        } else if entries.len() > 1 && self.behaviour.strikes(Defect::TimeGoesBack) {
            entries[1]["timestamp"] = json!("2024-01-15T10:30:00Z");
        }
        let history = json!({ "type": "History", "messages": entries });
        if inner.busy && self.behaviour.prepares(Defect::HistoryIsKept) {
            inner.kept = Some(history.clone());
        }
        history
    }

    /// Does something a while later, as long as the connection lasts.
    pub fn later(self: &Arc<Self>, what: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let session = Arc::clone(self);
        self.spawn(Box::pin(async move {
            tokio::time::sleep(LATE).await;
            what(&session);
        }));
    }

    /// The frame that ends a turn.
    pub fn finished(&self, inner: &mut Inner) -> Value {
        let text: u64 = inner.history.iter().map(|entry| tokens(&entry.content)).sum();
        let mut context = 100 + text;
        self.behaviour.mutate(&mut context, |defect, context| match defect {
            Defect::ContextIsZero => *context = 0,
            Defect::ContextShrinks => *context = 1_000_000_u64.saturating_sub(text),
            _ => {}
        });
        let mut output = inner.output_tokens;
        self.behaviour.mutate(&mut output, |defect, output| {
            if defect == Defect::TokensStop {
                *output = MOST_TOKENS.min(*output);
            }
        });
        let before = if self.style(Style::CountsOn) { 123_456 } else { 0 };
        let read = std::mem::replace(&mut inner.cached, context);
        json!({
            "type": "Finished", "agent_id": AGENT,
            "usage": {
                "output_tokens": before + output, "context_tokens": context,
                "cache_creation_tokens": context.saturating_sub(read), "cache_read_tokens": read,
            },
        })
    }
}

impl Inner {
    pub fn remember(&mut self, role: &'static str, content: &str) {
        if self.history.len() < MAX_HISTORY {
            self.history.push(Entry { role, content: content.to_owned(), timestamp: now() });
        }
    }

    pub fn forget_the_last_exchange(&mut self) {
        let begin = self.history.iter().rposition(|entry| entry.role == "user").unwrap_or_default();
        self.history.truncate(begin);
    }

    /// Adds to the answer of the current model response; the first piece begins it.
    pub fn answer(&mut self, piece: &str, begins: bool) {
        self.output_tokens += tokens(piece);
        match self.history.last_mut() {
            Some(entry) if !begins && entry.role == "assistant" => entry.content.push_str(piece),
            _ => self.remember("assistant", piece),
        }
    }

    pub fn think(&mut self, piece: &str) {
        self.output_tokens += tokens(piece);
    }
}
