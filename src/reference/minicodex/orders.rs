//! What a client that has come in may order: a run, a decision, an abort.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::command::{Refusal, refuse};
use super::connection::Peer;
use super::faults::Defect;
use super::run;
use super::session::{Inner, Session};
use super::styles::Style;
use crate::reference::engine::Happening;

impl Peer<'_> {
    pub(super) fn send_text(&self, session: &Arc<Session>, body: &Map<String, Value>) -> Result<(), Refusal> {
        let said = body.get("text").and_then(Value::as_str).unwrap_or_default();
        let message_id = body.get("client_msg_id").and_then(Value::as_str);
        let mut inner = session.lock();
        if let (Some(id), Some(run)) = (message_id, &inner.run) {
            let known = run.message_ids.contains(id);
            if known && (!run.is_over() || self.has(Defect::DedupesByText)) {
                if self.has(Defect::NoDedupe) {
                    session.emit(&mut inner, json!({ "type": "user_text", "text": said }));
                }
                if self.has(Defect::DuplicateIsError) {
                    return Err(refuse("BUSY", "already sent"));
                }
                if !self.style(Style::DuplicateSilent) {
                    self.accept(session, &inner, body);
                }
                return Ok(());
            }
        }
        if message_id.is_some_and(|id| inner.past.refused_ids.contains(id)) {
            session.behaviour.took_effect();
            self.accept(session, &inner, body);
            return Ok(());
        }
        if inner.transcript.iter().any(|item| item["text"] == *said) && self.has(Defect::DedupesByText) {
            self.accept(session, &inner, body);
            return Ok(());
        }
        let named = inner.run.as_ref().is_some_and(|run| !run.message_ids.is_empty());
        if message_id.is_none() && named && self.has(Defect::MessageIdsAreNeeded) {
            return Err(refuse("MISSING_FIELD", "client_msg_id is missing"));
        }
        let busy = inner.active().is_some();
        let was_aborted = inner.run.as_ref().is_some_and(|run| inner.past.aborted_by_id == Some(run.id));
        if !busy && was_aborted && self.has(Defect::BusyAfterAbort) {
            return Err(refuse("BUSY", "a run is active"));
        }
        if busy && !self.has(Defect::RunsOverlap) {
            if self.behaviour().prepares(Defect::RefusedIdIsRemembered) {
                inner.past.refused_ids.extend(message_id.map(str::to_owned));
            }
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

    pub(super) fn decide(
        &self,
        session: &Arc<Session>,
        body: &Map<String, Value>,
        approve: bool,
    ) -> Result<(), Refusal> {
        let call_id = body.get("call_id").and_then(Value::as_str).unwrap_or_default();
        let mut inner = session.lock();
        let Some(run) = inner.run.as_mut().filter(|run| !run.is_over()) else {
            if self.has(Defect::AcceptsAnyCallId) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("UNKNOWN_CALL_ID", "nothing is pending"));
        };
        let decided = run.decided.contains_key(call_id);
        if decided && !self.has(Defect::DecidesAgain) {
            let code =
                if self.style(Style::ConflictUnknown) { "UNKNOWN_CALL_ID" } else { "APPROVAL_CONFLICT" };
            return Err(refuse(code, format!("{call_id:?} is already decided")));
        }
        // Without call_id only under a defect.
        let oldest = run.pending.first().map(|call| call.id.clone());
        let call_id = oldest.as_deref().filter(|_| !body.contains_key("call_id")).unwrap_or(call_id);
        let Some(index) = run.pending.iter().position(|call| call.id == call_id).or(decided.then_some(0))
        else {
            if self.has(Defect::AcceptsAnyCallId) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("UNKNOWN_CALL_ID", format!("{call_id:?} is not pending")));
        };
        let mut ids = vec![call_id.to_owned()];
        if !decided {
            if run.pending.len() > 1 && self.has(Defect::OneDecisionForAll) {
                ids = run.pending.drain(..).map(|call| call.id).collect();
            } else if !self.has(Defect::DecidedStaysPending) {
                run.pending.remove(index);
            }
        }
        for id in &ids {
            run.decided.insert(id.clone(), approve);
            session.behaviour.note(Happening::Decided);
        }
        let late = self.style(Style::AckAfterEffects);
        if !late {
            self.accept(session, &inner, body);
        }
        let decision = match approve {
            true => "approve",
            false if self.has(Defect::DenyHasNoKind) => "deny",
            false if self.has(Defect::DenyAbortGoesOn) || self.style(Style::DenyAborts) => "deny_abort",
            false => "deny_continue",
        };
        for id in ids {
            session.emit(
                &mut inner,
                json!({ "type": "approval_decision", "call_id": id, "decision": decision }),
            );
        }
        if !approve {
            session.behaviour.note(Happening::Denial);
            if self.style(Style::DenyAborts) {
                halt(session, &mut inner);
            }
        }
        if late {
            self.accept(session, &inner, body);
        }
        drop(inner);
        session.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn abort(&self, session: &Arc<Session>, body: &Map<String, Value>) -> Result<(), Refusal> {
        let named = body.get("run_id").and_then(Value::as_str);
        let mut inner = session.lock();
        let Some(run) = inner.active() else {
            inner.past.aborted |= self.behaviour().prepares(Defect::IdleAbortIsRemembered);
            if self.has(Defect::AbortsNothing) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("NOT_RUNNING", "no run is active"));
        };
        let past = |id: &str| inner.past.runs.iter().any(|run| run == id) && self.has(Defect::OldRunIdAborts);
        if named.is_some_and(|id| id != run.id.to_string() && !past(id)) && !self.has(Defect::AbortsStaleRun)
        {
            inner.past.aborted |= self.behaviour().prepares(Defect::StaleAbortIsRemembered);
            return Err(refuse("STALE_RUN_ID", "that is not the active run"));
        }
        let already = run.status == "aborting";
        session.behaviour.note(Happening::Abort);
        if !self.has(Defect::IgnoresAbort) {
            run.abort.cancel();
        }
        let late = self.style(Style::AckAfterEffects);
        if !late {
            self.accept(session, &inner, body);
        }
        if named.is_some() {
            inner.past.aborted_by_id = inner.active().map(|run| run.id);
        }
        if !already && !self.has(Defect::NoAbortingStatus) && !self.has(Defect::IgnoresAbort) {
            session.drop_pending(&mut inner);
            session.status(&mut inner, "aborting");
        }
        if late {
            self.accept(session, &inner, body);
        }
        Ok(())
    }
}

/// Ends the active run as an abort does.
fn halt(session: &Session, inner: &mut Inner) {
    let Some(run) = &mut inner.run else { return };
    run.abort.cancel();
    session.drop_pending(inner);
    session.status(inner, "aborting");
}
