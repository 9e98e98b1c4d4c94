//! One connection: greeting, commands, and the jobs that they set off.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::command::{self, Command, Open, Wrong};
use super::faults::Defect;
use super::session::{AGENT, LATE, Session};
use super::styles::Style;
use super::{Service, turn};
use crate::reference::Socket;
use crate::reference::engine::Happening;
use crate::reference::engine::clients;

/// Bytes of a message that are too many for a defect.
const LONG: usize = 60_000;

/// Serves a connection until it ends. All of it is one task: what a message sets off goes as far as it can before the
/// next message is read, so that a Pong comes after everything that had to be said.
pub(super) async fn serve(service: &Service, socket: Socket) {
    let (sink, mut stream) = socket.split();
    let (outbox, outgoing) = clients::channel();
    let writer = tokio::spawn(outgoing.write_to(sink));
    let (sender, mut spawned) = mpsc::unbounded_channel();
    let session = Arc::new(Session::new(
        &service.behaviour.of_session(),
        &service.notes,
        &service.approvals,
        &outbox,
        sender,
    ));
    service.add(&session);
    let peer = Peer { service, session: &session };
    if !session.has(Defect::GreetsWhenSpokenTo) {
        session.hello();
    }
    let mut greeted = !session.has(Defect::GreetsWhenSpokenTo);
    let mut jobs = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(job) = spawned.recv() => jobs.push(job),
            Some(()) = jobs.next() => {}
            message = stream.next() => {
                match message {
                    Some(Ok(Message::Text(text)))
                        if text.len() > LONG && session.has(Defect::LongMessagesClose) =>
                    {
                        session.hang_up();
                    }
                    Some(Ok(Message::Text(text))) => {
                        if !std::mem::replace(&mut greeted, true) {
                            session.hello();
                        }
                        peer.take(text.as_bytes());
                    }
                    Some(Ok(Message::Binary(bytes))) => peer.take(&bytes),
                    // Reading on sends the answer to a close.
                    Some(Ok(Message::Close(_))) => peer.gone(),
                    Some(Ok(Message::Ping(_))) if session.has(Defect::PingFrameCloses) => session.hang_up(),
                    Some(Ok(Message::Pong(_))) if session.has(Defect::PongFrameCloses) => session.hang_up(),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                }
            }
        }
    }
    peer.gone();
    writer.abort();
}

struct Peer<'s> {
    service: &'s Service,
    session: &'s Arc<Session>,
}

impl Peer<'_> {
    fn has(&self, defect: Defect) -> bool {
        self.session.has(defect)
    }

    #[allow(dead_code, reason = "a style is asked for where it matters, and that may be elsewhere")]
    fn style(&self, style: Style) -> bool {
        self.session.style(style)
    }

    /// The client is gone.
    fn gone(&self) {
        let asks = {
            let mut inner = self.session.lock();
            inner.badge.gone = true;
            !inner.pending.is_empty()
        };
        if asks && self.has(Defect::DisconnectRuns) {
            let pending = std::mem::take(&mut self.session.lock().pending);
            for call in pending {
                self.session.run(&call);
            }
        } else if asks && self.has(Defect::DisconnectRunsLate) {
            // The connection's own jobs end with it.
            let (session, pending) = (Arc::clone(self.session), self.session.lock().pending.clone());
            tokio::spawn(async move {
                tokio::time::sleep(LATE).await;
                pending.iter().for_each(|call| drop(session.run(call)));
            });
        }
    }

    fn take(&self, bytes: &[u8]) {
        if self.session.lock().dead {
            if self.style(Style::DeathLeavesOpen) {
                self.session.error("the session is over", false);
            }
            return;
        }
        self.session.behaviour.message(bytes);
        let open = {
            let mut inner = self.session.lock();
            inner.messages += 1;
            Open {
                to_messages: !inner.busy || self.style(Style::Queues),
                to_decisions: !inner.pending.is_empty(),
                named: inner.named > 0,
            }
        };
        match command::read(bytes, open, &self.session.behaviour) {
            Ok(command) => self.perform(command),
            Err((wrong, message)) => {
                self.refuse(wrong, &message);
                self.obey(bytes);
            }
        }
    }

    fn refuse(&self, wrong: Wrong, message: &str) {
        let mut silent = false;
        self.session.behaviour.mutate(&mut silent, |defect, silent| match defect {
            Defect::SilentOnRubbish => *silent = wrong == Wrong::NoJson,
            Defect::SilentWithoutType => *silent = wrong == Wrong::NoType,
            Defect::SilentOnUnknownType => *silent = wrong == Wrong::UnknownType,
            _ => {}
        });
        if !silent {
            self.session.error(message, false);
        }
        if self.has(Defect::GreetsAfterErrors) {
            self.session.hello();
        }
        if self.session.lock().busy && self.session.behaviour.prepares(Defect::RubbishLosesText) {
            self.session.lock().past.loses_text = true;
        }
        if wrong == Wrong::NoType && self.session.lock().busy && self.has(Defect::RubbishCancels) {
            self.session.cancels.cancel();
        }
        let oldest = self.session.lock().pending.first().map(|call| call.id.clone());
        if let Some(oldest) = oldest
            && matches!(wrong, Wrong::NoJson | Wrong::NoType | Wrong::UnknownType)
            && self.has(Defect::RubbishApproves)
        {
            self.decide(Some(&oldest), true);
        }
        if wrong == Wrong::NoJson && self.has(Defect::HangsUpOnRubbish) {
            self.session.hang_up();
        }
        if wrong == Wrong::NoJson && self.session.behaviour.prepares(Defect::HangsUpLate) {
            self.later_if_idle(|session| session.hang_up());
        }
    }

    /// What a refused message does all the same.
    fn obey(&self, bytes: &[u8]) {
        let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
        if let Some(content) = body["content"]
            .as_str()
            .filter(|_| body["type"] == "SendMessage" && body.get("agent_id").is_some())
            && self.has(Defect::KeepsWhatItRefuses)
        {
            self.session.lock().remember("user", content);
        }
        self.start_all_the_same(&body);
        let is_nameless = body["type"] == "ToolDecision" && body.get("call_id").is_none();
        if let Some(approved) = body["approved"].as_bool().filter(|_| is_nameless)
            && self.session.behaviour.prepares(Defect::DecidesTheOldestLate)
        {
            self.session.later(move |session| {
                let oldest = session.lock().pending.first().map(|call| call.id.clone());
                if oldest.is_some_and(|oldest| session.decide(&oldest, approved)) {
                    session.behaviour.took_effect();
                }
            });
        }
        if matches!(body["type"].as_str(), Some("Finished" | "ToolStarted")) {
            let asks = !self.session.lock().pending.is_empty();
            if asks && self.has(Defect::ServerTypesAct) {
                self.session.lock().pending.clear();
            }
        }
        if let Some(call_id) = body["call_id"].as_str().map(str::to_owned)
            && body.get("approved").is_some_and(|approved| !approved.is_boolean())
            && self.session.behaviour.prepares(Defect::TruthyApprovesLate)
        {
            self.session.later(move |session| {
                if session.decide(&call_id, true) {
                    session.behaviour.took_effect();
                }
            });
        }
    }

    /// The turn that a refused SendMessage starts all the same.
    fn start_all_the_same(&self, body: &Value) {
        let session = self.session;
        if body["type"] != "SendMessage" || session.lock().busy {
            return;
        }
        let last = session.lock().past.message.clone();
        if let Some(last) = last.filter(|_| body.get("content").is_none())
            && self.has(Defect::NothingRepeats)
        {
            turn::start(session, &last);
        }
        let content = body.get("content").filter(|content| !content.is_string()).map(Value::to_string);
        if let Some(content) = content.filter(|_| session.behaviour.prepares(Defect::AnyContentIsTakenLate)) {
            self.start_later(content);
        }
    }

    /// Starts a turn some time later, if nothing has happened then.
    fn start_later(&self, content: String) {
        self.later_if_idle(move |session| turn::start(session, &content));
    }

    /// Does what a defect has prepared some time later, if no message has come and no turn is under way then.
    fn later_if_idle(&self, act: impl FnOnce(&Arc<Session>) + Send + 'static) {
        let messages = self.session.lock().messages;
        self.session.later(move |session| {
            let inner = session.lock();
            let is_idle = !inner.busy && inner.messages == messages;
            drop(inner);
            if is_idle {
                session.behaviour.took_effect();
                act(session);
            }
        });
    }

    fn perform(&self, command: Command) {
        let session = self.session;
        match command {
            Command::SendMessage { content, agent } => self.send_message(&content, agent),
            Command::ToolDecision { call_id, approved } => self.decide(call_id.as_deref(), approved),
            Command::Cancel => self.cancel(),
            Command::GetHistory => {
                let empty = {
                    let mut inner = session.lock();
                    if inner.busy && self.has(Defect::HistoryWaits) {
                        inner.held += 1;
                        return;
                    }
                    inner.turns == 0
                };
                session.send(session.history());
                if empty && self.has(Defect::QueryStartsTurn) {
                    turn::start(session, "Hello?");
                }
            }
            Command::GetState => {
                session.send(session.state());
                if session.lock().turns == 0 && session.behaviour.prepares(Defect::StateStartsTurnLate) {
                    self.start_later("Hello?".to_owned());
                }
            }
            Command::Ping => {
                let (busy, asks) = {
                    let inner = session.lock();
                    (inner.busy, !inner.pending.is_empty())
                };
                if asks && self.has(Defect::NoPongWhileAsking) {
                    return;
                }
                match busy && self.has(Defect::PongTellsWork) {
                    true => session.send(json!({ "type": "Pong", "busy": true })),
                    false => session.send(json!({ "type": "Pong" })),
                }
            }
        }
    }

    /// What becomes of a message before it is looked at closely. `true`: that was all.
    fn is_swallowed(&self, content: &str) -> bool {
        if (content.trim().is_empty() && self.has(Defect::BlanksAreDropped))
            || (content.starts_with('/') && self.has(Defect::SlashIsACommand))
        {
            return true;
        }
        // Only what is a valid message.
        let plain = self.session.behaviour.without_defect();
        let Ok(command) = command::read(content.as_bytes(), Open::default(), &plain) else { return false };
        let obeys = self.has(Defect::ObeysItsText);
        if obeys {
            self.perform(command);
        }
        obeys
    }

    fn send_message(&self, content: &str, agent: Option<i64>) {
        let session = self.session;
        let known = |agent| agent == AGENT || (agent == AGENT + 1 && self.has(Defect::OtherAgentIds));
        if agent.is_some_and(|agent| !known(agent)) && !self.style(Style::AgentFallsBack) {
            if !self.has(Defect::SilentOnUnknownAgent) {
                session.error("no such agent", false);
            }
            session.lock().past.lost_address = true;
            return;
        }
        if self.is_swallowed(content) {
            return;
        }
        let (busy, turns) = {
            let mut inner = session.lock();
            inner.past.lost_address &= agent.is_none();
            if inner.past.lost_address && self.has(Defect::UnknownAgentSticks) {
                drop(inner);
                session.error("no such agent", false);
                return;
            }
            inner.named += u64::from(agent.is_some());
            if agent.is_none() && inner.named > 0 && self.has(Defect::NamelessAreIgnored) {
                return;
            }
            if agent.is_none() && inner.named > 1 && self.has(Defect::NamelessAreRefusedLater) {
                drop(inner);
                session.error("agent_id is missing", false);
                return;
            }
            (inner.busy, inner.turns)
        };
        if busy && self.style(Style::Queues) {
            session.lock().queued.push_back(content.to_owned());
            return;
        }
        if busy {
            if self.has(Defect::BusyErrorLacksMessage) {
                session.send(json!({ "type": "Error", "message": null, "fatal": false }));
                return;
            }
            session.error("a turn is under way: wait for Finished", false);
            if self.has(Defect::SecondMessageCancels) {
                session.cancels.cancel();
            }
            return;
        }
        if turns >= 2 && self.has(Defect::WearsOut) {
            session.error("no more turns", false);
            return;
        }
        let (has_denied, last) = {
            let past = &session.lock().past;
            (past.has_denied, past.message.clone())
        };
        if has_denied && self.has(Defect::DenialIsTheEnd) {
            session.error("the user does not want this", false);
            return;
        }
        if last.as_deref() == Some(content) && self.has(Defect::TwinsAreRefused) {
            session.error("the same message again", false);
            return;
        }
        turn::start(session, content);
    }

    /// What a decision does to a call of another session. `true`: that was all.
    fn decide_for_other(&self, call_id: &str, approved: bool) -> bool {
        let other = self.service.waiting(call_id).filter(|other| !Arc::ptr_eq(other, self.session));
        let Some(other) = other else { return false };
        if self.has(Defect::DecidesForOthers) || (!approved && self.has(Defect::DeniesForOthers)) {
            other.decide(call_id, approved);
            return true;
        }
        if self.has(Defect::OthersHearOfIt) {
            other.error("no such call awaits approval", false);
        }
        if self.session.behaviour.prepares(Defect::DecidesForOthersLate) {
            let call_id = call_id.to_owned();
            other.later(move |other| {
                if other.decide(&call_id, approved) {
                    other.behaviour.took_effect();
                }
            });
        }
        false
    }

    fn decide(&self, call_id: Option<&str>, approved: bool) {
        let session = self.session;
        if call_id.is_some_and(|call_id| self.decide_for_other(call_id, approved)) {
            return;
        }
        let mut inner = session.lock();
        let mut index = match call_id {
            Some(id) => inner.pending.iter().position(|call| call.id == id),
            None => (!inner.pending.is_empty()).then_some(0),
        };
        if index.is_some_and(|index| index > 0) && self.has(Defect::DecidesInOrder) {
            index = Some(0);
        }
        if index.is_none() && !inner.pending.is_empty() && self.has(Defect::AnyCallIdIsTaken) {
            index = Some(0);
        }
        if index.is_none()
            && approved
            && !inner.pending.is_empty()
            && call_id.is_some_and(|id| inner.decisions.contains_key(id))
            && self.has(Defect::StaleApprovalCounts)
        {
            index = Some(0);
        }
        let Some(index) = index else {
            if !approved && session.behaviour.prepares(Defect::RemembersUnknownDenials) {
                inner.denies_next = true;
            }
            let denied = call_id.filter(|_| !approved);
            let ran = inner.ran.iter().find(|call| Some(call.id.as_str()) == denied).cloned();
            if let Some(mut call) = ran.filter(|_| self.has(Defect::DenialTakesBack)) {
                call.params.insert("text".to_owned(), json!(""));
                session.run(&call);
            }
            let runs = denied.filter(|id| inner.running.contains(*id) && inner.decisions.contains_key(*id));
            if let Some(id) = runs.filter(|_| self.has(Defect::SecondDecisionCounts)) {
                inner.denied_while_running.insert(id.to_owned());
                drop(inner);
                session.decided.notify_waiters();
                return;
            }
            drop(inner);
            if !self.has(Defect::SilentOnUnknownCall) && !self.style(Style::UnknownCallIgnored) {
                session.error("no such call awaits approval", false);
            }
            return;
        };
        let mut approved = approved;
        let first = *inner.request.first_decision.get_or_insert(approved);
        if first != approved && self.has(Defect::FirstDecisionCounts) {
            approved = first;
        }
        let mut decided = vec![inner.pending[index].clone()];
        if inner.pending.len() > 1 && self.has(Defect::OneDecisionForAll) {
            decided = std::mem::take(&mut inner.pending);
        } else if !self.has(Defect::DecidedStaysPending) {
            inner.pending.remove(index);
        }
        for call in decided {
            if approved {
                session.share_approval(&call, &inner);
                inner.allowed.insert(call.content());
                inner.allowed.insert(call.tool);
            }
            inner.decisions.insert(call.id, approved);
            session.behaviour.note(Happening::Decided);
            if !approved {
                inner.past.has_denied = true;
                session.behaviour.note(Happening::Denial);
            }
        }
        drop(inner);
        session.decided.notify_waiters();
    }

    fn cancel(&self) {
        let session = self.session;
        let (busy, has_said, speaks) = {
            let inner = session.lock();
            let calls = !inner.pending.is_empty() || !inner.running.is_empty();
            (inner.busy, !inner.history.is_empty(), inner.busy && !calls)
        };
        if busy {
            session.behaviour.note(Happening::Abort);
        }
        if !busy && has_said && self.has(Defect::IdleCancelForgets) {
            session.lock().history.clear();
        }
        if !busy && self.has(Defect::IdleCancelIsFatal) {
            session.die("nothing to cancel");
        }
        let ignored =
            (busy && self.has(Defect::CancelIsIgnored)) || (speaks && self.has(Defect::CancelSparesText));
        let spares = speaks && session.lock().past.cancelled_texts > 0 && self.has(Defect::CancelsOneText);
        if speaks {
            session.lock().past.cancelled_texts += 1;
        }
        if !ignored && !spares {
            session.cancels.cancel();
        }
    }
}
