//! One connection: handshake, commands, heartbeat.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::Service;
use super::command::{Refusal, check, error_frame, refuse};
use super::faults::Defect;
use super::run;
use super::session::{Session, text};
use crate::reference::engine::clients::{self, HIGH, Outbox, Outgoing};
use crate::reference::{Dialect, Socket};

/// Announced and kept.
const HEARTBEAT: Duration = Duration::from_millis(100);

impl Dialect for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(self.connection(socket))
    }
}

impl Service {
    async fn connection(&self, socket: Socket) {
        let (sink, mut stream) = socket.split();
        let (outbox, outgoing) = clients::channel();
        let mut peer = Peer { service: self, outbox: outbox.clone(), joined: None };
        let writer = tokio::spawn(write(sink, outgoing));
        let mut beat = tokio::time::interval(HEARTBEAT);
        beat.tick().await;
        loop {
            tokio::select! {
                message = stream.next() => match message {
                    Some(Ok(Message::Text(text))) => peer.command(text.as_bytes()),
                    Some(Ok(Message::Binary(bytes))) => peer.command(&bytes),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => {}
                },
                _ = beat.tick() => peer.heartbeat(),
            }
        }
        peer.leave();
        drop(peer);
        drop(outbox);
        writer.abort();
    }
}

async fn write(mut sink: futures_util::stream::SplitSink<Socket, Message>, mut outgoing: Outgoing) {
    let mut draining = false;
    while let Some(message) = outgoing.next().await {
        if sink.send(message).await.is_err() {
            return;
        }
        let left = outgoing.written();
        draining |= left >= HIGH;
        if draining && left == 0 {
            draining = false;
            let ok = text(&json!({ "type": "backpressure", "state": "ok" }));
            if sink.send(ok).await.is_err() {
                return;
            }
        }
    }
}

struct Peer<'s> {
    service: &'s Service,
    outbox: Outbox,
    joined: Option<(Arc<Session>, u64)>,
}

impl Peer<'_> {
    fn has(&self, defect: Defect) -> bool {
        self.service.has(defect)
    }

    fn send(&self, frame: &Value) {
        self.outbox.send(text(frame));
    }

    fn heartbeat(&self) {
        if self.joined.is_none() {
            return;
        }
        let mut frame = json!({ "type": "heartbeat", "interval_ms": HEARTBEAT.as_millis() as u64 });
        match self.service.defect {
            Some(Defect::HeartbeatZero) => frame["interval_ms"] = json!(0),
            Some(Defect::HeartbeatTakesEventId) => frame["event_id"] = json!(0),
            _ => {}
        }
        self.send(&frame);
    }

    fn leave(&mut self) {
        let Some((session, client)) = self.joined.take() else { return };
        let mut inner = session.lock();
        inner.clients.remove(&client);
    }

    fn command(&mut self, bytes: &[u8]) {
        let body = match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(body)) => body,
            Ok(_) | Err(_) => {
                if !self.has(Defect::IgnoresBrokenJson) {
                    self.refuse(&refuse("INVALID_COMMAND", "not a JSON object"), None);
                }
                return;
            }
        };
        let req_id = body.get("req_id").and_then(Value::as_str).map(str::to_owned);
        let result = check(&body, self.service.defect).and_then(|command| self.perform(command, &body));
        if let Err(refusal) = result {
            self.refuse(&refusal, req_id.as_deref());
        }
    }

    fn refuse(&mut self, refusal: &Refusal, req_id: Option<&str>) {
        if self.has(Defect::SilentOnUnknownType) && refusal.message.starts_with("unknown type") {
            return;
        }
        let frame = error_frame(refusal, req_id, self.service.defect);
        match (&self.joined, self.service.defect) {
            (Some((session, _)), Some(Defect::ErrorsToEveryone)) => {
                session.lock().clients.values().for_each(|client| {
                    client.send(text(&frame));
                });
            }
            _ => self.send(&frame),
        }
        if self.has(Defect::ErrorStartsRun)
            && let Some((session, _)) = self.joined.clone()
        {
            let mut inner = session.lock();
            if inner.run.as_ref().is_none_or(super::session::Run::is_over) {
                run::start(&session, &mut inner, "ok", None);
            }
        }
        if self.has(Defect::ErrorCountsAsRun)
            && let Some((session, _)) = &self.joined
        {
            session.lock().run_counter += 1;
        }
    }

    fn accept(&self, session: &Session, inner: &super::session::Inner, body: &Map<String, Value>) {
        if self.has(Defect::NoAcknowledgement) {
            return;
        }
        let mut frame = json!({ "type": "accepted" });
        let req_id = body.get("req_id").filter(|id| id.is_string());
        match (req_id, self.service.defect) {
            (Some(_), Some(Defect::AckWithoutReqId)) => {}
            (Some(req_id), _) => frame["req_id"] = req_id.clone(),
            (None, Some(Defect::AckInventsReqId)) => frame["req_id"] = json!("r-0"),
            (None, _) => {}
        }
        match self.service.defect {
            Some(Defect::AckHasExtra) => frame["queued"] = json!(true),
            Some(Defect::AckChangesVersion) => frame["v"] = json!("2.0.0"),
            Some(Defect::AckIsLegacy) => {
                self.send(&json!({ "type": "status", "status": "accepted" }));
            }
            Some(Defect::AckInAnArray) => frame = json!([frame]),
            _ => {}
        }
        if session.has(Defect::AcksToEveryone) {
            inner.clients.values().for_each(|client| {
                client.send(text(&frame));
            });
            return;
        }
        self.send(&frame);
        if self.has(Defect::AcksTwice) {
            self.send(&frame);
        }
    }

    fn perform(&mut self, command: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
        let text_of = |name: &str| body.get(name).and_then(Value::as_str);
        match command {
            "hello" => return self.hello(body),
            "resume" => return self.resume(body),
            _ => {}
        }
        let Some((session, _)) = self.joined.clone() else {
            if self.has(Defect::RunsBeforeHello) && command == "send" {
                let session = self.service.session(None);
                let mut inner = session.lock();
                let client = Session::join(&mut inner, &self.outbox);
                self.accept(&session, &inner, body);
                run::start(&session, &mut inner, text_of("text").unwrap_or_default(), None);
                drop(inner);
                self.joined = Some((session, client));
                return Ok(());
            }
            return Err(refuse("INVALID_COMMAND", "say hello or resume first"));
        };
        match command {
            "send" => self.send_text(&session, body),
            "approve" | "deny" => self.decide(&session, body, command == "approve"),
            "abort" => self.abort(&session, body),
            "get_snapshot" => {
                let inner = session.lock();
                let mut frame = session.snapshot(&inner, text_of("req_id"));
                if body.get("include_transcript_window") != Some(&json!(true)) {
                    frame["transcript"] = json!([]);
                }
                if self.has(Defect::SnapshotsToEveryone) {
                    inner.clients.values().for_each(|client| {
                        client.send(text(&frame));
                    });
                } else {
                    self.send(&frame);
                }
                Ok(())
            }
            "ping" => {
                match self.service.defect {
                    Some(Defect::AnswersPong) => {
                        self.send(&json!({ "type": "pong", "nonce": body.get("nonce") }))
                    }
                    Some(Defect::RefusesPing) => return Err(refuse("INVALID_COMMAND", "no ping here")),
                    _ => {}
                }
                Ok(())
            }
            _ => Err(refuse("INVALID_COMMAND", "unknown type")),
        }
    }

    fn welcome(&self, session: &Session, inner: &super::session::Inner, v: &str) -> Value {
        let v = match self.service.defect {
            Some(Defect::EchoesVersion) => v,
            Some(Defect::WrongVersion) => "1.0",
            _ => "1.0.0",
        };
        let mut frame = json!({ "type": "welcome", "v": v, "session_state": session.session_state(inner) });
        match self.service.defect {
            Some(Defect::WelcomeHasExtra) => frame["motd"] = json!("hi"),
            Some(Defect::WelcomeOfAnotherSession) => {
                frame["session_state"]["session_id"] = json!(uuid::Uuid::new_v4());
            }
            _ => {}
        }
        frame
    }

    fn enter(&mut self, body: &Map<String, Value>) -> Arc<Session> {
        if let Some((session, client)) = self.joined.take() {
            session.lock().clients.remove(&client);
            if body.get("session_id").is_none_or(Value::is_null) {
                return session;
            }
        }
        self.service.session(body.get("session_id").and_then(Value::as_str))
    }

    fn hello(&mut self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let session = self.enter(body);
        let mut inner = session.lock();
        let client = Session::join(&mut inner, &self.outbox);
        let v = body.get("v").and_then(Value::as_str).unwrap_or("1.0.0");
        let welcome = self.welcome(&session, &inner, v);
        let snapshot = session.snapshot(&inner, None);
        match self.service.defect {
            Some(Defect::NoWelcome) => {}
            Some(Defect::SnapshotBeforeWelcome) => {
                self.send(&snapshot);
                self.send(&welcome);
            }
            _ => self.send(&welcome),
        }
        if self.has(Defect::WelcomesTwice) {
            self.send(&welcome);
        }
        if !self.has(Defect::NoOpeningSnapshot) && !self.has(Defect::SnapshotBeforeWelcome) {
            self.send(&snapshot);
        }
        drop(inner);
        self.joined = Some((session, client));
        Ok(())
    }

    fn resume(&mut self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let seen = body.get("last_seen_event_id").and_then(Value::as_i64);
        let session = self.enter(body);
        let mut inner = session.lock();
        let client = Session::join(&mut inner, &self.outbox);
        self.send(&self.welcome(&session, &inner, "1.0.0"));
        let last = inner.last_event as i64;
        let from = seen.unwrap_or(0);
        let oldest = inner.log.front().map_or(last + 1, |(id, _)| *id as i64);
        if from > last || from < 0 {
            if !self.has(Defect::FutureIsFine) {
                self.send(&error_frame(&refuse("BAD_ARGUMENT", "no such event"), None, self.service.defect));
            }
        } else if from + 1 < oldest && !self.has(Defect::PartialReplay) {
            let message = "the gap exceeds the replay window: fetch the state with get_snapshot";
            self.send(&error_frame(&refuse("REPLAY_GAP", message), None, self.service.defect));
        } else {
            self.send(&session.snapshot(&inner, None));
            self.replay(&session, &inner, from);
        }
        drop(inner);
        self.joined = Some((session, client));
        Ok(())
    }

    fn replay(&self, session: &Session, inner: &super::session::Inner, from: i64) {
        for (id, event) in &inner.log {
            let wanted = match self.service.defect {
                Some(Defect::ReplaysLastSeen) => *id as i64 >= from,
                Some(Defect::ReplaySkipsOne) => *id as i64 > from + 1,
                Some(Defect::NoReplay) => false,
                _ => *id as i64 > from,
            };
            if !wanted {
                continue;
            }
            let mut event = event.clone();
            if session.has(Defect::ReplayChangesText) && event["type"] == "assistant_text" {
                event["text"] = json!("(replayed)");
            }
            self.send(&event);
        }
    }

    fn send_text(&self, session: &Arc<Session>, body: &Map<String, Value>) -> Result<(), Refusal> {
        let said = body.get("text").and_then(Value::as_str).unwrap_or_default();
        let message_id = body.get("client_msg_id").and_then(Value::as_str);
        let mut inner = session.lock();
        if let (Some(id), Some(run)) = (message_id, &inner.run) {
            let known = run.message_ids.contains(id);
            let remembered = !run.is_over() || self.has(Defect::DedupesByText);
            if known && remembered {
                if self.has(Defect::NoDedupe) {
                    session.emit(&mut inner, json!({ "type": "user_text", "text": said }));
                }
                if self.has(Defect::DuplicateIsError) {
                    return Err(refuse("BUSY", "already sent"));
                }
                self.accept(session, &inner, body);
                return Ok(());
            }
        }
        if self.has(Defect::DedupesByText) && inner.transcript.iter().any(|item| item["text"] == *said) {
            self.accept(session, &inner, body);
            return Ok(());
        }
        let busy = inner.run.as_ref().is_some_and(|run| !run.is_over());
        if busy && !self.has(Defect::RunsOverlap) {
            return Err(refuse("BUSY", "a run is active"));
        }
        if !self.has(Defect::AckAfterEffects) {
            self.accept(session, &inner, body);
        }
        run::start(session, &mut inner, said, message_id);
        if self.has(Defect::AckAfterEffects) {
            self.accept(session, &inner, body);
        }
        Ok(())
    }

    fn decide(
        &self,
        session: &Arc<Session>,
        body: &Map<String, Value>,
        approve: bool,
    ) -> Result<(), Refusal> {
        let call_id = body.get("call_id").and_then(Value::as_str).unwrap_or_default();
        let mut inner = session.lock();
        let again = self.has(Defect::DecidesAgain);
        let Some(run) = inner.run.as_mut().filter(|run| !run.is_over()) else {
            if self.has(Defect::AcceptsAnyCallId) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("UNKNOWN_CALL_ID", "nothing is pending"));
        };
        let decided = run.decided.contains_key(call_id);
        if decided && !again {
            return Err(refuse("APPROVAL_CONFLICT", format!("{call_id:?} is already decided")));
        }
        let Some(index) = run.pending.iter().position(|call| call.id == call_id).or(decided.then_some(0))
        else {
            if self.has(Defect::AcceptsAnyCallId) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("UNKNOWN_CALL_ID", format!("{call_id:?} is not pending")));
        };
        let decides_all = self.has(Defect::OneDecisionForAll);
        let mut ids = vec![call_id.to_owned()];
        if !decided {
            if decides_all {
                ids = run.pending.drain(..).map(|call| call.id).collect();
            } else if !self.has(Defect::DecidedStaysPending) {
                run.pending.remove(index);
            }
        }
        for id in &ids {
            run.decided.insert(id.clone(), approve);
        }
        self.accept(session, &inner, body);
        let decision = match (approve, self.service.defect) {
            (true, _) => "approve",
            (false, Some(Defect::DenyHasNoKind)) => "deny",
            (false, _) => "deny_continue",
        };
        for id in ids {
            session.emit(
                &mut inner,
                json!({ "type": "approval_decision", "call_id": id, "decision": decision }),
            );
        }
        drop(inner);
        session.changed.notify_waiters();
        Ok(())
    }

    fn abort(&self, session: &Arc<Session>, body: &Map<String, Value>) -> Result<(), Refusal> {
        let named = body.get("run_id").and_then(Value::as_str);
        let mut inner = session.lock();
        let Some(run) = inner.run.as_ref().filter(|run| !run.is_over()) else {
            if self.has(Defect::AbortsNothing) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("NOT_RUNNING", "no run is active"));
        };
        if named.is_some_and(|id| id != run.id.to_string()) && !self.has(Defect::AbortsStaleRun) {
            return Err(refuse("STALE_RUN_ID", "that is not the active run"));
        }
        let already = run.status == "aborting";
        if !self.has(Defect::IgnoresAbort) {
            run.abort.cancel();
        }
        self.accept(session, &inner, body);
        if !already && !self.has(Defect::NoAbortingStatus) && !self.has(Defect::IgnoresAbort) {
            if let Some(run) = &mut inner.run
                && !self.has(Defect::PendingStays)
            {
                run.pending.clear();
            }
            session.status(&mut inner, "aborting");
        }
        Ok(())
    }
}
