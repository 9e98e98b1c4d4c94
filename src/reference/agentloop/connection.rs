//! One connection: what its client's messages do.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::context::{max_tokens, tokens};
use super::conversation::{Answer, Conversation, Review};
use super::faults::Defect;
use super::items::Command;
use super::styles::Style;
use super::{Service, turn};
use crate::reference::engine::Happening;
use crate::reference::engine::clients;
use crate::reference::{ConnectionHandler, Socket};

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(self.connection(socket))
    }
}

impl Service {
    async fn connection(&self, socket: Socket) {
        let (sink, mut stream) = socket.split();
        let (outbox, outgoing) = clients::channel();
        let number = {
            let mut state = self.shared.lock();
            state.connections += 1;
            state.connections
        };
        let writer = tokio::spawn(outgoing.write_to(sink));
        let conversation = Arc::new(Conversation::new(&self.shared, number, outbox));
        let mut peer = Peer { conversation, turn: None, cause: String::new() };
        while let Some(Ok(message)) = stream.next().await {
            let goes_on = match message {
                Message::Text(text) => peer.message(text.as_bytes()),
                Message::Binary(bytes) => peer.message(&bytes),
                Message::Close(_) => break,
                _ => true,
            };
            if !goes_on {
                break;
            }
        }
        peer.leave();
        writer.abort();
    }
}

struct Peer {
    conversation: Arc<Conversation>,
    turn: Option<JoinHandle<()>>,
    /// The id of the message that started the turn.
    cause: String,
}

/// Whether the connection goes on.
type GoesOn = bool;

impl Peer {
    fn has(&self, defect: Defect) -> bool {
        self.conversation.has(defect)
    }

    fn style(&self, style: Style) -> bool {
        self.conversation.style(style)
    }

    /// What the connection leaves behind: nothing.
    fn leave(&mut self) {
        let conversation = &self.conversation;
        let pending = conversation.lock().pending.take();
        if let Some(command) = &pending {
            self.forget_request(command);
        }
        if let Some(command) = pending.filter(|_| self.has(Defect::GoneRunsLate)) {
            let shared = Arc::clone(&conversation.shared);
            tokio::spawn(async move {
                tokio::time::sleep(super::asking::LATE).await;
                command.run(&mut shared.lock().notes);
            });
        }
        let behaviour = conversation.behaviour();
        if behaviour.prepares(Defect::RoutesByClientId) {
            conversation.shared.lock().routes.retain(|_, (number, _)| *number != conversation.number);
        }
        if behaviour.prepares(Defect::TurnsOutliveConnections) {
            conversation.shared.lock().orphans.insert(self.cause.clone());
            return;
        }
        if conversation.lock().asking > 0 && self.has(Defect::RunsWhenGone) {
            conversation.lock().answers.push_back(Answer { review: Review::Yes, reason: None });
            conversation.changed.notify_waiters();
            return;
        }
        if let Some(turn) = self.turn.take() {
            turn.abort();
        }
    }

    /// What defects make of a request that nobody can answer any more.
    fn forget_request(&self, command: &Command) {
        let conversation = &self.conversation;
        let mut state = conversation.shared.lock();
        state.waiting.remove(&command.words);
        if conversation.behaviour().prepares(Defect::AskedBeforeLeaving) {
            state.approved.insert(command.words.clone(), conversation.number);
        }
    }

    fn message(&mut self, bytes: &[u8]) -> GoesOn {
        let conversation = Arc::clone(&self.conversation);
        conversation.behaviour().message(bytes);
        let body = match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(body)) => body,
            Ok(_) | Err(_) => {
                if self.has(Defect::ClosesOnBadJson) {
                    return false;
                }
                if !self.has(Defect::SilentOnBadJson) {
                    conversation.refuse("", "Invalid message format");
                }
                return true;
            }
        };
        let is_large = bytes.len() > 512 * 1024;
        if is_large && self.has(Defect::DropsLargeInput) {
            return false;
        }
        if is_large && self.style(Style::ClosesOnLargeInput) {
            conversation
                .hang_up(Message::Close(Some(CloseFrame { code: CloseCode::Size, reason: "".into() })));
            return true;
        }
        let id = body.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        // During a turn an input is refused anyway.
        let starts = body.get("type").is_some_and(|kind| kind == "user_input") && !conversation.lock().busy;
        let id = match id {
            Some(id) => id,
            None if body.contains_key("id") && starts && self.has(Defect::TakesAnyId) => "any",
            None => {
                conversation.refuse("", "A message needs an id, a string");
                return true;
            }
        };
        let Some(kind) = body.get("type").and_then(Value::as_str) else {
            conversation.refuse(id, "A message needs a type, a string");
            return true;
        };
        if self.dislikes(id) {
            conversation.error(id, "The id must be a UUID", Value::Null);
            return true;
        }
        conversation.note_route(id);
        let is_query = matches!(kind, "get_context_info" | "manual_compact");
        if is_query && body.get("payload").is_some_and(Value::is_null) && self.has(Defect::RefusesNullPayload)
        {
            conversation.error(id, "The payload must be an object", Value::Null);
            return true;
        }
        let empty = Map::new();
        let payload = body.get("payload").and_then(Value::as_object);
        if is_query && payload.is_none() && self.has(Defect::NeedsPayload) {
            conversation.error(id, "A message needs a payload", Value::Null);
            return true;
        }
        let payload = payload.unwrap_or(&empty);
        match kind {
            "user_input" => self.input(id, payload),
            "approval_response" => self.answer(id, payload),
            "get_context_info" => self.context(id, body.contains_key("payload")),
            "manual_compact" => self.compact(id),
            kind if !self.has(Defect::SilentOnUnknownType) => {
                self.obey(id, kind);
                conversation.refuse(id, &format!("Unknown message type: {kind}"));
                if self.has(Defect::RefusesTwice) {
                    conversation.error(id, "Cannot handle it", Value::Null);
                }
            }
            _ => {}
        }
        true
    }

    /// What defects make of a message that only a server sends, besides refusing it.
    fn obey(&self, id: &str, kind: &str) {
        let conversation = &self.conversation;
        match kind {
            "response_item" if self.has(Defect::ObeysServerTypes) => conversation.count(id, "an item"),
            "loading_state" if self.has(Defect::ObeysLoading) => conversation.lock().busy = true,
            "agent_finished" if self.has(Defect::ObeysFinish) => {
                conversation.lock().context = super::context::Context::default();
            }
            _ => {}
        }
    }

    /// A defect refuses the id of a message.
    fn dislikes(&self, id: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (uuid::Uuid::try_parse(id).is_err() && self.has(Defect::NeedsUuid))
            || (id.len() > 36 && self.has(Defect::NeedsShortIds))
            || (!id.chars().all(is_plain) && self.has(Defect::NeedsPlainIds))
    }

    fn compact(&self, id: &str) {
        let conversation = &self.conversation;
        let report = {
            let mut inner = conversation.lock();
            if inner.context.is_small() && self.style(Style::RefusesToCompact) {
                drop(inner);
                return conversation.error(id, "There is nothing to compact", Value::Null);
            }
            if !inner.busy && inner.context.is_empty() && self.has(Defect::BusyAfterNoCompaction) {
                inner.busy = true;
            }
            inner.context.compact(conversation.behaviour())
        };
        let mut times = 1;
        conversation.behaviour().mutate(&mut times, |defect, times| match defect {
            Defect::IgnoresCompact => *times = 0,
            Defect::CompactsTwice => *times = 2,
            _ => {}
        });
        for _ in 0..times {
            conversation.send(id, "context_compacted", report.clone());
        }
    }

    fn input(&mut self, id: &str, payload: &Map<String, Value>) {
        let conversation = Arc::clone(&self.conversation);
        let is_continued = payload.get("previousResponseId").is_some_and(Value::is_string);
        if is_continued && self.has(Defect::PreviousIdIsLost) {
            return;
        }
        let text = match self.text_of(payload) {
            Ok(text) => text,
            Err(problem) => {
                if self.has(Defect::RefusedInputCounts) {
                    conversation.lock().context.add("refused", conversation.behaviour());
                }
                return conversation.refuse(id, problem);
            }
        };
        if text.starts_with('/') && self.has(Defect::IgnoresSlashes) {
            return;
        }
        let most = max_tokens(conversation.behaviour());
        if tokens(&text) > most / 10 * 9 {
            let details = json!({ "maxTokens": most });
            return conversation.error(id, "The input does not fit into the context", details);
        }
        if self.style(Style::QueuesInput) || self.style(Style::JoinsInput) {
            let mut inner = conversation.lock();
            if inner.playing {
                return inner.inputs.push_back((id.to_owned(), text));
            }
            inner.playing = true;
        }
        if conversation.lock().busy {
            if self.has(Defect::InputReplacesTurn)
                && let Some(turn) = self.turn.take()
            {
                turn.abort();
                conversation.lock().asking = 0;
                conversation.send(&self.cause, "loading_state", json!({ "loading": false }));
                conversation.finish(&self.cause);
            }
            if self.style(Style::DropsInput) {
                return;
            }
            return conversation.error(id, "A turn is under way", Value::Null);
        }
        {
            let mut inner = conversation.lock();
            if inner.finished && self.has(Defect::OneTurnOnly) {
                return;
            }
            inner.busy = true;
            inner.failed = false;
            inner.turns += 1;
        }
        conversation.behaviour().note(Happening::Turn);
        self.cause = id.to_owned();
        let turn = tokio::spawn(turn::play(Arc::clone(&conversation), id.to_owned(), text));
        self.turn = Some(turn);
    }

    /// The user's text of an input.
    fn text_of(&self, payload: &Map<String, Value>) -> Result<String, &'static str> {
        let items = match payload.get("input") {
            Some(Value::Array(items)) => items,
            Some(Value::String(text)) if self.has(Defect::InputMayBeText) => return Ok(text.clone()),
            None if self.has(Defect::InputIsOptional) => return Ok(String::new()),
            _ => return Err("Failed to process user input: payload.input must be an array"),
        };
        let previous = payload.get("previousResponseId").and_then(Value::as_str);
        if previous.is_some() && self.has(Defect::KnowsResponseIds) {
            return Err("Failed to process user input: unknown previousResponseId");
        }
        if previous.is_none() && self.conversation.lock().finished && self.has(Defect::NeedsResponseId) {
            return Err("Failed to process user input: no previousResponseId");
        }
        let most = if items.len() > 1 && self.has(Defect::OneItemOnly) { 1 } else { usize::MAX };
        let parts = items.iter().take(most).filter_map(|item| item["content"].as_array()).flatten();
        let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        let is_parted =
            items.iter().any(|item| item["content"].as_array().is_some_and(|parts| parts.len() > 1));
        let refused = (is_parted && self.has(Defect::RefusesSeveralParts))
            || (texts.iter().any(|text| text.len() > 16_000) && self.has(Defect::RefusesLongText))
            || (texts.iter().any(|text| text.contains('\n')) && self.has(Defect::RefusesLineBreaks))
            || (!texts.iter().all(|text| text.is_ascii()) && self.has(Defect::RefusesBeyondAscii));
        if refused {
            return Err("Failed to process user input: unsupported content");
        }
        Ok(texts.join("\n"))
    }

    fn answer(&self, id: &str, payload: &Map<String, Value>) {
        let conversation = &self.conversation;
        let text = |name: &str| payload.get(name).and_then(Value::as_str);
        // Without a request, an answer is refused anyway.
        let asks = conversation.lock().asking > 0;
        let has = |defect| asks && self.has(defect);
        let is_missing = payload.get("review").is_none_or(Value::is_null);
        let review = match text("review").map(Review::named) {
            Some(None) if has(Defect::AnyReviewApproves) => Some(Review::Yes),
            None if is_missing && has(Defect::NoReviewApproves) => Some(Review::Yes),
            review => review.flatten(),
        };
        let is_null = payload.get("customDenyMessage").is_some_and(Value::is_null);
        let has_extra =
            text("explanation").is_some() && payload.get("applyPatch").is_some_and(Value::is_object);
        let refused = (is_null && has(Defect::RefusesNull)) || (has_extra && has(Defect::RefusesExplanation));
        let nulls = ["customDenyMessage", "applyPatch", "explanation"];
        let has_null = nulls.iter().any(|field| payload.get(*field).is_some_and(Value::is_null));
        if has_null && review.is_some() && has(Defect::NullIsIgnored) {
            return;
        }
        let approves = matches!(review, Some(Review::Yes | Review::Always));
        let review =
            if has_null && approves && has(Defect::NullDenies) { Some(Review::NoContinue) } else { review };
        let Some(review) = review.filter(|_| !refused) else {
            self.refused_review(payload.get("review").is_some_and(|review| !review.is_null()));
            return self.unexpected_answer(id, "Invalid approval response");
        };
        let mut inner = conversation.lock();
        let prepares = |defect| conversation.behaviour().prepares(defect);
        let denies = matches!(review, Review::NoContinue | Review::NoExit);
        let keeps = prepares(Defect::KeepsStrayApproval) || (denies && prepares(Defect::KeepsStrayDenial));
        if inner.asking == 0 && !keeps {
            drop(inner);
            return self.unexpected_answer(id, "No pending approval request");
        }
        inner.asking = inner.asking.saturating_sub(1);
        conversation.behaviour().note(Happening::Decided);
        if denies {
            conversation.behaviour().note(Happening::Denial);
        }
        inner.answers.push_back(Answer { review, reason: text("customDenyMessage").map(str::to_owned) });
        drop(inner);
        conversation.changed.notify_waiters();
    }

    /// An approval_response decides nothing.
    fn unexpected_answer(&self, id: &str, problem: &str) {
        if self.style(Style::SilentOnStray) {
            return self.conversation.behaviour().note(Happening::Error);
        }
        self.conversation.error(id, problem, Value::Null);
    }

    /// What defects make of a review that is none, besides refusing it.
    fn refused_review(&self, is_unknown: bool) {
        let conversation = &self.conversation;
        let Some(command) = conversation.lock().pending.clone() else { return };
        let runs = if is_unknown { Defect::UnknownReviewRuns } else { Defect::MissingReviewRuns };
        if self.has(runs) {
            command.run(&mut conversation.shared.lock().notes);
        }
        if is_unknown && self.has(Defect::UnknownReviewDenies) {
            let mut inner = conversation.lock();
            inner.asking = inner.asking.saturating_sub(1);
            inner.answers.push_back(Answer { review: Review::NoContinue, reason: None });
            conversation.changed.notify_waiters();
        }
    }

    fn context(&self, id: &str, has_payload: bool) {
        let conversation = &self.conversation;
        let (info, queries, busy, failed) = {
            let mut inner = conversation.lock();
            inner.queries += 1;
            (inner.context.info(conversation.behaviour()), inner.queries, inner.busy, inner.failed)
        };
        let is_silent = self.has(Defect::SilentOnContext)
            || (busy && self.has(Defect::ContextWaits))
            || (queries > 50 && self.has(Defect::LosesBursts));
        if is_silent {
            return;
        }
        if !busy && !has_payload && self.has(Defect::ContextStartsTurn) {
            conversation.small_turn(id);
        }
        if self.has(Defect::AnswersTwice) {
            conversation.send(id, "context_info", info.clone());
        }
        let loads = !busy && failed && self.has(Defect::ContextLoads);
        if loads {
            conversation.send(id, "loading_state", json!({ "loading": true }));
        }
        conversation.send(id, "context_info", info.clone());
        if loads {
            conversation.send(id, "loading_state", json!({ "loading": false }));
        }
        let is_new = queries == 1 && conversation.lock().turns == 0;
        if is_new && conversation.behaviour().prepares(Defect::ContextStartsTurnLate) {
            let (conversation, id) = (Arc::clone(conversation), id.to_owned());
            tokio::spawn(async move { conversation.small_turn_late(&id).await });
        }
        if self.has(Defect::AnswersLateAgain) {
            let (conversation, id) = (Arc::clone(conversation), id.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep(super::asking::LATE).await;
                conversation.send(&id, "context_info", info);
            });
        }
    }
}
