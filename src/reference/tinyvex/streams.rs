//! Streams: one computation each, any number of subscribers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::Behaviour;
use super::faults::Defect;
use super::rpc::{
    REJECTED, Refusal, canonical, canonical_outside, invalid, notification, refuse, simplified,
};
use super::store::{Store, Topic};
use super::styles::Style;
use crate::reference::engine::clients::Clients;

/// Longest text of a chunk in bytes, and the size above which a value is cut.
pub(super) const MAX_CHUNK: usize = 1024;
/// Streams without subscribers that are kept in memory.
const MAX_IDLE: usize = 10_000;

/// A stream in memory.
struct Live {
    name: String,
    params: Value,
    topic: Option<Topic>,
    value: Value,
    seq: u64,
    journal: String,
    /// Something that it shows may have changed since it was computed.
    stale: bool,
    /// Each a client and the subId that it chose.
    subscribers: Vec<(u64, String)>,
}

/// All streams, and the clients that listen.
#[derive(Default)]
pub(super) struct Streams {
    pub clients: Clients,
    live: HashMap<String, Live>,
    /// Which stream a client's subId stands for.
    chosen: BTreeMap<(u64, String), String>,
    /// How often each stream was computed.
    computed: HashMap<String, u64>,
    transitions: u64,
    /// Streams with the subIds under which they were subscribed, for a defect.
    known: BTreeSet<(String, String)>,
    /// The newest seq of each subscription, under a style that counts so.
    own: BTreeMap<(u64, String), u64>,
    behaviour: Behaviour,
}

/// What `tinyvex/subscribe` asks for.
pub(super) struct Wanted<'w> {
    pub client: u64,
    pub sub_id: &'w str,
    pub name: &'w str,
    pub params: &'w Value,
    pub last_seq: Option<u64>,
    pub journal: Option<&'w str>,
}

fn topic(name: &str, params: &Value) -> Result<Option<Topic>, Refusal> {
    let text = |field: &str| {
        params
            .get(field)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| invalid(&["params", field]))
    };
    Ok(match name {
        "messagesByThread" | "threadStats" => Some(Topic::Thread(text("threadId")?)),
        "counter" => Some(Topic::Counter(text("name")?)),
        "historyBySession" => Some(Topic::Session(text("sessionId")?)),
        "echoParams" => None,
        _ => {
            let data = Some(json!({ "code": "TVX002", "name": name }));
            return Err(Refusal { data, ..refuse(REJECTED, "SubscriptionRejected") });
        }
    })
}

impl Streams {
    pub fn new(behaviour: &Behaviour) -> Self {
        Self { behaviour: behaviour.clone(), ..Self::default() }
    }

    fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    fn style(&self, style: Style) -> bool {
        self.behaviour.style(style)
    }

    /// Longest text of a chunk in bytes, and the size above which a value is cut.
    pub fn chunk_size(&self) -> usize {
        if self.style(Style::LargeChunks) { 64 * MAX_CHUNK } else { MAX_CHUNK }
    }

    /// By how much seq grows.
    fn step(&self) -> u64 {
        if self.style(Style::SeqWithGaps) { 3 } else { 1 }
    }

    fn key(&self, wanted: &Wanted<'_>) -> String {
        let mut params = canonical(wanted.params);
        self.behaviour.mutate(&mut params, |defect, params| match defect {
            Defect::KeyOrderMatters => *params = wanted.params.to_string(),
            Defect::ParamsAreTexts => *params = params.replace('"', ""),
            Defect::KeysAreCut if wanted.name == "messagesByThread" => {
                *params = params.chars().take(22).collect();
            }
            Defect::InnerKeyOrderMatters => *params = canonical_outside(wanted.params),
            Defect::ListsAreSorted => *params = canonical(&simplified(wanted.params, true, false)),
            Defect::NullsAreAbsent => *params = canonical(&simplified(wanted.params, false, true)),
            Defect::TrueIsOne => *params = params.replace(":true", ":1"),
            Defect::ParamsInLowerCase => *params = params.to_lowercase(),
            _ => {}
        });
        if topic(wanted.name, wanted.params).is_ok_and(|topic| matches!(topic, Some(Topic::Thread(_))))
            && self.has(Defect::NamesDoNotMatter)
        {
            return params;
        }
        format!("{} {params}", wanted.name)
    }

    fn compute(&mut self, store: &Store, name: &str, params: &Value) -> Result<Value, Refusal> {
        let count = self.computed.entry(format!("{name} {}", canonical(params))).or_default();
        *count += 1;
        let count = *count;
        let value = match topic(name, params)? {
            Some(Topic::Thread(thread)) if name == "threadStats" => {
                json!({ "params": params, "messages": store.count(&thread), "computations": count })
            }
            Some(Topic::Thread(thread)) => store.messages(&thread),
            Some(Topic::Counter(name)) => json!(store.counter(&name)),
            Some(Topic::Session(session)) if self.style(Style::JoinedHistory) => {
                joined(store.history(&session))
            }
            Some(Topic::Session(session)) => store.history(&session),
            None => {
                let mut value = json!({ "params": params });
                self.behaviour.mutate(&mut value, |defect, value| {
                    let members =
                        value["params"].as_object_mut().filter(|_| defect == Defect::WrapsFractions);
                    for (_, member) in members.into_iter().flatten().filter(|(_, member)| member.is_f64()) {
                        *member = json!({ "$float": member.to_string() });
                    }
                });
                value
            }
        };
        Ok(match value {
            Value::Number(number) if self.behaviour.strikes(Defect::WrapsIntegers) => {
                json!({ "$integer": number.to_string() })
            }
            value => value,
        })
    }

    // ---- subscriptions ------------------------------------------------------------------------------------------

    /// Whether a client has a subscription.
    pub fn has_client(&self, client: u64) -> bool {
        self.chosen.keys().any(|(known, _)| *known == client)
    }

    /// The newest seq and value of a subscription.
    pub fn newest(&self, client: u64, sub_id: &str) -> Option<(u64, Value)> {
        let live = self.live.get(self.chosen.get(&(client, sub_id.to_owned()))?)?;
        Some((live.seq, live.value.clone()))
    }

    /// Adds a subscription. The result, and what is to be sent after it, by seq.
    pub fn subscribe(
        &mut self,
        store: &mut Store,
        wanted: &Wanted<'_>,
    ) -> Result<(Value, Vec<(u64, Value)>), Refusal> {
        let topic = match topic(wanted.name, wanted.params) {
            Err(refusal) if refusal.code == REJECTED && self.has(Defect::UnknownStreamsAreEmpty) => None,
            topic => topic?,
        };
        let taken = self.chosen.contains_key(&(wanted.client, wanted.sub_id.to_owned()));
        if taken && self.style(Style::RefusesTakenIds) {
            return Err(refuse(REJECTED, "the subId is in use"));
        }
        let is_namesake = |(client, id): &(u64, String)| *client != wanted.client && id == wanted.sub_id;
        if wanted.sub_id.len() > 8
            && self.chosen.keys().any(is_namesake)
            && self.has(Defect::LongSubIdsAreUnique)
        {
            return Err(refuse(REJECTED, "the subId is in use"));
        }
        // A subId in use is taken over.
        self.release(wanted.client, wanted.sub_id, false);
        let key = self.key(wanted);
        let resumable = wanted.last_seq.zip(store.stream(&key));
        if let (Some((_, (_, journal, _))), Some(given)) = (&resumable, wanted.journal)
            && journal == given
            && self.has(Defect::RefusesJournals)
        {
            return Err(refuse(REJECTED, "the journal is unknown"));
        }
        let is_new = self.known.insert((key.clone(), wanted.sub_id.to_owned()));
        if is_new && resumable.is_some() && self.has(Defect::ResumesOnlyItsSubId) {
            return Err(refuse(REJECTED, "another subscription's lastSeq"));
        }
        // As texts: the order of keys counts here.
        let spelt = wanted.params.to_string();
        let is_respelt =
            self.live.get(&key).map(|live| live.params.to_string()).is_some_and(|old| old != spelt);
        let resumable = resumable.filter(|_| !(is_respelt && self.has(Defect::ResumesByText)));
        self.refresh(store, &key, wanted, topic)?;
        let is_never_resumed =
            self.style(Style::OwnSeqs) || (self.style(Style::JournalsUnused) && wanted.journal.is_some());
        let step = self.step();
        let Some(live) = self.live.get_mut(&key) else { return Err(refuse(REJECTED, "gone")) };
        let is_shared = !live.subscribers.is_empty();
        let mut missed = match resumable {
            Some((last, (seq, journal, _)))
                if (last <= seq && wanted.journal.is_none_or(|given| given == journal))
                    || self.behaviour.strikes(Defect::AnyJournalWillDo) =>
            {
                store.after(&key, last.min(seq))
            }
            _ => None,
        };
        if is_never_resumed {
            missed = None;
        }
        let last = wanted.last_seq.unwrap_or(0);
        self.behaviour.mutate(&mut missed, |defect, missed| match (defect, &mut *missed) {
            (Defect::ResumesNothing, Some(values)) => values.clear(),
            (Defect::ResumeRepeats, Some(values)) => {
                let seen = values.first().map_or_else(|| live.value.clone(), |(_, value)| value.clone());
                values.insert(0, (last, seen));
            }
            (Defect::WindowNeverEnds, None) if wanted.last_seq.is_some_and(|last| last < live.seq) => {
                *missed = Some(Vec::new());
            }
            _ => {}
        });
        let resumed = missed.is_some();
        let mut values = match missed {
            Some(values) => values,
            None => {
                if wanted.last_seq.is_some() {
                    // A fresh value has a seq of its own.
                    live.seq += step;
                    store.log(&key, live.seq, &live.journal, &live.value)?;
                }
                vec![(live.seq, live.value.clone())]
            }
        };
        let start = if resumed { last + 1 } else { live.seq };
        live.subscribers.push((wanted.client, wanted.sub_id.to_owned()));
        let journal = live.journal.clone();
        self.chosen.insert((wanted.client, wanted.sub_id.to_owned()), key);
        if is_shared && wanted.last_seq.is_none() && self.has(Defect::NoValueForTheSecond) {
            values.clear();
        }
        if self.has(Defect::ComputesForEach)
            && let Some((_, newest)) = values.last_mut()
        {
            *newest = self.compute(store, wanted.name, wanted.params)?;
        }
        let start = match self.behaviour.style(Style::StartBelow) && !resumed {
            true => start.saturating_sub(1),
            false => start,
        };
        let start = if self.has(Defect::StartSeqAhead) { start + 5 } else { start };
        let start = if is_shared && self.has(Defect::SharedStartsAreAhead) { start + 1 } else { start };
        let own = self.style(Style::OwnSeqs);
        if own {
            self.own.insert((wanted.client, wanted.sub_id.to_owned()), 0);
        }
        let start = if own { 1 } else { start };
        let resumed = resumed
            || self.has(Defect::AlwaysResumed)
            || (is_shared && wanted.last_seq.is_none() && self.has(Defect::SharedStreamsAreResumed));
        let mut result = json!({ "accepted": true, "resumed": resumed, "startSeq": start });
        if is_shared && self.has(Defect::SharedStreamsAreNumbers) {
            result["accepted"] = json!(1);
        }
        if self.style(Style::JournalInResult) {
            result["journal"] = json!(journal);
        }
        Ok((result, values))
    }

    /// Brings a stream into memory, computed.
    fn refresh(
        &mut self,
        store: &mut Store,
        key: &str,
        wanted: &Wanted<'_>,
        topic: Option<Topic>,
    ) -> Result<(), Refusal> {
        if self.live.get(key).is_some_and(|live| !live.stale) {
            return Ok(());
        }
        let value = match self.compute(store, wanted.name, wanted.params) {
            Err(refusal) if refusal.code == REJECTED && self.has(Defect::UnknownStreamsAreEmpty) => {
                Value::Null
            }
            value => value?,
        };
        let (seq, journal) = match store.stream(key) {
            Some((seq, journal, known)) if known == value => (seq, journal),
            known => {
                let (seq, journal) = known.map_or_else(
                    || (1, format!("j-{}", uuid::Uuid::new_v4())),
                    |(seq, journal, _)| (seq + 1, journal),
                );
                store.log(key, seq, &journal, &value)?;
                (seq, journal)
            }
        };
        if self.live.len() >= MAX_IDLE {
            self.live.retain(|_, live| !live.subscribers.is_empty());
        }
        let subscribers = self.live.remove(key).map(|live| live.subscribers).unwrap_or_default();
        let (name, params) = (wanted.name.to_owned(), wanted.params.clone());
        let live = Live { name, params, topic, value, seq, journal, stale: false, subscribers };
        self.live.insert(key.to_owned(), live);
        Ok(())
    }

    /// Ends a subscription; whether there was one.
    pub fn unsubscribe(&mut self, client: u64, sub_id: &str) -> bool {
        for (client, sub_id) in self.ended_besides(client, sub_id) {
            self.release(client, &sub_id, false);
        }
        self.release(client, sub_id, self.has(Defect::UnsubscribesAll))
    }

    /// The other subscriptions that end with one, under a defect.
    fn ended_besides(&self, client: u64, sub_id: &str) -> Vec<(u64, String)> {
        let Some(stream) = self.chosen.get(&(client, sub_id.to_owned())) else { return Vec::new() };
        let ended = self.chosen.iter().filter(|((other, id), key)| {
            let (is_own, is_same) = (*other == client, id == sub_id);
            (is_own && !is_same && *key == stream && self.has(Defect::UnsubscribesTheStream))
                || (is_own && !is_same && id.starts_with(sub_id) && self.has(Defect::UnsubscribesLongerIds))
                || (!is_own && is_same && id.len() > 8 && self.has(Defect::UnsubscribesNamesakes))
        });
        ended.map(|(chosen, _)| chosen.clone()).collect()
    }

    fn release(&mut self, client: u64, sub_id: &str, all: bool) -> bool {
        let Some(key) = self.chosen.remove(&(client, sub_id.to_owned())) else { return false };
        if let Some(live) = self.live.get_mut(&key) {
            live.subscribers.retain(|(known, id)| !all && (*known != client || id != sub_id));
        }
        true
    }

    /// Forgets a client that is gone.
    pub fn leave(&mut self, client: u64) {
        self.clients.remove(&client);
        self.own.retain(|(known, _), _| *known != client);
        self.forget(client, self.behaviour.prepares(Defect::LeavingEndsStreams));
    }

    /// Ends all subscriptions of a client; under a defect, their streams with them.
    pub fn forget(&mut self, client: u64, streams: bool) {
        let gone: Vec<String> = self
            .chosen
            .keys()
            .filter(|(known, _)| *known == client)
            .map(|(_, sub_id)| sub_id.clone())
            .collect();
        for sub_id in gone {
            if streams
                && let Some(key) = self.chosen.get(&(client, sub_id.clone()))
                && let Some(live) = self.live.get(key)
                && live.subscribers.iter().any(|(other, _)| *other != client)
            {
                self.behaviour.took_effect();
                self.live.remove(key);
            }
            self.release(client, &sub_id, false);
        }
    }

    // ---- updates ------------------------------------------------------------------------------------------------

    /// Computes anew what a change may have touched, and tells the subscribers of what has changed.
    pub fn touched(&mut self, store: &mut Store, topics: &[Topic], by: Option<u64>) -> Result<(), Refusal> {
        let is_touched = |live: &Live| live.topic.as_ref().is_some_and(|topic| topics.contains(topic));
        let mut keys: Vec<String> =
            self.live.iter().filter(|(_, live)| is_touched(live)).map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        for key in keys {
            let Some(live) = self.live.get_mut(&key) else { continue };
            if live.subscribers.is_empty() || self.behaviour.strikes(Defect::UpdatesNobody) {
                live.stale = true;
                continue;
            }
            let (name, params) = (live.name.clone(), live.params.clone());
            let value = self.compute(store, &name, &params)?;
            let is_same = self.live.get(&key).is_some_and(|live| live.value == value);
            if is_same && !self.has(Defect::SendsUnchanged) {
                continue;
            }
            let text = value.as_array().and_then(|list| list.last()?["text"].as_str());
            let is_blank = text.is_some_and(|text| text.len() > 1 && text.trim().is_empty());
            if is_blank && self.has(Defect::BlanksUpdateNobody) {
                continue;
            }
            let step = self.step();
            let Some(live) = self.live.get_mut(&key) else { continue };
            let mut stands = false;
            self.behaviour.mutate(&mut stands, |defect, stands| match defect {
                Defect::SeqStands => *stands = live.seq > 2,
                Defect::SeqStandsWhileShared => *stands = live.subscribers.len() > 1,
                Defect::SeqStandsForChunks => *stands = value.to_string().len() > MAX_CHUNK,
                // The value of before was in chunks, too.
                Defect::LaterChunksStand => *stands = live.value.to_string().len() > MAX_CHUNK,
                _ => {}
            });
            live.seq += if stands { 0 } else { step };
            live.value = value;
            store.log(&key, live.seq, &live.journal, &live.value)?;
            let (seq, value, subscribers) = (live.seq, live.value.clone(), live.subscribers.clone());
            for (index, (client, sub_id)) in subscribers.iter().enumerate() {
                let (client, sub_id) = (*client, sub_id.clone());
                let is_followed = subscribers.iter().skip(index + 1).any(|(other, _)| *other == client);
                if (is_followed && self.has(Defect::OneUpdateForAConnection))
                    || (index > 0 && self.has(Defect::UpdatesTheFirst))
                {
                    continue;
                }
                if by == Some(client) && self.has(Defect::AuthorsAreToldTwice) {
                    self.deliver(client, &sub_id, seq, &value);
                }
                if by.is_some_and(|by| by != client) && self.has(Defect::TellsTheAuthorOnly) {
                    continue;
                }
                if self.has(Defect::ComputesForEach) {
                    let own = self.compute(store, &name, &params)?;
                    self.deliver(client, &sub_id, seq, &own);
                } else {
                    self.deliver(client, &sub_id, seq, &value);
                }
            }
        }
        Ok(())
    }

    /// Tells a client the values of its subscriptions again, each with a new seq, unless they come in chunks.
    pub fn repeat_values(&mut self, store: &mut Store, client: u64) -> Result<(), Refusal> {
        let (step, most) = (self.step(), self.chunk_size());
        let own = self.chosen.iter().filter(|((known, _), _)| *known == client);
        let own: Vec<_> = own.map(|((_, sub_id), key)| (sub_id.clone(), key.clone())).collect();
        for (sub_id, key) in own {
            let live = self.live.get_mut(&key).filter(|live| live.value.to_string().len() <= most);
            let Some(live) = live else { continue };
            live.seq += step;
            store.log(&key, live.seq, &live.journal, &live.value)?;
            let (seq, value) = (live.seq, live.value.clone());
            self.deliver(client, &sub_id, seq, &value);
        }
        Ok(())
    }

    /// Ends the streams of a thread with an error.
    pub fn fail(&mut self, topics: &[Topic]) {
        let failing = |live: &Live| live.topic.as_ref().is_some_and(|topic| topics.contains(topic));
        let failed: Vec<(u64, String)> = self
            .live
            .values()
            .filter(|live| failing(live))
            .flat_map(|live| live.subscribers.clone())
            .collect();
        for (client, sub_id) in failed {
            let mut params =
                json!({ "subId": sub_id, "code": "STREAM_FAILED", "message": "the stream broke" });
            if self.behaviour.strikes(Defect::FailsInSilence) {
                continue;
            } else if self.behaviour.strikes(Defect::StreamErrorsAreMute) {
                params.as_object_mut().map(|params| params.remove("message"));
            } else if self.behaviour.strikes(Defect::StreamErrorsAreNumbers) {
                params["code"] = json!(REJECTED)
            }
            self.notify(client, "tinyvex/error", params);
            self.unsubscribe(client, &sub_id);
        }
        self.live.retain(|_, live| !failing(live));
    }

    /// Sends a value to a subscriber, in chunks if it is large.
    pub fn deliver(&mut self, client: u64, sub_id: &str, seq: u64, value: &Value) {
        let mut sub_id = sub_id.to_owned();
        self.behaviour.mutate(&mut sub_id, |defect, sub_id| match defect {
            Defect::SubIdsInLowerCase => *sub_id = sub_id.to_lowercase(),
            Defect::SubIdsAreComposed => *sub_id = sub_id.replace("e\u{301}", "é"),
            Defect::SubIdsAreTrimmed => *sub_id = sub_id.trim().to_owned(),
            _ => {}
        });
        let client = if sub_id.len() > 8 && self.behaviour.strikes(Defect::LongSubIdsAreGlobal) {
            // The first client that chose the same subId.
            self.chosen.keys().find(|(_, known)| *known == sub_id).map_or(client, |(first, _)| *first)
        } else {
            client
        };
        let seq = match self.own.get_mut(&(client, sub_id.clone())) {
            Some(own) => {
                *own += 1;
                *own
            }
            None => seq,
        };
        let text = value.to_string();
        let most = if self.style(Style::NoChunks) { usize::MAX } else { self.chunk_size() };
        if text.len() > most {
            return self.deliver_chunks(client, &sub_id, seq, &text);
        }
        let key = self.chosen.get(&(client, sub_id.clone()));
        let journal = key.and_then(|key| self.live.get(key)).map(|live| live.journal.clone());
        let mut params = json!({ "subId": sub_id, "seq": seq, "value": value });
        let elsewhere =
            [Style::NoJournal, Style::JournalInResult, Style::OwnSeqs].iter().any(|style| self.style(*style));
        if let Some(journal) = journal.filter(|_| !elsewhere) {
            params["journal"] = json!(journal);
        }
        self.behaviour.mutate(&mut params, |defect, params| match defect {
            Defect::NoValue => {
                params.as_object_mut().map(|params| params.remove("value"));
            }
            Defect::EmptyListsAreLeftOut if value.as_array().is_some_and(Vec::is_empty) => {
                params.as_object_mut().map(|params| params.remove("value"));
            }
            Defect::JournalsAreNumbers => params["journal"] = json!(7),
            _ => {}
        });
        self.notify(client, "tinyvex/data", params);
    }

    fn deliver_chunks(&mut self, client: u64, sub_id: &str, seq: u64, text: &str) {
        self.transitions += 1;
        let is_cut = text.len() > self.chunk_size();
        let too_large = is_cut && self.has(Defect::ChunksTooLarge);
        let size = if too_large { 3 * MAX_CHUNK } else { self.chunk_size() };
        let base = usize::from(self.style(Style::PartsFromOne));
        let pieces = cut(text, size);
        let total = pieces.len();
        let mut seq = seq;
        self.behaviour.mutate(&mut seq, |defect, seq| {
            if defect == Defect::ChunksBeginAnew {
                *seq = 1;
            }
        });
        let by_seq = self.style(Style::TransitionsBySeq);
        let transition = if by_seq { seq.to_string() } else { format!("tr-{}", self.transitions) };
        for (part, piece) in pieces.iter().enumerate() {
            let mut params = json!({
                "subId": sub_id, "seq": seq, "chunk": piece, "part": part + base, "total": total,
                "transitionId": transition,
            });
            if part + 1 == total && self.behaviour.strikes(Defect::LastChunkIsMissing) {
                continue;
            } else if self.behaviour.strikes(Defect::ChunksReversed) {
                params["part"] = json!(total - 1 - part)
            } else if part == 1 && piece.contains("line") && self.behaviour.strikes(Defect::ChunksLoseText) {
                params["chunk"] = json!(piece.replacen("line", "lin", 1))
            } else if self.behaviour.strikes(Defect::ChunkTotalsCountDown) {
                params["total"] = json!(total - part)
            } else if self.behaviour.strikes(Defect::ChunkPartsAreTexts) {
                params["part"] = json!(part.to_string())
            }
            self.notify(client, "tinyvex/transitionChunk", params);
        }
        let Some(outbox) = self.clients.get(&client) else { return };
        if self.behaviour.strikes(Defect::ChunksEndWithEmptyText) {
            outbox.send(Message::text(""));
        } else if total > 6 && self.behaviour.strikes(Defect::ClosesAfterManyChunks) {
            outbox.send(Message::Close(None));
        }
    }

    pub fn notify(&self, client: u64, method: &str, params: Value) {
        let Some(outbox) = self.clients.get(&client) else { return };
        outbox.send(Message::text(notification(method, params, &self.behaviour).to_string()));
    }
}

/// A history with one entry for each answer of the agent's.
fn joined(history: Value) -> Value {
    let mut entries: Vec<Value> = Vec::new();
    for entry in history.as_array().into_iter().flatten() {
        match entries.last_mut().filter(|last| entry["role"] == "agent" && last["role"] == "agent") {
            Some(last) => {
                let text =
                    [&last["text"], &entry["text"]].map(|text| text.as_str().unwrap_or_default()).concat();
                last["text"] = json!(text);
            }
            None => entries.push(entry.clone()),
        }
    }
    Value::Array(entries)
}

/// Pieces of at most `size` bytes, cut between characters.
fn cut(text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(size);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    pieces
}
