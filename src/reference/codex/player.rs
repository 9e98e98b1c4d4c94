//! A turn: playing the cue, and what of it is told and stored.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::answer_to;
use super::deviations;
use super::faults::Defect;
use super::items::{self, fresh, tokens};
use super::state::{State, Work};
use super::store::Settings;
use super::styles::Style;
use super::{Behaviour, Core};
use crate::cue::{self, Call, Fail, Response};
use crate::reference::engine::{Agent, Cancel, Cancelled, Chunk, Speech};
use crate::reference::faults::mutate;

/// How a turn leaves its path.
pub(super) enum Stop {
    Cancelled,
    /// The model has failed, with this error.
    Failed(Value),
}

impl From<Cancelled> for Stop {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// An item that is being said.
struct Open {
    speech: Speech,
    id: String,
    text: String,
    /// The model has ended its response, under a defect.
    over: bool,
}

/// A turn that runs.
pub(super) struct Player {
    pub core: Arc<Core>,
    pub behaviour: Behaviour,
    pub thread: String,
    pub turn: String,
    pub settings: Settings,
    pub cancelled: Cancel,
    open: Option<Open>,
    /// The tokens of what the model got, and of what it has said in this response.
    pub read: u64,
    pub said: u64,
    /// The diffs of the turn so far.
    pub diff: String,
    /// Whom the last request went to.
    pub asked: BTreeSet<u64>,
    /// A resolution that is told later, under a defect.
    pub unresolved: Option<Value>,
}

impl Player {
    pub fn new(
        core: &Arc<Core>,
        state: &State,
        (thread, turn): (&str, &str),
        settings: Settings,
        cancelled: Cancel,
    ) -> Self {
        let live = state.live.get(thread);
        Self {
            core: Arc::clone(core),
            behaviour: live.map_or_else(|| core.behaviour.clone(), |live| live.behaviour.clone()),
            thread: thread.to_owned(),
            turn: turn.to_owned(),
            settings,
            cancelled,
            open: None,
            read: 0,
            said: 0,
            diff: String::new(),
            asked: BTreeSet::new(),
            unresolved: None,
        }
    }

    pub fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    pub fn started(&self, item: &Value) {
        items::started(&self.core.lock(), &self.thread, &self.turn, item);
    }

    pub fn completed(&self, item: Value) {
        items::completed(&mut self.core.lock(), &self.thread, &self.turn, item);
    }

    pub fn publish(&self, method: &str, params: Value) {
        items::publish(&self.core.lock(), &self.thread, &self.turn, method, params);
    }

    /// Takes the turn from its beginning to its end.
    pub async fn run(mut self, work: Work) {
        let (work, answer) = match work {
            Work::Answered(work, answer) => (*work, Some(answer)),
            work => (work, None),
        };
        let mut result = match work {
            Work::Input(input) => {
                items::user_message(&mut self.core.lock(), &self.thread, &self.turn, &input);
                let text = if input.len() > 1 && self.has(Defect::ModelGetsTheFirstInput) {
                    items::text(&input[..1])
                } else {
                    items::text(&input)
                };
                self.read = tokens(&text);
                self.play(cue::responses(&text)).await
            }
            Work::Compaction => {
                self.compact();
                Ok(())
            }
            Work::Shell(command) => self.user_shell(&command).await,
            Work::Answered(..) => Ok(()),
        };
        loop {
            self.close();
            if result.is_ok() {
                result = self.wait_for_asides().await;
            }
            let Some(more) = self.end_unless_steered(&result) else { break };
            result = self.play(more).await;
        }
        if let Some((client, id, value)) = answer {
            answer_to(&self.core, client, &id, &Ok(value));
        }
    }

    /// Ends the turn, or returns what was added to it meanwhile.
    fn end_unless_steered(&mut self, result: &Result<(), Stop>) -> Option<Vec<Response>> {
        let core = Arc::clone(&self.core);
        let mut state = core.lock();
        let active = state.live.get_mut(&self.thread)?.active.as_mut();
        let active = active.filter(|active| active.turn == self.turn);
        let more = active.map(|active| std::mem::take(&mut active.steered)).unwrap_or_default();
        if result.is_ok() && !more.is_empty() {
            return Some(more);
        }
        self.end(&mut state, result);
        None
    }

    async fn wait_for_asides(&mut self) -> Result<(), Stop> {
        let asides = {
            let state = self.core.lock();
            let active = state.live.get(&self.thread).and_then(|live| live.active.as_ref());
            active.map(|active| Arc::clone(&active.asides))
        };
        let Some(asides) = asides else { return Ok(()) };
        tokio::select! {
            _ = asides.write() => Ok(()),
            () = self.cancelled.wait() => Err(Stop::Cancelled),
        }
    }

    fn compact(&self) {
        let item = json!({ "type": "contextCompaction", "id": fresh("item") });
        let again = self.core.lock().threads.get(&self.thread).is_some_and(|thread| {
            let mut items = thread.turns.iter().flat_map(|turn| &turn.items);
            items.any(|item| item["type"] == "contextCompaction")
        });
        if self.has(Defect::CompactionHasNoItem) || again && self.has(Defect::LaterCompactionsHaveNoItem) {
            return;
        }
        self.started(&item);
        if self.has(Defect::CompactionChangesItsId) {
            return self.completed(json!({ "type": "contextCompaction", "id": fresh("item") }));
        }
        self.completed(item);
    }

    /// The id of an item that begins to be said.
    fn item_id(&self) -> String {
        if !self.behaviour.prepares(Defect::ItemIdsRepeat) {
            return fresh("item");
        }
        let id = format!("item_{}", self.turn);
        let mut state = self.core.lock();
        let turn = state.threads.get_mut(&self.thread).and_then(|thread| thread.turn(&self.turn));
        if turn.is_some_and(|turn| turn.items.iter().any(|item| item["id"] == id)) {
            self.behaviour.took_effect();
        }
        id
    }

    /// Completes the item that is being said.
    fn close(&mut self) {
        let Some(Open { speech, id, text, .. }) = self.open.take() else { return };
        let item = match speech {
            Speech::Text => json!({ "type": "agentMessage", "id": id, "text": text }),
            Speech::Thought => json!({ "type": "reasoning", "id": id, "summary": [text], "content": [] }),
        };
        let is_text = speech == Speech::Text;
        let dropped = is_text && self.cancelled.is_set() && self.has(Defect::BrokenOffMessagesStayOpen);
        if !dropped {
            self.completed(deviations::message(item, &self.behaviour));
            if is_text && self.has(Defect::MessagesAreCompletedTwice) {
                self.completed(json!({ "type": "agentMessage", "id": id, "text": text }));
            }
        }
        if is_text && self.has(Defect::DeltasAfterTheEnd) {
            self.publish("item/agentMessage/delta", json!({ "itemId": fresh("item"), "delta": "." }));
        }
    }
}

impl Agent for Player {
    type Stop = Stop;

    fn cancel(&mut self) -> &mut Cancel {
        &mut self.cancelled
    }

    fn chunks(&mut self, _speech: Speech, chunks: Vec<String>) -> Vec<String> {
        self.behaviour.recut(chunks, Style::OnePiece, Style::SmallPieces)
    }

    fn say(&mut self, chunk: Chunk) {
        let Chunk { speech, text, .. } = chunk;
        if self.open.as_ref().is_some_and(|open| open.speech != speech) {
            self.close();
        }
        let mut text = text;
        if !text.is_ascii() && self.has(Defect::TextIsAscii) {
            text = mutate::limit(&text, mutate::ASCII);
        }
        if text.chars().any(|each| u32::from(each) > 0xFFFF) && self.has(Defect::AstralTextIsLost) {
            text.retain(|each| u32::from(each) <= 0xFFFF);
        }
        if self.open.is_none() {
            let id = self.item_id();
            self.open = Some(Open { speech, id: id.clone(), text: String::new(), over: false });
            let item = match speech {
                Speech::Text => json!({ "type": "agentMessage", "id": id, "text": "" }),
                Speech::Thought => json!({ "type": "reasoning", "id": id, "summary": [], "content": [] }),
            };
            if !(speech == Speech::Text && self.has(Defect::MessagesAreNotStarted)) {
                self.started(&deviations::message(item, &self.behaviour));
            }
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(&text);
        if std::mem::take(&mut open.over) {
            self.behaviour.took_effect();
        }
        let id = open.id.clone();
        match speech {
            Speech::Text => {
                let mut told = text.clone();
                self.behaviour.mutate(&mut told, |defect, told| match defect {
                    Defect::DeltasAreCumulative => told.clone_from(&open.text),
                    Defect::DeltasAreAscii => *told = mutate::limit(told, mutate::ASCII),
                    Defect::DeltasAreTrimmed => *told = told.trim().to_owned(),
                    _ => {}
                });
                self.said += tokens(&text);
                self.publish("item/agentMessage/delta", json!({ "itemId": id, "delta": told }));
            }
            Speech::Thought if self.behaviour.style(Style::RawReasoning) => {
                let params = json!({ "itemId": id, "delta": text, "contentIndex": 0 });
                self.publish("item/reasoning/textDelta", params);
            }
            Speech::Thought => {
                let mut params = json!({ "itemId": id, "delta": text, "summaryIndex": 0 });
                if self.has(Defect::ReasoningHasNoIndex) {
                    params["summaryIndex"] = Value::Null;
                }
                self.publish("item/reasoning/summaryTextDelta", params);
            }
        }
    }

    fn text_ended(&mut self) {
        match &mut self.open {
            Some(open) if self.behaviour.prepares(Defect::AnswersAreOneItem) => open.over = true,
            _ => self.close(),
        }
        self.usage();
    }

    async fn call(&mut self, calls: Vec<Call>) -> Result<(), Stop> {
        let before = self.said;
        for call in &calls {
            self.perform(call).await?;
        }
        // The model reads what it has said, and what came of it.
        self.read += before;
        self.said = 0;
        Ok(())
    }

    async fn fail(&mut self, fail: Fail) -> Stop {
        self.close();
        // What belongs to the turn besides is told before its error.
        let _ = self.cancelled.sleep(Duration::ZERO).await;
        let error = deviations::error(fail.status, &fail.message, &self.behaviour);
        let is_received = self.core.lock().is_received(&self.thread, "error");
        let again = self
            .core
            .lock()
            .threads
            .get(&self.thread)
            .is_some_and(|thread| thread.turns.iter().any(|turn| turn.status == "failed"));
        let silent = || self.has(Defect::FailsInSilence) || again && self.has(Defect::LaterFailuresAreSilent);
        if is_received && !silent() {
            let told = if self.has(Defect::ErrorsDiffer) {
                json!({ "message": "something went wrong", "codexErrorInfo": "other" })
            } else {
                error.clone()
            };
            self.publish("error", json!({ "error": told, "willRetry": false }));
        }
        Stop::Failed(error)
    }
}
