//! A case as it is run: checked, one verb a step, each verb with the modifiers that it takes and no others.
//! What people write is in [`super::file`], the way from there to here in `compile.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

use super::file;
pub use super::file::Restart;
use super::frame::RawFrame;
use super::preamble::Beginning;
use crate::frame::Pointer;
use crate::protocol::extension::Join;
use crate::protocol::script::TurnStep;
use crate::protocol::{Answer, Protocol};
use crate::source::schema::Schema;

/// Steps in their order. A case behind a preamble shares them with the case alone.
pub type Steps = Vec<Arc<Step>>;

/// A case.
#[derive(Debug, Clone)]
pub struct Case {
    /// One sentence that says what must be true.
    pub title: String,
    /// The requirements that it is about.
    pub covers: Vec<String>,
    /// Capabilities without which it is not applicable.
    pub needs: Vec<String>,
    /// What the scripted model does.
    pub turn: Option<Vec<TurnStep>>,
    /// Further turns by name.
    pub turns: IndexMap<String, Vec<TurnStep>>,
    /// Template variables.
    pub vars: IndexMap<String, Value>,
    /// Whether it is run many times.
    pub rounds: Rounds,
    /// Whether the clients settle when the steps are done.
    pub settle: bool,
    /// Invariants that are not judged in it, and rules for clients that are not followed.
    pub suspend: Vec<String>,
    /// What may be before it, and what it may be before.
    pub beginning: Beginning,
    /// The steps.
    pub steps: Steps,
}

/// How often a case is run.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    /// The variable of a sweep.
    pub sweep: Option<String>,
    /// How often it is run.
    pub repeat: Option<u32>,
    /// How much the server's memory may grow from the first of the repeats to the last, in MiB.
    pub max_growth: Option<u32>,
}

impl Case {
    /// The turn of this name; `None`: the case's own.
    pub fn turn_named(&self, name: Option<&str>) -> Option<&[TurnStep]> {
        match name {
            Some(name) => self.turns.get(name).map(Vec::as_slice),
            None => self.turn.as_deref(),
        }
    }

    /// The steps of all its turns.
    pub fn all_turns(&self) -> impl Iterator<Item = &TurnStep> {
        self.turn.iter().chain(self.turns.values()).flatten()
    }

    /// How many sessions it needs beside each other, as far as the protocol says what a session is.
    pub fn sessions(&self, protocol: &Protocol) -> usize {
        let session = &protocol.extension.session;
        let per_client = matches!(session.join, Join::Connection);
        if per_client && session.id.is_empty() {
            return 1;
        }
        let mut names = BTreeSet::new();
        self.steps.iter().for_each(|step| step.opened(per_client, &mut names));
        names.len()
    }
}

/// A step.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it does.
    pub verb: Verb,
    /// What every step may have.
    pub common: Common,
}

/// What every step may have.
#[derive(Debug, Clone, Default)]
pub struct Common {
    /// Requirements held against the server when the step fails, and exercised when it is done.
    pub covers: Vec<String>,
    /// The step is left out unless this holds.
    pub when: Option<Relation>,
}

/// What a step does. `as` is the client that does it, for verbs that do not name theirs.
#[derive(Debug, Clone)]
pub enum Verb {
    /// Connects a client.
    Open(Open),
    /// Closes this client's connection.
    Close(String),
    /// Cuts a client's connection.
    Drop(Cut),
    /// This client stops reading.
    Stall(String),
    /// This client reads again.
    Unstall(String),
    /// Sends a message.
    Send(SendMessage),
    /// Sends a text.
    Raw(SendText),
    /// Sends a binary message.
    Binary(SendBinary),
    /// Writes a frame.
    Frame(Box<WriteFrame>),
    /// Writes bytes.
    Bytes(WriteBytes),
    /// Waits for a message, or for the end of the connection.
    Expect(Box<Expect>),
    /// Judges what the last `expect` took.
    Check(Check),
    /// Something does not come.
    Never(Box<Never>),
    /// A ping, and its pong.
    Ping(Text),
    /// Judges the text that came in pieces.
    Joined(Box<Joined>),
    /// Does the barrier with this client, and looks past everything received.
    Settle(String),
    /// A connection lives.
    Alive(Alive),
    /// The server ends a connection.
    Ended(Ended),
    /// Messages were refused.
    Rejected(Rejected),
    /// A text was not shown.
    Unseen(Text),
    /// Stops and starts the server.
    Restart(Restart),
    /// A file of the server's.
    ExpectFile(ExpectFile),
    /// A plain HTTP request, and its answer.
    Get(Box<Get>),
    /// A relation holds.
    Assert(Relation),
    /// Steps that leave the server's visible state as it was.
    Unchanged(Unchanged),
    /// Steps, again and again.
    Repeat(Box<Repeat>),
    /// Steps, as a unit.
    Steps(Group),
    /// Lists of steps, side by side.
    Parallel(Vec<Steps>),
}

/// `open`.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// The client's name.
    pub client: String,
    /// The session that it joins.
    pub session: Option<String>,
    /// The exchange with which it begins.
    pub opening: Opening,
    /// Values for the opening's templates, and for the parameter of the address that names the session.
    pub with: Option<Value>,
    /// The server may refuse the connection.
    pub may_refuse: bool,
    /// What is different of the upgrade.
    pub upgrade: Upgrade,
}

/// What an `open` changes of the upgrade request, and wants of its answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Upgrade {
    /// Headers; none: without the one that the run sends.
    pub headers: Vec<(String, Option<String>)>,
    /// The sub-protocols that are offered.
    pub protocols: Option<Vec<String>>,
    /// The sub-protocol that the server must select.
    pub selects: Option<Selected>,
}

/// A sub-protocol that a server must select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// None at all.
    None,
    /// The one of this name.
    Named(String),
}

/// The exchange with which a client begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// The protocol's first.
    First,
    /// Only the connection.
    None,
    /// The protocol's exchange of this name.
    Named(String),
}

/// `drop`.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The client.
    pub client: String,
    /// Once it has received that many events of the log: a number or a template.
    pub after: Option<Value>,
    /// The server notices before the step is over.
    pub noticed: bool,
    /// Steps that name no client are not about this one any more.
    pub leaves: bool,
}

/// `send`.
#[derive(Debug, Clone)]
pub struct SendMessage {
    /// The client.
    pub by: Option<String>,
    /// The message, with templates.
    pub message: Value,
    /// How often.
    pub count: u32,
    /// What it asks for may be under way when the case ends.
    pub abandon: bool,
}

/// `raw`.
#[derive(Debug, Clone)]
pub struct SendText {
    /// The client.
    pub by: Option<String>,
    /// The text, with templates.
    pub text: String,
    /// How often.
    pub count: u32,
    /// What it asks for may be under way when the case ends.
    pub abandon: bool,
}

/// `binary`.
#[derive(Debug, Clone)]
pub struct SendBinary {
    /// The client.
    pub by: Option<String>,
    /// The message.
    pub bytes: Vec<u8>,
}

/// `frame`.
#[derive(Debug, Clone)]
pub struct WriteFrame {
    /// The client.
    pub by: Option<String>,
    /// The frame.
    pub frame: RawFrame,
    /// How often.
    pub count: u32,
}

/// `bytes`.
#[derive(Debug, Clone)]
pub struct WriteBytes {
    /// The client.
    pub by: Option<String>,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How often.
    pub count: u32,
}

/// What a step waits for, or rules out.
#[derive(Debug, Clone, Default)]
pub struct Awaited {
    /// Message types, `turn-end` and `close`: any of them. None: the refusal of a connection.
    pub names: Vec<String>,
    /// It is the refusal of a connection.
    pub refusal: bool,
    /// A part of it.
    pub with: Option<Value>,
    /// What it satisfies.
    pub schema: Option<Constraint>,
}

/// `expect`.
#[derive(Debug, Clone)]
pub struct Expect {
    /// The client.
    pub by: Option<String>,
    /// What is waited for.
    pub awaited: Awaited,
    /// Values to keep: variable to place.
    pub save: IndexMap<String, Pointer>,
    /// How each of them is answered: they are requests of the server's.
    pub answer: Option<Answer>,
    /// For how long, if not for the run's deadline.
    pub within: Option<Duration>,
    /// How many of them.
    pub count: u32,
    /// Error messages do not end the wait.
    pub past_errors: bool,
    /// What it looks past stays.
    pub keep: bool,
    /// What a failure counts.
    pub leniency: Leniency,
}

/// `check`.
#[derive(Debug, Clone)]
pub struct Check {
    /// The client.
    pub by: Option<String>,
    /// What the message satisfies.
    pub schema: Constraint,
    /// What a failure counts.
    pub leniency: Leniency,
}

/// `never`.
#[derive(Debug, Clone)]
pub struct Never {
    /// The client.
    pub by: Option<String>,
    /// What must not come.
    pub awaited: Awaited,
    /// For how long, instead of until the barrier is answered.
    pub window: Option<Duration>,
    /// What a failure counts.
    pub leniency: Leniency,
}

/// `ping`, `unseen`: a text, with templates.
#[derive(Debug, Clone)]
pub struct Text {
    /// The client.
    pub by: Option<String>,
    /// The text.
    pub text: String,
}

/// `joined`.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The client.
    pub by: Option<String>,
    /// Which pieces, and how they are put together.
    pub pieces: file::Joined,
    /// What the text satisfies.
    pub schema: Constraint,
}

/// `alive`.
#[derive(Debug, Clone)]
pub struct Alive {
    /// The client.
    pub client: String,
    /// Close codes with which the server may have ended the connection instead; empty: any that it may send.
    pub codes: Option<Vec<u16>>,
}

/// `ended`.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The client.
    pub client: String,
    /// The close codes that are due; none: any that the server may send.
    pub codes: Vec<u16>,
}

/// `rejected`.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The client.
    pub by: Option<String>,
    /// How many of its messages.
    pub count: usize,
    /// What a failure counts.
    pub leniency: Leniency,
}

/// `expect_file`.
#[derive(Debug, Clone)]
pub struct ExpectFile {
    /// Its path in the scratch folder, with templates.
    pub path: String,
    /// What its text satisfies; none: it is there.
    pub schema: Option<Constraint>,
    /// For how long it is waited for, if not for the run's deadline.
    pub within: Option<Duration>,
}

/// `get`.
#[derive(Debug, Clone)]
pub struct Get {
    /// The path, with templates; it begins with a slash.
    pub path: String,
    /// Headers of the request.
    pub upgrade: Upgrade,
    /// What the answer is; with neither this nor a schema: one with a status from 200 to 299.
    pub with: Option<Value>,
    /// What the answer satisfies.
    pub schema: Option<Constraint>,
    /// For how long it is waited for, if not for the run's deadline.
    pub within: Option<Duration>,
}

/// `unchanged`.
#[derive(Debug, Clone)]
pub struct Unchanged {
    /// The client that looks at the state.
    pub by: Option<String>,
    /// The steps.
    pub steps: Steps,
}

/// `repeat`.
#[derive(Debug, Clone)]
pub struct Repeat {
    /// What ends it: a message that one of the steps takes.
    pub until: Awaited,
    /// How often at most.
    pub most: u32,
    /// The steps.
    pub steps: Steps,
}

/// `steps`.
#[derive(Debug, Clone)]
pub struct Group {
    /// Template variables, for these steps only.
    pub vars: IndexMap<String, Value>,
    /// They are done one after another.
    pub steps: Steps,
}

/// A JSON Schema of a step.
#[derive(Debug, Clone)]
pub struct Constraint {
    /// As it was written, with templates.
    pub given: Value,
    /// Compiled, where there are no templates in it.
    pub fixed: Option<Schema>,
}

/// What a failure of a step counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leniency {
    /// A reading under whose default answer a failure is a warning.
    pub tolerated: Option<String>,
    /// A reading whose default answer takes it either way.
    pub allowed: Option<String>,
    /// A failure is no more than a warning.
    pub warns: bool,
}

impl Leniency {
    /// The ambiguity that the step is about.
    pub fn reading(&self) -> Option<&str> {
        self.tolerated.as_deref().or(self.allowed.as_deref())
    }
}

/// A relation between values; templates are filled in.
#[derive(Debug, Clone)]
pub enum Relation {
    /// All equal.
    Equal(Vec<Value>),
    /// All different.
    Differ(Vec<Value>),
    /// Numbers, each greater than the one before.
    Ascending(Vec<Value>),
    /// The first minus the second is the third.
    Difference(Box<[Value; 3]>),
}

impl Step {
    /// Whether the step, or one within it, has such a verb.
    pub fn any(&self, is_such: fn(&Verb) -> bool) -> bool {
        is_such(&self.verb) || self.verb.inner().any(|step| step.any(is_such))
    }

    /// Whether the step, or one within it, writes below the messages.
    pub fn is_raw(&self) -> bool {
        self.any(|verb| match verb {
            Verb::Frame(_) | Verb::Bytes(_) => true,
            Verb::Drop(cut) => cut.noticed,
            _ => false,
        })
    }

    /// Whether the step, or one within it, restarts the server.
    pub fn restarts(&self) -> bool {
        self.any(|verb| matches!(verb, Verb::Restart(_)))
    }

    /// Adds what the step and those within it open: sessions, or clients where each connection is a session of its own.
    fn opened<'s>(&'s self, per_client: bool, names: &mut BTreeSet<&'s str>) {
        if let Verb::Open(open) = &self.verb {
            names.insert(if per_client { &open.client } else { open.session.as_deref().unwrap_or("main") });
        }
        self.verb.inner().for_each(|step| step.opened(per_client, names));
    }

    /// The step's own wait for a message, and those of the steps within it.
    pub fn expects(&self) -> Vec<&Expect> {
        let own = match &self.verb {
            Verb::Expect(expect) => Some(&**expect),
            _ => None,
        };
        own.into_iter().chain(self.verb.inner().flat_map(Self::expects)).collect()
    }

    /// Whether the step, or one within it, looks back at everything that was received.
    pub fn looks_back(&self) -> bool {
        self.any(|verb| matches!(verb, Verb::Unseen(_)))
    }

    /// Adds the requirements that the step and those within it cover.
    pub(super) fn covered(&self, ids: &mut Vec<String>) {
        ids.extend(self.common.covers.iter().cloned());
        self.verb.inner().for_each(|step| step.covered(ids));
    }
}

impl Verb {
    /// Whether the verb itself holds the server to something, and not only what is within it.
    pub fn judges(&self) -> bool {
        matches!(
            self,
            Self::Expect(_)
                | Self::Check(_)
                | Self::Never(_)
                | Self::Ping(_)
                | Self::Joined(_)
                | Self::Alive(_)
                | Self::Ended(_)
                | Self::Rejected(_)
                | Self::Unseen(_)
                | Self::ExpectFile(_)
                | Self::Get(_)
                | Self::Assert(_)
                | Self::Unchanged(_)
        )
    }

    /// Its key in a step.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::Close(_) => "close",
            Self::Drop(_) => "drop",
            Self::Stall(_) => "stall",
            Self::Unstall(_) => "unstall",
            Self::Send(_) => "send",
            Self::Raw(_) => "raw",
            Self::Binary(_) => "binary",
            Self::Frame(_) => "frame",
            Self::Bytes(_) => "bytes",
            Self::Expect(_) => "expect",
            Self::Check(_) => "check",
            Self::Never(_) => "never",
            Self::Ping(_) => "ping",
            Self::Joined(_) => "joined",
            Self::Settle(_) => "settle",
            Self::Alive(_) => "alive",
            Self::Ended(_) => "ended",
            Self::Rejected(_) => "rejected",
            Self::Unseen(_) => "unseen",
            Self::Restart(_) => "restart",
            Self::ExpectFile(_) => "expect_file",
            Self::Get(_) => "get",
            Self::Assert(_) => "assert",
            Self::Unchanged(_) => "unchanged",
            Self::Repeat(_) => "repeat",
            Self::Steps(_) => "steps",
            Self::Parallel(_) => "parallel",
        }
    }

    /// The client that the step's `as` names.
    pub fn by(&self) -> Option<&str> {
        let by = match self {
            Self::Send(verb) => &verb.by,
            Self::Raw(verb) => &verb.by,
            Self::Binary(verb) => &verb.by,
            Self::Frame(verb) => &verb.by,
            Self::Bytes(verb) => &verb.by,
            Self::Expect(verb) => &verb.by,
            Self::Check(verb) => &verb.by,
            Self::Never(verb) => &verb.by,
            Self::Ping(verb) | Self::Unseen(verb) => &verb.by,
            Self::Joined(verb) => &verb.by,
            Self::Rejected(verb) => &verb.by,
            Self::Unchanged(verb) => &verb.by,
            _ => &None,
        };
        by.as_deref()
    }

    /// What a failure counts, where a scenario can say it.
    pub fn leniency(&self) -> Option<&Leniency> {
        match self {
            Self::Expect(verb) => Some(&verb.leniency),
            Self::Check(verb) => Some(&verb.leniency),
            Self::Never(verb) => Some(&verb.leniency),
            Self::Rejected(verb) => Some(&verb.leniency),
            _ => None,
        }
    }

    /// The steps within it.
    pub fn inner(&self) -> impl Iterator<Item = &Step> {
        let (one, many) = match self {
            Self::Unchanged(verb) => (&verb.steps[..], &[][..]),
            Self::Repeat(verb) => (&verb.steps[..], &[][..]),
            Self::Steps(verb) => (&verb.steps[..], &[][..]),
            Self::Parallel(branches) => (&[][..], &branches[..]),
            _ => (&[][..], &[][..]),
        };
        one.iter().chain(many.iter().flatten()).map(AsRef::as_ref)
    }
}
