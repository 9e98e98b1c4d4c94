//! The tinyvex methods.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::State;
use super::connection::{Answer, Peer};
use super::faults::Defect;
use super::past::another;
use super::rpc::{
    INTERNAL, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Params, REJECTED, Refusal, invalid,
    notification, refuse, response,
};
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
        let again = another(&self.past.counts.connects) > 0;
        self.behaviour.mutate(&mut result, |defect, result| match defect {
            Defect::LaterChunksHaveNoSize if again => result["features"]["maxChunkBytes"] = json!(0),
            Defect::LaterConnectionIdsAreNumbers if again => result["sessionId"] = json!(self.client),
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
        let sub_id = match params.get("subId") {
            Some(Value::Number(number)) if self.has(Defect::SubIdsMayBeNumbers) => {
                Cow::Owned(number.to_string())
            }
            _ => Cow::Borrowed(params.text("subId")?),
        };
        let sub_id = sub_id.as_ref();
        let name = match params.get("name") {
            None if self.has(Defect::StreamNamesMayLack) => "messagesByThread",
            _ => params.text("name")?,
        };
        let inner = params.given("params");
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
            last_seq => match params.get("lastSeq").and_then(Value::as_str).map(str::parse::<u64>) {
                Some(Ok(_)) if self.has(Defect::CursorsMayBeDigits) => None,
                _ => last_seq?,
            },
        };
        let journal = match params.optional("journal", Value::is_string) {
            Err(_) if self.has(Defect::AnyCursor) => None,
            Err(_)
                if params.get("journal").is_some_and(Value::is_number)
                    && self.has(Defect::JournalsMayBeNumbers) =>
            {
                None
            }
            journal => journal?,
        };
        let is_first = self.past.sub_ids.borrow().is_empty();
        if last_seq.is_some() && is_first && self.has(Defect::FirstSubscriptionsAreNew) {
            return Err(invalid(&["lastSeq"]));
        }
        if last_seq.is_some() && journal.is_none() && self.has(Defect::ResumeNeedsAJournal) {
            return Err(invalid(&["journal"]));
        }
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
        let (mut result, values) = streams.subscribe(store, &wanted).map_err(|refusal| {
            let is_invalid = refusal.code == INVALID_PARAMS;
            let code =
                if is_invalid && self.has(Defect::StreamParamsAreInternal) { INTERNAL } else { refusal.code };
            Refusal { code, ..refusal }
        })?;
        let is_known = !self.past.sub_ids.borrow_mut().insert(sub_id.to_owned());
        if is_known && last_seq.is_none() && self.has(Defect::KnownSubIdsAreResumed) {
            result["resumed"] = json!(true);
        }
        if self.has(Defect::StartSeqAsText) {
            result["startSeq"] = json!(result["startSeq"].to_string());
        }
        // Under the lock: nothing newer comes in between.
        let last = !values.is_empty() && self.has(Defect::ValueBeforeResult);
        if !last {
            self.answer(id, &Ok(result.clone()));
        }
        let silent = last_seq.is_none()
            && (self.has(Defect::NoInitialValue) || is_known && self.has(Defect::NoValueForKnownSubIds));
        if values.len() > 1 && self.has(Defect::ReplaysAreBatches) {
            let batch = values.iter().map(|(seq, value)| {
                let params = json!({ "subId": sub_id, "seq": seq, "value": value });
                notification("tinyvex/data", params, &self.behaviour)
            });
            self.send(&batch.collect());
            return Ok(Answer::Elsewhere);
        }
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
            Err(_)
                if params.get("subId").is_some_and(Value::is_null) && self.has(Defect::UnsubscribesNull) =>
            {
                return Ok(Answer::Now(json!({ "ok": true })));
            }
            Err(_)
                if params.get("subId").is_some_and(Value::is_number)
                    && self.has(Defect::UnsubscribesNumbers) =>
            {
                return Ok(Answer::Now(json!({ "ok": true })));
            }
            Err(_) if self.has(Defect::UnsubscribesInvalidly) => {
                return Err(refuse(INVALID_REQUEST, "Invalid Request"));
            }
            sub_id => sub_id?,
        };
        let mut state = self.core.lock();
        if state.newest.contains_key(&self.client) && self.has(Defect::SessionsExcludeUnsubscribes) {
            return Err(refuse(METHOD_NOT_FOUND, "Method not found: this connection has a session"));
        }
        let newest = state.streams.newest(self.client, sub_id);
        let is_first = newest.is_none() || another(&self.past.counts.unsubscribes) == 0;
        let is_ignored =
            self.has(Defect::UnsubscribeIsIgnored) || (!is_first && self.has(Defect::UnsubscribesOnce));
        if !is_ignored {
            if let Some((seq, value)) = newest
                && self.behaviour.prepares(Defect::LastValueComesLate)
            {
                let params = json!({ "subId": sub_id, "seq": seq + 1, "value": value });
                self.send_after_the_end(params);
            }
            let known = state.streams.unsubscribe(self.client, sub_id);
            if !known && self.style(Style::RefusesUnknownIds) {
                return Err(refuse(REJECTED, "SubscriptionNotFound"));
            }
        }
        Ok(Answer::Now(json!({ "ok": true })))
    }

    /// Sends a value 150 ms later, unless its subId is in use again.
    fn send_after_the_end(&self, params: Value) {
        let (core, client, behaviour) = (Arc::clone(self.core), self.client, self.behaviour.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let streams = &core.lock().streams;
            let is_over = params["subId"].as_str().is_some_and(|id| streams.newest(client, id).is_none());
            if is_over && streams.clients.contains_key(&client) {
                behaviour.took_effect();
                streams.notify(client, "tinyvex/data", params);
            }
        });
    }

    fn call<'p>(
        params: &Params<'p>,
        lenient: bool,
        numbers: bool,
    ) -> Result<(Cow<'p, str>, &'p str, &'p Value), Refusal> {
        let id = match params.get("requestId") {
            None if lenient => Cow::Borrowed(""),
            Some(Value::Number(number)) if numbers => Cow::Owned(number.to_string()),
            _ => Cow::Borrowed(params.text("requestId")?),
        };
        Ok((id, params.text("name")?, params.given("args")?))
    }

    pub fn mutation(&self, id: Option<&Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        let given = params.get("requestId");
        let may_lack = given.is_none() && self.has(Defect::RequestIdsMayLack);
        let numbers = given.is_some_and(Value::is_number) && self.has(Defect::RequestIdsMayBeNumbers);
        let (request_id, name, args) = Self::call(params, may_lack, numbers)?;
        let request_id = request_id.as_ref();
        if name == "increment" && self.has(Defect::LosesUpdates) {
            return Ok(self.increment_slowly(id, request_id, args));
        }
        let keep = self.has(Defect::FailuresLeaveTraces);
        let mut state = self.core.lock();
        let State { store, streams, .. } = &mut *state;
        store.hold_back(self.behaviour.prepares(Defect::WritesWithTheNext))?;
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
            if let Some(id) = id
                && self.has(Defect::MutateResultsHaveIds)
            {
                let mut frame = notification("tinyvex/mutate_result", announced, &self.behaviour);
                frame["id"] = id.clone();
                self.send(&frame);
            } else {
                streams.notify(self.client, "tinyvex/mutate_result", announced);
            }
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
        } else if self.behaviour.strikes(Defect::NoMutationValue)
            || (value.is_null() && self.behaviour.strikes(Defect::NullsAreNoValues))
        {
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
        let may_lack = params.get("requestId").is_none() && self.has(Defect::ActionIdsMayLack);
        let (request_id, name, args) = Self::call(params, may_lack, false)?;
        let value = match name {
            "echo" => args.clone(),
            _ if self.has(Defect::ActionsNeverFail) => Value::Null,
            "fail" if self.has(Defect::FailedActionsHaveResults) => json!({ "error": "ActionFailed" }),
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

    pub fn ping(&self, id: Option<&Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        let is_request = id.is_some();
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
        self.behaviour.mutate(&mut result, |defect, result| match (defect, t) {
            (Defect::EmptyPingsHaveNull, None) if is_request => *result = Value::Null,
            (Defect::EmptyPingsHaveNullT, None) if is_request => result["t"] = Value::Null,
            (Defect::EmptyPongsHaveNull, None) if !is_request => result["t"] = Value::Null,
            (Defect::FractionsOfTAreCut, Some(t)) if t.is_f64() => {
                result["t"] = json!(t.as_f64().unwrap_or_default().trunc());
            }
            _ => {}
        });
        let only_newest = self.behaviour.prepares(Defect::WaitingPingsAreOne);
        if let Some(id) = id
            && (only_newest || self.behaviour.prepares(Defect::PingsShareT))
        {
            self.ping_later(id.clone(), t, only_newest);
            return Ok(Answer::Elsewhere);
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

    /// Answers a ping some time later, with the t that the newest one has then. `only_newest`: not if that is another one.
    fn ping_later(&self, id: Value, t: Option<&Value>, only_newest: bool) {
        let (shared, outbox, behaviour) =
            (self.past.newest_t.clone(), self.outbox.clone(), self.behaviour.clone());
        let own = t.cloned();
        shared.set(own.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let t = shared.get();
            if t != own {
                behaviour.took_effect();
                if only_newest {
                    return;
                }
            }
            let result = t.map_or_else(|| json!({}), |t| json!({ "t": t }));
            outbox.send(Message::text(response(&id, &Ok(result), &behaviour).to_string()));
        });
    }
}
