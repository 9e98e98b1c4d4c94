//! What a client that has come in may order: a run, a decision, an abort.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::command::{Refusal, refuse};
use super::connection::Peer;
use super::faults::Defect;
use super::past::Order;
use super::run;
use super::session::{Inner, Run, Session};
use super::styles::Style;
use crate::reference::engine::Happening;

/// How long a defect is busy with a tool that was stopped.
const CLEANUP: Duration = Duration::from_millis(600);

impl Peer<'_> {
    pub(super) fn send_text(&self, session: &Arc<Session>, body: &Map<String, Value>) -> Result<(), Refusal> {
        let said = body.get("text").and_then(Value::as_str).unwrap_or_default();
        let message_id = match body.get("client_msg_id") {
            Some(Value::Null) if self.has(Defect::NullIsAnId) => Some("None"),
            id => id.and_then(Value::as_str),
        };
        let mut inner = session.lock();
        if let (Some(id), Some(run)) = (message_id, &inner.run) {
            let known = self.knows(run, id);
            if known && (!run.is_over() || self.has(Defect::DedupesByText)) {
                if run.order.client != self.number() && self.behaviour().prepares(Defect::RepeatsOfOthersWait)
                {
                    inner.past.postponed = Some(said.to_owned());
                } else if self.takes_repeat(run, said) {
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
        let repeats = inner.active().is_some_and(|run| run.message_ids.is_empty() && run.order.text == said);
        if message_id.is_none() && repeats && self.has(Defect::NoIdIsAnId) {
            self.accept(session, &inner, body);
            return Ok(());
        }
        if self.stays_busy(&inner) {
            return Err(refuse("BUSY", "a run is active"));
        }
        let busy = inner.active().is_some();
        let awaits = inner.active().is_some_and(|run| run.status == "awaiting_approval");
        let aborts = inner.active().is_some_and(|run| run.status == "aborting");
        let overlaps = (awaits && self.has(Defect::RunsWhileAwaiting))
            || (aborts && self.has(Defect::RunsWhileAborting));
        let was_aborted = inner.run.as_ref().is_some_and(|run| inner.past.aborted_by_id == Some(run.id));
        if !busy && was_aborted && self.has(Defect::BusyAfterAbort) {
            return Err(refuse("BUSY", "a run is active"));
        }
        if busy && !overlaps && !self.has(Defect::RunsOverlap) {
            if self.behaviour().prepares(Defect::RefusedIdIsRemembered) {
                inner.past.refused_ids.extend(message_id.map(str::to_owned));
            }
            return Err(refuse("BUSY", "a run is active"));
        }
        if !self.has(Defect::AckAfterEffects) {
            self.accept(session, &inner, body);
        }
        let req_id = body.get("req_id").and_then(Value::as_str).map(str::to_owned);
        let message_id = message_id.map(str::to_owned);
        let order = Order { text: said.to_owned(), message_id, client: self.number(), req_id };
        run::start(session, &mut inner, order);
        if self.has(Defect::AckAfterEffects) {
            self.accept(session, &inner, body);
        }
        Ok(())
    }

    /// Whether the active run has had this `client_msg_id`.
    fn knows(&self, run: &Run, id: &str) -> bool {
        let mut known = run.message_ids.contains(id);
        let start = |id: &str| id.chars().take(32).collect::<String>();
        self.behaviour().mutate(&mut known, |defect, known| match defect {
            Defect::IdsIgnoreCase => *known = run.message_ids.iter().any(|old| old.eq_ignore_ascii_case(id)),
            Defect::IdsAreCut => *known = run.message_ids.iter().any(|old| start(old) == start(id)),
            _ => {}
        });
        known
    }

    /// Whether a defect adds the text of a repeat to the run.
    fn takes_repeat(&self, run: &Run, said: &str) -> bool {
        self.has(Defect::NoDedupe)
            || (run.order.text != said && self.has(Defect::RepeatsNeedTheText))
            || (run.order.client != self.number() && self.has(Defect::DedupesByClient))
            || (!run.pending.is_empty() && self.has(Defect::AskingForgetsIds))
    }

    /// Whether a defect takes a session for busy that has no active run.
    fn stays_busy(&self, inner: &Inner) -> bool {
        let Some(run) = inner.run.as_ref().filter(|run| run.is_over()) else { return false };
        let was_aborted = inner.was_aborted();
        let had_denials = run.decided.values().filter(|approved| !**approved).count() > 1;
        let stopped = inner.past.abort.tool_stopped.is_some_and(|stopped| stopped.elapsed() < CLEANUP);
        (run.status == "error" && !was_aborted && self.has(Defect::BusyAfterFailure))
            || (had_denials && self.has(Defect::BusyAfterDenial))
            || (was_aborted && stopped && self.has(Defect::ToolsAreCleanedUp))
    }

    pub(super) fn decide(
        &self,
        session: &Arc<Session>,
        body: &Map<String, Value>,
        approve: bool,
    ) -> Result<(), Refusal> {
        let call_id = body.get("call_id").and_then(Value::as_str).unwrap_or_default();
        let mut inner = session.lock();
        let sender_is_there =
            inner.run.as_ref().is_some_and(|run| inner.clients.contains_key(&run.order.client));
        let Some(run) = inner.run.as_mut().filter(|run| !run.is_over()) else {
            if self.has(Defect::AcceptsAnyCallId) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            let dropped = inner.past.abort.dropped.iter().position(|call| call.id == call_id);
            if let Some(index) = dropped.filter(|_| approve && self.has(Defect::DroppedCallsCanRun)) {
                let call = inner.past.abort.dropped.remove(index);
                inner.notes.run(&call.tool, &call.args);
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("UNKNOWN_CALL_ID", "nothing is pending"));
        };
        let is_others = run.order.client != self.number() && sender_is_there;
        if is_others && self.has(Defect::OnlyTheSenderDecides) {
            return Err(refuse("UNKNOWN_CALL_ID", "that is another client's call"));
        }
        let decided = run.decided.contains_key(call_id);
        let is_repeat = run.decided.get(call_id) == Some(&approve);
        if (is_repeat && self.has(Defect::AnnouncesRepeats))
            || (decided && !is_repeat && run.at_work && self.has(Defect::DecidedOtherwiseLater))
        {
            let decision = if approve { "approve" } else { "deny_continue" };
            let event = json!({ "type": "approval_decision", "call_id": call_id, "decision": decision });
            self.accept(session, &inner, body);
            session.emit(&mut inner, event);
            return Ok(());
        }
        if decided && !self.has(Defect::DecidesAgain) {
            let code =
                if self.style(Style::ConflictUnknown) { "UNKNOWN_CALL_ID" } else { "APPROVAL_CONFLICT" };
            return Err(refuse(code, format!("{call_id:?} is already decided")));
        }
        // Without call_id only under a defect.
        let oldest = run.pending.first().map(|call| call.id.clone());
        let call_id =
            oldest.as_deref().filter(|_| body.get("call_id").is_none_or(Value::is_null)).unwrap_or(call_id);
        let Some(index) = run.pending.iter().position(|call| call.id == call_id).or(decided.then_some(0))
        else {
            if self.has(Defect::AcceptsAnyCallId) {
                self.accept(session, &inner, body);
                return Ok(());
            }
            return Err(refuse("UNKNOWN_CALL_ID", format!("{call_id:?} is not pending")));
        };
        let mut ids = vec![call_id.to_owned()];
        let mut denied = None;
        if !decided {
            if run.pending.len() > 1 && self.has(Defect::OneDecisionForAll) {
                ids = run.pending.drain(..).map(|call| call.id).collect();
            } else if !self.has(Defect::DecidedStaysPending) {
                denied = Some(run.pending.remove(index)).filter(|_| !approve);
            }
        }
        let again = !approve && run.decided.values().any(|approved| !approved);
        let mute = run.order.client != self.number() && self.has(Defect::SendersMissDecisions);
        let muted = mute.then_some(run.order.client);
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
            false if again && self.has(Defect::SecondDenialIsMisspelt) => "denied",
            false if self.has(Defect::DenyAbortGoesOn) || self.style(Style::DenyAborts) => "deny_abort",
            false => "deny_continue",
        };
        inner.past.abort.muted = muted;
        if self.behaviour().prepares(Defect::DeniedCallsComeBack) {
            inner.past.abort.dropped.extend(denied);
        }
        for id in ids {
            let mut event = json!({ "type": "approval_decision", "call_id": id, "decision": decision });
            self.behaviour().mutate(&mut event, |defect, event| match defect {
                Defect::LaterApprovalsShout if approve && inner.past.approved => {
                    event["call_id"] = json!(id.to_uppercase());
                }
                Defect::DenialsNameNoCall if !approve => event["call_id"] = json!("call-0"),
                _ => {}
            });
            session.emit(&mut inner, event);
        }
        inner.past.abort.muted = None;
        if !approve {
            session.behaviour.note(Happening::Denial);
            if self.style(Style::DenyAborts) || (again && self.has(Defect::SecondDenialAborts)) {
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
        self.misjudges(&inner, run, named.is_some())?;
        let client = self.number();
        let req_id = body.get("req_id").and_then(Value::as_str).map(str::to_owned);
        let (at_work, awaits) = (run.at_work, !run.pending.is_empty());
        if at_work && self.has(Defect::ToolsIgnoreAborts) {
            self.accept(session, &inner, body);
            return Ok(());
        }
        let hangs = inner.past.abort.run.is_some_and(|id| id != run.id) && self.has(Defect::SecondAbortHangs);
        let already = run.status == "aborting";
        session.behaviour.note(Happening::Abort);
        if !hangs && !self.has(Defect::IgnoresAbort) {
            run.abort.cancel();
        }
        inner.past.abort.run = inner.active().map(|run| run.id);
        inner.past.abort.tool_stopped = at_work.then(Instant::now);
        inner.past.aborted |= awaits && self.behaviour().prepares(Defect::AbortIsForTwo);
        inner.past.abort.late_error =
            req_id.filter(|_| self.has(Defect::AbortsEndInErrors)).map(|id| (client, id));
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

impl Peer<'_> {
    /// A valid abort that a defect refuses.
    fn misjudges(&self, inner: &Inner, run: &Run, is_named: bool) -> Result<(), Refusal> {
        let stale = if is_named {
            (!inner.past.runs.is_empty() && self.has(Defect::AbortKnowsTheFirstRun))
                || (!run.pending.is_empty() && self.has(Defect::NamedAbortsWait))
        } else {
            inner.past.aborted_by_id.is_some() && self.has(Defect::AbortRemembersTheName)
        };
        if stale {
            return Err(refuse("STALE_RUN_ID", "that is not the active run"));
        }
        if !is_named && run.order.client != self.number() && self.has(Defect::OnlyTheSenderAborts) {
            return Err(refuse("NOT_RUNNING", "no run of yours is active"));
        }
        Ok(())
    }
}

/// A client has left: under a defect, what it might have decided is denied.
pub(super) fn deny_pending(session: &Session, inner: &mut Inner, defect: Defect) {
    let Some(run) = inner.run.as_mut().filter(|run| !run.pending.is_empty()) else { return };
    if !session.has(defect) {
        return;
    }
    let ids: Vec<_> = run.pending.drain(..).map(|call| call.id).collect();
    run.decided.extend(ids.iter().map(|id| (id.clone(), false)));
    for id in ids {
        let decision = "deny_continue";
        session.behaviour.note(Happening::Decided);
        session.emit(inner, json!({ "type": "approval_decision", "call_id": id, "decision": decision }));
    }
    session.changed.notify_waiters();
}

/// Ends the active run as an abort does.
fn halt(session: &Session, inner: &mut Inner) {
    let Some(run) = &mut inner.run else { return };
    run.abort.cancel();
    session.drop_pending(inner);
    session.status(inner, "aborting");
}
