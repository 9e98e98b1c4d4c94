//! What became of each request: for `--log`, and for whoever starts the model and wants to know whether it is asked.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

/// Is told of every request as it comes in and as it ends. Called from the model's own tasks: it must not block for
/// long.
pub type Observer = Arc<dyn Fn(&Record) + Send + Sync>;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Record {
    /// A request was read.
    Request(Asked),
    /// Its answer has ended.
    Response(Ended),
}

/// A request. No header is in it, and no text is that holds the request's key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Asked {
    /// Counts the requests from 1.
    pub id: u64,
    /// When it came.
    pub time: jiff::Timestamp,
    /// Method.
    pub method: String,
    /// Path, without its query.
    pub path: String,
    /// The model that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it asks for a stream.
    pub stream: bool,
    /// Which try it is, for clients that say so (`x-stainless-retry-count`); 0 is the first.
    pub retry: u32,
    /// The tools that it offers, by name; at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The text that decided what is played, at most 2000 characters of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether there is a cue.
    pub cue: CueState,
    /// Which response of the cue is played, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<usize>,
}

/// What was found of a cue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CueState {
    /// One that can be played.
    Found,
    /// None in any user message.
    None,
    /// One that cannot be played; the answer says why.
    Bad,
}

/// The end of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    /// The request's.
    pub id: u64,
    /// HTTP status; none: it was cancelled before there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How it ended.
    pub ended: Ending,
    /// Milliseconds since it was read.
    pub ms: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Answered in full; also with an error that the cue asks for.
    Complete,
    /// The client went away first.
    Cancelled,
}

/// Tells the observer of the end of a request, whatever becomes of it: one that is dropped was cancelled.
pub(super) struct Exchange {
    pub id: u64,
    pub status: Option<u16>,
    observer: Option<Observer>,
    since: Instant,
    complete: bool,
}

impl Exchange {
    pub fn new(id: u64, observer: Option<Observer>) -> Self {
        Self { id, status: None, observer, since: Instant::now(), complete: false }
    }

    pub fn asked(&self, asked: impl FnOnce() -> Asked) {
        if let Some(observer) = &self.observer {
            observer(&Record::Request(asked()));
        }
    }

    pub fn complete(mut self) {
        self.complete = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(observer) = &self.observer else { return };
        let ended = if self.complete { Ending::Complete } else { Ending::Cancelled };
        let ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        observer(&Record::Response(Ended { id: self.id, status: self.status, ended, ms }));
    }
}
