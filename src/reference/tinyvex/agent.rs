//! Prompts: playing the cue, and what of it is stored and told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

use super::faults::Defect;
use super::rpc::{INTERNAL, Refusal, refuse, response};
use super::store::Topic;
use super::{Core, State};
use crate::cue::{self, Step};
use crate::reference::notes;

/// How a prompt leaves the path to `end_turn`.
enum Stop {
    Cancelled,
    Failed(Refusal),
}

/// A prompt that is being answered.
pub(super) struct Player {
    pub core: Arc<Core>,
    pub session: String,
    /// Who prompted, and the id of the request.
    pub client: u64,
    pub id: Option<Value>,
    pub cancelled: watch::Receiver<bool>,
    /// History that has been told and not stored, under a defect.
    pub unsaved: Vec<Value>,
}

impl Player {
    /// Plays the model's responses, and answers the request.
    pub async fn play(mut self, text: String) {
        let content = json!({ "type": "text", "text": text });
        let said = json!({ "role": "user", "text": text });
        self.update(json!({ "sessionUpdate": "user_message_chunk", "content": content }), Some(said));
        let mut result = Ok(());
        for answer in cue::responses(&text) {
            result = self.respond(answer).await;
            if result.is_err() {
                break;
            }
        }
        self.end(result);
    }

    /// Stores what happens, and then tells it.
    fn update(&mut self, mut update: Value, entry: Option<Value>) {
        let core = Arc::clone(&self.core);
        let mut state = core.lock();
        let State { store, streams, .. } = &mut *state;
        if let Some(entry) = entry {
            match core.defect {
                Some(Defect::StoresAtTheEnd) => self.unsaved.push(entry),
                Some(Defect::ForgetsPrompts) if entry["role"] == "user" => {}
                _ => {
                    // A store that fails is told by the answers to requests; there is none here.
                    let _ = store.add_history(&self.session, &entry);
                }
            }
        }
        let topic = [Topic::Session(self.session.clone())];
        let _ = streams.touched(store, &topic, None);
        let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
        match (core.defect, kind.as_str()) {
            (Some(Defect::ContentAsText), "agent_message_chunk") => {
                update["content"] = update["content"]["text"].clone();
            }
            (Some(Defect::NoVariant), "agent_message_chunk") => {
                update.as_object_mut().map(|update| update.remove("sessionUpdate"));
            }
            (Some(Defect::ToolCallsHaveNoTitle), "tool_call") => {
                update.as_object_mut().map(|update| update.remove("title"));
            }
            (Some(Defect::ToolStatusDone), "tool_call_update") if update["status"] == "completed" => {
                update["status"] = json!("done");
            }
            (Some(Defect::ToolCallsUnannounced), "tool_call") => return,
            (Some(Defect::PlanIsAText), "plan") => update["entries"] = json!("1. call"),
            (Some(Defect::NoMessageChunks), "agent_message_chunk") => return,
            _ => {}
        }
        let mut params = json!({ "session_id": self.session, "update": update });
        match core.defect {
            Some(Defect::NamesAnotherSession) => {
                if let Some(newest) = state.newest.get(&self.client) {
                    params["session_id"] = json!(newest);
                }
            }
            Some(Defect::UpdatesHaveNoSession) => {
                params.as_object_mut().map(|params| params.remove("session_id"));
            }
            _ => {}
        }
        state.streams.notify(self.client, "session/update", params);
    }

    /// Waits, unless the prompt is cancelled first.
    async fn wait(&mut self, time: Option<Duration>) -> Result<(), Stop> {
        if *self.cancelled.borrow() {
            return Err(Stop::Cancelled);
        }
        let Some(time) = time.filter(|time| !time.is_zero()) else { return Ok(()) };
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            _ = self.cancelled.wait_for(|cancelled| *cancelled) => Err(Stop::Cancelled),
        }
    }

    async fn respond(&mut self, answer: cue::Response) -> Result<(), Stop> {
        let mut calls = Vec::new();
        for step in answer {
            self.wait(None).await?;
            match step {
                Step::Say { say, every_ms } => {
                    self.stream("agent_message_chunk", "agent", say, every_ms).await?
                }
                Step::Think { think, every_ms } => {
                    self.stream("agent_thought_chunk", "thought", think, every_ms).await?;
                }
                Step::Pause { pause_ms } => self.wait(Some(Duration::from_millis(pause_ms))).await?,
                Step::Fail { fail } => {
                    let message = format!("the provider answered {}: {}", fail.status, fail.message);
                    return Err(Stop::Failed(refuse(INTERNAL, message)));
                }
                Step::Hang { .. } => {
                    // An error: the session is gone, and the prompt with it.
                    let _ = self.cancelled.wait_for(|cancelled| *cancelled).await;
                    return Err(Stop::Cancelled);
                }
                Step::Call { call } => calls.push((call.name, call.args)),
            }
        }
        if calls.is_empty() { Ok(()) } else { self.call(calls).await }
    }

    async fn stream(
        &mut self,
        kind: &str,
        role: &str,
        mut chunks: Vec<String>,
        every_ms: Option<u64>,
    ) -> Result<(), Stop> {
        if self.core.defect == Some(Defect::ChunksOutOfOrder) {
            chunks.reverse();
        }
        for (index, chunk) in chunks.into_iter().enumerate() {
            self.wait(every_ms.filter(|_| index > 0).map(Duration::from_millis)).await?;
            let entry = json!({ "role": role, "text": chunk });
            let content = json!({ "type": "text", "text": chunk });
            self.update(json!({ "sessionUpdate": kind, "content": content }), Some(entry));
        }
        Ok(())
    }

    fn plan(&mut self, calls: &[(String, Map<String, Value>)], status: &str) {
        let entries = calls.iter().map(
            |(tool, _)| json!({ "content": format!("call {tool}"), "priority": "medium", "status": status }),
        );
        let entries: Vec<Value> = entries.collect();
        self.update(json!({ "sessionUpdate": "plan", "entries": entries }), None);
    }

    async fn call(&mut self, calls: Vec<(String, Map<String, Value>)>) -> Result<(), Stop> {
        self.plan(&calls, "in_progress");
        for (tool, args) in &calls {
            let number = {
                let mut state = self.core.lock();
                state.calls += 1;
                state.calls
            };
            let id = format!("call-{number}");
            let kind = match tool.as_str() {
                "read_note" => "read",
                "write_note" => "edit",
                "slow_note" => "execute",
                _ => "other",
            };
            self.update(
                json!({
                    "sessionUpdate": "tool_call", "toolCallId": id, "title": format!("Call {tool}"), "kind": kind,
                    "status": "pending", "rawInput": args,
                }),
                None,
            );
            self.update(
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress" }),
                None,
            );
            let waited = self.wait(Some(notes::duration(tool, args))).await;
            let outcome = match &waited {
                Ok(()) => {
                    let mut state = self.core.lock();
                    state.notes.entry(self.session.clone()).or_default().run(tool, args)
                }
                Err(_) => notes::Outcome { text: "cancelled".to_owned(), is_error: true },
            };
            let status = if outcome.is_error { "failed" } else { "completed" };
            let entry = json!({ "role": "tool", "title": tool, "status": status, "text": outcome.text });
            let content = json!([{ "type": "content", "content": { "type": "text", "text": outcome.text } }]);
            let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content });
            self.update(update, Some(entry));
            waited?;
        }
        self.plan(&calls, "completed");
        Ok(())
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
        let done = |reason: &str| match self.core.defect {
            Some(Defect::PromptIsNotOk) => json!({ "ok": false }),
            _ => json!({ "ok": true, "stopReason": reason }),
        };
        let answer = match result {
            Ok(()) => Ok(done("end_turn")),
            Err(Stop::Cancelled) => Ok(done("cancelled")),
            Err(Stop::Failed(refusal)) => Err(refusal),
        };
        outbox.send(Message::text(response(id, &answer, self.core.defect).to_string()));
    }
}
