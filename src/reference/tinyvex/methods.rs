//! The tinyvex methods.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::State;
use super::connection::{Answer, Peer};
use super::faults::Defect;
use super::rpc::{METHOD_NOT_FOUND, Params, REJECTED, Refusal, invalid, refuse, response};
use super::store::Topic;
use super::streams::{MAX_CHUNK, Wanted};
use super::styles::Style;

impl Peer<'_> {
    pub fn connect(&self, params: &Params<'_>) -> Result<Answer, Refusal> {
        let client = params.get("client").and_then(Value::as_object);
        let is_text = |name: &str| client.and_then(|client| client.get(name)).is_some_and(Value::is_string);
        let is_proper = is_text("name") && is_text("version");
        if !is_proper && !self.has(Defect::AnyClient) {
            return Err(invalid(&["client"]));
        }
        if !self.has(Defect::AnySkew) {
            params.optional("clockSkewHint", Value::is_number)?;
        }
        let now = jiff::Timestamp::now().as_millisecond();
        let id = if self.has(Defect::ConnectionIdsRepeat) { 1 } else { self.client };
        let mut result = json!({
            "serverVersion": env!("CARGO_PKG_VERSION"), "nowTs": now,
            "features": { "chunks": true, "maxChunkBytes": MAX_CHUNK }, "sessionId": format!("conn-{id}"),
        });
        if self.style(Style::NowInSeconds) {
            result["nowTs"] = json!(now as f64 / 1000.0);
        }
        if self.style(Style::UuidConnections) {
            result["sessionId"] = json!(uuid::Uuid::new_v4().to_string());
        }
        if self.style(Style::NoChunks) {
            result["features"]["chunks"] = json!(false);
        }
        if self.style(Style::LargeChunks) {
            result["features"]["maxChunkBytes"] = json!(64 * MAX_CHUNK);
        }
        self.behaviour.mutate(&mut result, |defect, result| match defect {
            Defect::ChunksUnannounced => result["features"]["chunks"] = json!(false),
            Defect::MaxChunkBytesAsText => result["features"]["maxChunkBytes"] = json!("1024"),
            Defect::NowAsText => result["nowTs"] = json!(jiff::Timestamp::now().to_string()),
            Defect::EmptyConnectionId => result["sessionId"] = json!(""),
            Defect::NoFeatures => {
                result.as_object_mut().map(|result| result.remove("features"));
            }
            _ => {}
        });
        Ok(Answer::Now(result))
    }

    pub fn subscribe(&self, id: Option<&Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        let (sub_id, name, inner) = (params.text("subId")?, params.text("name")?, params.given("params"));
        let null = Value::Null;
        let inner = match inner {
            Err(_) if self.has(Defect::ParamsMayLack) => &null,
            inner => inner?,
        };
        if inner.is_array() && self.has(Defect::IgnoresListParams) {
            return Ok(Answer::Elsewhere);
        }
        let last_seq = match params.optional("lastSeq", Value::is_number) {
            Err(_) if self.has(Defect::AnyCursor) => None,
            last_seq => last_seq?,
        };
        let journal = match params.optional("journal", Value::is_string) {
            Err(_) if self.has(Defect::AnyCursor) => None,
            journal => journal?,
        };
        let wanted = Wanted {
            client: self.client,
            sub_id,
            name,
            params: inner,
            last_seq: last_seq.and_then(Value::as_f64).map(|seq| seq.max(0.0) as u64),
            journal: journal.and_then(Value::as_str),
        };
        let mut state = self.core.lock();
        let State { store, streams, .. } = &mut *state;
        let (mut result, values) = streams.subscribe(store, &wanted)?;
        if self.has(Defect::StartSeqAsText) {
            result["startSeq"] = json!(result["startSeq"].to_string());
        }
        // Under the lock: nothing newer comes in between.
        let last = !values.is_empty() && self.has(Defect::ValueBeforeResult);
        if !last {
            self.answer(id, &Ok(result.clone()));
        }
        let silent = last_seq.is_none() && self.has(Defect::NoInitialValue);
        for (seq, value) in values.iter().filter(|_| !silent) {
            streams.deliver(self.client, sub_id, *seq, value);
        }
        if last {
            self.answer(id, &Ok(result));
        }
        Ok(Answer::Elsewhere)
    }

    pub fn unsubscribe(&self, params: &Params<'_>) -> Result<Answer, Refusal> {
        let sub_id = match params.text("subId") {
            Err(_) if self.has(Defect::UnsubscribesNothing) => return Ok(Answer::Now(json!({ "ok": true }))),
            sub_id => sub_id?,
        };
        if !self.has(Defect::UnsubscribeIsIgnored) {
            let known = self.core.lock().streams.unsubscribe(self.client, sub_id);
            if !known && self.style(Style::RefusesUnknownIds) {
                return Err(refuse(REJECTED, "SubscriptionNotFound"));
            }
        }
        Ok(Answer::Now(json!({ "ok": true })))
    }

    fn call<'p>(params: &Params<'p>, lenient: bool) -> Result<(&'p str, &'p str, &'p Value), Refusal> {
        let id = match params.text("requestId") {
            Err(_) if lenient && params.get("requestId").is_none() => "",
            id => id?,
        };
        Ok((id, params.text("name")?, params.given("args")?))
    }

    pub fn mutation(&self, id: Option<&Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        let (request_id, name, args) = Self::call(params, self.has(Defect::RequestIdsMayLack))?;
        if name == "increment" && self.has(Defect::LosesUpdates) {
            return Ok(self.increment_slowly(id, request_id, args));
        }
        let keep = self.has(Defect::FailuresLeaveTraces);
        let mut state = self.core.lock();
        let State { store, streams, .. } = &mut *state;
        let done = match store.mutate(name, args, keep) {
            Err(refusal) if refusal.code == REJECTED && self.has(Defect::UnknownMutationsAreFine) => {
                Ok((Value::Null, Vec::new()))
            }
            done => done,
        };
        let touched = match &done {
            Ok((_, topics)) if name != "breakThread" => topics.clone(),
            Err(_) if keep => {
                args["threadId"].as_str().map(|thread| Topic::Thread(thread.to_owned())).into_iter().collect()
            }
            _ => Vec::new(),
        };
        let mut announced = json!({ "requestId": request_id });
        let answer = match &done {
            Ok((value, _)) => {
                announced["value"] = value.clone();
                Ok(self.mutated(request_id, value))
            }
            Err(refusal) => {
                announced["error"] = json!({ "code": "TVX003", "message": refusal.message });
                if self.style(Style::NumericFailures) {
                    announced["error"]["code"] = json!(refusal.code);
                }
                Err(refusal.clone())
            }
        };
        if answer.is_ok() && self.behaviour.strikes(Defect::ResultsDisagree) {
            announced["value"] = json!("another")
        } else if self.behaviour.strikes(Defect::ValueBesideError) {
            announced["value"] = Value::Null
        }
        if self.style(Style::DataFirst) && name != "breakThread" {
            streams.touched(store, &touched, Some(self.client))?;
        }
        let first = self.style(Style::MutateResultFirst);
        if !first {
            self.answer(id, &answer);
        }
        if !self.style(Style::NoMutateResult) {
            streams.notify(self.client, "tinyvex/mutate_result", announced);
        }
        if first {
            self.answer(id, &answer);
        }
        if let (Ok((_, topics)), "breakThread") = (&done, name) {
            streams.fail(topics);
        }
        if self.style(Style::SlowMutations) {
            let (core, client) = (Arc::clone(self.core), self.client);
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                let mut state = core.lock();
                let State { store, streams, .. } = &mut *state;
                let _ = streams.touched(store, &touched, Some(client));
            });
            return Ok(Answer::Elsewhere);
        }
        streams.touched(store, &touched, Some(self.client))?;
        Ok(Answer::Elsewhere)
    }

    fn mutated(&self, request_id: &str, value: &Value) -> Value {
        let mut result = json!({ "requestId": request_id, "value": value });
        if self.behaviour.strikes(Defect::OwnRequestIds) {
            result["requestId"] = json!("r-1")
        } else if self.behaviour.strikes(Defect::NoMutationValue) {
            result.as_object_mut().map(|result| result.remove("value"));
        }
        result
    }

    /// Reads, waits and writes: what other connections wrote in between is lost.
    fn increment_slowly(&self, id: Option<&Value>, request_id: &str, args: &Value) -> Answer {
        let name = args["name"].as_str().unwrap_or_default().to_owned();
        let by = args["by"].as_i64().unwrap_or(1);
        let id = id.cloned().unwrap_or_default();
        let (core, outbox, request_id) = (Arc::clone(self.core), self.outbox.clone(), request_id.to_owned());
        let slow = Arc::clone(&self.slow);
        tokio::spawn(async move {
            let _turn = slow.lock().await;
            let before = core.lock().store.counter(&name);
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            let mut state = core.lock();
            let State { store, streams, .. } = &mut *state;
            let _ = store.set_counter(&name, before + by);
            let result = json!({ "requestId": request_id, "value": before + by });
            outbox.send(Message::text(response(&id, &Ok(result), &core.behaviour).to_string()));
            let _ = streams.touched(store, &[Topic::Counter(name)], None);
        });
        Answer::Elsewhere
    }

    pub fn action(&self, params: &Params<'_>) -> Result<Answer, Refusal> {
        let (request_id, name, args) = Self::call(params, false)?;
        let value = match name {
            "echo" => args.clone(),
            _ if self.has(Defect::ActionsNeverFail) => Value::Null,
            "fail" => return Err(refuse(REJECTED, "ActionFailed")),
            _ => return Err(refuse(REJECTED, format!("no action {name:?}"))),
        };
        let mut result = json!({ "requestId": request_id, "value": value });
        if self.has(Defect::ActionsForgetTheirRequest) {
            result["requestId"] = json!("r-1");
        }
        Ok(Answer::Now(result))
    }

    pub fn set_token(&self, params: &Params<'_>) -> Result<Answer, Refusal> {
        if self.style(Style::NoTokens) {
            return Err(refuse(METHOD_NOT_FOUND, "Method not found"));
        }
        let token = match params.given("token") {
            Err(_) if self.has(Defect::AnyToken) => &Value::Null,
            token => token?,
        };
        if !(token.is_null() || token.is_string() || self.has(Defect::AnyToken)) {
            return Err(invalid(&["token"]));
        }
        if token.is_null() && self.has(Defect::TokensCannotBeCleared) {
            return Ok(Answer::Now(json!({ "ok": false })));
        }
        Ok(Answer::Now(json!({ "ok": true })))
    }

    pub fn ping(&self, is_request: bool, params: &Params<'_>) -> Result<Answer, Refusal> {
        let t = match params.optional("t", Value::is_number) {
            Err(_) if self.has(Defect::AnyPing) => None,
            t => t?,
        };
        let mut result = json!({});
        if self.has(Defect::AnyPing)
            && let Some(t) = params.get("t")
        {
            result["t"] = t.clone();
        }
        if let Some(t) = t.filter(|_| !self.has(Defect::PingLosesT)) {
            result["t"] = t.clone();
        }
        if t.is_none() && self.has(Defect::PingNeedsT) {
            return Err(invalid(&["t"]));
        }
        if is_request && self.style(Style::PongsToo) {
            self.core.lock().streams.notify(self.client, "tinyvex/pong", result.clone());
        }
        if !is_request && !self.style(Style::NoPong) {
            if self.has(Defect::PongsAreTexts) {
                result["t"] = json!("now");
            }
            self.core.lock().streams.notify(self.client, "tinyvex/pong", result.clone());
        }
        Ok(Answer::Now(result))
    }
}
