//! `x-frameproof.fuzzing`: what the live fuzzer (`frameproof fuzz`) must know of a protocol to tell a defect from a choice.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OneOrMany;
use super::extension::{At, Exchange, Ids, Pattern};
use super::script::TurnStep;
use crate::frame::Pointer;

/// The rules of the live fuzzer.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fuzzing {
    /// Which messages the server must answer with an error, by the kind of mistake.
    #[serde(default)]
    pub refused: Refusals,
    /// Violated when the connection, or the server, does not survive a message of a client.
    #[serde(default)]
    pub survives: Ids,
    /// Violated when a refused message changes the state that the protocol's `state` shows.
    #[serde(default)]
    pub unchanged: Ids,
    /// Violated when another session is disturbed, or when its messages or state appear in this one. Empty: sessions share their state.
    #[serde(default)]
    pub isolated: Ids,
    /// Ids that the server's messages contain, by name: `{{seen.NAME}}` in templates is the newest, `{{seen.NAME.CLIENT}}` the
    /// newest that this client saw, `{{seen.NAME.first}}` the oldest.
    #[serde(default)]
    pub seen: IndexMap<String, Vec<At>>,
    /// Where commands contain such ids.
    #[serde(default)]
    pub ids: IndexMap<String, IdRule>,
    /// Values of commands that are new each time, for example `/req_id`. Ids of requests (`replies`) always are.
    #[serde(default)]
    pub fresh: Vec<Pointer>,
    /// What a client does after the opening, before anything else.
    #[serde(default)]
    pub prepare: Vec<Exchange>,
    /// States of a session in addition to the one after the opening, and how they are entered and left.
    #[serde(default)]
    pub states: IndexMap<String, Situation>,
    /// Makes a session idle, whatever its state, so that a turn can follow.
    #[serde(default)]
    pub rest: Vec<Exchange>,
    /// States by name, for feedback and the table of states: a session is in the state whose pattern matched last. Until one does, it is in the state of
    /// `states` that was entered.
    #[serde(default)]
    pub phases: IndexMap<String, Pattern>,
    /// Close codes with which the server may end the connection when a command comes, by command: a second login, an id in use,
    /// a query that it cannot parse.
    #[serde(default)]
    pub closes: IndexMap<String, Vec<u16>>,
    /// Close codes with which the server may end a connection because another client of its session connects or sends something: the
    /// session is taken over. What the client of the older connection then lacks is no finding.
    #[serde(default)]
    pub taken_over: Vec<u16>,
    /// Commands that are not sent.
    #[serde(default)]
    pub avoid: Vec<String>,
    /// Invariants that hold for conforming clients only, and are not judged.
    #[serde(default)]
    pub suspend: Vec<String>,
}

impl Fuzzing {
    /// The close codes by which commands and mistakes are refused.
    pub fn close_codes(&self) -> impl Iterator<Item = u16> {
        self.closes.values().flatten().copied().chain(self.refused.closes())
    }
}

/// Messages that are answered with the protocol's error. Messages that are not listed here may be accepted, refused or ignored.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Refusals {
    /// Text that is not JSON.
    pub no_json: Option<Refusal>,
    /// JSON that is not an object.
    pub no_object: Option<Refusal>,
    /// An object without a discriminator, or whose discriminator is not a string.
    pub no_type: Option<Refusal>,
    /// A type that no side knows.
    pub unknown_type: Option<Refusal>,
    /// A type that only the server sends.
    pub server_type: Option<Refusal>,
    /// A command that lacks a required field.
    pub missing: Option<Refusal>,
    /// A command with a field that has a wrong type, or a value that is not one of the listed ones.
    pub invalid: Option<Refusal>,
    /// A command with a field that its schema (with `additionalProperties: false`) does not declare.
    pub undeclared: Option<Refusal>,
    /// Fields of commands that have requirements of their own.
    #[serde(default)]
    pub fields: Vec<FieldRule>,
    /// A value of a similar type, such as a number instead of a text, may be accepted.
    #[serde(default)]
    pub coerces: bool,
}

/// The required answer to a kind of message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Refusal {
    /// The requirements that demand it.
    pub covers: Ids,
    /// An ambiguity of the document under which the server may behave differently.
    pub tolerated: Option<String>,
    /// The server refuses it by ending the connection, with one of these close codes, and not by the protocol's error.
    #[serde(default)]
    pub close: Vec<u16>,
}

/// The requirements of one field of a command.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FieldRule {
    /// The commands; absent: all.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Option<OneOrMany>,
    /// The field.
    pub at: Pointer,
    /// When it is missing. Absent: as `refused.missing` says; empty: no error is required.
    pub missing: Option<Ids>,
    /// When it is invalid. Absent: as `refused.invalid` says; empty: no error is required.
    pub invalid: Option<Ids>,
    /// An ambiguity of the document under which the server may behave differently.
    pub tolerated: Option<String>,
    /// As for the kinds of mistakes: the server refuses it by ending the connection. Empty: as `refused.missing` and `refused.invalid` say.
    #[serde(default)]
    pub close: Vec<u16>,
}

/// Where commands have an id.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IdRule {
    /// The fields.
    #[schemars(extend("x-synonym" = "on"))]
    pub fields: Vec<Place>,
    /// The required answer to an id that was never sent.
    pub unknown: Option<Refusal>,
    /// Every client that knows the id has access: ids of other sessions are then not used.
    #[serde(default)]
    pub grants: bool,
}

/// A field of commands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Place {
    /// The commands.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: OneOrMany,
    /// The field.
    pub at: Pointer,
}

/// A state of a session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Situation {
    /// A script for the model, as a scenario's `turn`: `{{cue}}` carries it.
    #[serde(default)]
    pub turn: Vec<TurnStep>,
    /// How the idle session enters it.
    pub enter: Vec<Exchange>,
    /// Then the connection is lost, and opened again with this opening.
    #[serde(default)]
    pub reopen: Option<String>,
    /// How the state is left; the session is idle afterwards. Empty: it is idle already.
    #[serde(default)]
    pub leave: Vec<Exchange>,
    /// Other ways to leave it, by name, after which the session is idle, too: for `explore`. `{{NAME}}` is what `enter` has
    /// saved, whichever client of the session leaves the state.
    #[serde(default)]
    pub ways: IndexMap<String, Vec<Exchange>>,
    /// How any client of the session can see that it is in this state: for `explore`.
    #[serde(default)]
    pub shows: Vec<Exchange>,
    /// A client that reconnects or joins finds the session in this state: for `explore`. Otherwise no client reconnects or joins in this
    /// state, unless every connection is a session of its own.
    #[serde(default)]
    pub outlives: bool,
    /// The state ends soon without a message of a client, and the server's visible state may change meanwhile.
    #[serde(default)]
    pub passing: bool,
}

impl Refusals {
    /// The kinds of mistakes by the names of their keys, with what is owed for each.
    pub fn kinds(&self) -> [(&'static str, Option<&Refusal>); 8] {
        [
            ("no-json", self.no_json.as_ref()),
            ("no-object", self.no_object.as_ref()),
            ("no-type", self.no_type.as_ref()),
            ("unknown-type", self.unknown_type.as_ref()),
            ("server-type", self.server_type.as_ref()),
            ("missing", self.missing.as_ref()),
            ("invalid", self.invalid.as_ref()),
            ("undeclared", self.undeclared.as_ref()),
        ]
    }

    /// All close codes by which mistakes are refused.
    pub fn closes(&self) -> impl Iterator<Item = u16> {
        let kinds = self.kinds().into_iter().filter_map(|(_, refusal)| refusal);
        let fields = self.fields.iter().flat_map(|rule| rule.close.iter().copied());
        kinds.flat_map(|refusal| refusal.close.iter().copied()).chain(fields)
    }
}

impl FieldRule {
    /// Whether it is about this field of this command.
    pub fn is_about(&self, command: &str, at: &str) -> bool {
        self.at.as_str() == at
            && self.message.as_ref().is_none_or(|on| on.as_slice().iter().any(|name| name == command))
    }
}
