//! The scenario DSL as typed data. The JSON Schema for editors (`frameproof schema scenario`) and the
//! loader's structural checks are both generated from these types; `docs/scenarios.md` is the tutorial.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::RawFrame;
use crate::cue::pseudolocale::Pseudolocale;
use crate::frame::Pointer;
use crate::protocol::script::TurnStep;
use crate::protocol::{OneOrMany, Pattern};

/// What goes wrong with lengths of time.
const NEEDS_UNIT: &str = "a length of time is a text with a unit: `500ms` or `3s`";

/// One file: a family of cases.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScenarioFile {
    /// The family's name, the first part of a case's id: `family/case`.
    pub family: String,
    /// What the family covers, in a sentence or two.
    pub about: Option<String>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One case: a conversation with the server and its required results.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// Its name: lower case, digits and hyphens, unique in the family.
    pub name: String,
    /// One sentence that says what must be true.
    pub title: String,
    /// The requirements it is about. A failed step without `covers` of its own violates these.
    #[serde(default)]
    pub covers: Vec<String>,
    /// Capabilities without which the case is not applicable.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What the scripted model does; `{{cue}}` is the text that carries it.
    pub turn: Option<Vec<TurnStep>>,
    /// Further turns, by name: `{{cue.NAME}}`.
    #[serde(default)]
    pub turns: IndexMap<String, Vec<TurnStep>>,
    /// Template variables.
    #[serde(default)]
    pub vars: IndexMap<String, Value>,
    /// Runs the case with this variable = 1, 2, 3, … until a `drop` with `after` finds the turn ended first.
    pub sweep: Option<String>,
    /// Runs the case this many times (at most 10,000), each in sessions of its own.
    #[schemars(range(min = 1, max = 10_000))]
    pub repeat: Option<u32>,
    /// How much the launched server's memory may grow from the first of the repeats to the last, in MiB. Not applicable where
    /// frameproof did not launch the server.
    pub max_growth: Option<u32>,
    /// `false`: do not settle (see the protocol's `barrier`) when the steps are done.
    #[serde(default = "yes")]
    pub settle: bool,
    /// Invariants that this case violates on purpose and that are not judged in it, and rules of the protocol's `client` that are not
    /// followed in it.
    #[serde(default)]
    pub suspend: Vec<String>,
    /// `true`: what is done in it may be done before other cases, too, which begin with an `open`: `frameproof run --preambles`.
    #[serde(default)]
    pub preamble: bool,
    /// Preambles, by name, whose events occur in this one, too: a case that is not run behind one of them is not run behind this one, and
    /// `--preambles=few` runs the cases behind it.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Preambles, by name (`*`: all), that this case is not run behind: it is about a server that has not seen such a thing yet.
    #[serde(default)]
    pub not_behind: Vec<String>,
    /// What the user says before every cue.
    pub words: Option<Words>,
    /// What the model thinks first in each turn of a case behind this preamble, but for turns with thoughts of their own.
    pub thoughts: Option<Vec<String>>,
    /// What the model says first, behind its thoughts, in each turn of a case behind this preamble that begins with a call.
    pub preface: Option<Vec<String>>,
    /// The texts of cues as the server is shown them: with other letters, which whoever judges the server does not see.
    pub pseudolocale: Option<Pseudolocale>,
    /// `true`: each message is sent right behind the query of the protocol's barrier, before that is answered.
    #[serde(default)]
    pub pipelined: bool,
    /// `true`: each message comes in three frames, its members in reverse order, with white space and escapes that JSON does not need.
    #[serde(default)]
    pub respelled: bool,
    /// Members that messages have besides those that the document knows.
    pub further: Option<Further>,
    /// How long a client waits before messages of the steps (at most 10 seconds, before the first ten): those that do not come right behind
    /// others. Of a preamble: before those of cases behind it that have no time of their own here, and whose turns have no pauses and no
    /// slow tools.
    pub think_time: Option<String>,
    /// How long the connections stay open when the steps are done, for what the server says late (at most one minute).
    pub linger: Option<String>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// Members that messages of `send` have besides those that the document knows. Members of the same names stay as they are.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Further {
    /// The members.
    pub members: IndexMap<String, Value>,
    /// Where they are added: the objects at these places of a message.
    pub at: Vec<Pointer>,
    /// They are added only while this holds: of values that steps have saved. The message stays as it is where one of them is missing.
    pub when: Option<Assertion>,
}

/// A text that the user says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Words {
    /// The text.
    pub text: String,
    /// How often it is said, at most 10,000 times.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 10_000))]
    pub times: u16,
}

fn once() -> u16 {
    1
}

fn yes() -> bool {
    true
}

/// One step: exactly one verb, and the modifiers that it takes.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Step {
    // Verbs.
    /// Connect a client of this name and do the opening exchange. A name that was used before reconnects, to the same session. A
    /// refused connection violates the step's `covers`.
    pub open: Option<String>,
    /// Close this client's connection with a closing handshake.
    pub close: Option<String>,
    /// Cut this client's connection without a closing handshake. With `after`: once it has received that many
    /// events of the log since the last `send`.
    pub drop: Option<String>,
    /// Stop reading on this client's connection.
    pub stall: Option<String>,
    /// Read again.
    pub unstall: Option<String>,
    /// Send this message; a list: these messages, in one frame (`batches` of the protocol).
    pub send: Option<Value>,
    /// Send this text, whether it is a valid message or not.
    pub raw: Option<String>,
    /// Send a binary message (base64).
    pub binary: Option<String>,
    /// Write this frame as it is, whether RFC 6455 allows it or not. The message that a conforming server reads from it counts as
    /// sent.
    pub frame: Option<RawFrame>,
    /// Write these bytes (hexadecimal digits), valid or not.
    pub bytes: Option<String>,
    /// Wait for a message of this type, or of any of these types. `turn-end` is what ends a turn in the
    /// protocol (and, where that has a quiet period, is followed by silence); `close` is the end of the connection, which has
    /// `code` and `reason` (null where there was no close frame), `clean` (there was one) and `by` (`server`, or `client` where
    /// this side sent its close frame first). Skips other messages, but not an error message, the end of the connection or a
    /// violation.
    pub expect: Option<OneOrMany>,
    /// A JSON Schema that the message taken by the last `expect` of this client must satisfy. For the end of the
    /// connection that is `{ code, reason, clean, by }`, as `expect: close` has it. For a property of the message with `covers`
    /// of its own; a violated SHOULD does not end the case.
    pub check: Option<Value>,
    /// No message of this type comes until the barrier of the protocol is answered, or within `window`, or, without
    /// either, before the server sends nothing more for a while.
    pub never: Option<OneOrMany>,
    /// Send a WebSocket ping with this text, and wait for the pong that repeats it.
    pub ping: Option<String>,
    /// Concatenate a text that came in pieces, and validate it against the JSON Schema of `where`.
    pub joined: Option<Joined>,
    /// Perform the protocol's barrier with this client, and skip everything that it has received.
    pub settle: Option<String>,
    /// This client's connection is alive: the protocol's barrier is answered on it (a WebSocket ping where there is none). With
    /// `codes`: or the server has closed it with one of these codes; `[]` means any that a server may send.
    pub alive: Option<String>,
    /// The server ends this client's connection, by a close frame with one of `codes` (`[]` or none: any that a server may
    /// send). Another code, or a TCP end without a close frame, violates the step's `covers`, and is a warning where it has none.
    pub ended: Option<String>,
    /// The server has refused this client's connection, which an `open` with `may-refuse` wanted; `with`, `where` and `save` are about its
    /// answer, which has `status` (null where there was no HTTP answer), `headers` (names in lower case) and `body` (its first 400
    /// characters). The same as `expect: refused`, also in a protocol with a message called `refused`.
    pub refusal: Option<String>,
    /// This number of the client's messages was refused: when the barrier is answered, as many error messages have come. They are
    /// removed from the received messages.
    #[schemars(range(max = 100_000))]
    pub rejected: Option<u32>,
    /// No message that this client has received contains this text, as far as the case's log keeps them.
    pub unseen: Option<String>,
    /// Stop the server and start it again on its data; every client's connection is cut first. A case with it has a server of
    /// its own, and is not applicable where frameproof did not launch the target.
    pub restart: Option<Restart>,
    /// This file of the launched server's scratch folder satisfies `where`: its text, or null where there is none. Waits
    /// until it does. Not applicable where frameproof did not launch the server.
    #[serde(rename = "expect_file")]
    pub expect_file: Option<String>,
    /// Make a plain HTTP request, a GET of this path (with its query) on the server's host and port, and check the answer, which has
    /// `status` (null where there was no HTTP answer within `within`), `headers` (names in lower case) and `body` (its first 400 characters). Without `with` and `where` the status must be
    /// one of 200 to 299. Redirections are not followed.
    pub get: Option<String>,
    /// A relation between values: `equal`, `differ`, `ascending`, or `difference: [a, b, a - b]`.
    pub assert: Option<Assertion>,
    /// Do these steps and compare the server's visible state before and after.
    pub unchanged: Option<Vec<Step>>,
    /// Repeat these steps until one of them accepts a message of `until`; the steps after that one are skipped. The message must come
    /// within `count` rounds (100).
    pub repeat: Option<Vec<Step>>,
    /// Do these steps, one after another, as a unit: one list with a YAML anchor serves in several places, and one `when` holds for all of
    /// its steps.
    pub steps: Option<Vec<Step>>,
    /// Execute the first steps of all lists, then the second ones, and so on, so that messages are sent back to back.
    pub parallel: Option<Vec<Vec<Step>>>,

    // Modifiers.
    /// `alive`: close codes with which the server may have ended the connection instead. `ended`: the expected ones.
    pub codes: Option<Vec<u16>>,
    /// The client that does it. Default: the client opened first.
    #[serde(rename = "as")]
    pub client: Option<String>,
    /// `open`: which session to join; the first client of a name opens it. Default `main`.
    pub session: Option<String>,
    /// `open`: which of the protocol's opening exchanges; `none` connects only. Default: the first.
    pub opening: Option<String>,
    /// `open`: values for the opening's templates, and for the parameter of the address that names the session.
    /// `expect`, `never`, `repeat`: a part of the message, or of the end of the connection (`{ code: 4410 }`). `get`, `refusal`: a part
    /// of the answer (`{ status: 200 }`).
    pub with: Option<Value>,
    /// `open`: the server may refuse the connection; it counts as closed then, and `refusal` (or `expect: refused`) judges the
    /// answer.
    #[serde(default)]
    pub may_refuse: bool,
    /// `open`, `get`: headers of the (upgrade) request, in place of those that the run sends; null: without this one.
    #[serde(default)]
    pub headers: IndexMap<String, Option<String>>,
    /// `open`: the sub-protocols that the client offers, in place of those that the run offers; `[]` offers none.
    pub protocols: Option<Vec<String>>,
    /// `open`: the sub-protocol that the server must select; `none`: it must select none. Another one violates the step's
    /// `covers`.
    pub selects: Option<String>,
    /// A JSON Schema. `expect`, `never`, `repeat`: of the message, or of the end of the connection; `joined`: of the text;
    /// `expect_file`: of the file's text, or null where there is none; `get`, `refusal`: of the answer.
    #[serde(rename = "where")]
    pub schema: Option<Value>,
    /// Values of the message, of the end of the connection, or of the answer, to keep: variable to JSON Pointer.
    #[serde(default)]
    pub save: IndexMap<String, Pointer>,
    /// `expect`: the message is a request of the server's (see `requests` in the protocol), which is answered by this result. Without it and
    /// `refuse` it is not answered.
    #[serde(default, deserialize_with = "crate::protocol::given", skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// `expect`: the message is a request of the server's, which is answered by this error, such as `{ code, message }`.
    #[serde(default, deserialize_with = "crate::protocol::given", skip_serializing_if = "Option::is_none")]
    pub refuse: Option<Value>,
    /// `expect`, `expect_file`, `get`: how long to wait, such as `500ms` or `3s`, or one of the protocol's `times`. Default: the step deadline of the run.
    #[schemars(extend("x-hint" = NEEDS_UNIT))]
    pub within: Option<String>,
    /// `never`: how long to watch instead of using the barrier: `500ms`, or one of the protocol's `times`.
    #[schemars(extend("x-hint" = NEEDS_UNIT))]
    pub window: Option<String>,
    /// `expect`: this many messages (not of `close`: a connection ends once). `send`, `raw`, `frame`, `bytes`: this many times,
    /// back to back. `repeat`: rounds at most. From 1 (the default, but for `repeat`) to 100,000.
    #[schemars(range(min = 1, max = 100_000))]
    pub count: Option<u32>,
    /// `send`, `raw`: the server may still process this message when the case ends: obligations that the message began are then not
    /// judged, and messages about it do not prolong a silence.
    #[serde(default)]
    pub abandon: bool,
    /// `repeat`: the message, or one of the messages, that ends the loop: with `with` and `where`, as `expect` has them. Values that it does not have are not
    /// saved.
    pub until: Option<OneOrMany>,
    /// `steps`: template variables, for these steps only.
    #[serde(default)]
    pub vars: IndexMap<String, Value>,
    /// `drop`: after this many events of the log. A number or a template.
    pub after: Option<Value>,
    /// `drop`: end this side's half of the TCP connection first, and wait (for the step deadline at most) until the server has
    /// ended the other. The next step then runs after the server has noticed the loss; with a plain cut, the two race.
    #[serde(default)]
    pub noticed: bool,
    /// `expect`: error messages do not end the wait.
    #[serde(default)]
    pub past_errors: bool,
    /// `expect`: skipped messages stay available to later steps. For messages that may come in any order.
    #[serde(default)]
    pub keep: bool,
    /// `expect`, `never`, `check`, `rejected`, `refusal`: an ambiguity of the document that may permit the failure. It is a warning under the
    /// default answer, ignored under the lenient one, and a failure under the strict one.
    pub tolerated: Option<String>,
    /// `expect`, `never`, `check`, `rejected`, `refusal`: an ambiguity of the document whose default answer permits both. A failure counts
    /// under the strict answer only.
    pub allowed: Option<String>,
    /// `expect`, `never`, `check`, `refusal`: a failure is only a warning, whatever it violates.
    #[serde(default)]
    pub warns: bool,
    /// Any verb: the step is skipped unless this holds.
    pub when: Option<Assertion>,
    /// Requirements that a failure of this step violates, and that its success exercises.
    #[serde(default)]
    pub covers: Vec<String>,
}

/// The text that came in pieces: in the messages that the `expect`s of this client took or skipped since its last
/// `send`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Joined {
    /// The messages with the pieces.
    pub of: Pattern,
    /// The place of a piece: the first of these places that has a string. `*` in a place means every element of a list, whose
    /// strings are concatenated.
    pub at: Vec<Pointer>,
    /// What the pieces of one text have in common. With it the result is a list of texts, in the order of their first
    /// pieces; without it, one text.
    pub by: Option<Pointer>,
    /// The place of a piece's number: the pieces are concatenated in the order of these numbers, in whatever order they came. A piece
    /// without a number comes last. Default: the order of arrival.
    pub order: Option<Pointer>,
    /// The text (each text, with `by`) is JSON: its value is validated against `where`; text that is not JSON is validated as a string, and null where there is no
    /// text at all.
    #[serde(default)]
    pub json: bool,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    /// Without notice, as by a kill: what it has not stored is lost.
    Hard,
}

/// A relation between values; templates are filled in. Exactly one of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Assertion {
    /// All equal.
    pub equal: Option<Vec<Value>>,
    /// All different.
    pub differ: Option<Vec<Value>>,
    /// Numbers, each greater than the one before.
    pub ascending: Option<Vec<Value>>,
    /// The first minus the second is the third.
    pub difference: Option<[Value; 3]>,
}

impl Step {
    /// The lists of steps within it, each with its place from the step on.
    pub(super) fn inner(&self) -> impl Iterator<Item = (String, &[Step])> {
        let lists = [("unchanged", &self.unchanged), ("repeat", &self.repeat), ("steps", &self.steps)];
        let lists = lists.into_iter().filter_map(|(key, steps)| Some((key.to_owned(), steps.as_deref()?)));
        let branches = self.parallel.iter().flatten().enumerate();
        lists.chain(branches.map(|(index, branch)| (format!("parallel/{index}"), &branch[..])))
    }

    /// The verbs that the step has: one, in a checked scenario.
    pub fn verbs(&self) -> Vec<&'static str> {
        let verbs = [
            ("open", self.open.is_some()),
            ("close", self.close.is_some()),
            ("drop", self.drop.is_some()),
            ("stall", self.stall.is_some()),
            ("unstall", self.unstall.is_some()),
            ("send", self.send.is_some()),
            ("raw", self.raw.is_some()),
            ("binary", self.binary.is_some()),
            ("frame", self.frame.is_some()),
            ("bytes", self.bytes.is_some()),
            ("expect", self.expect.is_some()),
            ("check", self.check.is_some()),
            ("never", self.never.is_some()),
            ("ping", self.ping.is_some()),
            ("joined", self.joined.is_some()),
            ("settle", self.settle.is_some()),
            ("alive", self.alive.is_some()),
            ("ended", self.ended.is_some()),
            ("refusal", self.refusal.is_some()),
            ("rejected", self.rejected.is_some()),
            ("unseen", self.unseen.is_some()),
            ("restart", self.restart.is_some()),
            ("expect_file", self.expect_file.is_some()),
            ("get", self.get.is_some()),
            ("assert", self.assert.is_some()),
            ("unchanged", self.unchanged.is_some()),
            ("repeat", self.repeat.is_some()),
            ("steps", self.steps.is_some()),
            ("parallel", self.parallel.is_some()),
        ];
        verbs.iter().filter(|(_, given)| *given).map(|(verb, _)| *verb).collect()
    }

    /// The modifiers that the step has.
    pub fn modifiers(&self) -> Vec<&'static str> {
        let modifiers = [
            ("as", self.client.is_some()),
            ("codes", self.codes.is_some()),
            ("session", self.session.is_some()),
            ("opening", self.opening.is_some()),
            ("with", self.with.is_some()),
            ("where", self.schema.is_some()),
            ("may-refuse", self.may_refuse),
            ("headers", !self.headers.is_empty()),
            ("protocols", self.protocols.is_some()),
            ("selects", self.selects.is_some()),
            ("save", !self.save.is_empty()),
            ("reply", self.reply.is_some()),
            ("refuse", self.refuse.is_some()),
            ("within", self.within.is_some()),
            ("window", self.window.is_some()),
            ("count", self.count.is_some()),
            ("abandon", self.abandon),
            ("until", self.until.is_some()),
            ("vars", !self.vars.is_empty()),
            ("after", self.after.is_some()),
            ("noticed", self.noticed),
            ("past-errors", self.past_errors),
            ("keep", self.keep),
            ("tolerated", self.tolerated.is_some()),
            ("allowed", self.allowed.is_some()),
            ("warns", self.warns),
        ];
        modifiers.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}
