//! When a defect strikes: always, or only at moments that a careless suite never looks at.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A message that is called long, in bytes.
const LONG: usize = 1024;
/// How long ago the client's last message was, for what is called late.
const LATE: Duration = Duration::from_millis(100);

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
}

impl Trigger {
    /// All triggers, by name and what they mean.
    pub const ALL: [(Self, &'static str, &'static str); 14] = [
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
pub(super) struct Moment(Arc<Mutex<State>>);

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
}

#[derive(Debug)]
struct Message {
    at: Instant,
    ascii: bool,
    length: usize,
}

impl Moment {
    fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn message(&self, bytes: &[u8]) {
        let message = Message { at: Instant::now(), ascii: bytes.is_ascii(), length: bytes.len() };
        self.with(|state| state.message = Some(message));
    }

    pub fn note(&self, happening: Happening) {
        self.with(|state| match happening {
            Happening::Turn => state.turns += 1,
            Happening::Abort => state.aborted = true,
            Happening::Denial => state.denied = true,
            Happening::Error => state.refused = true,
            Happening::Joined => {
                state.back |= state.left;
                state.clients += 1;
            }
            Happening::Left => {
                state.left = true;
                state.clients = state.clients.saturating_sub(1);
            }
            Happening::Asks => state.asking += 1,
            Happening::Decided => state.asking = state.asking.saturating_sub(1),
            Happening::ToolStarts => state.running += 1,
            Happening::ToolEnds => state.running = state.running.saturating_sub(1),
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
        assert_eq!(after(&[Asks, ToolStarts]), ["always", "first-turn", "while-asking", "while-running"]);
        assert_eq!(after(&[Asks, Decided, Denial]), ["always", "first-turn", "after-denial"]);
    }

    #[test]
    fn a_message_makes_moments_too() {
        let moment = Moment::default();
        assert!(!moment.is(Trigger::NonAscii) && !moment.is(Trigger::LongMessage));
        moment.message("é".repeat(600).as_bytes());
        assert!(moment.is(Trigger::NonAscii) && moment.is(Trigger::LongMessage) && !moment.is(Trigger::Late));
        moment.message(b"e");
        assert!(!moment.is(Trigger::NonAscii) && !moment.is(Trigger::LongMessage));
    }

    #[test]
    fn names_lead_back() {
        for (trigger, name, _) in Trigger::ALL {
            assert_eq!(Trigger::named(name), Some(trigger));
            assert_eq!(trigger.name(), name);
        }
    }
}
