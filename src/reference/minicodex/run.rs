//! Playing one run: the model's responses, tool calls, approvals and abort.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::faults::Defect;
use super::past::Order;
use super::session::{Call, Inner, Run, Session, now, text};
use super::styles::Style;
use super::variants::{recut, shape_announcement};
use crate::cue::{self, Fail};
use crate::reference::engine::notes::{self, Class, Outcome};
use crate::reference::engine::{Agent, Cancel, Cancelled, Canceller, Chunk, Happening, Speech};
use crate::reference::faults::mutate;

/// A tool that is at work when its run is aborted is not stopped before it is done, or this old.
const HALT: Duration = Duration::from_millis(300);

/// How a run leaves the path to `finished`.
enum Stop {
    Aborted,
    Failed,
}

impl From<Cancelled> for Stop {
    fn from(_: Cancelled) -> Self {
        Self::Aborted
    }
}

/// Begins a run; the caller holds the session's lock and has checked that it is idle.
pub(super) fn start(session: &Arc<Session>, inner: &mut Inner, order: Order) {
    session.behaviour.note(Happening::Turn);
    let abort = Canceller::default();
    let aborted = abort.listen();
    let id = match &inner.run {
        Some(run) if session.has(Defect::RunIdsRepeat) => run.id,
        Some(run) if has_failed(inner, run) && session.has(Defect::RetriesKeepTheId) => run.id,
        _ if order.message_id.is_some() && session.has(Defect::RunIdsOfMessageIds) => {
            let mut hasher = DefaultHasher::new();
            order.message_id.hash(&mut hasher);
            Uuid::from_u128(u128::from(hasher.finish()))
        }
        _ => Uuid::new_v4(),
    };
    inner.past.runs.extend(inner.run.as_ref().map(|run| run.id.to_string()));
    inner.past.latecomers.clear();
    let text = order.text.clone();
    let is_named = order.message_id.is_some();
    let after_abort = inner.was_aborted();
    let after_failure = inner.run.as_ref().is_some_and(|run| has_failed(inner, run));
    inner.past.restarts |= after_abort && session.behaviour.prepares(Defect::AbortsRestartIds);
    if after_failure && session.has(Defect::FailuresTakeIdsBack) {
        inner.last_event = inner.past.first_event;
    }
    inner.past.first_event = inner.last_event;
    let had_output = inner.run.as_ref().is_some_and(|run| run.had_output);
    inner.run_counter += if session.has(Defect::RunCounterStands) { 0 } else { 1 };
    inner.run = Some(Run {
        id,
        status: "starting",
        started_at: now(),
        finished_at: None,
        pending: Vec::new(),
        decided: Default::default(),
        message_ids: order.message_id.clone().into_iter().collect(),
        last_event: inner.last_event,
        had_output: had_output && session.has(Defect::OutputsAreRemembered),
        at_work: false,
        order,
        abort,
    });
    let doomed = std::mem::take(&mut inner.past.aborted);
    let early = session.has(Defect::TextBeforeStarting)
        || (is_named && inner.run_counter == 1 && session.has(Defect::NamedTextComesFirst))
        || (inner.run_counter == 1 && text.len() > 1000 && session.has(Defect::LongTextComesFirst));
    if early {
        session.emit(inner, json!({ "type": "user_text", "text": text }));
    }
    let starts_running =
        session.has(Defect::StartsWithRunning) || after_failure && session.has(Defect::RetriesAreRunning);
    if !starts_running {
        session.status(inner, "starting");
        if session.style(Style::StartsTwice) {
            session.status(inner, "starting");
        }
    }
    let skips_running =
        session.has(Defect::SkipsRunning) || after_abort && session.has(Defect::SkipsRunningAfterAbort);
    if !skips_running && !session.style(Style::RunsWithOutput) {
        session.status(inner, "running");
        if session.style(Style::RunsTwice) {
            session.status(inner, "running");
        }
    }
    if !early && !session.has(Defect::NoUserText) {
        session.emit(inner, json!({ "type": "user_text", "text": text }));
    }
    if session.style(Style::OwnReasoning) {
        session.emit(inner, json!({ "type": "reasoning", "text": "Thinking it over." }));
    }
    if inner.calls > 0 && session.has(Defect::CallIdsRepeat) {
        inner.calls = 0;
    }
    if let Some(run) = inner.run.as_ref().filter(|_| doomed) {
        session.behaviour.took_effect();
        run.abort.cancel();
        session.status(inner, "aborting");
    }
    let session = Arc::clone(session);
    let responses = cue::responses(&text);
    tokio::spawn(async move { play(session, responses, aborted).await });
}

async fn play(session: Arc<Session>, responses: Vec<cue::Response>, aborted: Cancel) {
    let mut player = Player { session, aborted, stopped: None };
    let result = player.play(responses).await;
    player.end(result);
}

/// Whether an abort was announced: nothing but the run's end may follow, whatever its task was about to do.
fn is_aborting(inner: &Inner) -> bool {
    inner.run.as_ref().is_some_and(|run| run.status == "aborting")
}

/// The run has failed, and not by an abort.
fn has_failed(inner: &Inner, run: &Run) -> bool {
    run.status == "error" && inner.past.abort.run != Some(run.id)
}

fn announcement(call: &Call) -> Value {
    json!({ "type": "tool_call", "name": call.tool, "args": call.args, "call_id": call.id })
}

struct Player {
    session: Arc<Session>,
    aborted: Cancel,
    /// The call whose tool an abort has stopped.
    stopped: Option<Call>,
}

impl Agent for Player {
    type Stop = Stop;

    fn cancel(&mut self) -> &mut Cancel {
        &mut self.aborted
    }

    fn chunks(&mut self, _speech: Speech, chunks: Vec<String>) -> Vec<String> {
        recut(&self.session.behaviour, chunks)
    }

    fn say(&mut self, chunk: Chunk) {
        let thinks = chunk.speech == Speech::Thought && !self.session.has(Defect::ReasoningAsText);
        let mut text = chunk.text;
        self.session.behaviour.mutate(&mut text, |defect, text| match defect {
            Defect::AsciiOnly => *text = mutate::limit(text, mutate::ASCII),
            Defect::LongTextIsCut => *text = text.chars().take(1000).collect(),
            _ => {}
        });
        let mut event = json!({ "type": if thinks { "reasoning" } else { "assistant_text" }, "text": text });
        self.session.behaviour.mutate(&mut event, |defect, event| match defect {
            Defect::BlankTextIsNull if !thinks && text.trim().is_empty() => event["text"] = Value::Null,
            Defect::LongTextIsAList if !thinks && text.len() > 1000 => event["text"] = json!([text]),
            _ => {}
        });
        self.emit(event);
    }

    async fn fail(&mut self, _fail: Fail) -> Stop {
        Stop::Failed
    }

    async fn call(&mut self, calls: Vec<cue::Call>) -> Result<(), Stop> {
        let (mut waiting, mut announced) = (Vec::new(), Vec::new());
        let mut is_second = false;
        for cue::Call { name: tool, args } in calls {
            let mut call = {
                let mut inner = self.session.lock();
                inner.calls += 1;
                let uuids = self.session.style(Style::CallIdsAreUuids);
                let id = if uuids { Uuid::new_v4().to_string() } else { format!("call-{}", inner.calls) };
                Call { id, tool, args, announced: false }
            };
            let asks = notes::class(&call.tool) == Class::Guarded && self.asks();
            let late = asks && self.announces_late();
            let is_open = notes::class(&call.tool) == Class::Open;
            let is_second = std::mem::replace(&mut is_second, true);
            let held_back = is_second && is_open && self.session.has(Defect::SecondCallIsLate);
            if !late && !held_back && !self.session.has(Defect::OutputBeforeCall) {
                self.announce(&call);
                call.announced = true;
            }
            if self.session.style(Style::CallsTogether) {
                announced.push((call, asks));
            } else {
                waiting.extend(self.begin(call, asks).await?);
            }
        }
        for (call, asks) in announced.into_iter().rev() {
            waiting.extend(self.begin(call, asks).await?);
        }
        if self.session.style(Style::AsksOneByOne) {
            for call in waiting {
                self.ask(vec![call]).await?;
            }
            return Ok(());
        }
        if waiting.is_empty() { Ok(()) } else { self.ask(waiting).await }
    }
}

impl Player {
    fn emit(&self, event: Value) {
        let session = &self.session;
        session.emit(&mut session.lock(), event);
    }

    fn announce(&self, call: &Call) {
        self.emit(announcement(call));
    }

    /// Whether a guarded call is asked about.
    fn asks(&self) -> bool {
        let trusts = self.session.lock().past.approved && self.session.has(Defect::ApprovedOnceIsEnough);
        !trusts && !self.session.has(Defect::NeverAsks)
    }

    /// Whether `tool_call` of a guarded call comes behind its announcement.
    fn announces_late(&self) -> bool {
        self.session.style(Style::CallAfterPending) || self.session.style(Style::CallWhenDecided)
    }

    /// Runs a call, or refuses it. One that is to be asked about comes back.
    async fn begin(&mut self, call: Call, asks: bool) -> Result<Option<Call>, Stop> {
        match notes::class(&call.tool) {
            Class::Guarded if asks => return Ok(Some(call)),
            Class::Denied if self.session.style(Style::SilentRule) => {}
            Class::Denied => {
                let outcome = Outcome { text: "refused by rule".into(), is_error: true };
                self.output(&call, &outcome);
            }
            _ => self.execute(&call).await?,
        }
        Ok(None)
    }

    async fn execute(&mut self, call: &Call) -> Result<(), Stop> {
        let time = notes::duration(&call.tool, &call.args);
        let done = Instant::now() + time.min(HALT);
        self.session.behaviour.note(Happening::ToolStarts);
        self.set_at_work(true);
        let mut rest = time;
        if self.session.has(Defect::AbortsWaitForTools) {
            tokio::time::sleep(std::mem::take(&mut rest)).await;
        }
        let slept = self.aborted.sleep(rest).await;
        if slept.is_err() {
            tokio::time::sleep_until(done).await;
        }
        self.session.behaviour.note(Happening::ToolEnds);
        self.set_at_work(false);
        if let Err(cancelled) = slept {
            self.stopped = Some(call.clone());
            return Err(cancelled.into());
        }
        let outcome = self.session.lock().notes.run(&call.tool, &call.args);
        self.output(call, &outcome);
        // The defect has kept it back.
        if !call.announced {
            self.announce(call);
        }
        Ok(())
    }

    fn set_at_work(&self, at_work: bool) {
        if let Some(run) = &mut self.session.lock().run {
            run.at_work = at_work;
        }
    }

    fn output(&self, call: &Call, outcome: &Outcome) {
        let session = &self.session;
        let mut inner = session.lock();
        if let Some(run) = &mut inner.run {
            run.had_output = true;
        }
        let mut event = json!({
            "type": "function_call_output", "call_id": call.id,
            "result": { "content": [{ "type": "text", "text": outcome.text }], "isError": outcome.is_error },
        });
        session.behaviour.mutate(&mut event, |defect, event| match defect {
            Defect::ResultAsText => event["result"] = json!(outcome.text),
            Defect::RuleOutputsNameTheTool if outcome.text == "refused by rule" => {
                event["call_id"] = json!(call.tool);
            }
            Defect::DenialIsText if outcome.text.starts_with("denied") => {
                event["result"] = json!(outcome.text)
            }
            Defect::ResultWithoutContent => {
                event["result"] = json!({ "text": outcome.text, "isError": outcome.is_error })
            }
            Defect::OutputOfAnotherCall => event["call_id"] = json!("call-0"),
            _ => {}
        });
        if session.has(Defect::OutputTwice) {
            session.emit(&mut inner, event.clone());
        }
        session.emit(&mut inner, event);
    }

    /// Asks for every call, then runs or refuses each as it is decided.
    async fn ask(&mut self, mut waiting: Vec<Call>) -> Result<(), Stop> {
        {
            let session = &self.session;
            let mut inner = session.lock();
            if is_aborting(&inner) {
                return Err(Stop::Aborted);
            }
            if let Some(run) = &mut inner.run {
                run.pending.extend(waiting.iter().cloned());
            }
            let first = session.style(Style::AwaitsFirst);
            let hidden = session.has(Defect::NoAwaitingStatus)
                || (waiting.len() > 1 && session.has(Defect::TwoAreNotAwaited))
                || (std::mem::replace(&mut inner.past.asked, true) && session.has(Defect::AwaitsOnce));
            if first && !hidden {
                session.status(&mut inner, "awaiting_approval");
            }
            for call in &mut waiting {
                session.behaviour.note(Happening::Asks);
                let mut event = json!({
                    "type": "approval_pending", "call_id": call.id, "tool_key": call.tool,
                    "args_json": Value::Object(call.args.clone()).to_string(),
                });
                shape_announcement(session, &mut event, &Value::Object(call.args.clone()));
                session.behaviour.mutate(&mut event, |defect, event| match defect {
                    Defect::ArgsJsonAsObject => event["args_json"] = Value::Object(call.args.clone()),
                    Defect::ArgsLoseNulls => {
                        let kept: Map<_, _> =
                            call.args.clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
                        event["args_json"] = json!(Value::Object(kept).to_string());
                    }
                    Defect::ArgsJsonIsPython => {
                        let args = Value::Object(call.args.clone()).to_string();
                        let args = args.replace(":null", ":None").replace(":true", ":True");
                        event["args_json"] = json!(args.replace(":false", ":False"));
                    }
                    Defect::ArgsJsonIsCut => {
                        let args = Value::Object(call.args.clone()).to_string();
                        event["args_json"] = json!(args.chars().take(200).collect::<String>());
                    }
                    Defect::ArgsJsonOfAnotherCall => event["args_json"] = json!("{\"key\":\"other\"}"),
                    _ => {}
                });
                if session.has(Defect::AnnouncesTwice) {
                    session.emit(&mut inner, event.clone());
                }
                session.emit(&mut inner, event);
                if session.style(Style::CallAfterPending) && !session.has(Defect::OutputBeforeCall) {
                    session.emit(&mut inner, announcement(call));
                    call.announced = true;
                }
            }
            if !first && !hidden {
                session.status(&mut inner, "awaiting_approval");
            }
        }
        if self.session.has(Defect::ExecutesBeforeApproval) {
            for call in &waiting {
                self.execute(call).await?;
            }
        }
        while !waiting.is_empty() {
            let (mut call, approved) = self.decision(&mut waiting).await?;
            {
                let session = &self.session;
                let mut inner = session.lock();
                if is_aborting(&inner) {
                    return Err(Stop::Aborted);
                }
                let done = inner.run.as_ref().is_some_and(|run| run.pending.is_empty());
                if let Some(run) = inner.run.as_mut().filter(|_| session.has(Defect::ApprovalsStartAnew)) {
                    run.started_at = now();
                }
                if done && !session.has(Defect::StaysAwaiting) && !session.has(Defect::NoAwaitingStatus) {
                    session.status(&mut inner, "running");
                }
            }
            if self.session.style(Style::CallWhenDecided) {
                self.announce(&call);
                call.announced = true;
            }
            self.session.lock().past.approved |= approved;
            if approved && !waiting.is_empty() && self.session.has(Defect::SiblingsRunUnseen) {
                let mut inner = self.session.lock();
                waiting.iter().for_each(|call| drop(inner.notes.run(&call.tool, &call.args)));
            }
            if !approved && self.session.has(Defect::DeniedRunsUnseen) {
                self.session.lock().notes.run(&call.tool, &call.args);
            }
            if approved || self.session.has(Defect::ExecutesDenied) {
                if !self.session.has(Defect::ExecutesBeforeApproval) {
                    self.execute(&call).await?;
                }
            } else if !self.session.style(Style::SilentDenial) {
                let outcome = Outcome { text: "denied by the user".into(), is_error: true };
                self.output(&call, &outcome);
            }
        }
        Ok(())
    }

    /// The next of the calls that is decided.
    async fn decision(&mut self, waiting: &mut Vec<Call>) -> Result<(Call, bool), Stop> {
        let session = Arc::clone(&self.session);
        loop {
            let changed = session.changed.notified();
            {
                let inner = session.lock();
                let decided = inner.run.as_ref().map(|run| &run.decided);
                let found =
                    waiting.iter().position(|call| decided.is_some_and(|all| all.contains_key(&call.id)));
                if let Some(index) = found {
                    let call = waiting.remove(index);
                    let approved = decided.and_then(|all| all.get(&call.id)).copied().unwrap_or(false);
                    return Ok((call, approved));
                }
            }
            tokio::select! {
                () = changed => {}
                () = self.aborted.wait() => return Err(Stop::Aborted),
            }
        }
    }

    fn end(&self, result: Result<(), Stop>) {
        let session = &self.session;
        let mut inner = session.lock();
        let inner = &mut *inner;
        session.drop_pending(inner);
        let had_output = inner.run.as_ref().is_some_and(|run| run.had_output);
        match result {
            Err(Stop::Failed)
                if session.has(Defect::FailureIsFinished)
                    || (had_output && session.has(Defect::LateFailureIsFinished))
                    || (inner.run_counter > 1 && session.has(Defect::LaterFailureIsFinished)) =>
            {
                self.finish(inner, "finished");
            }
            Err(Stop::Failed) => {
                self.finish(inner, "error");
                let order = inner.run.as_ref().map(|run| (run.order.client, run.order.req_id.clone()));
                if let Some((client, Some(req_id))) = order
                    && session.has(Defect::FailuresAreErrors)
                {
                    session.late_error(inner, client, &req_id);
                }
            }
            Err(Stop::Aborted) => {
                // Without the status aborting, an end as if nothing had been aborted would be a defect of its own.
                let fails = !is_aborting(inner) || session.style(Style::AbortsInError);
                self.finish(inner, if fails { "error" } else { "finished" });
                if let Some((client, req_id)) = inner.past.abort.late_error.take() {
                    session.late_error(inner, client, &req_id);
                }
                if inner.calls > 0 && session.has(Defect::AbortedCallIdsReturn) {
                    inner.calls -= 1;
                }
                if let Some(call) = &self.stopped
                    && session.has(Defect::AbortedToolReports)
                {
                    session.emit(
                        inner,
                        json!({
                            "type": "function_call_output", "call_id": call.id,
                            "result": { "content": [{ "type": "text", "text": "stopped" }], "isError": true },
                        }),
                    );
                }
                if session.has(Defect::TextAfterAbort) {
                    session.emit(inner, json!({ "type": "assistant_text", "text": "one more thing" }));
                }
            }
            Ok(()) => {
                let run_id = inner.run.as_ref().map(|run| run.id);
                let wanted = !had_output && !session.has(Defect::NoTurnDone);
                let done = wanted || (had_output && session.has(Defect::TurnDoneAfterTools));
                let first = session.style(Style::TurnDoneFirst);
                if done && first {
                    session.emit(inner, json!({ "type": "turn_done", "run_id": run_id }));
                }
                if let Some(run) = &mut inner.run
                    && session.has(Defect::DeniedCallsComeBack)
                {
                    run.pending.append(&mut inner.past.abort.dropped);
                }
                self.finish(inner, "finished");
                if done && !first {
                    session.emit(inner, json!({ "type": "turn_done", "run_id": run_id }));
                }
                if session.has(Defect::TextAfterFinish) {
                    session.emit(inner, json!({ "type": "assistant_text", "text": "one more thing" }));
                }
                if session.has(Defect::FinishesTwice) {
                    session.status(inner, "finished");
                }
            }
        }
        if session.has(Defect::WelcomesAfterRuns) {
            let state = session.session_state(inner);
            let welcome = json!({ "type": "welcome", "v": "1.0.0", "session_state": state });
            inner.clients.values().for_each(|client| {
                client.send(text(&welcome));
            });
        }
        if let Some(said) = inner.past.postponed.take() {
            session.behaviour.took_effect();
            start(session, inner, Order { text: said, ..Order::default() });
        }
    }

    fn finish(&self, inner: &mut Inner, status: &'static str) {
        self.session.status(inner, status);
    }
}
