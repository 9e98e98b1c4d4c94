//! Playing one turn: the model's responses, tool calls and approvals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::conversation::{Answer, Conversation, Review};
use super::faults::Defect;
use super::items::{self, Command, Kind};
use super::styles::Style;
use crate::cue::{self, Call, Fail, Step};
use crate::reference::engine::Happening;
use crate::reference::engine::notes::Outcome;
use crate::reference::engine::{Agent, Cancel, Cancelled, Chunk, Speech};

/// How a turn leaves the path to its end.
enum Stop {
    /// The user has said no-exit.
    Exit,
    /// The provider has failed.
    Failed(Fail),
}

impl From<Cancelled> for Stop {
    fn from(_: Cancelled) -> Self {
        Self::Exit
    }
}

/// Plays a turn. Its connection's end aborts it.
pub(super) async fn play(conversation: Arc<Conversation>, cause: String, text: String) {
    let mut player = Player {
        conversation,
        cancel: Cancel::never(),
        cause,
        texts: 0,
        message: String::new(),
        so_far: String::new(),
        spoken: false,
    };
    if player.is_uninitialised(&text) {
        return;
    }
    if player.has(Defect::IgnoresInput) {
        player.conversation.lock().busy = false;
        return;
    }
    player.begin();
    player.conversation.count(&player.cause, &text);
    let responses = cue::responses(&text);
    let is_short = matches!(responses.as_slice(), [one] if matches!(one.as_slice(), [Step::Say { say, .. }] if say.len() == 1));
    let mut result = Ok(());
    for (index, response) in responses.into_iter().enumerate() {
        if (is_short && player.has(Defect::SwallowsShortAnswers))
            || (index > 0 && player.has(Defect::StopsAfterTools))
        {
            continue;
        }
        result = player.respond(response).await;
        if result.is_err() {
            break;
        }
    }
    player.end(result);
}

struct Player {
    conversation: Arc<Conversation>,
    /// Nothing but its connection's end cancels a turn, and that ends the task.
    cancel: Cancel,
    /// The id of the message that started the turn.
    cause: String,
    /// How many messages have begun.
    texts: u64,
    /// The message that is streamed.
    message: String,
    /// What was said of the step so far.
    so_far: String,
    /// Something was sent since the beginning.
    spoken: bool,
}

impl Player {
    fn has(&self, defect: Defect) -> bool {
        self.conversation.has(defect)
    }

    #[allow(dead_code, reason = "a style is asked for where it matters, and that may be elsewhere")]
    fn style(&self, style: Style) -> bool {
        self.conversation.style(style)
    }

    /// A provider that knows no key stands for an agent that was never initialised: the fixture of such a server.
    fn is_uninitialised(&self, text: &str) -> bool {
        let responses = cue::responses(text);
        let first = responses.first().and_then(|response| response.first());
        let missing = matches!(first, Some(Step::Fail { fail }) if fail.status == 401);
        if missing {
            self.conversation.lock().busy = false;
            if !self.has(Defect::SilentUninitialised) {
                self.conversation.error(&self.cause, "AgentLoop not initialized", Value::Null);
            }
        }
        missing
    }

    fn loading(&self, loading: bool) {
        self.conversation.send(&self.cause, "loading_state", json!({ "loading": loading }));
    }

    fn item(&mut self, item: Value) {
        self.conversation.item(&self.cause, item);
        if !std::mem::replace(&mut self.spoken, true) && self.has(Defect::LateLoading) {
            self.loading(true);
        }
    }

    fn begin(&mut self) {
        if self.has(Defect::UnlistedType) {
            self.conversation.send(&self.cause, "turn_started", json!({}));
        }
        if !self.has(Defect::NoLoading) && !self.has(Defect::LateLoading) {
            self.loading(true);
        }
        if self.has(Defect::UnlistedKind) {
            self.item(json!({ "id": "ws_1", "type": "web_search_call", "query": "?" }));
        }
    }

    /// An id for the next item of a kind, unique in the conversation.
    fn new_id(&mut self, kind: &str) -> String {
        self.texts += 1;
        format!("{kind}_{}_{}_{}", self.conversation.number, self.conversation.lock().turns, self.texts)
    }

    /// A defect: a turn whose connection is gone goes on when the next one has begun its own with the same id. Waiting for
    /// that makes the defect show however slow the client is.
    async fn wait_for_successor(&self) {
        let mut patience = if self.has(Defect::TurnsOutliveConnections) { 1000 } else { 0 };
        while patience > 0 && !self.conversation.is_rerouted(&self.cause) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            patience -= 1;
        }
        if patience > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A defect: all commands of a response are asked for before the first is answered.
    fn ask_ahead(&self, calls: &[Call]) {
        for call in calls {
            let command = Command::new(&call.name, call.args.clone());
            if self.needs_approval(&command) {
                self.request(&command);
            }
        }
    }

    fn request(&self, command: &Command) {
        self.conversation.lock().asking += 1;
        self.conversation.behaviour().note(Happening::Asks);
        let payload = command.request(self.conversation.behaviour());
        self.conversation.send(&self.cause, "approval_request", payload);
    }

    async fn perform(&mut self, command: Command) -> Result<(), Stop> {
        if !self.needs_approval(&command) {
            return self.run(&command).await;
        }
        if self.has(Defect::RunsBeforeAnswer) {
            self.request(&command);
            return self.run(&command).await;
        }
        // A defect has asked already.
        let mut asked = self.has(Defect::AsksAllAtOnce);
        loop {
            let answer = self.ask(&command, std::mem::take(&mut asked)).await;
            match answer.review {
                Review::Explain => {
                    let text = format!("{} changes a note.", command.words.join(" "));
                    let id = self.new_id("msg");
                    if !self.has(Defect::ExplainSaysNothing) {
                        self.item(items::message(&id, "assistant", &text, self.conversation.behaviour()));
                    }
                    if self.has(Defect::ExplainRuns) {
                        return self.run(&command).await;
                    }
                }
                Review::Yes | Review::Always => {
                    self.approve(&command, answer.review);
                    if self.has(Defect::YesIsNo) && answer.review == Review::Yes {
                        self.deny(&command, None);
                    } else {
                        self.run(&command).await?;
                    }
                    return Ok(());
                }
                Review::NoContinue => {
                    match self.conversation.behaviour().striking() {
                        Some(Defect::NoContinueStops) if answer.reason.is_none() => return Err(Stop::Exit),
                        Some(Defect::NoContinueRuns) => {
                            command.run(&mut self.conversation.shared.lock().notes);
                        }
                        _ => {}
                    }
                    self.deny(&command, answer.reason);
                    return Ok(());
                }
                Review::NoExit => {
                    return match self.conversation.behaviour().striking() {
                        Some(Defect::NoExitRuns) => {
                            command.run(&mut self.conversation.shared.lock().notes);
                            Err(Stop::Exit)
                        }
                        Some(Defect::NoExitGoesOn) => Ok(()),
                        _ => Err(Stop::Exit),
                    };
                }
            }
        }
    }

    fn needs_approval(&self, command: &Command) -> bool {
        let conversation = &self.conversation;
        let known = {
            let mut inner = conversation.lock();
            inner.always.contains(&command.words)
                || (conversation.has(Defect::KeepsStrayApproval) && inner.answers.pop_front().is_some())
        };
        let elsewhere = self.has(Defect::AsksOnceForAll) && {
            let state = conversation.shared.lock();
            state.approved.get(&command.words).is_some_and(|by| *by != conversation.number)
        };
        command.is_dangerous() && !known && !elsewhere && !self.has(Defect::NeverAsks)
    }

    fn approve(&self, command: &Command, review: Review) {
        let conversation = &self.conversation;
        let for_good = match conversation.behaviour().striking() {
            Some(Defect::YesIsAlways) => true,
            Some(Defect::AlwaysIsOnce) => false,
            _ => review == Review::Always,
        };
        if for_good {
            conversation.lock().always.insert(command.words.clone());
        }
        if conversation.has(Defect::AsksOnceForAll) {
            conversation.shared.lock().approved.insert(command.words.clone(), conversation.number);
        }
    }

    /// Asks, and waits for the answer.
    async fn ask(&self, command: &Command, asked: bool) -> Answer {
        let conversation = &self.conversation;
        if !asked {
            self.request(command);
        }
        loop {
            let changed = conversation.changed.notified();
            if let Some(answer) = conversation.lock().answers.pop_front() {
                return answer;
            }
            changed.await;
        }
    }

    fn call_id(&self) -> String {
        let mut inner = self.conversation.lock();
        inner.calls += 1;
        format!("call_{}_{}", self.conversation.number, inner.calls)
    }

    async fn run(&mut self, command: &Command) -> Result<(), Stop> {
        let (id, conversation) = (self.call_id(), Arc::clone(&self.conversation));
        let behaviour = conversation.behaviour();
        let late = self.has(Defect::OutputBeforeCall) && command.kind != Kind::Shell;
        if !late {
            self.item(command.call(&id, behaviour));
        }
        behaviour.note(Happening::ToolStarts);
        self.cancel.sleep(command.duration()).await?;
        behaviour.note(Happening::ToolEnds);
        let outcome = command.run(&mut self.conversation.shared.lock().notes);
        self.item(command.output(&id, &outcome, behaviour));
        if self.has(Defect::OutputTwice) {
            self.item(command.output(&id, &outcome, behaviour));
        }
        if late {
            self.item(command.call(&id, behaviour));
        }
        Ok(())
    }

    fn deny(&mut self, command: &Command, reason: Option<String>) {
        let (id, conversation) = (self.call_id(), Arc::clone(&self.conversation));
        let behaviour = conversation.behaviour();
        let reason = reason.filter(|_| !self.has(Defect::LosesDenyMessage));
        let text =
            format!("denied by the user{}", reason.map(|reason| format!(": {reason}")).unwrap_or_default());
        self.item(command.call(&id, behaviour));
        self.item(command.output(&id, &Outcome { text, is_error: true }, behaviour));
    }

    fn end(&mut self, result: Result<(), Stop>) {
        let conversation = Arc::clone(&self.conversation);
        let cause = self.cause.clone();
        match result {
            Err(Stop::Failed(fail)) => return self.fail(&fail),
            Err(Stop::Exit) => {
                conversation.lock().busy = false;
                self.loading(false);
            }
            Ok(()) => {
                if self.has(Defect::FinishBeforeLoading) {
                    return conversation.finish_before_idle(&cause);
                }
                if !self.has(Defect::LoadingStays) {
                    self.loading(false);
                }
                if self.has(Defect::ItemAfterEnd) {
                    let id = self.new_id("msg");
                    self.item(items::message(
                        &id,
                        "assistant",
                        "one more thing",
                        &self.conversation.behaviour().without_defect(),
                    ));
                }
            }
        }
        conversation.finish(&cause);
    }

    /// A network error is told as a message of the system's and ends the turn; others are errors.
    fn fail(&mut self, fail: &Fail) {
        let conversation = Arc::clone(&self.conversation);
        conversation.lock().busy = self.has(Defect::StuckAfterError);
        if self.has(Defect::SwallowsFailures) {
            return self.loading(false);
        }
        let details = json!({ "error": fail.message, "code": fail.status });
        if fail.status == 503 {
            let id = self.new_id("sys");
            let text = format!("⚠️ Network error while contacting the provider: {}", fail.message);
            self.item(items::message(&id, "system", &text, conversation.behaviour()));
            self.loading(false);
            return conversation.finish(&self.cause);
        }
        let late = self.has(Defect::ErrorAfterLoading);
        if late {
            self.loading(false);
        }
        conversation.error(&self.cause, "Failed to process user input", details);
        if !late {
            self.loading(false);
        }
        if self.has(Defect::FailureFinishes) {
            conversation.finish(&self.cause);
        }
    }
}

impl Agent for Player {
    type Stop = Stop;

    fn cancel(&mut self) -> &mut Cancel {
        &mut self.cancel
    }

    fn begins(&mut self, _response: &cue::Response) {
        self.message.clear();
    }

    fn chunks(&mut self, _speech: Speech, mut chunks: Vec<String>) -> Vec<String> {
        if self.message.is_empty() {
            let shared = self.has(Defect::MergesMessages).then(|| format!("msg_{}", self.cause));
            self.message = shared.unwrap_or_else(|| self.new_id("msg"));
        }
        if self.has(Defect::ChunksOutOfOrder) && !chunks.is_empty() {
            chunks.rotate_left(1);
        }
        self.so_far.clear();
        chunks
    }

    fn say(&mut self, chunk: Chunk) {
        self.so_far.push_str(&chunk.text);
        let id = if self.has(Defect::IdPerChunk) { self.new_id("msg") } else { self.message.clone() };
        let text = if self.has(Defect::Cumulative) { &self.so_far } else { &chunk.text };
        let item = items::message(&id, "assistant", text, self.conversation.behaviour());
        self.item(item);
    }

    /// Reasoning is told at once, when it is over.
    async fn think(&mut self, chunks: Vec<String>, every: Duration) -> Result<(), Stop> {
        let began = Instant::now();
        let pieces = u32::try_from(chunks.len().saturating_sub(1)).unwrap_or(u32::MAX);
        self.cancel.sleep(every.saturating_mul(pieces)).await?;
        let id = self.new_id("reasoning");
        let item = items::reasoning(&id, &chunks, began.elapsed(), self.conversation.behaviour());
        self.item(item);
        self.message.clear();
        Ok(())
    }

    async fn paused(&mut self) {
        self.wait_for_successor().await;
    }

    async fn fail(&mut self, fail: Fail) -> Stop {
        Stop::Failed(fail)
    }

    async fn call(&mut self, calls: Vec<Call>) -> Result<(), Stop> {
        if self.has(Defect::AsksAllAtOnce) {
            self.ask_ahead(&calls);
        }
        for call in calls {
            self.perform(Command::new(&call.name, call.args)).await?;
        }
        Ok(())
    }
}
