//! One session: its clients, its open calls, what it said while nobody was there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;

use super::Behaviour;
use super::command::{Refusal, edits_nothing, refuse, rejects_silently};
use super::faults::Defect;
use super::styles::Style;
use crate::reference::engine::Happening;
use crate::reference::engine::clients::{Clients, Outbox};
use crate::reference::engine::notes::{self, Class, Notes};
use crate::reference::faults::mutate;

/// Frames that are kept while no client is there; older ones are lost.
const MAX_MISSED: usize = 10_000;

pub(super) struct Session {
    pub behaviour: Behaviour,
    inner: Mutex<Inner>,
    /// Something that a turn may wait for has changed.
    pub changed: Notify,
}

#[derive(Default)]
pub(super) struct Inner {
    pub clients: Clients,
    next_client: u64,
    /// Said while no client was there. Calls are not among them: those that are open are told to whoever joins.
    missed: VecDeque<Value>,
    notes: Notes,
    next_call: u64,
    /// The calls of the model response that is under way.
    pub calls: Vec<Call>,
    /// Calls that were answered, and whether they needed a decision.
    answered: BTreeMap<String, bool>,
    /// A turn is under way.
    pub busy: bool,
    /// Texts that came during a turn.
    pub queue: VecDeque<String>,
    /// The turn is to be given up: by a defect.
    pub abandoned: bool,
    /// The user has rejected a call.
    pub rejected: bool,
    /// The user has approved a call.
    pub approved: bool,
    /// The user has rejected a call without a reason, and has said nothing since.
    pub owes_feedback: bool,
    /// How many responses of the turn have made calls.
    pub rounds: u64,
    /// Errors that a defect sends when the turn is over.
    pub late_errors: Vec<(Outbox, Message)>,
    /// The user has rejected a call of the response that is under way.
    just_rejected: bool,
    /// The calls that are open came behind text.
    pub after_text: bool,
    /// The last text of the user.
    pub said: Option<String>,
}

/// A call that the IDE has been told of.
pub(super) struct Call {
    pub id: String,
    pub tool: String,
    pub args: Map<String, Value>,
    pub guarded: bool,
    /// What it came to, once that is known.
    pub outcome: Option<String>,
}

impl Call {
    /// It waits for its result.
    fn is_open(&self) -> bool {
        self.outcome.is_none() && !self.guarded
    }

    /// It has come to an error.
    fn has_failed(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.starts_with("error: "))
    }
}

/// A message with another value of a field.
fn with(body: &Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    let mut body = body.clone();
    body.insert(name.to_owned(), value);
    body
}

pub(super) fn text(frame: &Value) -> Message {
    Message::text(frame.to_string())
}

fn is_guarded(tool: &str) -> bool {
    notes::class(tool) == Class::Guarded || matches!(tool, "execute_command" | "write_file")
}

impl Inner {
    /// A turn is under way and waits for no call.
    pub fn is_streaming(&self) -> bool {
        self.busy && self.calls.iter().all(|call| call.outcome.is_some())
    }

    fn call_frame(call: &Call, behaviour: &Behaviour) -> Value {
        let mut frame = json!({
            "type": "tool_call", "call_id": call.id, "tool_name": call.tool, "arguments": call.args,
            "requires_approval": call.guarded,
        });
        behaviour.mutate(&mut frame, |defect, frame| match defect {
            Defect::CallIdAsNumber => frame["call_id"] = json!(7),
            Defect::CallIdInAList => frame["call_id"] = json!([call.id]),
            Defect::ToolInAnObject => frame["tool_name"] = json!({ "name": call.tool }),
            Defect::ApprovalFlagAsText => frame["requires_approval"] = json!(call.guarded.to_string()),
            Defect::AsksForCommandsOnly if call.tool != "execute_command" => {
                frame["requires_approval"] = json!(false);
            }
            Defect::ArgumentsUnderAnotherName => mutate::rename(frame, "arguments", "args"),
            Defect::DotsBecomeUnderscores => frame["tool_name"] = json!(call.tool.replace('.', "_")),
            Defect::ArgumentsAsText => frame["arguments"] = json!(frame["arguments"].to_string()),
            Defect::NeverAsks => frame["requires_approval"] = json!(false),
            Defect::AlwaysAsks => frame["requires_approval"] = json!(true),
            Defect::NoApprovalFlag => {
                frame.as_object_mut().map(|frame| frame.remove("requires_approval"));
            }
            Defect::ToolUnderAnotherName => mutate::rename(frame, "tool_name", "name"),
            _ => {}
        });
        frame
    }

    /// Runs a tool on the agent's side. A command reads a note: `cat KEY`.
    fn run(&mut self, tool: &str, args: &Map<String, Value>) -> String {
        let command = args.get("command").and_then(Value::as_str).unwrap_or_default();
        match command.strip_prefix("cat ").filter(|_| tool == "execute_command") {
            Some(key) => self.notes.run("read_note", &Map::from_iter([("key".to_owned(), json!(key))])).text,
            None if tool == "execute_command" => format!("ran {command:?}"),
            None => self.notes.run(tool, args).text,
        }
    }
}

impl Session {
    pub fn new(behaviour: &Behaviour) -> Self {
        Self { behaviour: behaviour.clone(), inner: Mutex::default(), changed: Notify::new() }
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

    /// Adds a client: it gets what was said while nobody was there, and every open call.
    pub fn join(&self, outbox: &Outbox) -> u64 {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.next_client += 1;
        inner.clients.insert(inner.next_client, outbox.clone());
        self.behaviour.note(Happening::Joined);
        let missed = std::mem::take(&mut inner.missed);
        let is_owed = !missed.is_empty() || inner.calls.iter().any(|call| call.outcome.is_none());
        if is_owed && !self.has(Defect::NothingIsBuffered) && !self.style(Style::NothingKept) {
            if missed.len() > 1 && self.has(Defect::MissedInOneMessage) {
                let lines: Vec<String> = missed.iter().map(Value::to_string).collect();
                outbox.send(Message::text(lines.join("\n")));
            } else {
                missed.iter().for_each(|frame| self.to_all(inner, frame));
            }
            for call in inner.calls.iter().filter(|call| call.outcome.is_none()) {
                outbox.send(text(&Inner::call_frame(call, &self.behaviour)));
            }
        }
        inner.next_client
    }

    /// Says something to every client, or keeps it for the next one.
    pub fn emit(&self, inner: &mut Inner, frame: Value) {
        if inner.clients.is_empty() {
            if inner.missed.len() >= MAX_MISSED {
                inner.missed.pop_front();
            }
            inner.missed.push_back(frame);
            return;
        }
        self.to_all(inner, &frame);
    }

    fn to_all(&self, inner: &Inner, frame: &Value) {
        let widened = self.style(Style::MoreFields).then(|| super::variants::widened(frame));
        let frame = widened.as_ref().unwrap_or(frame);
        for client in inner.clients.values() {
            client.send(if self.behaviour.strikes(Defect::BinaryFrames) {
                Message::binary(frame.to_string().into_bytes())
            } else if self.behaviour.strikes(Defect::FramesInArrays) {
                text(&json!([frame]))
            } else {
                self.written(frame)
            });
        }
    }

    /// A frame as text.
    fn written(&self, frame: &Value) -> Message {
        let mut text = frame.to_string();
        self.behaviour.mutate(&mut text, |defect, text| {
            if defect == Defect::TokensUnescaped && frame["type"] == "assistant_message" {
                *text = text.replace("\\\"", "\"");
            }
        });
        Message::text(text)
    }

    /// Another agent takes over.
    pub fn switched(&self, inner: &mut Inner, agent: &str, reason: &str) {
        let mut frame = json!({
            "type": "agent_switched", "content": format!("{agent} takes over"), "from_agent": "orchestrator",
            "to_agent": agent, "reason": reason,
        });
        if self.style(Style::SwitchesBare) {
            frame = json!({ "type": "agent_switched" });
        }
        if self.has(Defect::SwitchedWithoutText) {
            frame["content"] = json!({ "agent": agent });
        }
        self.emit(inner, frame);
    }

    /// Whether the user has rejected a call since this was asked last.
    pub fn take_rejection(&self) -> bool {
        std::mem::take(&mut self.lock().just_rejected)
    }

    /// Tells the IDE of calls; they are open from then on.
    pub fn announce(&self, inner: &mut Inner, calls: Vec<(String, Map<String, Value>)>) {
        inner.calls.clear();
        inner.rounds += 1;
        if inner.next_call > 0 && self.has(Defect::CallIdsRestart) {
            inner.next_call = 0;
        }
        for (tool, args) in calls {
            if inner.next_call == 0 || !self.has(Defect::CallIdsRepeat) {
                inner.next_call += 1;
            }
            let guarded = is_guarded(&tool);
            let id = super::variants::call_id(&self.behaviour, inner.next_call);
            self.behaviour.note(if guarded { Happening::Asks } else { Happening::ToolStarts });
            let call = Call { id, tool, args, guarded, outcome: None };
            if !inner.clients.is_empty() {
                self.to_all(inner, &Inner::call_frame(&call, &self.behaviour));
            }
            inner.calls.push(call);
        }
    }

    /// The IDE has run a tool.
    pub fn result(&self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let of = |name: &str| body.get(name).and_then(Value::as_str);
        let is_open = Call::is_open;
        let Some(id) = of("call_id") else {
            let oldest = self.lock().calls.iter().find(|call| is_open(call)).map(|call| call.id.clone());
            return match oldest.filter(|_| self.has(Defect::ResultWithoutCallIdAnswers)) {
                Some(id) => self.result(&with(body, "call_id", json!(id))),
                None => Ok(()),
            };
        };
        let outcome = match (body.get("result"), of("error")) {
            (Some(result), _) => {
                let content = result.get("content").and_then(Value::as_str);
                content.map_or_else(|| result.to_string(), str::to_owned)
            }
            (None, error) => format!("error: {}", error.unwrap_or_default()),
        };
        let mut inner = self.lock();
        let inner = &mut *inner;
        let mut found = inner.calls.iter().position(|call| is_open(call) && call.id == id);
        self.behaviour.mutate(&mut found, |defect, found| {
            if defect == Defect::ResultsByArrival {
                *found = inner.calls.iter().position(is_open).filter(|_| id.starts_with("call-"));
            }
        });
        let fails = inner.calls.iter().any(Call::has_failed);
        let (has_siblings, rounds) = (inner.calls.len() > 1, inner.rounds);
        let Some(call) = found.map(|index| &mut inner.calls[index]) else {
            let early = inner.calls.iter().position(|call| call.id == id && call.outcome.is_none());
            if let Some(call) = early.filter(|_| self.has(Defect::ResultsApprove)) {
                self.settle(inner, call, &Map::from_iter([("decision".to_owned(), json!("approve"))]));
                return Ok(());
            }
            if early.is_some() && self.style(Style::EarlyResultIgnored) {
                return Ok(());
            }
            if let Some(call) = early.filter(|_| self.style(Style::EarlyResultResolves)) {
                inner.calls[call].outcome = Some(outcome);
                inner.answered.insert(id.to_owned(), false);
                self.changed.notify_waiters();
                return Ok(());
            }
            return self.unexpected_answer(inner, id, false);
        };
        if body.contains_key("result") && fails && self.has(Defect::ErrorsCallForErrors) {
            return Err(refuse("MISSING_FIELD", "error is missing"));
        }
        let mut stalls = false;
        self.behaviour.mutate(&mut stalls, |defect, stalls| match defect {
            Defect::ErrorResultsStall => *stalls = body.contains_key("error"),
            Defect::ForgetsCallsAfterText => *stalls = inner.after_text,
            Defect::SecondRoundStalls => *stalls = rounds > 1,
            _ => {}
        });
        if stalls {
            return Ok(());
        }
        let mut outcome = outcome;
        self.behaviour.mutate(&mut outcome, |defect, outcome| match defect {
            Defect::ResultsAreLost => "done".clone_into(outcome),
            Defect::ResultsAreCut => *outcome = outcome.chars().take(outcome.chars().count() / 2).collect(),
            _ => {}
        });
        call.outcome = Some(outcome);
        inner.answered.insert(call.id.clone(), false);
        inner.abandoned |= body.contains_key("error")
            && (self.has(Defect::ErrorResultsEndTurns)
                || has_siblings && self.has(Defect::ErrorAmongResultsEnds));
        if inner.calls.iter().any(is_open) && self.has(Defect::OneResultIsEnough) {
            for call in inner.calls.iter_mut().filter(|call| is_open(call)) {
                call.outcome = Some(String::new());
                inner.answered.insert(call.id.clone(), false);
            }
        }
        self.behaviour.note(Happening::ToolEnds);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Whether a result is that of an open call.
    pub fn opens(&self, body: &Map<String, Value>) -> bool {
        let id = body.get("call_id").and_then(Value::as_str);
        self.lock().calls.iter().any(|call| call.is_open() && Some(call.id.as_str()) == id)
    }

    /// What defects make of a result that is refused.
    pub fn obey_refused_result(&self, body: &Map<String, Value>) {
        let has_id = body.get("call_id").is_some_and(|id| !id.is_null());
        let is_odd = body.get("error").is_some_and(|error| !error.is_string() && !error.is_null());
        let mut inner = self.lock();
        let Some(oldest) = inner.calls.iter_mut().find(|call| call.is_open()) else { return };
        let oldest_id = oldest.id.clone();
        if !has_id && self.has(Defect::ResultWithoutCallIdDrops) {
            inner.calls.iter_mut().filter(|call| call.is_open()).for_each(|call| call.id.clear());
            return;
        }
        drop(inner);
        // It was refused already: whatever comes of it now is told to nobody.
        if !has_id && self.has(Defect::ResultWithoutCallIdIsObeyed) {
            let _ = self.result(&with(body, "call_id", json!(oldest_id)));
        } else if has_id && is_odd && self.has(Defect::WrongErrorsAreObeyed) {
            let _ = self.result(&with(body, "error", json!("an error")));
        }
    }

    /// An answer to a call that is not open.
    fn unexpected_answer(&self, inner: &mut Inner, id: &str, decision: bool) -> Result<(), Refusal> {
        let guarded = inner.answered.get(id).copied();
        let known = guarded.is_some();
        let again = if decision { Defect::DecidesAgain } else { Defect::AnswersAgain };
        let unknown =
            if decision { Defect::UnknownDecisionsAreIgnored } else { Defect::UnknownResultsAreIgnored };
        if guarded == Some(decision) && self.has(again) {
            self.emit(inner, json!({ "type": "assistant_message", "token": "once more", "is_final": true }));
            return Ok(());
        }
        let waited = [Defect::DoesNotWaitForResults, Defect::DoesNotWaitForCommands];
        let is_open = inner.calls.iter().any(|call| call.id == id && call.outcome.is_none());
        // An answer of the wrong kind to an open call may be ignored: the defect makes no difference there.
        let ignored = !known && !is_open && self.has(unknown);
        if known && waited.iter().any(|defect| self.behaviour.prepares(*defect)) || ignored {
            return Ok(());
        }
        let passed_over = match is_open {
            true => decision && self.style(Style::OpenDecisionIgnored),
            false => known && self.style(Style::StrayIgnored),
        };
        if passed_over {
            return Ok(());
        }
        Err(refuse("INVALID_CALL_ID", format!("no call {id:?} waits for this")))
    }

    /// The user has decided.
    pub fn decide(&self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let of = |name: &str| body.get(name).and_then(Value::as_str);
        let mut inner = self.lock();
        let inner = &mut *inner;
        let open: Vec<usize> = (0..inner.calls.len())
            .filter(|index| inner.calls[*index].guarded && inner.calls[*index].outcome.is_none())
            .collect();
        let id = of("call_id").unwrap_or_default();
        let found =
            open.iter().copied().find(|index| inner.calls[*index].id == id || !body.contains_key("call_id"));
        if !body.contains_key("call_id") && self.has(Defect::DecisionWithoutCallIdIsIgnored) {
            return Ok(());
        }
        let is_known = inner.calls.iter().any(|call| call.id == id) || inner.answered.contains_key(id);
        let oldest = open.first().copied().filter(|_| !is_known);
        let found = found.or_else(|| oldest.filter(|_| self.has(Defect::UnknownCallsAreTheOldest)));
        let Some(found) = found else { return self.unexpected_answer(inner, id, true) };
        if rejects_silently(body)
            && (self.has(Defect::FeedbackIsRequired)
                || inner.rejected && self.has(Defect::SecondNeedsFeedback))
        {
            return Err(refuse("MISSING_FIELD", "feedback is missing"));
        }
        if rejects_silently(body) && self.has(Defect::AwaitsFeedback) {
            return Ok(());
        }
        let all = if open.len() > 1 && self.has(Defect::OneDecisionForAll) { open } else { vec![found] };
        if edits_nothing(body) && self.has(Defect::EmptyEditsDrop) {
            inner.calls[found].id.clear();
            return Err(refuse("MISSING_FIELD", "modified_arguments is missing"));
        }
        for index in all {
            self.settle(inner, index, body);
        }
        Ok(())
    }

    /// Does with a call as a decision says.
    fn settle(&self, inner: &mut Inner, index: usize, decision: &Map<String, Value>) {
        let of = |name: &str| decision.get(name).and_then(Value::as_str);
        let (tool, mut args) = (inner.calls[index].tool.clone(), inner.calls[index].args.clone());
        let rejects = match of("decision") {
            Some("reject") => true,
            Some("approve" | "edit") => false,
            // It came so far by a defect.
            Some(_) => self.has(Defect::UnknownDecisionsReject),
            None => self.has(Defect::MissingDecisionsReject) || self.has(Defect::UnknownDecisionsReject),
        };
        self.behaviour.note(Happening::Decided);
        if rejects {
            self.behaviour.note(Happening::Denial);
        }
        if let (false, Some(Value::Object(modified))) = (rejects, decision.get("modified_arguments"))
            && !self.has(Defect::EditsAreIgnored)
        {
            args.clone_from(modified);
        }
        let stays = if rejects {
            !self.has(Defect::RejectedCallsRun)
        } else {
            self.ignores_approval(&of("decision"))
        };
        if !rejects && self.style(Style::IdeRuns) {
            // From now on it is open like any other.
            inner.calls[index].guarded = false;
            return;
        }
        if rejects && self.has(Defect::RejectedCallsRunQuietly) {
            inner.run(&tool, &args);
        }
        inner.abandoned |= of("decision") == Some("approve") && self.has(Defect::ApprovalEndsTurn);
        let run = if stays { "approved".to_owned() } else { inner.run(&tool, &args) };
        let run = if self.style(Style::OtherWords) { super::variants::reworded(&run) } else { run };
        let outcome = match of("feedback") {
            Some(feedback) if rejects && self.style(Style::OtherWords) => {
                format!("(the user says no, and: {feedback})")
            }
            _ if !rejects => run,
            Some(feedback) if !self.has(Defect::FeedbackIsLost) => format!("rejected: {feedback}"),
            _ => "rejected".to_owned(),
        };
        inner.rejected |= rejects;
        inner.owes_feedback |= rejects && rejects_silently(decision);
        inner.approved |= !rejects;
        inner.just_rejected |= rejects;
        inner.answered.insert(inner.calls[index].id.clone(), true);
        inner.calls[index].outcome = Some(outcome);
        self.changed.notify_waiters();
    }

    /// An approval that has no effect: a defect.
    fn ignores_approval(&self, decision: &Option<&str>) -> bool {
        match decision {
            Some("approve") => self.has(Defect::ApprovedCallsDoNotRun),
            Some("edit") => self.has(Defect::EditedCallsDoNotRun),
            _ => false,
        }
    }

    /// The turn is over: nobody waits for its calls any longer.
    pub fn give_up(&self, inner: &mut Inner) {
        for call in inner.calls.drain(..).filter(|call| call.outcome.is_none()) {
            self.behaviour.note(if call.guarded { Happening::Decided } else { Happening::ToolEnds });
        }
    }

    /// Goes on as if every call of a kind had been answered: a defect.
    pub fn presume(&self, inner: &mut Inner) {
        for call in &mut inner.calls {
            let mut presumed = false;
            self.behaviour.mutate(&mut presumed, |defect, presumed| match defect {
                Defect::DoesNotWaitForResults => *presumed = !call.guarded,
                Defect::DoesNotWaitForCommands => *presumed = call.tool == "execute_command",
                _ => {}
            });
            if presumed {
                self.behaviour.note(if call.guarded { Happening::Decided } else { Happening::ToolEnds });
                call.outcome = Some(String::new());
                inner.answered.insert(call.id.clone(), call.guarded);
            }
        }
    }
}
