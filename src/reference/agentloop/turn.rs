//! Playing one turn: the model's responses, tool calls and approvals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::conversation::Conversation;
use super::faults::Defect;
use super::items::{self, Command, Kind};
use super::styles::Style;
use super::variants;
use crate::cue::{self, Call, Fail, Step};
use crate::reference::engine::Happening;
use crate::reference::engine::notes::Outcome;
use crate::reference::engine::{Agent, Cancel, Cancelled, Chunk, Speech};

/// How a turn leaves the path to its end.
pub(super) enum Stop {
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

/// Plays a turn, and those that are queued behind it. Their connection's end aborts it.
pub(super) async fn play(conversation: Arc<Conversation>, cause: String, text: String) {
    let mut next = Some((cause, text));
    while let Some((cause, text)) = next {
        play_one(Arc::clone(&conversation), cause, text).await;
        next = conversation.next_input();
    }
}

async fn play_one(conversation: Arc<Conversation>, cause: String, text: String) {
    let mut player = Player {
        conversation,
        cancel: Cancel::never(),
        cause,
        texts: 0,
        message: String::new(),
        so_far: String::new(),
        spoken: false,
        approved: false,
        unrun: Vec::new(),
        asked_ahead: 0,
        merged: false,
        muted: false,
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
    let mut result = player.answer(&text).await;
    while result.is_ok() && player.style(Style::JoinsInput) {
        let Some((cause, text)) = player.conversation.joining_input() else { break };
        player.conversation.count(&cause, &text);
        result = player.answer(&text).await;
    }
    player.end(result).await;
}

pub(super) struct Player {
    pub(super) conversation: Arc<Conversation>,
    /// Nothing but its connection's end cancels a turn, and that ends the task.
    pub(super) cancel: Cancel,
    /// The id of the message that started the turn.
    pub(super) cause: String,
    /// How many messages have begun.
    texts: u64,
    /// The message that is streamed.
    message: String,
    /// What was said of the step so far.
    pub(super) so_far: String,
    /// Something was sent since the beginning.
    spoken: bool,
    /// A command of the turn was approved.
    pub(super) approved: bool,
    /// Denied commands that a defect runs with the next one that is approved.
    pub(super) unrun: Vec<Command>,
    /// How many commands a defect has asked about before their turn came.
    pub(super) asked_ahead: usize,
    /// A defect has merged the message of an item with others.
    merged: bool,
    /// A defect: the agent says nothing more.
    pub(super) muted: bool,
}

impl Player {
    pub(super) fn has(&self, defect: Defect) -> bool {
        self.conversation.has(defect)
    }

    pub(super) fn style(&self, style: Style) -> bool {
        self.conversation.style(style)
    }

    /// A provider that knows no key stands for an agent that was never initialised: the fixture of such a server.
    fn is_uninitialised(&self, text: &str) -> bool {
        let responses = cue::responses(text);
        let first = responses.first().and_then(|response| response.first());
        let missing = matches!(first, Some(Step::Fail { fail }) if fail.status == 401);
        if missing {
            self.conversation.lock().busy = false;
            if self.has(Defect::UninitialisedFinishes) {
                self.loading(true);
                self.loading(false);
                self.conversation.finish(&self.cause);
            } else if !self.has(Defect::SilentUninitialised) {
                self.conversation.error(&self.cause, "AgentLoop not initialized", Value::Null);
            }
        }
        missing
    }

    /// Says and does what the model answers to a text.
    async fn answer(&mut self, text: &str) -> Result<(), Stop> {
        let responses = cue::responses(text);
        let is_short = matches!(responses.as_slice(), [one] if matches!(one.as_slice(), [Step::Say { say, .. }] if say.len() == 1));
        for (index, response) in responses.into_iter().enumerate() {
            if (is_short && self.has(Defect::SwallowsShortAnswers))
                || (index > 0 && self.has(Defect::StopsAfterTools))
            {
                continue;
            }
            self.respond(response).await?;
        }
        Ok(())
    }

    pub(super) fn loading(&self, loading: bool) {
        self.conversation.send(&self.cause, "loading_state", json!({ "loading": loading }));
    }

    pub(super) fn item(&mut self, item: Value) {
        self.conversation.item(&self.cause, item);
        if !std::mem::replace(&mut self.spoken, true) && self.has(Defect::LateLoading) {
            self.loading(true);
        }
    }

    fn begin(&mut self) {
        if self.has(Defect::UnlistedType) {
            self.conversation.send(&self.cause, "turn_started", json!({}));
        }
        if self.has(Defect::IdleFirst) {
            self.loading(false);
        }
        if !self.has(Defect::NoLoading) && !self.has(Defect::LateLoading) {
            self.loading(true);
        }
        if self.has(Defect::UnlistedKind) {
            self.item(json!({ "id": "ws_1", "type": "web_search_call", "query": "?" }));
        }
        if self.style(Style::OwnReasoning) {
            let id = self.new_id("reasoning");
            let thoughts = ["What is asked for?".to_owned()];
            let item = items::reasoning(&id, &thoughts, Duration::ZERO, self.conversation.behaviour());
            self.item(item);
        }
    }

    /// An id for the next item of a kind, unique in the conversation.
    pub(super) fn new_id(&mut self, kind: &str) -> String {
        self.texts += 1;
        if self.conversation.behaviour().prepares(Defect::MessageIdsRepeat) {
            let id = format!("{kind}_{}", self.texts);
            if !self.conversation.lock().plain_ids.insert(id.clone()) {
                self.conversation.behaviour().took_effect();
            }
            return id;
        }
        format!("{kind}_{}_{}_{}", self.conversation.number, self.conversation.lock().turns, self.texts)
    }

    /// A defect: a turn whose connection is gone goes on when the next one has begun its own with the same id. Waiting for
    /// that makes the defect show however slow the client is.
    async fn wait_for_successor(&self) {
        let outlives = self.conversation.behaviour().prepares(Defect::TurnsOutliveConnections);
        let mut patience = if outlives { 1000 } else { 0 };
        while patience > 0 && !self.conversation.is_rerouted(&self.cause) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            patience -= 1;
        }
        if patience > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) fn call_id(&self) -> String {
        let mut inner = self.conversation.lock();
        inner.calls += 1;
        format!("call_{}_{}", self.conversation.number, inner.calls)
    }

    pub(super) async fn run(&mut self, command: &Command) -> Result<(), Stop> {
        self.run_announced(command, None).await
    }

    /// Runs a command; `announced`: the call_id of its item, if that was sent.
    pub(super) async fn run_announced(
        &mut self,
        command: &Command,
        announced: Option<String>,
    ) -> Result<(), Stop> {
        let (is_new, conversation) = (announced.is_none(), Arc::clone(&self.conversation));
        let behaviour = conversation.behaviour();
        let id = announced.unwrap_or_else(|| self.call_id());
        let late = is_new && command.kind != Kind::Shell && self.has(Defect::OutputBeforeCall);
        if is_new && !late {
            self.item(command.call(&id, behaviour));
        }
        let outcome = self.outcome(command).await?;
        self.item(command.output(&id, &outcome, behaviour));
        if self.has(Defect::OutputTwice) {
            self.item(command.output(&id, &outcome, behaviour));
        }
        if late {
            self.item(command.call(&id, behaviour));
        }
        Ok(())
    }

    async fn outcome(&mut self, command: &Command) -> Result<Outcome, Stop> {
        let conversation = Arc::clone(&self.conversation);
        let behaviour = conversation.behaviour();
        let more = if self.style(Style::SlowTools) { Duration::from_millis(30) } else { Duration::ZERO };
        behaviour.note(Happening::ToolStarts);
        self.cancel.sleep(command.duration() + more).await?;
        behaviour.note(Happening::ToolEnds);
        let mut command = command.clone();
        behaviour.mutate(&mut command, |defect, command| {
            if defect == Defect::TrimsArguments {
                command.trim();
            }
        });
        Ok(command.run(&mut conversation.shared.lock().notes))
    }

    /// Announces all calls of a response before the first has run.
    async fn run_together(&mut self, commands: Vec<Command>) -> Result<(), Stop> {
        let ids: Vec<String> = commands.iter().map(|command| self.announce(command)).collect();
        let mut outcomes = Vec::new();
        for command in &commands {
            outcomes.push(self.outcome(command).await?);
        }
        self.conversation.behaviour().mutate(&mut outcomes, |defect, outcomes| {
            if defect == Defect::OutputsCrossed {
                outcomes.rotate_left(1);
            }
        });
        let mut outputs: Vec<Value> = (ids.iter().zip(&commands).zip(&outcomes))
            .map(|((id, command), outcome)| command.output(id, outcome, self.conversation.behaviour()))
            .collect();
        if self.style(Style::OutputsReversed) {
            outputs.reverse();
        }
        if self.has(Defect::LastOutputMissing) {
            outputs.pop();
        }
        outputs.into_iter().for_each(|output| self.item(output));
        Ok(())
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
            let merges = self.conversation.behaviour().prepares(Defect::MergesMessages);
            let shared = merges.then(|| format!("msg_{}", self.cause));
            if merges && std::mem::replace(&mut self.merged, true) {
                self.conversation.behaviour().took_effect();
            }
            self.message = shared.unwrap_or_else(|| self.new_id("msg"));
        }
        self.conversation.behaviour().mutate(&mut chunks, |defect, chunks| {
            if defect == Defect::ChunksOutOfOrder && !chunks.is_empty() {
                chunks.rotate_left(1);
            }
        });
        self.so_far.clear();
        let leftover = std::mem::take(&mut self.conversation.lock().leftover);
        if !leftover.is_empty() && !chunks.is_empty() {
            self.conversation.behaviour().took_effect();
        }
        if let Some(first) = chunks.first_mut() {
            first.insert_str(0, &leftover);
        }
        variants::recut(self.conversation.behaviour(), chunks)
    }

    fn say(&mut self, chunk: Chunk) {
        self.so_far.push_str(&chunk.text);
        let apart = chunk.index > 0 && self.has(Defect::IdPerChunk);
        let id = if apart { self.new_id("msg") } else { self.message.clone() };
        let mut text = chunk.text;
        self.conversation.behaviour().mutate(&mut text, |defect, text| match defect {
            Defect::Cumulative => *text = self.so_far.clone(),
            Defect::TrimsText => *text = text.trim().to_owned(),
            Defect::EscapesText => *text = text.replace('<', "&lt;"),
            _ => {}
        });
        let item = items::message(&id, "assistant", &text, self.conversation.behaviour());
        if !self.muted {
            self.item(item);
        }
    }

    /// Reasoning is told at once, when it is over.
    async fn think(&mut self, chunks: Vec<String>, every: Duration) -> Result<(), Stop> {
        let began = Instant::now();
        let pieces = u32::try_from(chunks.len().saturating_sub(1)).unwrap_or(u32::MAX);
        self.cancel.sleep(every.saturating_mul(pieces)).await?;
        if self.style(Style::NoReasoning) {
            return Ok(());
        }
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
        if self.conversation.behaviour().prepares(Defect::AsksAllAtOnce) {
            self.ask_ahead(&calls);
        }
        let commands: Vec<Command> =
            calls.into_iter().map(|call| Command::new(&call.name, call.args)).collect();
        let together = [Style::CallsTogether, Style::OutputsReversed].iter().any(|style| self.style(*style))
            || [Defect::OutputsCrossed, Defect::LastOutputMissing]
                .iter()
                .any(|defect| self.conversation.behaviour().prepares(*defect));
        if together && commands.len() > 1 && !commands.iter().any(|command| self.needs_approval(command)) {
            return self.run_together(commands).await;
        }
        for command in commands {
            self.perform(command).await?;
        }
        Ok(())
    }
}
