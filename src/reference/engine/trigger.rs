//! When a defect strikes: always, or only at moments that a careless suite never looks at.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A message that is called long, in bytes.
const LONG: usize = 1024;
/// How long ago the client's last message was, for what is called late.
const LATE: Duration = Duration::from_millis(100);
/// Between two messages of which the second comes right behind the first. An answer and the message that follows it take longer.
const AT_ONCE: Duration = Duration::from_micros(50);

/// At which moments of a session a defect strikes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trigger {
    /// At all of them.
    #[default]
    Always,
    /// Until the second turn begins.
    FirstTurn,
    /// From the second turn on.
    SecondTurn,
    /// From the third turn on.
    ThirdTurn,
    /// Once a turn was aborted.
    AfterAbort,
    /// Once a call was denied.
    AfterDenial,
    /// Once a message was refused.
    AfterError,
    /// Once a client has come to a session that another one, or itself, had left.
    AfterReconnect,
    /// While two clients or more are in the session.
    SecondClient,
    /// While a call waits for its approval.
    WhileAsking,
    /// While a tool is at work.
    WhileRunning,
    /// When the client's last message holds a character that is not ASCII.
    NonAscii,
    /// When the client's last message is longer than a kibibyte.
    LongMessage,
    /// When the client's last message came 100 ms ago or earlier.
    Late,
    /// When the client's last message is the first of its kind.
    Once,
    /// When the client's last message is not the first of its kind.
    Again,
    /// In every session but the server's first.
    OtherSession,
    /// While two calls or more wait for their approval or are at work.
    ParallelCalls,
    /// When the client's last message has a text that is empty or white space.
    Blank,
    /// When the client's last message came right behind another one.
    Pipelined,
}

impl Trigger {
    /// All triggers, by name and what they mean.
    pub const ALL: [(Self, &'static str, &'static str); 20] = [
        (Self::Always, "always", "at every moment"),
        (Self::FirstTurn, "first-turn", "until the second turn begins"),
        (Self::SecondTurn, "second-turn", "from the second turn on"),
        (Self::ThirdTurn, "third-turn", "from the third turn on"),
        (Self::AfterAbort, "after-abort", "once a turn was aborted"),
        (Self::AfterDenial, "after-denial", "once a call was denied"),
        (Self::AfterError, "after-error", "once a message was refused"),
        (Self::AfterReconnect, "after-reconnect", "once a client has come back"),
        (Self::SecondClient, "second-client", "while two clients are in the session"),
        (Self::WhileAsking, "while-asking", "while a call waits for its approval"),
        (Self::WhileRunning, "while-running", "while a tool runs"),
        (Self::NonAscii, "non-ascii", "when the client's last message is not all ASCII"),
        (Self::LongMessage, "long-message", "when the client's last message is longer than 1 KiB"),
        (Self::Late, "late", "100 ms and more after the client's last message"),
        (Self::Once, "once", "when the client's last message is the first of its kind in the session"),
        (Self::Again, "again", "when the client's last message is not the first of its kind in the session"),
        (Self::OtherSession, "other-session", "in every session but the server's first"),
        (Self::ParallelCalls, "parallel-calls", "while two calls or more wait for approval or run"),
        (Self::Blank, "blank", "when a text in the client's last message is empty or white space"),
        (Self::Pipelined, "pipelined", "when the client's last message came within 50 µs of the one before"),
    ];

    /// The trigger of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(trigger, ..)| *trigger)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(trigger, ..)| *trigger == self).map_or("always", |(_, name, _)| name)
    }
}

/// Something that has happened in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reference) enum Happening {
    /// A turn begins.
    Turn,
    /// The client has aborted a turn.
    Abort,
    /// The client has denied a call.
    Denial,
    /// A message of the client was refused.
    Error,
    /// A client has come.
    Joined,
    /// A client has gone.
    Left,
    /// A call begins to wait for its approval.
    Asks,
    /// It was decided, or given up.
    Decided,
    /// A tool begins its work.
    ToolStarts,
    /// It is done.
    ToolEnds,
}

/// What has happened in a session so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    state: Arc<Mutex<Kept>>,
    /// The sessions of this server in which something has happened.
    sessions: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    turns: u64,
    aborted: bool,
    denied: bool,
    refused: bool,
    left: bool,
    back: bool,
    clients: u64,
    asking: u64,
    running: u64,
    message: Option<Message>,
    /// The kinds of messages that have come.
    kinds: BTreeSet<String>,
    /// How many sessions were there before this one.
    number: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Message {
    at: Instant,
    ascii: bool,
    length: usize,
    blank: bool,
    again: bool,
    pipelined: bool,
}

/// A message says here of which kind it is.
const KINDS: [&str; 2] = ["type", "method"];

fn kind_of(body: &Value) -> String {
    let mut kinds = KINDS.iter().filter_map(|field| body[*field].as_str());
    kinds.next().unwrap_or_default().to_owned()
}

fn has_blank(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().any(has_blank),
        Value::Object(fields) => fields.values().any(has_blank),
        _ => false,
    }
}

impl State {
    fn note(&mut self, happening: Happening) {
        match happening {
            Happening::Turn => self.turns += 1,
            Happening::Abort => self.aborted = true,
            Happening::Denial => self.denied = true,
            Happening::Error => self.refused = true,
            Happening::Joined => {
                self.back |= self.left;
                self.clients += 1;
            }
            Happening::Left => {
                self.left = true;
                self.clients = self.clients.saturating_sub(1);
            }
            Happening::Asks => self.asking += 1,
            Happening::Decided => self.asking = self.asking.saturating_sub(1),
            Happening::ToolStarts => self.running += 1,
            Happening::ToolEnds => self.running = self.running.saturating_sub(1),
        }
    }

    /// Adds what has happened in another session, which is one with this one from now on.
    fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.aborted |= other.aborted;
        self.denied |= other.denied;
        self.refused |= other.refused;
        self.back |= other.back || self.left && other.clients > 0;
        self.left |= other.left;
        self.clients += other.clients;
        self.asking += other.asking;
        self.running += other.running;
        let messages = [self.message, other.message];
        self.message = messages.into_iter().flatten().max_by_key(|message| message.at);
        self.kinds.extend(other.kinds);
        let numbers = [self.number, other.number];
        self.number = numbers.into_iter().flatten().min();
    }
}

/// Where it is kept what has happened in a session.
#[derive(Debug)]
enum Kept {
    Here(State),
    /// The session has become a part of another one.
    Moved(Arc<Mutex<Kept>>),
}

impl Kept {
    fn next(&self) -> Option<Arc<Mutex<Self>>> {
        match self {
            Self::Here(_) => None,
            Self::Moved(next) => Some(Arc::clone(next)),
        }
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self::Here(State::default())
    }
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Moment {
    /// The same for another session of the server, in which nothing has happened.
    pub fn of_session(&self) -> Self {
        Self { state: Arc::default(), sessions: Arc::clone(&self.sessions) }
    }

    /// Makes this session and its clones a part of another one: what has happened in either has happened in both. Only one at a
    /// time may do so.
    pub fn join(&self, other: &Self) {
        let (own, joined) = (self.state(), other.state());
        if Arc::ptr_eq(&own, &joined) {
            return;
        }
        let own = std::mem::replace(&mut *locked(&own), Kept::Moved(joined));
        if let Kept::Here(own) = own {
            other.with(|state| state.add(own));
        }
    }

    fn state(&self) -> Arc<Mutex<Kept>> {
        let mut kept = Arc::clone(&self.state);
        loop {
            let Some(next) = locked(&kept).next() else { return kept };
            kept = next;
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        let mut kept = Arc::clone(&self.state);
        loop {
            let next = match &mut *locked(&kept) {
                Kept::Here(state) => return what(state),
                Kept::Moved(next) => Arc::clone(next),
            };
            kept = next;
        }
    }

    /// A message has come. It is read only for a trigger that asks what it says.
    pub fn message(&self, bytes: &[u8], trigger: Trigger) {
        let is_read = matches!(trigger, Trigger::Once | Trigger::Again | Trigger::Blank);
        let body = is_read.then(|| serde_json::from_slice::<Value>(bytes).unwrap_or_default());
        self.with(|state| {
            let again = body.as_ref().is_some_and(|body| !state.kinds.insert(kind_of(body)));
            let at = Instant::now();
            let pipelined = state.message.is_some_and(|before| at.duration_since(before.at) < AT_ONCE);
            state.message = Some(Message {
                at,
                ascii: bytes.is_ascii(),
                length: bytes.len(),
                blank: body.as_ref().is_some_and(has_blank),
                again,
                pipelined,
            });
        });
    }

    pub fn note(&self, happening: Happening) {
        self.with(|state| {
            state.number.get_or_insert_with(|| self.sessions.fetch_add(1, Ordering::Relaxed));
            state.note(happening);
        });
    }
    /// Whether this is a moment of the trigger.
    pub fn is(&self, trigger: Trigger) -> bool {
        self.with(|state| {
            let message = state.message.as_ref();
            match trigger {
                Trigger::Always => true,
                Trigger::FirstTurn => state.turns < 2,
                Trigger::SecondTurn => state.turns >= 2,
                Trigger::ThirdTurn => state.turns >= 3,
                Trigger::AfterAbort => state.aborted,
                Trigger::AfterDenial => state.denied,
                Trigger::AfterError => state.refused,
                Trigger::AfterReconnect => state.back,
                Trigger::SecondClient => state.clients >= 2,
                Trigger::WhileAsking => state.asking > 0,
                Trigger::WhileRunning => state.running > 0,
                Trigger::NonAscii => message.is_some_and(|message| !message.ascii),
                Trigger::LongMessage => message.is_some_and(|message| message.length > LONG),
                Trigger::Late => message.is_some_and(|message| message.at.elapsed() >= LATE),
                Trigger::Once => message.is_some_and(|message| !message.again),
                Trigger::Again => message.is_some_and(|message| message.again),
                Trigger::OtherSession => {
                    state.number.unwrap_or_else(|| self.sessions.load(Ordering::Relaxed)) > 0
                }
                Trigger::ParallelCalls => state.asking + state.running >= 2,
                Trigger::Blank => message.is_some_and(|message| message.blank),
                Trigger::Pipelined => message.is_some_and(|message| message.pipelined),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trigger_has_its_moments() {
        let after = |happenings: &[Happening]| {
            let moment = Moment::default();
            happenings.iter().for_each(|happening| moment.note(*happening));
            let all = Trigger::ALL.iter().filter(|(trigger, ..)| moment.is(*trigger));
            all.map(|(_, name, _)| *name).collect::<Vec<_>>()
        };
        use Happening::*;
        assert_eq!(after(&[]), ["always", "first-turn"]);
        assert_eq!(after(&[Turn, Turn, Abort]), ["always", "second-turn", "after-abort"]);
        assert_eq!(after(&[Turn, Turn, Turn]), ["always", "second-turn", "third-turn"]);
        assert_eq!(after(&[Joined, Left]), ["always", "first-turn"]);
        assert_eq!(after(&[Joined, Left, Joined]), ["always", "first-turn", "after-reconnect"]);
        assert_eq!(after(&[Joined, Joined, Error]), ["always", "first-turn", "after-error", "second-client"]);
        assert_eq!(
            after(&[Asks, ToolStarts]),
            ["always", "first-turn", "while-asking", "while-running", "parallel-calls"]
        );
        assert_eq!(
            after(&[ToolStarts, ToolStarts, ToolEnds]),
            ["always", "first-turn", "while-running"],
            "one is left"
        );
        assert_eq!(after(&[Asks, Decided, Denial]), ["always", "first-turn", "after-denial"]);
    }

    #[test]
    fn a_message_makes_moments_too() {
        let moment = Moment::default();
        let message = |text: &str, trigger| moment.message(text.as_bytes(), trigger);
        assert!(!moment.is(Trigger::NonAscii) && !moment.is(Trigger::LongMessage));
        message(&"é".repeat(600), Trigger::NonAscii);
        assert!(moment.is(Trigger::NonAscii) && moment.is(Trigger::LongMessage) && !moment.is(Trigger::Late));
        message("e", Trigger::NonAscii);
        assert!(!moment.is(Trigger::NonAscii) && !moment.is(Trigger::LongMessage));
    }

    #[test]
    fn what_a_message_says_makes_moments() {
        let moment = Moment::default();
        let is = |text: &str, trigger| {
            moment.message(text.as_bytes(), trigger);
            moment.is(trigger)
        };
        assert!(!moment.is(Trigger::Once) && !moment.is(Trigger::Again));
        assert!(is(r#"{"type":"a"}"#, Trigger::Once));
        assert!(is(r#"{"method":"b"}"#, Trigger::Once));
        assert!(!is(r#"{"type":"a","n":1}"#, Trigger::Once));
        assert!(is(r#"{"method":"b"}"#, Trigger::Again));
        assert!(is(r#"{"a":[{"b":" \n"}]}"#, Trigger::Blank) && !is(r#"{"a":["b",0]}"#, Trigger::Blank));
    }

    #[test]
    fn the_first_session_of_a_server_is_told_from_the_others() {
        let server = Moment::default();
        let (first, second) = (server.of_session(), server.of_session());
        second.note(Happening::Turn);
        first.note(Happening::Turn);
        // The order is that in which something happens.
        assert!(first.is(Trigger::OtherSession) && !second.is(Trigger::OtherSession));
        second.note(Happening::Turn);
        assert!(!second.is(Trigger::OtherSession) && server.of_session().is(Trigger::OtherSession));
    }

    #[test]
    fn sessions_that_join_share_what_has_happened() {
        let server = Moment::default();
        let (first, second, third) = (server.of_session(), server.of_session(), server.of_session());
        [&first, &second, &third].iter().for_each(|moment| moment.note(Happening::Joined));
        let clone = second.clone();
        second.note(Happening::Turn);
        first.note(Happening::Turn);
        second.join(&first);
        assert!(first.is(Trigger::SecondClient) && first.is(Trigger::SecondTurn));
        assert!(!clone.is(Trigger::OtherSession) && third.is(Trigger::OtherSession));
        clone.note(Happening::Error);
        assert!(first.is(Trigger::AfterError) && !third.is(Trigger::AfterError));
        // Again, and the other way: they are one already.
        first.join(&second);
        second.note(Happening::Left);
        assert!(!first.is(Trigger::SecondClient));
        third.join(&clone);
        assert!(first.is(Trigger::SecondClient) && first.is(Trigger::AfterReconnect));
    }

    #[test]
    fn names_lead_back() {
        for (trigger, name, _) in Trigger::ALL {
            assert_eq!(Trigger::named(name), Some(trigger));
            assert_eq!(trigger.name(), name);
        }
    }
}
