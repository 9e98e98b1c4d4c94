//! The clients of a running case: what each has received and not yet looked at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::frame::Pointer;
use crate::protocol::end_of;
use crate::results::cause::ConnectionEnd;
use crate::run::case::holding::Share;
use crate::run::case::log::Part;
use crate::run::case::repeats::KnownValues;
use crate::trace::{Direction, End, Payload};
use crate::wire::{Link, Standing};

/// How many ids of exchanges a client keeps: a server that answers later than behind so many others is not one to wait for.
const MAX_ASIDES: usize = 32;

/// A client of a case. It keeps its name, session and newest event over reconnects.
pub(crate) struct Client {
    session: String,
    conn: Conn,
    /// What is to be said of the end of its newest connection.
    blame: EndBlame,
    /// A failure says that the server answers no more on the newest connection: it is not asked again.
    silence_reported: bool,
    /// How its newest connection was refused, if it was.
    refusal: Option<Value>,
    pub inbox: Inbox,
    pub turn: TurnView,
}

/// The newest connection of a client.
enum Conn {
    /// There is none: it was refused, or this side has left it. How the server had ended it before, if it had.
    Left(Option<ObservedEnd>),
    Live(Live),
    /// The server has ended it. What this side wrote on it tells in which ways it might.
    Ended(Live, ObservedEnd),
}

/// A connection that was opened.
pub(crate) struct Live {
    link: Link,
    number: u64,
    /// The opening exchange was done.
    opened: bool,
    reading: Reading,
    /// It has sent something that belongs to no opening.
    asked: bool,
    /// It has sent a close frame of its own.
    closing: bool,
}

/// Whether a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    On,
    Stopped,
}

/// What is to be said of a connection's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EndBlame {
    /// No step has awaited it: whoever meets it reports it.
    Unexplained,
    /// A step awaited it, or allowed it: that it ended is no surprise.
    Allowed,
    /// A failure says so; once is enough.
    Reported,
}

/// What the last `expect` took.
#[derive(Default)]
pub(crate) enum Taken {
    /// There was none.
    #[default]
    Nothing,
    /// What it waited for did not come, which was tolerated.
    Missed,
    /// The same, and an error came instead.
    Refused,
    Message(Box<Received>),
}

/// What a client has received.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Messages that no step has taken yet.
    pub queue: VecDeque<Received>,
    /// What its `expect`s took or looked past since the last `send`.
    pub looked: Vec<Looked>,
    /// What the last `expect` took.
    pub taken: Taken,
    /// Pongs that no step has taken yet.
    pongs: Vec<Arc<[u8]>>,
    /// The newest ids that exchanges of the protocol have sent, and where their answers bear them.
    asides: VecDeque<(Pointer, Value)>,
    /// The values that the server has told it.
    pub known_values: KnownValues,
    /// Messages on all its connections, ambient ones apart.
    received: u64,
}

/// What a client knows of the turn that runs.
#[derive(Default)]
pub(crate) struct TurnView {
    /// Newest log id received.
    pub last_seen: Option<i64>,
    /// Log ids received since the last `send`.
    pub since_send: Vec<i64>,
    /// The turn's end was received since the last `send`.
    pub over: bool,
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
    /// It answers what an exchange of the protocol has sent, and no step.
    pub aside: bool,
    /// It tells again what the client knows: the reading that speaks of that.
    pub repeats: Option<Arc<str>>,
    /// It stands for the connection's end: how it ended.
    pub ended: Option<String>,
    /// It breaks a MUST: no step can build on it.
    pub breaks: bool,
    /// What it takes in memory.
    #[expect(dead_code, reason = "it is held, and no more")]
    pub share: Share,
}

impl Received {
    /// What a step looks at in place of a message.
    pub fn made(event: u64, body: Value) -> Self {
        Self {
            event,
            body,
            message: None,
            ambient: false,
            aside: false,
            repeats: None,
            ended: None,
            breaks: false,
            share: Share::default(),
        }
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
        let by = if self.answers { Direction::Send } else { Direction::Recv };
        end_of(self.code, self.reason.as_deref(), by)
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

impl Live {
    pub fn new(link: Link, number: u64) -> Self {
        Self { link, number, opened: false, reading: Reading::On, asked: false, closing: false }
    }
}

impl Inbox {
    /// Takes in a message.
    pub fn deliver(&mut self, received: Received) {
        self.received += u64::from(!received.ambient);
        self.queue.push_back(received);
    }

    /// How many messages have come, ambient ones apart.
    pub fn count(&self) -> u64 {
        self.received
    }

    /// Puts messages that were taken out in front of the others again.
    pub fn put_back(&mut self, messages: Vec<Received>) {
        messages.into_iter().rev().for_each(|received| self.queue.push_front(received));
    }

    /// An exchange sends a message whose answers have this id at this place.
    pub fn note_aside(&mut self, at: &Pointer, id: &Value) {
        if self.asides.iter().any(|(known, same)| known == at && same == id) {
            return;
        }
        if self.asides.len() == MAX_ASIDES {
            self.asides.pop_front();
        }
        self.asides.push_back((at.clone(), id.clone()));
    }

    /// Whether a message answers what an exchange has sent.
    fn is_aside(&self, body: &Value) -> bool {
        self.asides.iter().any(|(at, id)| at.get(body) == Some(id))
    }

    /// Forgets the pongs: those of the next ping are wanted.
    pub fn forget_pongs(&mut self) {
        self.pongs.clear();
    }

    pub fn has_pong(&self, text: &[u8]) -> bool {
        self.pongs.iter().any(|pong| **pong == *text)
    }

    /// What was received on a connection is gone with it, but for the message that a step has taken.
    fn clear(&mut self) {
        self.asides.clear();
        self.known_values = KnownValues::default();
        self.queue.clear();
        self.looked.clear();
        self.pongs.clear();
    }
}

impl TurnView {
    /// Takes in a message that has this id in the log, and ends the turn or does not.
    fn learn(&mut self, logged: Option<i64>, part: Part) {
        self.last_seen = self.last_seen.max(logged);
        self.since_send.extend(logged);
        self.over |= part.ends_turn;
    }
}

impl Client {
    pub fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            conn: Conn::Left(None),
            blame: EndBlame::Unexplained,
            silence_reported: false,
            refusal: None,
            inbox: Inbox::default(),
            turn: TurnView::default(),
        }
    }

    /// It has a new connection, or was refused one.
    pub fn connect(&mut self, session: String, live: Option<Live>) {
        self.disconnect();
        self.session = session;
        self.conn = live.map_or_else(|| Conn::Left(Some(ObservedEnd::default())), Conn::Live);
        self.blame = EndBlame::Unexplained;
        self.silence_reported = false;
        self.refusal = None;
        self.turn.since_send.clear();
    }

    /// Forgets the connection, but neither name nor session nor newest event.
    pub fn disconnect(&mut self) {
        let ended = self.ended().cloned();
        self.conn = Conn::Left(ended);
        self.inbox.clear();
        self.turn.over = false;
    }

    /// The server has refused the connection, in this way.
    pub fn note_refusal(&mut self, how: Value) {
        self.refusal = Some(how);
    }

    pub fn refusal(&self) -> Option<&Value> {
        self.refusal.as_ref()
    }

    /// The sub-protocol that the server selected for the connection.
    pub fn selected(&self) -> Option<&str> {
        self.live()?.link.selected()
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    fn live(&self) -> Option<&Live> {
        match &self.conn {
            Conn::Live(live) | Conn::Ended(live, _) => Some(live),
            Conn::Left(_) => None,
        }
    }

    fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.conn {
            Conn::Live(live) | Conn::Ended(live, _) => Some(live),
            Conn::Left(_) => None,
        }
    }

    /// What it writes to: also where the server has ended the connection, which writing shows as well.
    pub fn link(&mut self) -> Option<&mut Link> {
        Some(&mut self.live_mut()?.link)
    }

    /// The number of its connection, if it has one.
    pub fn number(&self) -> Option<u64> {
        self.live().map(|live| live.number)
    }

    /// It has not left its connection, whatever the server did.
    pub fn is_connected(&self) -> bool {
        self.live().is_some()
    }

    /// The opening exchange was done.
    pub fn is_opened(&self) -> bool {
        self.live().is_some_and(|live| live.opened)
    }

    /// It does not read at present.
    pub fn is_stalled(&self) -> bool {
        self.live().is_some_and(|live| live.reading == Reading::Stopped)
    }

    /// It has sent something on the connection that belongs to no opening.
    pub fn has_asked(&self) -> bool {
        self.live().is_some_and(|live| live.asked)
    }

    /// It has sent a close frame of its own.
    pub fn is_closing(&self) -> bool {
        self.live().is_some_and(|live| live.closing)
    }

    /// The opening exchange is done.
    pub fn set_opened(&mut self) {
        if let Some(live) = self.live_mut() {
            live.opened = true;
        }
    }

    /// Stops reading, or reads again.
    pub fn set_reading(&mut self, reading: Reading) {
        if let Some(live) = self.live_mut() {
            live.reading = reading;
            live.link.stall(reading == Reading::Stopped);
        }
    }

    /// It sends what belongs to no opening.
    pub fn note_asked(&mut self) {
        if let Some(live) = self.live_mut() {
            live.asked = true;
        }
    }

    /// It has sent a close frame: the server ends the connection now.
    pub fn note_closing(&mut self) {
        if let Some(live) = self.live_mut() {
            live.closing = true;
        }
        self.allow_end();
    }

    /// How the connection ended, once it has.
    pub fn ended(&self) -> Option<&ObservedEnd> {
        match &self.conn {
            Conn::Live(_) => None,
            Conn::Left(ended) => ended.as_ref(),
            Conn::Ended(_, ended) => Some(ended),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended().is_some()
    }

    /// The connection has ended: what showed that first stands. `event`: where the log shows it, if it does yet.
    pub fn note_end(&mut self, end: ObservedEnd, event: Option<u64>) {
        self.conn = match std::mem::replace(&mut self.conn, Conn::Left(None)) {
            Conn::Live(live) => Conn::Ended(live, end),
            Conn::Left(known) => Conn::Left(known.or(Some(end))),
            ended @ Conn::Ended(..) => ended,
        };
        if let Conn::Left(Some(ended)) | Conn::Ended(_, ended) = &mut self.conn {
            ended.event = ended.event.or(event);
        }
    }

    /// Found when writing: whoever waits for the answer finds the connection ended and says so.
    pub fn note_broken(&mut self) {
        self.note_end(ObservedEnd::by(End::Reset), None);
    }

    /// That the connection ends is no surprise.
    pub fn allow_end(&mut self) {
        self.blame = self.blame.max(EndBlame::Allowed);
    }

    /// A failure says that the connection has ended.
    pub fn report_end(&mut self) {
        self.blame = EndBlame::Reported;
    }

    pub fn blame(&self) -> EndBlame {
        self.blame
    }

    /// A failure says that the server answers no more.
    pub fn report_silence(&mut self) {
        self.silence_reported = true;
    }

    pub fn is_silence_reported(&self) -> bool {
        self.silence_reported
    }

    /// The connection's end as what a step takes; `last`: the newest line of the wire log.
    pub fn end(&self, last: u64) -> Option<Received> {
        let ended = self.ended()?;
        let received = Received::made(ended.event.unwrap_or(last), ended.body());
        Some(Received { ended: Some(ended.describe()), ..received })
    }

    /// How the connection ended, if no step awaited that.
    pub fn lost(&self) -> Option<&ObservedEnd> {
        self.ended().filter(|_| self.is_connected() && self.blame == EndBlame::Unexplained)
    }

    /// It sends a message. What may end the connection is what was said before; once it has ended, that stays explained.
    pub fn begin_request(&mut self) {
        if self.blame == EndBlame::Allowed && !self.has_ended() {
            self.blame = EndBlame::Unexplained;
        }
    }

    /// What it sends next begins a new exchange.
    pub fn begin_exchange(&mut self) {
        self.turn.since_send.clear();
        self.inbox.looked.clear();
        self.turn.over = false;
    }

    /// Takes in a message, with its id in the log and its part in the turn.
    pub fn receive(&mut self, mut received: Received, logged: Option<i64>, part: Part) {
        received.aside = self.inbox.is_aside(&received.body);
        self.turn.learn(logged, part);
        self.inbox.deliver(received);
    }

    /// Takes in a pong.
    pub fn receive_pong(&mut self, text: &Arc<[u8]>) {
        self.inbox.pongs.push(Arc::clone(text));
    }

    /// A query of its can be answered, and it reads the answer.
    pub fn can_ask(&self) -> bool {
        self.is_opened() && !self.is_stalled() && !self.has_ended() && self.is_understood()
    }

    /// What it sends now can be understood: it has written no half frame, and nothing that is forbidden.
    pub fn is_understood(&self) -> bool {
        self.standing().is_none_or(|standing| standing == Standing::Clear)
    }

    /// It has written what RFC 6455 forbids, or a frame whose end the server may not wait for: whoever fails such a
    /// connection may do it without a close frame (RFC 6455, 7.1.7).
    pub fn may_be_cut(&self) -> bool {
        matches!(self.standing(), Some(Standing::Broken | Standing::MidFrame))
    }

    /// How far what it has written can be understood.
    pub fn standing(&self) -> Option<Standing> {
        self.live().map(|live| live.link.standing())
    }
}

/// The clients by name.
pub(crate) type Clients = BTreeMap<String, Client>;
