//! The clients of a running case: what each has received and not yet looked at.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::results::cause::ConnectionEnd;
use crate::trace::{End, Payload};
use crate::wire::{Link, Standing};

/// A client of a case. It keeps its name, session and newest event over reconnects.
pub(crate) struct Client {
    pub session: String,
    pub connection: Option<Link>,
    /// Number of its current connection.
    pub number: u64,
    /// Received messages that no step has taken yet.
    pub queue: VecDeque<Received>,
    /// The opening exchange was done.
    pub opened: bool,
    /// It does not read at present.
    pub stalled: bool,
    /// Newest log id received.
    pub last_seen: Option<i64>,
    /// Log ids received since the last `send`.
    pub since_send: Vec<i64>,
    /// The turn's end was received since the last `send`.
    pub turn_over: bool,
    /// What its `expect`s took or looked past since the last `send`.
    pub looked: Vec<Looked>,
    /// Pongs received that no step has taken yet.
    pub pongs: Vec<std::sync::Arc<[u8]>>,
    /// The message that the last `expect` took.
    pub taken: Option<Received>,
    /// Messages received on all its connections, ambient ones apart.
    pub received: u64,
    /// How the connection ended, once it has.
    pub ended: Option<ObservedEnd>,
    /// A step awaited the connection's end, or allowed it: that it ended is no surprise.
    pub may_end: bool,
    /// A failure has told of the connection's end; once is enough.
    pub told: bool,
    /// A failure has told that the server answers no more on the connection.
    pub mute: bool,
    /// It has sent something on the connection that belongs to no opening.
    pub asked: bool,
    /// It has sent a close frame of its own.
    pub closing: bool,
}

/// What a step took, or looked past.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    pub received: Received,
    /// The step, by its pointer.
    pub step: String,
    /// It is what the step waited for.
    pub taken: bool,
}

/// A message that a client received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Index in the case's wire log.
    pub event: u64,
    pub body: Value,
    pub message: Option<usize>,
    /// Heartbeats and the like.
    pub ambient: bool,
    /// It stands for the connection's end: how it ended.
    pub ended: Option<String>,
}

impl Received {
    /// What a step looks at in place of a message.
    pub fn made(event: u64, body: Value) -> Self {
        Self { event, body, message: None, ambient: false, ended: None }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObservedEnd {
    /// Of the close frame.
    pub code: Option<u16>,
    /// The same; none: there was no close frame.
    pub reason: Option<String>,
    /// This side had sent its close frame first.
    pub answers: bool,
    /// Other than by a close frame.
    pub how: Option<End>,
    /// What the WebSocket layer says of it.
    pub detail: Option<String>,
    /// Index in the wire log of what showed it, once it is there.
    pub event: Option<u64>,
}

impl ObservedEnd {
    pub fn by(how: End) -> Self {
        Self { how: Some(how), ..Self::default() }
    }

    /// By a close frame, as RFC 6455 has it.
    pub fn is_close(&self) -> bool {
        matches!(self.how, None | Some(End::Closed))
    }

    /// By bytes that this side cannot or will not read.
    pub fn is_breach(&self) -> bool {
        matches!(self.how, Some(End::Protocol | End::TooLong))
    }

    /// What a step can ask of it.
    pub fn body(&self) -> Value {
        json!({
            "code": self.code,
            "reason": self.reason,
            "clean": self.reason.is_some(),
            "by": if self.answers { "client" } else { "server" },
        })
    }

    pub fn describe(&self) -> String {
        let detail = self.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
        format!("{}{detail}", self.plainly())
    }

    /// The same without what differs from case to case.
    pub fn plainly(&self) -> ConnectionEnd {
        ConnectionEnd { code: self.code, how: self.how }
    }

    pub fn from(payload: &Payload, detail: Option<&str>) -> Option<Self> {
        let detail = detail.map(str::to_owned);
        match payload {
            Payload::Close { code, reason } => {
                Some(Self { code: *code, reason: Some(reason.to_string()), detail, ..Self::default() })
            }
            Payload::End(how) => Some(Self { how: Some(*how), detail, ..Self::default() }),
            _ => None,
        }
    }
}

impl Client {
    pub fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            connection: None,
            number: 0,
            queue: VecDeque::new(),
            opened: false,
            stalled: false,
            last_seen: None,
            since_send: Vec::new(),
            turn_over: false,
            looked: Vec::new(),
            pongs: Vec::new(),
            taken: None,
            received: 0,
            ended: None,
            may_end: false,
            told: false,
            mute: false,
            asked: false,
            closing: false,
        }
    }

    /// The connection's end as what a step takes; `last`: the newest line of the wire log.
    pub fn end(&self, last: u64) -> Option<Received> {
        let ended = self.ended.as_ref()?;
        let received = Received::made(ended.event.unwrap_or(last), ended.body());
        Some(Received { ended: Some(ended.describe()), ..received })
    }

    /// How the connection ended, if no step awaited that.
    pub fn lost(&self) -> Option<&ObservedEnd> {
        self.ended.as_ref().filter(|_| self.connection.is_some() && !self.may_end && !self.told)
    }

    /// What is said next begins a new exchange. What may end the connection is what was said before; once it has ended,
    /// that stays explained.
    pub fn begin_exchange(&mut self) {
        self.may_end &= self.ended.is_some();
        self.since_send.clear();
        self.looked.clear();
        self.turn_over = false;
    }

    /// What it sends now can be understood: it has written no half frame, and nothing that is forbidden.
    pub fn is_understood(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.standing() == Standing::Clear)
    }

    /// It has written what RFC 6455 forbids, or a frame whose end the server may not wait for: whoever fails such a
    /// connection may do it without a close frame (RFC 6455, 7.1.7).
    pub fn may_be_cut(&self) -> bool {
        let standing = self.connection.as_ref().map(Link::standing);
        matches!(standing, Some(Standing::Broken | Standing::MidFrame))
    }

    /// Forgets the connection, but neither name nor session nor newest event.
    pub fn disconnect(&mut self) {
        self.connection = None;
        self.queue.clear();
        self.looked.clear();
        self.pongs.clear();
        self.opened = false;
        self.stalled = false;
        self.turn_over = false;
        self.asked = false;
        self.closing = false;
    }
}

/// The clients by name.
pub(crate) type Clients = BTreeMap<String, Client>;
