//! Playing a turn: the model's responses, token by token, and the calls between them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::faults::Defect;
use super::session::{Inner, Session};
use crate::cue::{self, Step};
use crate::reference::notes;

/// How long the IDE may take over a call, unless the tool itself says how long it takes.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// The turn is over before its script is.
struct Over;

/// Begins a turn, or keeps the text until the turn that is under way is over.
pub(super) fn begin(session: &Arc<Session>, inner: &mut Inner, text: &str) {
    let deaf = match session.defect {
        Some(Defect::DedupesByText) => inner.said.as_deref() == Some(text),
        Some(Defect::StuckAfterRejection) => inner.rejected,
        _ => false,
    };
    inner.said = Some(text.to_owned());
    if deaf {
        return;
    }
    if inner.busy {
        inner.queue.push_back(text.to_owned());
        return;
    }
    inner.busy = true;
    tokio::spawn(play(Arc::clone(session), text.to_owned()));
}

async fn play(session: Arc<Session>, mut text: String) {
    loop {
        let turn = Turn { session: Arc::clone(&session), said: spoken(&text) };
        let mut results = Vec::new();
        for response in cue::responses(&text) {
            match turn.respond(response, &results).await {
                Ok(outcomes) => results = outcomes,
                Err(Over) => break,
            }
        }
        let mut inner = session.lock();
        inner.calls.clear();
        inner.abandoned = false;
        match inner.queue.pop_front() {
            Some(next) => text = next,
            None => {
                inner.busy = false;
                return;
            }
        }
    }
}

/// A text without its cue.
fn spoken(text: &str) -> String {
    let (before, rest) = text.split_once("[[cue:").unwrap_or((text, ""));
    let after = rest.split_once("]]").map_or("", |(_, after)| after);
    format!("{before}{after}").trim().to_owned()
}

struct Turn {
    session: Arc<Session>,
    said: String,
}

impl Turn {
    fn has(&self, defect: Defect) -> bool {
        self.session.has(defect)
    }

    fn emit(&self, frame: Value) {
        let session = &self.session;
        session.emit(&mut session.lock(), frame);
    }

    /// One model response; what its calls came to.
    async fn respond(&self, response: cue::Response, results: &[String]) -> Result<Vec<String>, Over> {
        let last = response.iter().rposition(|step| matches!(step, Step::Say { .. }));
        let calls_follow = response.iter().any(|step| matches!(step, Step::Call { .. }));
        let unfinished = response.iter().any(|step| matches!(step, Step::Hang { .. } | Step::Fail { .. }))
            || (calls_follow && self.has(Defect::TextBeforeCallsStaysOpen));
        let mut calls = Vec::new();
        let mut held = Vec::new();
        for (index, step) in response.into_iter().enumerate() {
            match step {
                Step::Say { say, every_ms } => {
                    let closes = last == Some(index) && !unfinished;
                    let chunks = say.iter().map(|chunk| self.fill(chunk, results)).collect();
                    self.stream(chunks, every_ms, closes, &mut held).await;
                }
                Step::Think { .. } => {
                    self.session.switched(&mut self.session.lock(), "coder", "the task is about code");
                }
                Step::Pause { pause_ms } => tokio::time::sleep(Duration::from_millis(pause_ms)).await,
                Step::Fail { fail } => {
                    if !self.has(Defect::FailuresAreSilent) {
                        let content = format!("the agent failed: {}", fail.message);
                        self.emit(json!({ "type": "error", "content": content }));
                    }
                    return Err(Over);
                }
                Step::Hang { .. } => {
                    self.until(|inner| inner.clients.is_empty()).await;
                    return Err(Over);
                }
                Step::Call { call } => calls.push((call.name, call.args)),
            }
        }
        held.into_iter().for_each(|frame| self.emit(frame));
        if self.has(Defect::DropsDottedCalls) {
            calls.retain(|(tool, _)| !tool.contains('.'));
        }
        self.session.lock().after_text = last.is_some();
        if calls.is_empty() { Ok(Vec::new()) } else { self.call(calls).await }
    }

    fn fill(&self, chunk: &str, results: &[String]) -> String {
        chunk.replace("<<results>>", &results.join("; ")).replace("<<text>>", &self.said)
    }

    /// Says chunks, each a token. `held`: what a defect keeps back until the response is over.
    async fn stream(&self, chunks: Vec<String>, every_ms: Option<u64>, closes: bool, held: &mut Vec<Value>) {
        let chunks = self.spoil(chunks);
        let count = chunks.len();
        for (index, chunk) in chunks.into_iter().enumerate() {
            if let Some(pause) = every_ms.filter(|pause| index > 0 && *pause > 0) {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            let is_final = closes && index + 1 == count;
            if self.has(Defect::LosesTokens) && index == 2 && !is_final {
                continue;
            }
            let frame = self.token(&chunk, is_final);
            if self.has(Defect::SaysAllAtTheEnd) || self.has(Defect::SaysAllAtOnce) {
                held.push(frame);
            } else {
                self.emit(frame);
            }
            if is_final && self.has(Defect::FinalTwice) {
                self.emit(self.token("", true));
            }
            if is_final && self.has(Defect::SaysDone) {
                self.emit(json!({ "type": "done" }));
            }
        }
    }

    fn spoil(&self, mut chunks: Vec<String>) -> Vec<String> {
        match self.session.defect {
            Some(Defect::SaysAllAtOnce) => chunks = vec![chunks.concat()],
            Some(Defect::SwapsTokens) if chunks.len() > 2 => chunks.swap(0, 1),
            Some(Defect::TrimsTokens) => {
                chunks.iter_mut().for_each(|chunk| *chunk = chunk.trim().to_owned());
            }
            Some(Defect::AsciiOnly) => chunks.iter_mut().for_each(|chunk| {
                *chunk = chunk.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
            }),
            _ => {}
        }
        chunks
    }

    fn token(&self, token: &str, is_final: bool) -> Value {
        let mut frame = json!({ "type": "assistant_message", "token": token, "is_final": is_final });
        let Some(map) = frame.as_object_mut() else { return frame };
        match self.session.defect {
            Some(Defect::EveryTokenIsFinal) => {
                map.insert("is_final".into(), json!(true));
            }
            Some(Defect::NothingIsFinal) => {
                map.insert("is_final".into(), json!(false));
            }
            Some(Defect::FinalAsText) => {
                map.insert("is_final".into(), json!(is_final.to_string()));
            }
            Some(Defect::FinalOnlyWhenTrue) if !is_final => {
                map.remove("is_final");
            }
            Some(Defect::TokenUnderAnotherName) => {
                let token = map.remove("token").unwrap_or_default();
                map.insert("content".into(), token);
            }
            Some(Defect::TokenHasExtra) => {
                map.insert("content".into(), json!(token));
            }
            Some(Defect::TokenWithoutType) => {
                map.remove("type");
            }
            _ => {}
        }
        frame
    }

    /// Waits until something holds.
    async fn until(&self, holds: impl Fn(&Inner) -> bool) {
        loop {
            let changed = self.session.changed.notified();
            if holds(&self.session.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Makes calls, and waits for what they come to.
    async fn call(&self, calls: Vec<(String, serde_json::Map<String, Value>)>) -> Result<Vec<String>, Over> {
        let session = &self.session;
        let limits = calls.iter().map(|(tool, args)| notes::duration(tool, args));
        let limit = limits.filter(|limit| !limit.is_zero()).min().unwrap_or(CALL_LIMIT);
        {
            let mut inner = session.lock();
            session.announce(&mut inner, calls);
            session.presume(&mut inner);
        }
        let answered =
            self.until(|inner| inner.abandoned || inner.calls.iter().all(|call| call.outcome.is_some()));
        let waits_for_ever =
            self.has(Defect::CallsNeverTimeOut) || session.lock().calls.iter().any(|call| call.guarded);
        let in_time = if waits_for_ever {
            answered.await;
            true
        } else {
            tokio::time::timeout(limit, answered).await.is_ok()
        };
        if !in_time {
            let content = "TOOL_EXECUTION_ERROR: the IDE did not answer in time";
            self.emit(json!({ "type": "error", "content": content }));
            return Err(Over);
        }
        let inner = session.lock();
        if inner.abandoned {
            return Err(Over);
        }
        Ok(inner.calls.iter().filter_map(|call| call.outcome.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cue_is_not_spoken() {
        for (text, expected) in
            [("hi", "hi"), ("Привет [[cue:abc]]", "Привет"), ("a [[cue:b]] c", "a  c"), ("a [[cue:b", "a")]
        {
            assert_eq!(spoken(text), expected);
        }
    }
}
