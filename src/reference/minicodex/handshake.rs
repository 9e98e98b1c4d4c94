//! The handshake: hello, and resume with the missed events.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::command::{Refusal, error_frame, refuse};
use super::connection::Peer;
use super::faults::Defect;
use super::session::{Inner, Session};
use super::styles::Style;
use crate::reference::engine::Happening;

/// A cursor; other types than integers only under a defect.
fn cursor(value: &Value) -> Option<i64> {
    let read = || value.as_str().and_then(|text| text.parse().ok());
    value.as_i64().or_else(read).or_else(|| value.as_f64().map(|number| number as i64))
}

impl Peer<'_> {
    fn welcome(&self, session: &Session, inner: &Inner, asked: &str) -> Value {
        let mut v = "1.0.0".to_owned();
        self.behaviour().mutate(&mut v, |defect, v| match defect {
            Defect::EchoesVersion => asked.clone_into(v),
            Defect::WrongVersion => "1.0".clone_into(v),
            _ => {}
        });
        let mut frame = json!({ "type": "welcome", "v": v, "session_state": session.session_state(inner) });
        self.behaviour().mutate(&mut frame, |defect, frame| match defect {
            Defect::WelcomeHasExtra => frame["motd"] = json!("hi"),
            Defect::WelcomeOfAnotherSession => {
                frame["session_state"]["session_id"] = json!(uuid::Uuid::new_v4());
            }
            Defect::WelcomeHidesRuns if inner.active().is_some() => frame["session_state"] = Value::Null,
            Defect::WelcomeIsBrief => {
                frame.as_object_mut().map(|frame| frame.remove("session_state"));
            }
            _ => {}
        });
        frame
    }

    /// The welcome of a client that comes back.
    fn welcome_back(&self, session: &Session, inner: &Inner) {
        let mut frame = self.welcome(session, inner, "1.0.0");
        self.behaviour().mutate(&mut frame, |defect, frame| match defect {
            Defect::ResumeHasShortVersion => frame["v"] = json!("1.0"),
            Defect::ResumeStateIsText => frame["session_state"] = json!(frame["session_state"].to_string()),
            Defect::ResumeNamesNoSession => frame["session_state"]["session_id"] = Value::Null,
            _ => {}
        });
        self.send(&frame);
        if self.has(Defect::ResumedTwice) {
            self.send(&frame);
        }
    }

    /// Announces the calls that wait once more, for a client that has joined.
    fn announce_again(&self, session: &Session, inner: &mut Inner) {
        let is_open = |event: &Value| {
            let pending = inner.active().map_or(&[][..], |run| &run.pending);
            event["type"] == "approval_pending" && pending.iter().any(|call| event["call_id"] == *call.id)
        };
        let open: Vec<Value> =
            inner.log.iter().map(|(_, event)| event).filter(|event| is_open(event)).cloned().collect();
        if !open.is_empty() && session.has(Defect::AnnouncesToJoiners) {
            for event in open {
                session.emit(inner, event);
            }
        }
    }

    fn enter(&mut self, body: &Map<String, Value>) -> Arc<Session> {
        if let Some((session, client)) = self.joined.take() {
            let named = body.get("session_id").and_then(Value::as_str);
            let mut inner = session.lock();
            let stays = named.is_some_and(|id| id != session.id)
                && (session.has(Defect::StaysInTheOldSession)
                    || (inner.clients.len() > 1 && session.has(Defect::LeavesNoCompany)));
            if !stays {
                inner.clients.remove(&client);
            }
            drop(inner);
            session.behaviour.note(Happening::Left);
            if body.get("session_id").is_none_or(Value::is_null) {
                return session;
            }
        }
        self.service.session(body.get("session_id").and_then(Value::as_str))
    }

    pub(super) fn hello(&mut self, body: &Map<String, Value>) -> Result<(), Refusal> {
        if self.has(Defect::CapabilitiesAreNeeded) && !body.contains_key("client_capabilities") {
            return Err(refuse("MISSING_FIELD", "client_capabilities is missing"));
        }
        if body.get("client_capabilities") == Some(&json!([])) && self.has(Defect::NoCapabilitiesAreRefused) {
            return Err(refuse("BAD_ARGUMENT", "client_capabilities is empty"));
        }
        let mut session = self.enter(body);
        let is_busy = session.lock().active().is_some();
        if is_busy && !body.contains_key("client_capabilities") && self.has(Defect::BusySessionsNeedThem) {
            return Err(refuse("MISSING_FIELD", "client_capabilities is missing"));
        }
        if is_busy && self.has(Defect::JoinersGetATwin) {
            session = self.service.twin(&session.id);
        }
        let mut inner = session.lock();
        if inner.active().is_some_and(|run| !run.pending.is_empty()) && session.has(Defect::SilentWhileAsking)
        {
            return Ok(());
        }
        if !body.contains_key("client_capabilities") && session.has(Defect::TheUnskilledAreNotWelcome) {
            let client = session.join(&mut inner, &self.outbox);
            self.send(&session.snapshot(&inner, None));
            drop(inner);
            self.joined = Some((session, client));
            return Ok(());
        }
        if inner.is_left() {
            inner.past.restarts |= session.behaviour.prepares(Defect::EventIdsRestart);
            inner.past.repeats |= session.behaviour.prepares(Defect::RejoinsRepeatAnId);
            if inner.last_event > 2 && session.has(Defect::RejoinsGoBack) {
                inner.last_event -= 2;
            }
        }
        if !inner.clients.is_empty() && session.has(Defect::SilentOnSecondHello) {
            return Ok(());
        }
        let client = session.join(&mut inner, &self.outbox);
        session.behaviour.note(Happening::Joined);
        if inner.clients.len() > 1 && inner.active().is_some() && session.has(Defect::LateJoinersAreDeaf) {
            inner.clients.remove(&client);
        }
        if inner.active().is_some() {
            inner.past.latecomers.insert(client);
        }
        let v = body.get("v").and_then(Value::as_str).unwrap_or("1.0.0");
        let welcome = self.welcome(&session, &inner, v);
        let snapshot = session.snapshot(&inner, None);
        if inner.clients.len() > 1 {
            self.past.shown = Some(snapshot.clone());
        }
        if inner.run.is_some() && self.has(Defect::OpeningInOneMessage) {
            self.outbox.send(Message::text(format!("{welcome}\n{snapshot}")));
            drop(inner);
            self.joined = Some((session, client));
            return Ok(());
        }
        if self.behaviour().strikes(Defect::NoWelcome) {
        } else if self.behaviour().strikes(Defect::SnapshotBeforeWelcome) {
            self.send(&snapshot);
            self.send(&welcome);
        } else {
            self.send(&welcome)
        }
        if self.has(Defect::WelcomesTwice) {
            self.send(&welcome);
        }
        let spares = self.has(Defect::NoOpeningSnapshot) || self.style(Style::NoOpeningSnapshot);
        if !spares && !self.has(Defect::SnapshotBeforeWelcome) {
            self.send(&snapshot);
        }
        if self.style(Style::AcceptedBehind) {
            self.accept(&session, &inner, body);
        }
        self.announce_again(&session, &mut inner);
        drop(inner);
        self.joined = Some((session, client));
        Ok(())
    }

    pub(super) fn resume(&mut self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let seen = body.get("last_seen_event_id").and_then(cursor);
        if seen.is_none() && self.has(Defect::NullCursorIsRefused) {
            return Err(refuse("BAD_ARGUMENT", "last_seen_event_id must be an integer"));
        }
        let behind = self.style(Style::ResumeBehindHello);
        if behind && self.joined.is_none() {
            return Err(refuse("INVALID_COMMAND", "say hello first"));
        }
        let session = self.enter(body);
        let mut inner = session.lock();
        if inner.is_left() {
            inner.past.restarts |= session.behaviour.prepares(Defect::ResumesRestartIds);
        }
        let last = inner.newest().map_or(0, |id| id as i64);
        // Nothing seen: all events, the one with id 0 included.
        let from = seen.unwrap_or(-1);
        if self.style(Style::RefusesBeyond) && from > last {
            return Err(refuse("BAD_ARGUMENT", "no such event"));
        }
        let client = session.join(&mut inner, &self.outbox);
        session.behaviour.note(Happening::Joined);
        if !behind {
            self.welcome_back(&session, &inner);
        }
        let oldest = inner.log.front().map_or(last + 1, |(id, _)| *id as i64);
        if from > last || seen.is_some_and(|id| id < 0) {
            if !self.has(Defect::FutureIsFine) {
                self.send(&error_frame(&refuse("BAD_ARGUMENT", "no such event"), None, self.behaviour()));
            }
        } else if self.lacks(&inner, from, oldest) && !self.has(Defect::PartialReplay) {
            let message = "the gap exceeds the replay window: fetch the state with get_snapshot";
            if !self.has(Defect::GapsAreSilent) {
                self.send(&error_frame(&refuse("REPLAY_GAP", message), None, self.behaviour()));
            }
            if self.has(Defect::GapsAreFollowedByTheRest) {
                self.replay(&session, &inner, from);
            }
            self.past.gap = Some(from);
            if self.has(Defect::DeafAfterGap) {
                inner.clients.remove(&client);
            }
        } else if seen.is_none() && inner.newest().is_some() && self.has(Defect::NullResumesNothing) {
        } else {
            let late = self.has(Defect::SnapshotBehindReplay);
            if !late && !behind {
                let mut snapshot = session.snapshot(&inner, None);
                self.behaviour().mutate(&mut snapshot, |defect, snapshot| {
                    if defect == Defect::ResumedSnapshotIsOld {
                        snapshot["v"] = json!("1.0");
                    }
                });
                self.send(&snapshot);
            }
            self.replay(&session, &inner, from);
            inner.past.resumed_from.get_or_insert(from);
            if late {
                self.send(&session.snapshot(&inner, None));
            }
            if self.behaviour().prepares(Defect::DeafAfterReplay) {
                inner.clients.remove(&client);
            }
        }
        drop(inner);
        self.joined = Some((session, client));
        Ok(())
    }

    /// Whether events behind `from` are gone from the log.
    fn lacks(&self, inner: &Inner, from: i64, oldest: i64) -> bool {
        let first = if self.style(Style::IdsFromZero) { 0 } else { 1 };
        let step = if self.style(Style::IdsWithGaps) { 3 } else { 1 };
        !inner.log.is_empty() && oldest > first && from + step < oldest
    }

    fn replay(&self, session: &Session, inner: &Inner, from: i64) {
        let run = inner.run.as_ref().map(|run| run.id);
        for (id, event) in &inner.log {
            let mut wanted = *id as i64 > from;
            self.behaviour().mutate(&mut wanted, |defect, wanted| match defect {
                Defect::ReplaysLastSeen => *wanted = *id as i64 >= from,
                Defect::ReplaySkipsOne => *wanted = *id as i64 > from + 1,
                Defect::NoReplay => *wanted = false,
                Defect::FirstCursorStays => {
                    *wanted |= inner.past.resumed_from.is_some_and(|old| *id as i64 > old)
                }
                Defect::EndsAreReplayed => {
                    let is_end = event["run_state"]["finished_at"].is_string();
                    let at_end = inner.newest().is_some_and(|last| last as i64 == from);
                    *wanted |= is_end && at_end && event["run_state"]["run_id"] == json!(run);
                }
                Defect::ReplaysTheWholeRun => {
                    *wanted |= inner.active().is_some_and(|run| event["run_id"] == json!(run.id));
                }
                Defect::ReplaysAllAtTheEnd => {
                    *wanted |= inner.newest().is_some_and(|last| last as i64 == from)
                }
                Defect::ReplayLacksTurnDone => *wanted = *id as i64 > from && event["type"] != "turn_done",
                _ => {}
            });
            if !wanted {
                continue;
            }
            let mut event = event.clone();
            if event["type"] == "assistant_text" && session.has(Defect::ReplayChangesText) {
                event["text"] = json!("(replayed)");
            }
            self.send(&event);
        }
    }
}
