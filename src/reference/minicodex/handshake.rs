//! The handshake: hello, and resume with the missed events.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::command::{Refusal, error_frame, refuse};
use super::connection::Peer;
use super::faults::Defect;
use super::session::{Inner, Session};
use super::styles::Style;
use crate::reference::engine::Happening;

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
            Defect::WelcomeIsBrief => {
                frame.as_object_mut().map(|frame| frame.remove("session_state"));
            }
            _ => {}
        });
        frame
    }

    fn enter(&mut self, body: &Map<String, Value>) -> Arc<Session> {
        if let Some((session, client)) = self.joined.take() {
            session.lock().clients.remove(&client);
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
        let session = self.enter(body);
        let mut inner = session.lock();
        if inner.is_left() {
            inner.past.restarts |= session.behaviour.prepares(Defect::EventIdsRestart);
        }
        if !inner.clients.is_empty() && session.has(Defect::SilentOnSecondHello) {
            return Ok(());
        }
        let client = session.join(&mut inner, &self.outbox);
        session.behaviour.note(Happening::Joined);
        if inner.clients.len() > 1 && inner.active().is_some() && session.has(Defect::LateJoinersAreDeaf) {
            inner.clients.remove(&client);
        }
        let v = body.get("v").and_then(Value::as_str).unwrap_or("1.0.0");
        let welcome = self.welcome(&session, &inner, v);
        let snapshot = session.snapshot(&inner, None);
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
        drop(inner);
        self.joined = Some((session, client));
        Ok(())
    }

    pub(super) fn resume(&mut self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let seen = body.get("last_seen_event_id").and_then(Value::as_i64);
        if seen.is_none() && self.has(Defect::NullCursorIsRefused) {
            return Err(refuse("BAD_ARGUMENT", "last_seen_event_id must be an integer"));
        }
        let behind = self.style(Style::ResumeBehindHello);
        if behind && self.joined.is_none() {
            return Err(refuse("INVALID_COMMAND", "say hello first"));
        }
        let session = self.enter(body);
        let mut inner = session.lock();
        let last = inner.newest().map_or(0, |id| id as i64);
        // Nothing seen: all events, the one with id 0 included.
        let from = seen.unwrap_or(-1);
        if self.style(Style::RefusesBeyond) && from > last {
            return Err(refuse("BAD_ARGUMENT", "no such event"));
        }
        let client = session.join(&mut inner, &self.outbox);
        session.behaviour.note(Happening::Joined);
        if !behind {
            self.send(&self.welcome(&session, &inner, "1.0.0"));
        }
        let oldest = inner.log.front().map_or(last + 1, |(id, _)| *id as i64);
        if from > last || seen.is_some_and(|id| id < 0) {
            if !self.has(Defect::FutureIsFine) {
                self.send(&error_frame(&refuse("BAD_ARGUMENT", "no such event"), None, self.behaviour()));
            }
        } else if self.lacks(&inner, from, oldest) && !self.has(Defect::PartialReplay) {
            let message = "the gap exceeds the replay window: fetch the state with get_snapshot";
            self.send(&error_frame(&refuse("REPLAY_GAP", message), None, self.behaviour()));
            if self.has(Defect::DeafAfterGap) {
                inner.clients.remove(&client);
            }
        } else {
            let late = self.has(Defect::SnapshotBehindReplay);
            if !late && !behind {
                self.send(&session.snapshot(&inner, None));
            }
            self.replay(&session, &inner, from);
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
        for (id, event) in &inner.log {
            let mut wanted = *id as i64 > from;
            self.behaviour().mutate(&mut wanted, |defect, wanted| match defect {
                Defect::ReplaysLastSeen => *wanted = *id as i64 >= from,
                Defect::ReplaySkipsOne => *wanted = *id as i64 > from + 1,
                Defect::NoReplay => *wanted = false,
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
