//! Prompts: playing the cue, and what of it is stored and told.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::faults::Defect;
use super::rpc::{INTERNAL, Refusal, refuse, response};
use super::store::Topic;
use super::styles::Style;
use super::{Behaviour, Core, State};
use crate::cue::{self, Call, Fail};
use crate::reference::engine::Happening;
use crate::reference::engine::{Agent, Cancel, Cancelled, Chunk, Speech, notes};

/// How a prompt leaves the path to `end_turn`.
pub(super) enum Stop {
    Cancelled,
    Failed(Refusal),
}

impl From<Cancelled> for Stop {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A prompt that is being answered.
pub(super) struct Player {
    pub core: Arc<Core>,
    pub behaviour: Behaviour,
    pub session: String,
    /// Who prompted, and the id of the request.
    pub client: u64,
    pub id: Option<Value>,
    pub cancelled: Cancel,
    /// How many prompts of its connection there were, with this one.
    pub number: u32,
    /// A tool has failed.
    pub has_failed: bool,
    /// History that has been told and not stored, under a defect.
    pub unsaved: Vec<Value>,
}

impl Player {
    /// Plays the model's responses, and answers the request.
    pub async fn answer(mut self, text: String) {
        let content = json!({ "type": "text", "text": text });
        let said = json!({ "role": "user", "text": text });
        self.update(json!({ "sessionUpdate": "user_message_chunk", "content": content }), Some(said));
        if self.behaviour.style(Style::OwnThoughts) {
            let content = json!({ "type": "text", "text": "What is asked for?" });
            self.update(json!({ "sessionUpdate": "agent_thought_chunk", "content": content }), None);
        }
        let result = self.play(cue::responses(&text)).await;
        self.end(result);
    }

    /// Stores what happens, and then tells it.
    fn update(&mut self, mut update: Value, entry: Option<Value>) {
        let core = Arc::clone(&self.core);
        let mut state = core.lock();
        let State { store, streams, .. } = &mut *state;
        if let Some(entry) = entry {
            let is_agents = entry["role"] == "agent";
            let _ = store.hold_back(is_agents && self.behaviour.prepares(Defect::ChunksAreWrittenLate));
            if self.behaviour.strikes(Defect::StoresAtTheEnd) {
                self.unsaved.push(entry);
            } else if is_agents
                && self.behaviour.prepares(Defect::KeepsTheFirstMessage)
                && store.has_spoken(&self.session)
            {
                self.behaviour.took_effect();
            } else if entry["role"] != "user" || !self.behaviour.strikes(Defect::ForgetsPrompts) {
                // A store that fails is told by the answers to requests; there is none here.
                let _ = store.add_history(&self.session, &entry);
            }
        }
        let topic = [Topic::Session(self.session.clone())];
        let _ = streams.touched(store, &topic, None);
        let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
        let is_dropped = match kind.as_str() {
            "tool_call" => self.behaviour.strikes(Defect::ToolCallsUnannounced),
            "agent_message_chunk" => self.behaviour.strikes(Defect::NoMessageChunks),
            _ => false,
        };
        if is_dropped {
            return;
        }
        self.behaviour.mutate(&mut update, |defect, update| match (defect, kind.as_str()) {
            (Defect::ContentAsText, "agent_message_chunk") => {
                update["content"] = update["content"]["text"].clone();
            }
            (Defect::NoVariant, "agent_message_chunk") => {
                update.as_object_mut().map(|update| update.remove("sessionUpdate"));
            }
            (Defect::ToolCallsHaveNoTitle, "tool_call") => {
                update.as_object_mut().map(|update| update.remove("title"));
            }
            (Defect::ToolStatusDone, "tool_call_update") if update["status"] == "completed" => {
                update["status"] = json!("done");
            }
            (Defect::ThoughtsAreTexts, "agent_thought_chunk") => {
                update["content"] = update["content"]["text"].clone();
            }
            (Defect::UserChunksAreLists, "user_message_chunk") => {
                update["content"] = json!([update["content"]]);
            }
            (Defect::FailedToolsAreErrors, "tool_call_update") if update["status"] == "failed" => {
                update["status"] = json!("error");
            }
            (Defect::PlanIsAText, "plan") => update["entries"] = json!("1. call"),
            _ => {}
        });
        let mut params = json!({ "session_id": self.session, "update": core.spelling.update(update) });
        if self.behaviour.strikes(Defect::NamesAnotherSession) {
            if let Some(newest) = state.newest.get(&self.client) {
                params["session_id"] = json!(newest);
            }
        } else if self.behaviour.strikes(Defect::UpdatesHaveNoSession)
            || (kind == "tool_call_update" && self.behaviour.strikes(Defect::ToolUpdatesHaveNoSession))
        {
            params.as_object_mut().map(|params| params.remove("session_id"));
        }
        let is_users = kind == "user_message_chunk";
        if is_users && self.behaviour.style(Style::NoUserChunks) {
            return;
        }
        if self.behaviour.style(Style::CamelSessionIds)
            && let Some(session) = params.as_object_mut().and_then(|params| params.shift_remove("session_id"))
        {
            params["sessionId"] = session;
        }
        state.streams.notify(self.client, "session/update", params);
    }

    fn plan(&mut self, calls: &[Call], status: &str) {
        if self.behaviour.style(Style::NoPlans) {
            return;
        }
        let entries = calls.iter().map(
            |call| json!({ "content": format!("call {}", call.name), "priority": "medium", "status": status }),
        );
        let entries: Vec<Value> = entries.collect();
        self.update(json!({ "sessionUpdate": "plan", "entries": entries }), None);
    }

    fn end(&mut self, result: Result<(), Stop>) {
        let mut state = self.core.lock();
        let State { store, streams, .. } = &mut *state;
        for entry in self.unsaved.drain(..) {
            let _ = store.add_history(&self.session, &entry);
            let _ = streams.touched(store, &[Topic::Session(self.session.clone())], None);
        }
        state.running.remove(&self.session);
        let (Some(id), Some(outbox)) = (&self.id, state.streams.clients.get(&self.client)) else { return };
        let done = |reason: &str| {
            if self.behaviour.strikes(Defect::PromptIsNotOk)
                || (self.has_failed && self.behaviour.strikes(Defect::FailedToolsAreNotOk))
            {
                json!({ "ok": false })
            } else if reason == "cancelled" && self.behaviour.strikes(Defect::CancelledIsText) {
                json!({ "ok": "cancelled" })
            } else if self.behaviour.style(Style::OkOnly) {
                json!({ "ok": true })
            } else if self.behaviour.style(Style::StopReasonOnly) {
                self.core.spelling.result(json!({ "stopReason": reason }))
            } else {
                self.core.spelling.result(json!({ "ok": true, "stopReason": reason }))
            }
        };
        let is_cancelled = matches!(result, Err(Stop::Cancelled));
        let answer = match result {
            Ok(()) => Ok(done("end_turn")),
            Err(Stop::Cancelled) => Ok(done("cancelled")),
            Err(Stop::Failed(refusal)) => Err(refusal),
        };
        if let Err(refusal) = &answer {
            if self.behaviour.strikes(Defect::FailedPromptsAreUnanswered) {
                return;
            }
            if self.behaviour.strikes(Defect::LogsToTheClient) {
                outbox.send(Message::text(format!("ERROR {}", refusal.message)));
            }
        }
        outbox.send(Message::text(response(id, &answer, &self.behaviour).to_string()));
        if self.number == 3 && !is_cancelled && self.behaviour.strikes(Defect::ClosesAfterThreePrompts) {
            outbox.send(Message::Close(None));
        }
    }
}

impl Agent for Player {
    type Stop = Stop;

    fn cancel(&mut self) -> &mut Cancel {
        &mut self.cancelled
    }

    fn chunks(&mut self, _speech: Speech, mut chunks: Vec<String>) -> Vec<String> {
        if self.behaviour.strikes(Defect::ChunksOutOfOrder) {
            chunks.reverse();
        }
        self.behaviour.recut(chunks, Style::OnePiece, Style::SmallPieces)
    }

    fn say(&mut self, chunk: Chunk) {
        let (kind, role) = match chunk.speech {
            Speech::Text => ("agent_message_chunk", "agent"),
            Speech::Thought => ("agent_thought_chunk", "thought"),
        };
        let entry = json!({ "role": role, "text": chunk.text });
        let content = json!({ "type": "text", "text": chunk.text });
        self.update(json!({ "sessionUpdate": kind, "content": content }), Some(entry));
    }

    async fn fail(&mut self, fail: Fail) -> Stop {
        Stop::Failed(refuse(INTERNAL, format!("the provider answered {}: {}", fail.status, fail.message)))
    }

    async fn call(&mut self, calls: Vec<Call>) -> Result<(), Stop> {
        self.plan(&calls, "in_progress");
        if self.behaviour.style(Style::CallsTogether) {
            let announced: Vec<(String, &Call)> =
                calls.iter().enumerate().map(|(index, call)| (self.announce(index, call), call)).collect();
            for (id, call) in announced.iter().rev() {
                self.perform(id, call).await?;
            }
        } else {
            for (index, call) in calls.iter().enumerate() {
                let id = self.announce(index, call);
                self.perform(&id, call).await?;
            }
        }
        self.plan(&calls, "completed");
        Ok(())
    }
}

impl Player {
    /// Tells of a call, the one at this place of its response; its id.
    fn announce(&mut self, index: usize, Call { name: tool, args }: &Call) -> String {
        let number = {
            let mut state = self.core.lock();
            state.calls += 1;
            state.calls
        };
        let id = match self.behaviour.style(Style::CallIdsAreUuids) {
            true => uuid::Uuid::new_v4().to_string(),
            false => format!("call-{number}"),
        };
        let kind = match tool.as_str() {
            "read_note" => "read",
            "write_note" => "edit",
            "slow_note" => "execute",
            _ => "other",
        };
        let announced = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": format!("Call {tool}"), "kind": kind,
            "status": "pending", "rawInput": args,
        });
        let begun = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress" });
        let mut updates = vec![announced];
        if !self.behaviour.style(Style::OneUpdate) {
            updates.push(begun);
        }
        if self.behaviour.strikes(Defect::ProgressComesFirst) {
            updates.reverse();
        } else if index > 0 && self.behaviour.strikes(Defect::LaterCallsUnannounced) {
            updates.remove(0);
        }
        updates.into_iter().for_each(|update| self.update(update, None));
        id
    }

    /// Takes a call that was announced to its end.
    async fn perform(&mut self, id: &str, Call { name: tool, args }: &Call) -> Result<(), Stop> {
        self.behaviour.note(Happening::ToolStarts);
        let waited = if self.behaviour.prepares(Defect::CancelWaitsForTools) {
            tokio::time::sleep(notes::duration(tool, args)).await;
            let is_late = self.cancelled.is_set();
            if is_late {
                self.behaviour.took_effect();
            }
            if is_late { Err(Cancelled) } else { Ok(()) }
        } else {
            self.cancelled.sleep(notes::duration(tool, args)).await
        };
        self.behaviour.note(Happening::ToolEnds);
        let outcome = match &waited {
            Ok(()) => {
                let mut state = self.core.lock();
                state.notes.entry(self.session.clone()).or_default().run(tool, args)
            }
            Err(Cancelled) => notes::Outcome { text: "cancelled".to_owned(), is_error: true },
        };
        self.has_failed |= outcome.is_error;
        let status = if outcome.is_error { "failed" } else { "completed" };
        let entry = json!({ "role": "tool", "title": tool, "status": status, "text": outcome.text });
        let content = json!([{ "type": "content", "content": { "type": "text", "text": outcome.text } }]);
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content });
        self.update(update, Some(entry));
        waited?;
        Ok(())
    }
}
