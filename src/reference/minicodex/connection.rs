//! One connection: handshake, commands, heartbeat.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::command::{Refusal, check, error_frame, refuse};
use super::faults::Defect;
use super::orders::deny_pending;
use super::past::{Order, PeerPast};
use super::run;
use super::session::{Session, text};
use super::styles::Style;
use super::{Behaviour, Service};
use crate::reference::engine::Happening;
use crate::reference::engine::clients::{self, HIGH, Outbox, Outgoing};
use crate::reference::{ConnectionHandler, Socket};

/// Announced and kept.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// How long a snapshot takes to be sent with [`Style::SnapshotsLate`].
const SNAPSHOT_TAKES: Duration = Duration::from_millis(3);

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(self.connection(socket))
    }
}

impl Service {
    async fn connection(&self, socket: Socket) {
        let (sink, mut stream) = socket.split();
        let (outbox, outgoing) = clients::channel();
        let mut peer = Peer {
            service: self,
            own: self.behaviour.of_session(),
            outbox: outbox.clone(),
            joined: None,
            drains: false,
            past: PeerPast::default(),
        };
        let writer = tokio::spawn(write(sink, outgoing, peer.own.clone()));
        let rare = self.has(Defect::HeartbeatIsRare);
        let mut beat = tokio::time::interval(if rare { 20 * HEARTBEAT } else { HEARTBEAT });
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

async fn write(
    mut sink: futures_util::stream::SplitSink<Socket, Message>,
    mut outgoing: Outgoing,
    behaviour: Behaviour,
) {
    let mut draining = false;
    while let Some(message) = outgoing.next().await {
        if sink.send(message).await.is_err() {
            return;
        }
        let left = outgoing.written();
        draining |= left >= HIGH;
        if draining && left == 0 {
            draining = false;
            let state = if behaviour.strikes(Defect::OkIsMisspelt) { "resume" } else { "ok" };
            let ok = text(&json!({ "type": "backpressure", "state": state }));
            if sink.send(ok).await.is_err() {
                return;
            }
        }
    }
}

/// A client, as its connection knows it.
pub(super) struct Peer<'s> {
    pub service: &'s Service,
    /// Asked before it is in a session.
    own: Behaviour,
    pub outbox: Outbox,
    /// Its session, and its number there.
    pub joined: Option<(Arc<Session>, u64)>,
    /// It was told to hold back, and not yet that it may go on.
    drains: bool,
    pub past: PeerPast,
}

impl Peer<'_> {
    /// That of its session.
    pub fn behaviour(&self) -> &Behaviour {
        self.joined.as_ref().map_or(&self.own, |(session, _)| &session.behaviour)
    }

    pub fn has(&self, defect: Defect) -> bool {
        self.behaviour().strikes(defect)
    }

    pub fn style(&self, style: Style) -> bool {
        self.behaviour().style(style)
    }

    /// Its number in its session.
    pub fn number(&self) -> u64 {
        self.joined.as_ref().map_or(0, |(_, client)| *client)
    }

    fn is_active(&self) -> bool {
        self.joined.as_ref().is_some_and(|(session, _)| session.lock().active().is_some())
    }

    pub fn send(&self, frame: &Value) {
        self.outbox.send(text(frame));
    }

    fn heartbeat(&mut self) {
        if std::mem::take(&mut self.drains) {
            self.send(&json!({ "type": "backpressure", "state": "ok" }));
        }
        if self.joined.is_none() || self.style(Style::NoHeartbeat) {
            return;
        }
        self.beat();
    }

    fn beat(&self) {
        let mut frame = json!({ "type": "heartbeat", "interval_ms": HEARTBEAT.as_millis() as u64 });
        let is_active = self.is_active();
        let newest = self.joined.as_ref().and_then(|(session, _)| session.lock().newest());
        self.behaviour().mutate(&mut frame, |defect, frame| match defect {
            Defect::HeartbeatZero => frame["interval_ms"] = json!(0),
            Defect::HeartbeatTakesEventId => frame["event_id"] = json!(0),
            Defect::HeartbeatAsText if is_active => frame["interval_ms"] = json!("100"),
            Defect::HeartbeatInSeconds if !is_active && newest.is_some() => frame["interval_ms"] = json!(0.1),
            Defect::HeartbeatRepeatsEvent if is_active => frame["event_id"] = json!(newest),
            Defect::HeartbeatIsNext if !is_active && newest.is_some() => {
                frame["event_id"] = json!(newest.map(|id| id + 1));
            }
            _ => {}
        });
        self.send(&frame);
    }

    fn leave(&mut self) {
        let Some((session, client)) = self.joined.take() else { return };
        let mut inner = session.lock();
        inner.clients.remove(&client);
        session.behaviour.note(Happening::Left);
        if let Some(run) = inner.active().filter(|_| !inner.clients.is_empty())
            && session.has(Defect::LeavingAborts)
        {
            run.abort.cancel();
        }
        let next = inner.clients.range(client..).next().map(|(next, _)| *next);
        if let Some(next) = next.filter(|_| inner.active().is_some())
            && session.has(Defect::LeavingTakesTheNext)
        {
            inner.clients.remove(&next);
        }
        let denies =
            if inner.clients.is_empty() { Defect::LeftCallsAreDenied } else { Defect::LeavingDenies };
        deny_pending(&session, &mut inner, denies);
        if !inner.clients.is_empty() {
            return;
        }
        if inner.active().is_none() && inner.last_event > 1 && session.has(Defect::LeftCursorsStepBack) {
            inner.last_event -= 1;
        }
        if let Some(run) = inner.active() {
            if session.has(Defect::LeftRunsAbort) {
                run.abort.cancel();
            }
        } else if !inner.transcript.is_empty() && session.has(Defect::LeftTranscriptsGo) {
            inner.transcript.clear();
        }
    }

    fn command(&mut self, bytes: &[u8]) {
        self.behaviour().message(bytes);
        let body = match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(body)) => body,
            Ok(Value::Array(items))
                if items.first().is_some_and(Value::is_object) && self.has(Defect::ListsAreUnpacked) =>
            {
                items.first().and_then(Value::as_object).cloned().unwrap_or_default()
            }
            Ok(_) if self.has(Defect::IgnoresOtherJson) => return,
            Ok(_) | Err(_) => {
                if !self.has(Defect::IgnoresBrokenJson) {
                    self.refuse(&refuse("INVALID_COMMAND", "not a JSON object"), None);
                }
                return;
            }
        };
        let req_id = body.get("req_id").and_then(Value::as_str).map(str::to_owned);
        let command = check(&body, self.behaviour());
        let is_valid = command.is_ok();
        let result = command.and_then(|command| self.perform(command, &body));
        if let Err(refusal) = result {
            if let Some((session, _)) = &self.joined
                && is_valid
                && self.has(Defect::AcceptsThenRefuses)
            {
                self.accept(session, &session.lock(), &body);
            }
            self.refuse(&refusal, req_id.as_deref());
        }
        self.past.req_id = req_id.or(self.past.req_id.take());
    }

    /// Whether a defect keeps a refusal to itself.
    fn is_kept(&self, refusal: &Refusal) -> bool {
        let said = refusal.message.as_str();
        let server = ["welcome", "snapshot", "accepted", "run_status", "turn_done", "error", "heartbeat"];
        let is_server_type = server.iter().any(|kind| said == format!("unknown type {kind:?}"));
        let was_there = || self.joined.as_ref().is_some_and(|(session, _)| session.lock().run.is_some());
        match said {
            "type is missing" => self.has(Defect::SilentOnNoType),
            "type must be a string" => self.has(Defect::SilentOnOtherTypes),
            "text is missing" => self.is_active() && self.has(Defect::SilentOnNoText),
            "call_id is missing" => !self.is_active() && self.has(Defect::SilentOnNoCallId),
            "nothing is pending" => was_there() && self.has(Defect::SilentOnLateDecision),
            _ if !said.starts_with("unknown type") => false,
            _ if self.has(Defect::SilentOnUnknownType) => true,
            _ if is_server_type => self.has(Defect::SilentOnServerTypes),
            _ => self.is_active() && self.has(Defect::SilentWhileActive),
        }
    }

    /// Tells the others what is none of their business.
    fn spread(&self, refusal: &Refusal, frame: &Value) {
        let Some((session, own)) = &self.joined else { return };
        let inner = session.lock();
        let others: Vec<_> = inner.clients.iter().filter(|(number, _)| *number != own).collect();
        let is_news = match refusal.code {
            _ if others.is_empty() => false,
            "BUSY" => session.has(Defect::BusyIsNews),
            _ => refusal.message.starts_with("not a JSON") && session.has(Defect::BrokenJsonIsNews),
        };
        if is_news {
            let mut news = frame.clone();
            news.as_object_mut().map(|news| news.remove("req_id"));
            for (_, client) in others {
                client.send(text(&news));
            }
        }
    }

    fn refuse(&mut self, refusal: &Refusal, req_id: Option<&str>) {
        if self.is_kept(refusal) {
            return;
        }
        let frame = error_frame(refusal, req_id, self.behaviour());
        self.behaviour().note(Happening::Error);
        match &self.joined {
            Some((session, _)) if session.lock().clients.len() > 1 && self.has(Defect::ErrorsToEveryone) => {
                session.lock().clients.values().for_each(|client| {
                    client.send(text(&frame));
                });
            }
            _ => self.send(&frame),
        }
        self.spread(refusal, &frame);
        if let Some((session, _)) = self.joined.clone() {
            let mut inner = session.lock();
            if inner.active().is_none() && self.has(Defect::ErrorStartsRun) {
                run::start(&session, &mut inner, Order { text: "ok".into(), ..Order::default() });
            }
        }
        if self.has(Defect::ErrorCountsAsRun)
            && let Some((session, _)) = &self.joined
        {
            session.lock().run_counter += 1;
        }
    }

    pub fn accept(&self, session: &Session, inner: &super::session::Inner, body: &Map<String, Value>) {
        if self.has(Defect::NoAcknowledgement) || self.is_unacknowledged(inner, body) {
            return;
        }
        let mut frame = json!({ "type": "accepted" });
        let req_id = body.get("req_id").filter(|id| id.is_string());
        match req_id {
            Some(_) if self.has(Defect::AckWithoutReqId) => {}
            Some(id) if *id == "" && self.has(Defect::EmptyReqIdIsNone) => {}
            Some(req_id) => frame["req_id"] = req_id.clone(),
            None if self.has(Defect::AckInventsReqId) => frame["req_id"] = json!("r-0"),
            None if self.past.req_id.is_some() && self.has(Defect::AckKeepsReqId) => {
                frame["req_id"] = json!(self.past.req_id);
            }
            None => {}
        }
        let message_id = body.get("client_msg_id").and_then(Value::as_str);
        let is_repeat = message_id.zip(inner.active()).is_some_and(|(id, run)| run.message_ids.contains(id));
        self.behaviour().mutate(&mut frame, |defect, frame| match defect {
            Defect::AckNamesItsCall if body.contains_key("call_id") => {
                frame["call_id"] = body["call_id"].clone();
            }
            Defect::AckTellsRepeats if is_repeat => frame["duplicate"] = json!(true),
            _ => {}
        });
        if self.behaviour().strikes(Defect::AckHasExtra) {
            frame["queued"] = json!(true)
        } else if self.behaviour().strikes(Defect::AckChangesVersion) {
            frame["v"] = json!("2.0.0")
        } else if self.behaviour().strikes(Defect::AckIsLegacy) {
            self.send(&json!({ "type": "status", "status": "accepted" }));
        } else if self.behaviour().strikes(Defect::AckInAnArray) {
            frame = json!([frame])
        }
        if inner.clients.len() > 1 && session.has(Defect::AcksToEveryone) {
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

    /// Whether a defect executes the command without a word.
    fn is_unacknowledged(&self, inner: &super::session::Inner, body: &Map<String, Value>) -> bool {
        let said = body.get("text").and_then(Value::as_str);
        let was_aborted = inner.was_aborted();
        (said.is_some_and(|text| text.trim().is_empty()) && self.has(Defect::BlanksAreUnacknowledged))
            || (said.is_some() && was_aborted && self.has(Defect::NoAckAfterAbort))
            || (!body.contains_key("req_id") && self.has(Defect::AcksNeedReqId))
    }

    fn perform(&mut self, command: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
        let text_of = |name: &str| body.get(name).and_then(Value::as_str);
        match command {
            "hello" => return self.hello(body),
            "resume" => return self.resume(body),
            _ => {}
        }
        let Some((session, client)) = self.joined.clone() else {
            if command == "send" && self.has(Defect::RunsBeforeHello) {
                let session = self.service.session(None);
                let mut inner = session.lock();
                let client = session.join(&mut inner, &self.outbox);
                self.accept(&session, &inner, body);
                let order =
                    Order { text: text_of("text").unwrap_or_default().to_owned(), ..Order::default() };
                run::start(&session, &mut inner, order);
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
                let mut inner = session.lock();
                if inner.newest().is_some() && self.has(Defect::SnapshotsCount) {
                    inner.last_event += 1;
                }
                if inner.active().is_some_and(|run| run.at_work) && self.has(Defect::NoSnapshotOfTools) {
                    return Ok(());
                }
                let gap = self.past.gap.take();
                let wants = body.get("include_transcript_window");
                if wants == Some(&json!(false)) && self.has(Defect::FalseIsNoQuestion) {
                    return Ok(());
                }
                if gap.is_some() && self.has(Defect::NoSnapshotAfterGap) {
                    return Err(refuse("INVALID_COMMAND", "say hello first"));
                }
                if let Some(status) = inner.active().map(|run| run.status)
                    && wants != Some(&json!(true))
                    && self.has(Defect::SnapshotsAreStatuses)
                {
                    session.status(&mut inner, status);
                }
                if self.style(Style::SnapshotAccepted) {
                    self.accept(&session, &inner, body);
                }
                let mut frame = session.snapshot(&inner, text_of("req_id"));
                if wants != Some(&json!(true)) {
                    frame["transcript"] = json!([]);
                }
                self.behaviour().mutate(&mut frame, |defect, frame| match defect {
                    Defect::TranscriptsApart if inner.clients.keys().min() != Some(&client) => {
                        frame["transcript"] = json!([])
                    }
                    Defect::TranscriptsForTheLast if inner.clients.keys().max() != Some(&client) => {
                        frame["transcript"] = json!([])
                    }
                    Defect::SeenRunsAreGone if inner.active().is_none() && self.past.saw_end => {
                        frame["run_state"] = Value::Null;
                    }
                    Defect::WindowHasAnEnd if wants == Some(&json!(true)) => {
                        frame["truncated"] = json!(false)
                    }
                    Defect::WindowNeedsRest if inner.active().is_some() => frame["transcript"] = json!([]),
                    Defect::GapStaysInSnapshot if gap.is_some() => frame["event_id"] = json!(gap),
                    Defect::JoinersSeeThePast if frame["transcript"] != json!([]) => {
                        let shown = self.past.shown.as_ref().map(|shown| shown["transcript"].clone());
                        frame["transcript"] = shown.unwrap_or_else(|| frame["transcript"].clone());
                    }
                    _ => {}
                });
                self.past.saw_end = inner.active().is_none();
                if inner.clients.len() > 1 && self.has(Defect::SnapshotsToEveryone) {
                    inner.clients.values().for_each(|client| {
                        client.send(text(&frame));
                    });
                } else if self.style(Style::SnapshotsLate) {
                    let outbox = self.outbox.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(SNAPSHOT_TAKES).await;
                        outbox.send(text(&frame));
                    });
                } else {
                    self.send(&frame);
                }
                if self.style(Style::AcceptedBehind) {
                    self.accept(&session, &inner, body);
                }
                if self.style(Style::DrainsOnSnapshot) && !self.drains {
                    self.drains = true;
                    self.send(&json!({ "type": "backpressure", "state": "drain" }));
                }
                Ok(())
            }
            "ping" => {
                let mut inner = session.lock();
                if inner.newest().is_some() && self.has(Defect::PingsCount) {
                    inner.last_event += 1;
                }
                drop(inner);
                if self.behaviour().strikes(Defect::AnswersPong) {
                    self.send(&json!({ "type": "pong", "nonce": body.get("nonce") }))
                } else if self.behaviour().strikes(Defect::RefusesPing) {
                    return Err(refuse("INVALID_COMMAND", "no ping here"));
                } else if self.style(Style::PingAccepted) {
                    self.accept(&session, &session.lock(), body)
                } else if self.style(Style::PingBeats) {
                    self.beat()
                }
                Ok(())
            }
            _ => Err(refuse("INVALID_COMMAND", "unknown type")),
        }
    }
}
