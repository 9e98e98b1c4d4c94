//! What the scripted model was asked, and by which case: requests and cases are told apart by the cue.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::cue::{self, words};
use crate::model::{self, Asked, CueState, Ended, Ending, Hangs, Observer, Record};
use crate::results::event::{Call, FrameRecord, Way};
use crate::run::isolation::markers::marks;

/// Requests that are kept; the oldest go first.
const KEPT: usize = 4096;
/// Requests of a case that its report has.
const OF_A_CASE: usize = 40;

/// The requests to the model of a run.
#[derive(Debug, Default)]
pub(crate) struct ModelCalls {
    kept: Mutex<VecDeque<Kept>>,
    /// The cues of running cases that have the model hang.
    pub hangs: Hangs,
}

#[derive(Debug)]
struct Kept {
    id: u64,
    at: Instant,
    /// The cues in its text.
    cues: Vec<String>,
    request: String,
    played: String,
    ended: Option<(Instant, Ended)>,
}

impl Kept {
    fn of(asked: &Asked) -> Self {
        let text = asked.text.as_deref().unwrap_or_default();
        let played = match asked.cue {
            CueState::Found => {
                let response = asked.response.and_then(|number| cue::responses(text).into_iter().nth(number));
                // Of a longer cue the log has the beginning only.
                let known = response.filter(|_| words::words(text).is_some());
                known.map_or_else(String::new, |steps| words::describe(&steps))
            }
            CueState::Bad => "the cue is damaged".to_owned(),
            CueState::None => "no cue".to_owned(),
        };
        Self {
            id: asked.id,
            at: Instant::now(),
            cues: marks(text).into_iter().map(str::to_owned).collect(),
            request: format!("{} {}", asked.method, asked.path),
            played,
            ended: None,
        }
    }

    fn call(&self, began: Instant) -> Call {
        let ms = |at: Instant| at.saturating_duration_since(began).as_secs_f64() * 1e3;
        let ended = self.ended.as_ref();
        Call {
            ms: ms(self.at),
            ended: ended.map(|(at, _)| ms(*at)),
            request: self.request.clone(),
            played: self.played.clone(),
            status: ended.and_then(|(_, ended)| ended.status),
            cancelled: ended.is_some_and(|(_, ended)| ended.ended == Ending::Cancelled),
        }
    }
}

impl ModelCalls {
    /// How the model is started for the run; `next`: who else is told of what it is asked.
    pub fn model(self: &Arc<Self>, next: Option<Observer>) -> model::Options {
        let hangs = Some(self.hangs.clone());
        model::Options { observer: Some(self.observer(next)), hangs, ..model::Options::default() }
    }

    /// Notes what the model is asked, and passes it on.
    pub fn observer(self: &Arc<Self>, next: Option<Observer>) -> Observer {
        let calls = Arc::clone(self);
        Arc::new(move |record| {
            calls.note(record);
            if let Some(next) = &next {
                next(record);
            }
        })
    }

    fn note(&self, record: &Record) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match record {
            Record::Request(asked) => {
                kept.push_back(Kept::of(asked));
                if kept.len() > KEPT {
                    kept.pop_front();
                }
            }
            Record::Response(ended) => {
                if let Some(call) = kept.iter_mut().rfind(|call| call.id == ended.id) {
                    call.ended = Some((Instant::now(), ended.clone()));
                }
            }
        }
    }

    /// The requests with a cue that a case has sent, since it began: the last of them. Cases that send the same cue at the same time
    /// are not told apart.
    pub fn of(&self, wire: &[FrameRecord], began: Instant) -> Vec<Call> {
        let sent = wire.iter().filter(|line| line.way == Way::ToServer);
        let cues: BTreeSet<&str> = sent.flat_map(|line| marks(&line.text)).collect();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own =
            |call: &&Kept| call.at >= began && call.cues.iter().any(|cue| cues.contains(cue.as_str()));
        let mut calls: Vec<Call> =
            kept.iter().rev().filter(is_own).take(OF_A_CASE).map(|call| call.call(began)).collect();
        calls.reverse();
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::{Cue, Step};
    use serde_json::json;

    fn asked(id: u64, text: &str, cue: CueState) -> Record {
        Record::Request(Asked {
            id,
            time: jiff::Timestamp::UNIX_EPOCH,
            method: "POST".into(),
            path: "/v1/responses".into(),
            model: None,
            stream: true,
            retry: 0,
            tools: Vec::new(),
            text: Some(text.to_owned()),
            cue,
            response: Some(0),
        })
    }

    fn sent(text: &str) -> FrameRecord {
        let text = json!({ "type": "send", "text": text }).to_string();
        let line = json!({ "index": 0, "ms": 0, "client": "a", "dir": "->", "text": text });
        serde_json::from_value(line).expect("a line")
    }

    #[test]
    fn a_case_has_the_requests_with_its_cues() {
        let say = |text: &str| Cue::new(vec![Step::Say { say: vec![text.into()], every_ms: None }]).encode();
        let (calls, before) = (ModelCalls::default(), Instant::now());
        calls.note(&asked(1, &say("one"), CueState::Found));
        calls.note(&asked(2, &say("two"), CueState::Found));
        calls.note(&asked(3, "nothing", CueState::None));
        calls.note(&Record::Response(Ended { id: 1, status: Some(200), ended: Ending::Complete, ms: 1 }));
        let own = calls.of(&[sent(&say("one"))], before);
        assert_eq!(own.len(), 1, "{own:?}");
        assert_eq!((own[0].request.as_str(), own[0].played.as_str()), ("POST /v1/responses", "says “one”"));
        assert_eq!((own[0].status, own[0].cancelled, own[0].ended.is_some()), (Some(200), false, true));
        let open = calls.of(&[sent(&say("two"))], before);
        assert!(open.len() == 1 && open[0].ended.is_none() && open[0].status.is_none(), "{open:?}");
        assert!(calls.of(&[sent("nothing")], before).is_empty());
        assert!(calls.of(&[sent(&say("one"))], Instant::now()).is_empty(), "before the case began");
    }
}
