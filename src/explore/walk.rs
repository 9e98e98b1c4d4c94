//! A conversation as it is made and shrunk: what each client does, in order.

use std::fmt;

/// The client of the first session; it is there from the beginning.
pub const ALICE: &str = "alice";
/// A second client, of the same session where there is such a thing.
pub const BOB: &str = "bob";
/// The client of another session, which must not be disturbed.
pub const BYSTANDER: &str = "witness";

/// Who does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    /// [`ALICE`].
    Alice,
    /// [`BOB`].
    Bob,
    /// [`BYSTANDER`].
    Bystander,
}

impl Actor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Alice, Self::Bob, Self::Bystander];

    /// The client's name in the scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alice => ALICE,
            Self::Bob => BOB,
            Self::Bystander => BYSTANDER,
        }
    }
}

/// How a connection is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Cut, without a closing handshake.
    Cut,
    /// Closed in good order.
    Closed,
}

/// What the user's text is like, around the cue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Text {
    /// A few words.
    Plain,
    /// Not all ASCII.
    NonAscii,
    /// Longer than 1 KiB.
    Long,
    /// Blanks on both sides.
    Blanks,
}

impl Text {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::NonAscii, Self::Long, Self::Blanks];

    /// The text with a cue in it.
    pub fn around(self, cue: &str) -> String {
        match self {
            Self::Plain => cue.to_owned(),
            Self::NonAscii => format!("Gr\u{fc}\u{df}e, \u{4e16}\u{754c} \u{1f389} {cue}"),
            Self::Long => format!("{}{cue}", "a long story ".repeat(100)),
            Self::Blanks => format!("   {cue}   "),
        }
    }
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Act {
    /// A connection is opened.
    Open,
    /// The connection is lost and opened again, perhaps in another way than the first.
    Reopen(Loss, Option<String>),
    /// The connection is closed for good, or until it is opened again.
    Leave,
    /// A turn with this script of the model.
    Turn(String, Text),
    /// A turn of the protocol's own, by its name, in which the client has more to do.
    Scripted(String),
    /// A state is entered.
    Enter(String),
    /// The state is left: in its usual way, or in another one.
    Exit(Option<String>),
    /// A state that passes by itself is waited out.
    Wait,
    /// The state is asked for.
    Query,
    /// A message without effect, by its name.
    Message(String),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Reopen(Loss::Cut, way) => write!(f, "cut, open{}", with(way.as_ref())),
            Self::Reopen(Loss::Closed, way) => write!(f, "close, open{}", with(way.as_ref())),
            Self::Leave => f.write_str("close"),
            Self::Turn(script, Text::Plain) => write!(f, "turn {script}"),
            Self::Turn(script, text) => {
                write!(f, "turn {script} {}", format!("{text:?}").to_lowercase())
            }
            Self::Scripted(name) => write!(f, "turn {name}"),
            Self::Enter(state) => write!(f, "enter {state}"),
            Self::Exit(way) => write!(f, "leave{}", with(way.as_ref())),
            Self::Wait => f.write_str("wait"),
            Self::Query => f.write_str("query"),
            Self::Message(name) => write!(f, "send {name}"),
        }
    }
}

fn with(way: Option<&String>) -> String {
    way.map(|way| format!(" by {way}")).unwrap_or_default()
}

/// One move of a walk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Move {
    /// Who does it.
    pub by: Actor,
    /// What.
    pub act: Act,
    /// The other session's state is compared before and after.
    pub watched: bool,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.by.name(), self.act)
    }
}

/// What is asked after the moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClosingChecks {
    /// States are left; a clean turn works on each connection, and on a fresh one.
    Full,
    /// States are left.
    Brief,
}

/// A conversation. `alice` is connected at its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Walk {
    /// What is done, in order.
    pub moves: Vec<Move>,
    /// What is asked afterwards.
    pub closing: ClosingChecks,
}

impl Walk {
    /// Its size: shrinking makes it less.
    pub fn size(&self) -> usize {
        let of = |step: &Move| {
            let text = matches!(step.act, Act::Turn(_, text) if text != Text::Plain);
            let way = matches!(&step.act, Act::Exit(Some(_)) | Act::Reopen(_, Some(_)));
            10 + usize::from(step.watched) + usize::from(text) + usize::from(way)
        };
        self.moves.iter().map(of).sum::<usize>() + usize::from(self.closing == ClosingChecks::Full) * 25
    }
}
