//! `x-frameproof`: what AsyncAPI cannot say about a protocol, as typed data.
//!
//! The published JSON Schema (`frameproof schema protocol`) is generated from these types.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::frame::Pointer;

/// Requirement ids that a check decides.
pub type Ids = Vec<String>;

/// The extension at the root of an AsyncAPI document.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Extension {
    /// The place of the message's type in a frame, for example `/type`.
    pub discriminator: Pointer,
    /// A larger object into which the server puts every message, and the client too: for an overlay, where the document has bare messages.
    pub envelope: Option<super::Envelope>,
    /// Messages without a type, which are identified by the request that they answer, as in JSON-RPC.
    pub replies: Option<Replies>,
    /// Who may send several messages in one frame, as a JSON array: `client`, `server` or `both`. Each member of a batch is a message like
    /// any other, for schemas, monitors and steps; a batch has at most 1,024. An empty array, or any array of a side that sends no batches,
    /// is not a message.
    pub batches: Option<super::Batches>,
    /// Messages of the server that the client answers, by a name of your own: `reply` and `refuse` in scenarios. Their ids belong
    /// to the server: a request of the client with the same id is unrelated.
    #[serde(default)]
    pub requests: IndexMap<String, super::Requests>,
    /// What clients send automatically when a message of the server comes, by a name of your own: in openings, scenarios and
    /// generated cases. A scenario's `suspend` can name one.
    #[serde(default)]
    pub client: IndexMap<String, super::Automatic>,
    /// How a folder of JSON Schemas is read that the server under test generates (`--schemas DIR`).
    pub schemas: Option<super::BundleRules>,
    /// The requirements that a frame violates if it is not a message of the protocol at all.
    #[serde(default)]
    pub frames: FrameRules,
    /// How sessions are distinguished and joined.
    pub session: Session,
    /// What clients ask for when they connect: headers and sub-protocols, and what the server must select.
    pub upgrade: Option<super::UpgradeRules>,
    /// Values that differ from server to server and on which cases depend, by name: `{{target.NAME}}`. A target gives them in its `parameters`.
    #[serde(default)]
    pub parameters: IndexMap<String, super::Parameter>,
    /// The ways to begin a connection, by name; a scenario's `open` uses the first unless it names one. None: a connection is
    /// ready at once.
    #[serde(default)]
    pub openings: IndexMap<String, Vec<Exchange>>,
    /// Messages that may come at any moment and that an `expect` always skips.
    #[serde(default)]
    pub ambient: Vec<String>,
    /// Messages that may tell a client again what it knows: steps skip these, too.
    #[serde(default)]
    pub repeats: Vec<super::Repeats>,
    /// The ordered event log, where the protocol has one.
    pub log: Option<Log>,
    /// How the protocol reports a rejected command.
    pub errors: Option<Errors>,
    /// How a turn begins and ends.
    pub turn: Turn,
    /// A query that is answered after everything that the server has sent before: it shows, without a fixed wait, that nothing more will
    /// come. Used to settle a case and by `never`. If its answer comes after some messages only: `{ query, orders }` or `{ query, per }`.
    pub barrier: Option<super::Barrier>,
    /// Lengths of time by name: `immediately: 250ms`. `within` of monitors and of steps can name them, and an overlay can say what they
    /// are for a server. `--timeout-scale` scales them.
    #[serde(default)]
    pub times: IndexMap<String, String>,
    /// What can be seen of the server's state, for the `unchanged` step.
    pub state: Option<State>,
    /// The rules of the live fuzzer. Without them, only the first state is fuzzed, and only survival is checked.
    #[serde(default)]
    pub fuzzing: super::Fuzzing,
    /// The rules by which `explore` generates long valid conversations.
    #[serde(default)]
    pub explore: super::Explore,
    /// Mutants of the wire that are harmless, by a name of your own: `selftest --wire` does not call them survivors.
    #[serde(default)]
    pub mutants: IndexMap<String, super::HarmlessMutants>,
    /// Features that a server may or may not offer. One that is called `isolation` means that sessions are separate: where it is not
    /// offered, `doctor` and `fuzz` use no second session.
    #[serde(default)]
    pub capabilities: IndexMap<String, Capability>,
    /// The tools that a cue calls, by class (`open`, `guarded`, `slow`, `denied`, `failing`).
    #[serde(default)]
    pub tools: IndexMap<String, Tool>,
    /// Elements of lists that monitors see as messages of their own, by the name that patterns use.
    #[serde(default)]
    pub parts: IndexMap<String, Part>,
    /// The monitors, by name.
    #[serde(default)]
    pub invariants: IndexMap<String, Invariant>,
    /// Other spellings of the same messages that servers are known to have, by name.
    #[serde(default)]
    pub dialects: IndexMap<String, super::Dialect>,
    /// Ambiguities of the document, and the answer of each reading, by id.
    #[serde(default)]
    pub readings: IndexMap<String, Reading>,
}

impl Extension {
    /// Whether an invariant is about when messages come.
    pub fn is_timed(&self) -> bool {
        self.invariants.values().any(|invariant| invariant.monitor.is_timed())
    }
}

/// Messages without a discriminator that answer a request of the other side on the same connection. A successful one is the
/// message `REQUEST.result`, a failed one the message `error`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Replies {
    /// The correlation id, in requests and replies. Ids of another JSON type are other ids.
    pub id: Pointer,
    /// Present in a reply to a request that succeeded.
    pub result: Pointer,
    /// Present in a reply to one that failed. An error may have the id null: the request could not be read.
    pub error: Pointer,
    /// Violated by a reply of the server whose id no open request has, and exercised by every other. A message that frameproof
    /// cannot read (not a JSON object, duplicate keys, too deep, binary) may be answered once, with any id.
    #[serde(default)]
    pub unmatched: Ids,
}

/// Requirements decided by the frame parser.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FrameRules {
    /// Violated by text that is not exactly one JSON object, by binary messages, and by bytes that RFC 6455 forbids or that announce
    /// more than the limit.
    #[serde(default)]
    pub object: Ids,
    /// Violated by an object whose discriminator is missing or is not a string. If there are none, those of `message` are.
    #[serde(default)]
    pub discriminator: Ids,
    /// Violated by an object whose discriminator does not name a message of the server.
    #[serde(default)]
    pub message: Ids,
    /// Exercised by every message that validates against its schema, and violated by a schema violation at a
    /// place that no `x-frameproof.requirements` in the schema covers.
    #[serde(default)]
    pub schema: Ids,
    /// Violated by a server that ends a connection where no step awaited that.
    #[serde(default)]
    pub ended: Ids,
}

impl FrameRules {
    /// Violated by an object that does not say what message it is.
    pub(crate) fn untyped(&self) -> &Ids {
        if self.discriminator.is_empty() { &self.message } else { &self.discriminator }
    }
}

/// Sessions: what isolates two runs of the same server from each other.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Session {
    /// Where a server's messages say which session the connection is in.
    #[serde(default)]
    pub id: Vec<At>,
    /// Values that the server gives to the clients of one session alone, such as unique ids of messages. If those of another session
    /// receive one, that is a leak.
    #[serde(default)]
    pub marks: Vec<At>,
    /// How a further client joins a session that is already known.
    pub join: Join,
    /// What a target says of its own: it has one session for all clients.
    #[serde(skip)]
    pub is_single: bool,
}

/// How a client joins a given session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Join {
    /// The session's id is put at this pointer of the first message of the opening exchange; without it, a new session begins.
    Field(Pointer),
    /// The session's id fills this channel parameter of the address; the client chooses new ids, unless an `open` names one:
    /// `with: { PARAMETER: ID }`.
    Parameter(String),
    /// Every connection is a session of its own.
    Connection,
}

/// A value in a kind of message.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct At {
    /// The messages.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The value in them.
    pub at: Pointer,
}

/// Selects messages. All conditions must hold. A bare string or list names message types.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Pattern {
    /// One message type.
    Type(String),
    /// Any of these message types.
    Types(Vec<String>),
    /// Any of several patterns, of either side.
    Any(PatternAny),
    /// Types and conditions on the content.
    Where(PatternWhere),
}

/// Any of several patterns: for an event that either side may cause.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PatternAny {
    /// The patterns.
    pub any: Vec<Pattern>,
}

/// A pattern with conditions on the content.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PatternWhere {
    /// The message type or types; absent means any.
    #[serde(rename = "type")]
    pub types: Option<OneOrMany>,
    /// `recv` (the default), from the server; or `send`, from a client.
    #[serde(default)]
    pub dir: PatternDirection,
    /// Subset match: every value given here must be in the message, at the same place.
    pub with: Option<Value>,
    /// A JSON Schema that the message must satisfy.
    #[serde(rename = "where")]
    pub schema: Option<Value>,
}

/// The side that sends the messages of a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatternDirection {
    /// From the server.
    #[default]
    Recv,
    /// From a client.
    Send,
}

/// One text or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// Where a message and its answer have an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Echo {
    /// At one place in both.
    Same(Pointer),
    /// At its own place in the message that is sent, and in the answer.
    Apart([Pointer; 2]),
}

impl Echo {
    /// Where the message that is sent has it.
    pub fn sent(&self) -> &Pointer {
        match self {
            Self::Same(at) | Self::Apart([at, _]) => at,
        }
    }

    /// Where the answer has it.
    pub fn answered(&self) -> &Pointer {
        match self {
            Self::Same(at) | Self::Apart([_, at]) => at,
        }
    }
}

/// One step of an opening exchange or of a barrier: exactly one of `send` and `expect`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exchange {
    /// A message to send; templates are filled in.
    pub send: Option<Value>,
    /// A message type to wait for.
    pub expect: Option<OneOrMany>,
    /// Subset match on the expected message.
    pub with: Option<Value>,
    /// A JSON Schema that the expected message must satisfy.
    #[serde(rename = "where")]
    pub schema: Option<Value>,
    /// Where the expected message repeats the id of the one that was sent last: another id answers something else. One without an
    /// id is accepted, because not every server repeats it. `[/ref, /meta/to]`: where the sent message has it, and where the expected
    /// one has. Whatever bears that id answers no step, however late it comes, unless the protocol has `replies` or a barrier `per` value.
    /// Openings, barriers and queries only.
    #[schemars(extend("x-pointer" = "free"))]
    pub echo: Option<Echo>,
    /// Values to keep as template variables: name to JSON Pointer.
    #[serde(default)]
    #[schemars(extend("x-pointer" = "free"))]
    pub save: IndexMap<String, Pointer>,
    /// The expected message is a request of the server's (see `requests`): it is answered by this result.
    #[serde(
        default,
        deserialize_with = "super::server_requests::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub reply: Option<Value>,
    /// The same: it is answered by this error.
    #[serde(
        default,
        deserialize_with = "super::server_requests::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub refuse: Option<Value>,
    /// The message may be left out: then `covers` is violated, but the exchange continues.
    #[serde(default)]
    pub optional: bool,
    /// Openings only: the opening that is done instead, on the same connection, where the server answers by an error message.
    pub or: Option<String>,
    /// Requirements violated when the message does not come, and exercised when it does.
    #[serde(default)]
    pub covers: Ids,
}

/// The server's ordered event log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Log {
    /// The logged messages.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// Their position in the log.
    pub id: Pointer,
    /// Pointers that may differ between two deliveries of one event, for example `/ts`.
    #[serde(default)]
    pub volatile: Vec<Pointer>,
}

/// How commands are rejected.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Errors {
    /// The error message. Unless a step expects one, an error ends the wait of any `expect`. The end of the connection can be one, too:
    /// `{ type: close, with: { code: 4400 } }`; `rejected` counts it.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The place of its code.
    pub code: Option<Pointer>,
}

/// A turn: from the user's text to the end of the messages that follow from it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Turn {
    /// What a client does before its first turn if the opening is not enough: for example, it creates a conversation. For
    /// generated turns.
    #[serde(default)]
    pub before: Vec<Exchange>,
    /// The message that starts a turn; `{{text}}` is the user's text with its cue.
    pub start: Value,
    /// The message that ends it: what a scenario calls `turn-end`.
    pub end: Pattern,
    /// For a protocol without a final message of a turn: the turn ends when nothing has followed `end` for this many milliseconds
    /// (`--quiet-period` sets another length). Without a `barrier`, the same silence (or, without `quiet-ms`, half a second) replaces
    /// the barrier: in `settle`, `never`, `unseen` and at the end of a case.
    #[schemars(range(min = 1, max = 60_000))]
    pub quiet_ms: Option<u32>,
    /// Requirements violated when a turn does not end.
    #[serde(default)]
    pub covers: Ids,
}

/// How a client queries the server's state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct State {
    /// The query: the message of its last `expect` is the state.
    pub query: Vec<Exchange>,
    /// The parts of the answer that make up the state.
    pub at: Vec<Pointer>,
    /// Messages that say that the server has changed the state of its own accord: where one comes between two queries, the states are not
    /// compared.
    #[serde(default)]
    pub changed_by: Vec<String>,
}

/// A feature that a server may or may not offer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Capability {
    /// What it is.
    pub about: String,
    /// The server announces it: a message of the opening exchange matches this pattern. Absent: `offered` says
    /// whether it is there.
    pub announced: Option<Pattern>,
    /// Whether a server that announces nothing offers it. An overlay can change it.
    #[serde(default)]
    pub offered: Offered,
}

/// Whether a capability is offered that no message announces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Offered {
    /// By every server.
    #[default]
    Yes,
    /// Only by the reference server: another server needs a fixture, and an overlay with `yes`.
    Fixture,
    /// By none.
    No,
}

/// A tool that the scripted model calls.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Arguments; a scenario may replace them.
    #[serde(default)]
    pub args: serde_json::Map<String, Value>,
    /// Capabilities that the tool needs: without them, cases that call it are not applicable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// `guarded`: whether the server requests approval before it runs the tool. Default: yes; `doctor` looks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<bool>,
    /// What a target says of its own tool of this class.
    #[serde(skip)]
    pub target: TargetTool,
}

/// What a target has in place of a protocol's tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum TargetTool {
    /// The protocol's own, with the arguments that scenarios give.
    #[default]
    AsDescribed,
    /// One with other arguments: templates of those that scenarios give.
    Mapped(serde_json::Map<String, Value>),
    /// None: cases that call it are not applicable.
    Absent,
}

/// The elements of a list in a server's message, each shown to monitors as if it were a message: right after the
/// message itself, in the list's order. Only patterns that name the part see it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Part {
    /// The message, or messages, with the list.
    pub of: OneOrMany,
    /// The list of objects in it.
    pub at: Pointer,
    /// Top-level fields of the message that each element gets too, unless it has a field of that name.
    #[serde(default)]
    pub keep: Vec<String>,
}

/// A contradiction of the document and its readings.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reading {
    /// The question.
    pub topic: String,
    /// The answer that `--reading strict` takes.
    pub strict: String,
    /// The answer that applies by default.
    pub default: String,
    /// The answer that `--reading lenient` takes.
    pub lenient: String,
    /// JSON Merge Patches on this document that make the `strict` and the `lenient` answer hold. The
    /// document as written is the default. No patch: the answer changes no check.
    #[serde(default)]
    pub patch: BTreeMap<ReadingName, Value>,
}

/// Which of the three answers is taken.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReadingName {
    /// The narrowest.
    Strict,
    /// The project's own choice.
    #[default]
    Default,
    /// The widest.
    Lenient,
}

/// The extension on a message of the document (`components.messages.NAME.x-frameproof`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MessageExtension {
    /// Requirements exercised by every such message, and violated by a schema violation at a place without `requirements` of its own.
    #[serde(default)]
    pub requirements: Ids,
    /// Requirements violated when a scenario expects this message, it does not come, and the step has no `covers`.
    #[serde(default)]
    pub absent: Ids,
}

/// The extension inside a message's schema, at any subschema.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SchemaExtension {
    /// Decided here: exercised when the value is present, violated when it is invalid or, if required, missing.
    #[serde(default)]
    pub requirements: Ids,
    /// Violated by an undeclared field, and exercised by an object without one.
    #[serde(default)]
    pub closed: Ids,
}

/// One monitor: a property of a trace, and the requirements that it decides.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Invariant {
    /// The property in one sentence, shown when it is violated.
    pub about: String,
    /// `true`: a violation is a warning even if it decides a MUST. For behaviour that a reading tolerates and a report should
    /// mention.
    #[serde(default)]
    pub warns: bool,
    /// The kind of monitor and its parameters.
    pub monitor: super::rules::Rule,
}
