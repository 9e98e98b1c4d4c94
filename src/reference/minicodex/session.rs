//! One session: its event log, clients and active run.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::Behaviour;
use super::faults::Defect;
use super::past::{Order, Past};
use super::styles::Style;
use super::variants::{is_item, shape_event, shape_item};
use crate::reference::engine::clients::{Clients, HIGH, Outbox};
use crate::reference::engine::notes::Notes;
use crate::reference::engine::{Canceller, Happening};
use crate::reference::faults::mutate;

/// Events that can be replayed; a larger gap needs a snapshot.
pub(super) const REPLAY_WINDOW: usize = 256;

pub(super) struct Session {
    pub id: String,
    pub behaviour: Behaviour,
    inner: Mutex<Inner>,
    /// Something that a run may wait for has changed.
    pub changed: Notify,
}

pub(super) struct Inner {
    pub log: VecDeque<(u64, Value)>,
    pub last_event: u64,
    pub clients: Clients,
    next_client: u64,
    pub transcript: Vec<Value>,
    pub run: Option<Run>,
    pub run_counter: u64,
    pub notes: Notes,
    pub calls: u64,
    pub past: Past,
}

pub(super) struct Run {
    pub id: Uuid,
    pub status: &'static str,
    pub started_at: String,
    pub finished_at: Option<String>,
    /// Calls that wait for a decision, in order.
    pub pending: Vec<Call>,
    /// Decided calls, and whether they were approved.
    pub decided: BTreeMap<String, bool>,
    pub message_ids: HashSet<String>,
    pub last_event: u64,
    pub had_output: bool,
    /// A tool of it runs.
    pub at_work: bool,
    pub order: Order,
    pub abort: Canceller,
}

#[derive(Clone)]
pub(super) struct Call {
    pub id: String,
    pub tool: String,
    pub args: Map<String, Value>,
    /// Whether its `tool_call` was sent.
    pub announced: bool,
}

impl Inner {
    /// The newest event of the session.
    pub fn newest(&self) -> Option<u64> {
        self.log.back().map(|_| self.last_event)
    }

    /// The run that is not over yet.
    pub fn active(&self) -> Option<&Run> {
        self.run.as_ref().filter(|run| !run.is_over())
    }

    /// The newest run was aborted.
    pub fn was_aborted(&self) -> bool {
        self.run.as_ref().is_some_and(|run| self.past.abort.run == Some(run.id))
    }

    /// It had a run, and no client is there.
    pub fn is_left(&self) -> bool {
        self.clients.is_empty() && self.run_counter > 0
    }
}

impl Run {
    pub fn is_over(&self) -> bool {
        matches!(self.status, "finished" | "error")
    }

    fn state(&self, behaviour: &Behaviour) -> Value {
        let pending = self.pending.iter();
        let pending =
            pending.map(|call| json!({ "call_id": call.id, "tool_key": call.tool, "args": call.args }));
        let pending = pending.map(|mut brief| {
            if behaviour.style(Style::BriefHasMore) {
                brief["risk"] = json!("low");
            }
            brief
        });
        let status = if self.status == "running" && behaviour.strikes(Defect::UnknownStatus) {
            "in_progress"
        } else {
            self.status
        };
        let mut state = json!({
            "run_id": self.id, "status": status, "started_at": self.started_at,
            "finished_at": self.finished_at, "pending_approvals": pending.collect::<Vec<_>>(),
            "last_event_id": self.last_event,
        });
        behaviour.mutate(&mut state, |defect, state| match defect {
            Defect::StartedAtMoves => state["started_at"] = json!(now()),
            Defect::StartsUndated if self.status == "starting" => state["started_at"] = Value::Null,
            Defect::AbortingIsFinished if self.status == "aborting" => state["finished_at"] = json!(now()),
            Defect::FailureHasAReason if self.status == "error" => state["reason"] = json!("it failed"),
            Defect::FailureHasNoId if self.status == "error" => state["run_id"] = Value::Null,
            Defect::AwaitingHasADeadline if self.status == "awaiting_approval" => {
                state["expires_at"] = json!(now());
            }
            Defect::AbortingHasNoList if self.status == "aborting" => {
                state["pending_approvals"] = Value::Null
            }
            Defect::SecondBriefLacksTool if self.pending.len() > 1 => {
                state["pending_approvals"][1].as_object_mut().map(|brief| brief.remove("tool_key"));
            }
            Defect::NoArgsAreNull => {
                for brief in state["pending_approvals"].as_array_mut().into_iter().flatten() {
                    if brief["args"] == json!({}) {
                        brief["args"] = Value::Null;
                    }
                }
            }
            Defect::LaterCallIdsAreNumbers => {
                for brief in state["pending_approvals"].as_array_mut().into_iter().flatten() {
                    let number =
                        brief["call_id"].as_str().and_then(|id| id.strip_prefix("call-")?.parse().ok());
                    if let Some(number) = number.filter(|number: &u64| *number > 1) {
                        brief["call_id"] = json!(number);
                    }
                }
            }
            Defect::NoFinishedAt => state["finished_at"] = Value::Null,
            Defect::RunStateHasExtra => state["model"] = json!("m-1"),
            Defect::PendingArgsAsText => {
                for brief in state["pending_approvals"].as_array_mut().into_iter().flatten() {
                    brief["args"] = json!(brief["args"].to_string());
                }
            }
            Defect::PendingAsMap => {
                let briefs = self.pending.iter();
                state["pending_approvals"] = briefs.map(|call| (call.id.clone(), json!(call.tool))).collect();
            }
            Defect::RunCursorAhead => state["last_event_id"] = json!(self.last_event + 1000),
            Defect::StartedAtNaive => {
                state["started_at"] = json!(self.started_at.trim_end_matches('Z'));
            }
            _ => {}
        });
        omit_nulls(&mut state, behaviour);
        state
    }
}

fn without(event: &mut Value, field: &str) {
    event.as_object_mut().map(|event| event.remove(field));
}

fn omit_nulls(state: &mut Value, behaviour: &Behaviour) {
    if behaviour.style(Style::NullsAreLeftOut)
        && let Some(fields) = state.as_object_mut()
    {
        fields.retain(|_, value| !value.is_null());
    }
}

pub(super) fn now() -> String {
    jiff::Timestamp::now().to_string()
}

pub(super) fn text(frame: &Value) -> Message {
    Message::text(frame.to_string())
}

impl Session {
    pub fn new(id: &str, behaviour: &Behaviour) -> Self {
        let inner = Inner {
            log: VecDeque::new(),
            last_event: 0,
            clients: Clients::new(),
            next_client: 0,
            transcript: Vec::new(),
            run: None,
            run_counter: 0,
            notes: Notes::default(),
            calls: 0,
            past: Past::default(),
        };
        Self {
            id: id.to_owned(),
            behaviour: behaviour.clone(),
            inner: Mutex::new(inner),
            changed: Notify::new(),
        }
    }

    pub fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    pub fn style(&self, style: Style) -> bool {
        self.behaviour.style(style)
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn session_state(&self, inner: &Inner) -> Value {
        let active = inner.run.as_ref().filter(|run| !run.is_over() || self.has(Defect::ActiveRunStays));
        let mut state = json!({
            "session_id": self.id, "version": "1.0.0", "capabilities": ["reasoning", "approvals", "replay"],
            "last_event_id": inner.newest(),
            "active_run_id": active.map(|run| run.id), "run_counter": inner.run_counter,
        });
        self.behaviour.mutate(&mut state, |defect, state| match defect {
            Defect::NoSessionVersion => {
                state.as_object_mut().map(|state| state.remove("version"));
            }
            Defect::SessionStateHasExtra => state["owner"] = json!("me"),
            Defect::ActiveRunIdIsShort if !state["active_run_id"].is_null() => {
                state["active_run_id"] = json!("run-1");
            }
            Defect::RunCounterAsText => state["run_counter"] = json!(inner.run_counter.to_string()),
            Defect::NoRunNoVersion if inner.run.is_none() => state["version"] = Value::Null,
            Defect::AwaitingRunIsFlagged if inner.active().is_some_and(|run| !run.pending.is_empty()) => {
                state["active_run_id"] = json!(true);
            }
            Defect::CounterListsRuns if inner.active().is_some() => {
                state["run_counter"] = json!(inner.past.runs)
            }
            Defect::VersionIsANumber if !state["active_run_id"].is_null() => state["version"] = json!(1),
            Defect::CapabilitiesGo if inner.run.is_some() => state["capabilities"] = Value::Null,
            Defect::CapabilitiesAreObjects if inner.run_counter > 1 => {
                state["capabilities"] = json!([{ "name": "approvals" }]);
            }
            Defect::LongCursorIsText if inner.last_event >= 10 => {
                state["last_event_id"] = json!(inner.last_event.to_string());
            }
            Defect::NoCursorIsFalse if inner.newest().is_none() => state["last_event_id"] = json!(false),
            Defect::IdleRunIdIsEmpty if inner.run.is_some() && state["active_run_id"].is_null() => {
                state["active_run_id"] = json!("");
            }
            Defect::NoRunsAreNull if inner.run_counter == 0 => state["run_counter"] = Value::Null,
            Defect::StateCountsClients if inner.clients.len() > 1 => {
                state["clients"] = json!(inner.clients.len());
            }
            Defect::StateHasAStatus if inner.active().is_some() => state["status"] = json!("busy"),
            Defect::CapabilitiesAsText => state["capabilities"] = json!("approvals,replay"),
            Defect::StaleCursor if inner.last_event > 1 => {
                state["last_event_id"] = json!(inner.last_event - 1);
            }
            _ => {}
        });
        omit_nulls(&mut state, &self.behaviour);
        state
    }

    pub fn snapshot(&self, inner: &Inner, req_id: Option<&str>) -> Value {
        let mut transcript = inner.transcript.clone();
        if !transcript.is_empty() && self.has(Defect::SnapshotMissesLastItem) {
            transcript.pop();
        }
        let shown = inner.run.as_ref().filter(|run| !(run.is_over() && self.style(Style::IdleRunHidden)));
        let mut frame = json!({
            "type": "snapshot", "v": "1.0.0", "session_state": self.session_state(inner),
            "run_state": shown.map(|run| run.state(&self.behaviour.without_defect())), "transcript": transcript,
            "event_id": inner.newest().unwrap_or(0),
        });
        if let Some(req_id) = req_id
            && !self.style(Style::SnapshotWithoutReqId)
        {
            frame["req_id"] = json!(req_id);
        }
        self.mutate_snapshot(inner, &mut frame);
        frame
    }

    /// Adds a client; events from now on go to it.
    pub fn join(&self, inner: &mut Inner, outbox: &Outbox) -> u64 {
        if inner.is_left() && self.has(Defect::CounterRestarts) {
            inner.run_counter = 0;
        }
        inner.next_client += 1;
        inner.clients.insert(inner.next_client, outbox.clone());
        inner.next_client
    }

    fn note_item(&self, transcript: &mut Vec<Value>, item: &Value) {
        let is_text = |item: &Value| item["type"] == "assistant_text";
        if let Some(last) = transcript.last_mut().filter(|last| is_text(last) && is_text(item))
            && self.style(Style::TextsAreJoined)
        {
            let texts = [&last["text"], &item["text"]].map(|text| text.as_str().unwrap_or_default());
            last["text"] = json!(texts.concat());
        } else {
            transcript.push(item.clone());
        }
    }

    /// Logs an event and sends it to every client.
    pub fn emit(&self, inner: &mut Inner, mut event: Value) -> u64 {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        if is_item(&kind) && kind != "user_text" {
            self.begin_output(inner);
        }
        let id = self.next_id(inner);
        if is_item(&kind) {
            shape_item(self, &mut event);
            self.note_item(&mut inner.transcript, &event);
        }
        let run_id = inner.run.as_ref().map(|run| run.id);
        event["event_id"] = json!(id);
        event["run_id"] = json!(run_id);
        event["ts"] = json!(now());
        shape_event(self, &mut event, &kind);
        self.apply_frame_fault(inner, &mut event, &kind);
        inner.log.push_back((id, event.clone()));
        // One more than the window: the newest events that a client at the edge of it has not seen.
        while inner.log.len() > REPLAY_WINDOW {
            inner.log.pop_front();
        }
        if let Some(run) = &mut inner.run {
            run.last_event = id;
        }
        self.fan_out(inner, &event, &kind);
        id
    }

    fn next_id(&self, inner: &mut Inner) -> u64 {
        if std::mem::take(&mut inner.past.restarts) {
            self.behaviour.took_effect();
            inner.last_event = 0;
        }
        if std::mem::take(&mut inner.past.repeats) && inner.newest().is_some() {
            self.behaviour.took_effect();
            return inner.last_event;
        }
        let repeats = inner.last_event == 3 && self.has(Defect::EventIdsRepeat);
        if !repeats || inner.log.len() > 3 {
            inner.last_event = match inner.newest() {
                None if self.style(Style::IdsFromZero) => 0,
                Some(id) if self.style(Style::IdsWithGaps) => id + 3,
                None => 1,
                Some(id) => id + 1,
            };
        }
        inner.last_event
    }

    fn apply_frame_fault(&self, inner: &Inner, event: &mut Value, kind: &str) {
        let status = event["run_state"]["status"].as_str().unwrap_or_default().to_owned();
        let has_decided = inner.run.as_ref().is_some_and(|run| !run.decided.is_empty());
        self.behaviour.mutate(event, |defect, event| match defect {
            Defect::EventIdAsText => event["event_id"] = json!(event["event_id"].to_string()),
            Defect::EventIdAsFloat => event["event_id"] = json!(event["event_id"].as_f64()),
            Defect::ForeignSessionId => event["session_id"] = json!("another-session"),
            Defect::RunIdNoUuid if kind != "turn_done" => event["run_id"] = json!("run-1"),
            Defect::RunIdOfAnotherRun if kind == "assistant_text" => event["run_id"] = json!(Uuid::new_v4()),
            Defect::TimeWithoutOffset => event["ts"] = json!("2026-01-02T03:04:05"),
            Defect::ItemsWithoutEventId if kind == "assistant_text" => {
                event.as_object_mut().map(|event| event.remove("event_id"));
            }
            Defect::ReasoningWithoutEventId if kind == "reasoning" => without(event, "event_id"),
            Defect::AbortingWithoutEventId if status == "aborting" => without(event, "event_id"),
            Defect::TurnDoneWithoutEventId if kind == "turn_done" => without(event, "event_id"),
            Defect::RunsOnWithoutState if status == "running" && has_decided => without(event, "run_state"),
            Defect::TurnDoneOfTheLastRun if kind == "turn_done" => {
                event["run_id"] =
                    inner.past.runs.last().map_or_else(|| event["run_id"].clone(), |id| json!(id));
            }
            Defect::TurnDoneHasAVersion if kind == "turn_done" => event["v"] = json!("1.1.0"),
            Defect::PendingNamesASession if kind == "approval_pending" => {
                event["session_id"] = json!(Uuid::new_v4());
            }
            Defect::LongUserTextIsAList
                if kind == "user_text" && event["text"].as_str().map_or(0, str::len) > 1000 =>
            {
                event["text"] = json!([event["text"]]);
            }
            Defect::NoArgsAreNoObject if kind == "tool_call" && event["args"] == json!({}) => {
                event["args"] = Value::Null;
            }
            Defect::EmptyUserTextIsNull if kind == "user_text" && event["text"] == "" => {
                event["text"] = Value::Null;
            }
            Defect::TurnDoneWithoutRun if kind == "turn_done" => event["run_id"] = Value::Null,
            Defect::TurnDoneNamesNoRun if kind == "turn_done" => event["run_id"] = json!(Uuid::new_v4()),
            Defect::UserTextAsContent if kind == "user_text" => mutate::rename(event, "text", "content"),
            Defect::TextUnderAnotherName if kind == "assistant_text" => {
                mutate::rename(event, "text", "content")
            }
            _ => {}
        });
    }

    fn fan_out(&self, inner: &mut Inner, event: &Value, kind: &str) {
        let frame = event.to_string();
        for (index, (number, client)) in inner.clients.iter().enumerate() {
            let later = index > 0;
            if self.loses(inner, index, *number, client, kind) {
                continue;
            }
            let mut missed = "";
            self.behaviour.mutate(&mut missed, |defect, missed| match defect {
                Defect::OthersMissUserText => *missed = "user_text",
                Defect::OthersMissAnnouncements => *missed = "approval_pending",
                _ => {}
            });
            let drops = client.queued() >= HIGH && self.has(Defect::DropsForTheSlow);
            if later && (kind == missed || drops) {
                continue;
            }
            let mut message = Message::text(frame.clone());
            if later && kind == "assistant_text" && self.has(Defect::OthersSeeOtherText) {
                let mut other = event.clone();
                other["text"] = json!("something else");
                message = text(&other);
            }
            if self.has(Defect::BinaryFrames) {
                message = Message::binary(frame.clone().into_bytes());
            }
            let is_own = inner.run.as_ref().is_some_and(|run| run.order.client == *number);
            if kind == "user_text" && is_own && inner.clients.len() > 1 && self.has(Defect::SendersHearAnEcho)
            {
                client.send(message.clone());
            }
            if later && client.queued() >= HIGH && self.has(Defect::TheSlowGetTwice) {
                client.send(message.clone());
            }
            let queued = client.send(message);
            if queued == HIGH {
                let mut frame = json!({ "type": "backpressure", "state": "drain" });
                self.behaviour.mutate(&mut frame, |defect, frame| match defect {
                    Defect::BackpressureMisspelt => frame["state"] = json!("pause"),
                    Defect::BackpressureIsALevel => frame["state"] = json!(queued),
                    _ => {}
                });
                client.send(text(&frame));
            }
        }
    }

    /// Whether a defect keeps an event from a client, the `index`-th of those that are there.
    fn loses(&self, inner: &Inner, index: usize, number: u64, client: &Outbox, kind: &str) -> bool {
        if inner.past.abort.muted == Some(number) {
            return true;
        }
        let is_late = inner.past.latecomers.contains(&number);
        if index > 1 && is_item(kind) && self.has(Defect::ThirdHearsNoText) {
            return true;
        }
        let is_slow = index > 0 && client.queued() >= HIGH;
        if is_slow && kind == "run_status" && self.has(Defect::EndsAreLostOnTheSlow) {
            return true;
        }
        let mut missed = "";
        self.behaviour.mutate(&mut missed, |defect, missed| match defect {
            Defect::LatecomersMissOutputs if is_late => *missed = "function_call_output",
            Defect::LatecomersMissDecisions if is_late => *missed = "approval_decision",
            _ => {}
        });
        let replaced = client.queued() + 1 == HIGH && self.has(Defect::DrainReplacesAnEvent);
        if replaced {
            client.send(text(&json!({ "type": "backpressure", "state": "drain" })));
        }
        let is_full =
            client.queued() >= HIGH && kind == "assistant_text" && inner.last_event.is_multiple_of(2);
        replaced || kind == missed || (is_full && self.has(Defect::HalfTheTextGoes))
    }

    /// Tells a client of a run's end once more, as an error of the command.
    pub fn late_error(&self, inner: &Inner, client: u64, req_id: &str) {
        let Some(client) = inner.clients.get(&client) else { return };
        let message = "the run has ended";
        client.send(text(
            &json!({ "type": "error", "code": "NOT_RUNNING", "message": message, "req_id": req_id }),
        ));
    }

    /// Nobody waits any longer for the decisions that are open.
    pub fn drop_pending(&self, inner: &mut Inner) {
        let Some(run) = &mut inner.run else { return };
        run.pending.iter().for_each(|_| self.behaviour.note(Happening::Decided));
        if self.behaviour.prepares(Defect::DroppedCallsCanRun) {
            inner.past.abort.dropped.extend(run.pending.iter().cloned());
        }
        let is_second = run.status == "aborting" && !run.pending.is_empty();
        if (is_second || run.pending.len() > 1) && self.has(Defect::DropsOnePending) {
            run.pending.truncate(1);
        } else if !run.pending.is_empty() && !self.has(Defect::PendingStays) {
            run.pending.clear();
        }
    }

    fn leaves_open(&self, status: &str) -> bool {
        status == "error" && self.has(Defect::FailureIsNotOver)
    }

    /// A run that was not announced as running begins to be it with its first output, and before its end.
    fn begin_output(&self, inner: &mut Inner) {
        let is_new = inner.run.as_ref().is_some_and(|run| run.status == "starting");
        if is_new && self.style(Style::RunsWithOutput) {
            self.status(inner, "running");
        }
    }

    /// Sets the run's status and announces it.
    pub fn status(&self, inner: &mut Inner, status: &'static str) {
        if matches!(status, "finished" | "awaiting_approval") {
            self.begin_output(inner);
        }
        let Some(run) = &mut inner.run else { return };
        run.status = status;
        if run.is_over() && run.finished_at.is_none() && !self.leaves_open(status) {
            let mut finished_at = now();
            self.behaviour.mutate(&mut finished_at, |defect, at| {
                if defect == Defect::SecondsAreCut {
                    *at = format!("{}Z", at.split('.').next().unwrap_or_default());
                }
            });
            run.finished_at = Some(finished_at);
        }
        let state = run.state(&self.behaviour);
        self.emit(inner, json!({ "type": "run_status", "run_state": state }));
    }
}
