//! A protocol as data: an AsyncAPI 3.0 document with `x-frameproof`, and a requirement catalogue,
//! compiled once into the form that the other layers use.

mod address;
mod annotation;
mod asyncapi;
mod barrier;
mod batches;
mod bundle;
mod bundle_rules;
mod client_rules;
mod connection_rules;
mod deciders;
mod dialect;
pub mod documentation;
mod embedded;
mod end_values;
mod envelope;
mod explore_rules;
pub mod extension;
mod fields;
mod fuzz_rules;
mod harmless;
mod lifecycle;
mod load;
mod message;
mod names;
mod overlay;
mod path;
mod pattern;
mod references;
mod refs;
mod repeats;
mod requirement;
mod roles;
pub mod rules;
pub mod script;
mod server_requests;
mod standalone;
mod times;
mod unknown_places;
mod verify;
mod verify_generated;
mod verify_keys;
mod verify_requests;

#[cfg(test)]
mod tests;

use std::time::Duration;

use rustc_hash::FxHashMap;
use serde_json::Value;

pub use annotation::Counts;
pub use barrier::{Barrier, PER, PartialBarrier};
pub use batches::{Batches, InFrame};
pub use bundle::{Bundle, BundleVerdict};
pub use bundle_rules::{AnswerSchemas, BundleLevel, BundleRules};
pub use client_rules::{Act as ClientAct, Automatic, ClientRule};
pub use connection_rules::{OFFER, Parameter, UpgradeRules};
pub use deciders::{Decider, Deciders};
pub use dialect::{Dialect, DialectChoice, Respelling, SpeltValue};
pub(crate) use end_values::{HTTP_ANSWER, ValueMistake, ValuesOf, mistake_of_code};
pub use envelope::Envelope;
pub use explore_rules::{Explore, ScriptedTurn, Shared};
pub use extension::{Extension, OneOrMany, Pattern, Reading, ReadingName};
pub use fuzz_rules::{FieldRule, Fuzzing, IdRule, Place, Refusal, Refusals, Situation};
pub use harmless::HarmlessMutants;
pub use lifecycle::{ConnectionEvent, END};
pub(crate) use lifecycle::{beginning_of, end_of};
pub use message::{Message, SchemaFinding};
pub use pattern::{Matcher, is_subset};
pub use repeats::{RepeatRule, Repeats};
pub use requirement::{Level, Requirement, Requirements, RequirementsFile, Side};
pub use roles::{Place as RolePlace, Roles};
pub(crate) use server_requests::given;
pub use server_requests::{Answer, AnswerKind, Lack, Requests, ServerRequest};
pub use times::Time;
pub(crate) use verify_requests::mistakes as answer_mistakes;

use crate::frame::json_within;
use crate::source::ordered::ordered;
use crate::source::schema::Schema;
use crate::source::{Diagnostic, Diagnostics};
use crate::trace::Direction;

/// A compiled protocol. Cheap to share; nothing in it changes after loading.
#[derive(Debug)]
pub struct Protocol {
    /// The folder's name, for example `minichat`.
    pub name: String,
    /// `info.title` of the document.
    pub title: String,
    /// `info.version` of the document.
    pub version: String,
    /// The channel's address, a path with `{parameters}`, for example `/ws`.
    pub address: String,
    /// `x-frameproof`, readings and overlay applied.
    pub extension: Extension,
    /// Every message of both directions.
    pub messages: Vec<Message>,
    /// The requirement catalogue.
    pub requirements: Requirements,
    /// The reading that was chosen.
    pub reading: ReadingName,
    /// Which answer is taken for each reading, by reading id.
    pub readings: std::collections::BTreeMap<String, ReadingName>,
    dialects: Dialects,
    compiled: Compiled,
    /// It ships with the binary, without overlays: it and its cases have been checked.
    pub(crate) is_shipped: bool,
}

/// In which spelling a protocol is spoken.
#[derive(Debug, Default)]
struct Dialects {
    /// The dialect that is spoken, with its name; none: the document's own.
    spoken: Option<(String, Dialect)>,
    /// The same protocol in other dialects, where the server may turn out to speak one.
    alternatives: Vec<(String, std::sync::Arc<Protocol>)>,
}

/// What is made of the messages and the extension when they are loaded.
#[derive(Debug, Default)]
struct Compiled {
    /// Parts of messages; the index of the first is the number of messages.
    parts: Vec<PartOf>,
    /// What messages mean in a conversation.
    roles: Roles,
    /// What the server asks of clients.
    requests: Vec<ServerRequest>,
    /// What clients do by themselves.
    client: Vec<ClientRule>,
    /// Which messages may repeat a value.
    repeats: Vec<RepeatRule>,
    /// The schemas that the server under test has generated, if the user has given them.
    bundle: Option<std::sync::Arc<Bundle>>,
    /// The schemas of patterns by their text: every case has monitors of its own, on the same schemas.
    schemas: std::sync::Mutex<FxHashMap<String, Schema>>,
    /// Message indices by name, for each direction.
    by_name: [FxHashMap<String, usize>; 2],
    /// The invariants and the rules for clients of the document that a reading or an overlay leaves out.
    left_out: Vec<String>,
    /// Pointers to places that no message has, of a document that does not ship.
    unknown_places: Vec<crate::source::Diagnostic>,
}

/// A compiled [`extension::Part`].
#[derive(Debug)]
pub(crate) struct PartOf {
    /// Indices of the messages that have it.
    pub of: Vec<usize>,
    at: crate::frame::Pointer,
    keep: Vec<String>,
}

impl PartOf {
    /// The elements in a message, each as a message of its own.
    pub fn elements<'v>(&'v self, body: &'v Value) -> impl Iterator<Item = Value> + 'v {
        let list = self.at.get(body).and_then(Value::as_array).into_iter().flatten();
        let element = |element: &'v Value| {
            let mut own = element.as_object()?.clone();
            for name in self.keep.iter().filter(|name| element.get(name.as_str()).is_none()) {
                own.extend(body.get(name).map(|value| (name.clone(), value.clone())));
            }
            Some(Value::Object(own))
        };
        list.filter_map(element)
    }
}

/// Where a protocol comes from, and how it is adapted.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The reading taken for every ambiguity.
    pub reading: ReadingName,
    /// The dialect.
    pub dialect: DialectChoice,
    /// JSON Merge Patches on the document, applied last, in order.
    pub overlays: Vec<std::path::PathBuf>,
    /// A folder of JSON Schemas that the server under test has generated; see [`BundleRules`].
    pub schemas: Option<std::path::PathBuf>,
}

/// Schemas that are kept; past that they are compiled each time.
const MAX_SCHEMAS: usize = 4096;
/// The capability, where a protocol has it, that each session is kept apart from the others.
pub(crate) const ISOLATION: &str = "isolation";

impl Protocol {
    /// The silence that ends a turn, where no message does (`turn.quiet-ms`).
    pub fn quiet(&self) -> Option<Duration> {
        self.extension.turn.quiet_ms.map(|quiet| Duration::from_millis(quiet.into()))
    }

    /// An ambiguity and the answer to it that is taken, in a line: its id, what it is about, the answer. `None`: there is no such
    /// ambiguity.
    pub fn answer_taken(&self, id: &str) -> Option<String> {
        let reading = self.extension.readings.get(id)?;
        let taken = match self.readings.get(id) {
            Some(ReadingName::Strict) => &reading.strict,
            Some(ReadingName::Lenient) => &reading.lenient,
            _ => &reading.default,
        };
        Some(format!("{id}: {} — {taken}", reading.topic))
    }

    /// Which message a JSON object is, by its discriminator, for the given direction. `None`: missing, not a
    /// string, or unknown in that direction.
    pub fn message_of(&self, body: &Value, dir: Direction) -> Option<usize> {
        let name = self.type_of(body)?;
        self.compiled.by_name[dir as usize].get(name).copied()
    }

    /// Whether a message is a reply: it says not what it is, but has an id and a result or an error.
    pub fn is_reply(&self, body: &Value) -> bool {
        self.extension.replies.as_ref().is_some_and(|replies| {
            self.extension.discriminator.get(body).is_none()
                && replies.id.get(body).is_some()
                && (replies.result.get(body).is_some() || replies.error.get(body).is_some())
        })
    }

    /// Puts the target's own tool in the place of a class's, whichever dialect is spoken; `name`: none keeps the name.
    pub fn set_tool(&mut self, class: &str, name: Option<&str>, target: &extension::TargetTool) {
        if let Some(tool) = self.extension.tools.get_mut(class) {
            tool.target = target.clone();
            name.into_iter().for_each(|name| tool.name = name.to_owned());
        }
        // Nobody else has them yet.
        for protocol in
            self.dialects.alternatives.iter_mut().filter_map(|(_, one)| std::sync::Arc::get_mut(one))
        {
            protocol.set_tool(class, name, target);
        }
    }

    /// The server offers a capability that no message announces, whichever dialect is spoken.
    pub fn offer(&mut self, capability: &str) {
        if let Some(known) = self.extension.capabilities.get_mut(capability) {
            known.offered = extension::Offered::Yes;
        }
        self.dialects_mut().for_each(|one| one.offer(capability));
    }

    /// The target has one session for all clients, whichever dialect is spoken.
    pub fn set_single_session(&mut self) {
        self.extension.session.is_single = true;
        self.dialects_mut().for_each(Self::set_single_session);
    }

    /// Why no client has a session of its own, as the target or an overlay says; none: it should have one.
    pub fn lacks_isolation(&self) -> Option<&'static str> {
        if self.extension.session.is_single {
            Some("the target has one session for all clients (`sessions = 1`)")
        } else {
            self.declines(ISOLATION).then_some("the capability `isolation` is not offered")
        }
    }

    /// Whether the protocol, perhaps by an overlay, says that no server offers a capability which none announces.
    pub fn declines(&self, capability: &str) -> bool {
        let known = self.extension.capabilities.get(capability);
        known.is_some_and(|known| known.announced.is_none() && known.offered == extension::Offered::No)
    }

    /// The schemas that the server under test has generated, if the user has given them.
    pub fn bundle(&self) -> Option<&Bundle> {
        self.compiled.bundle.as_deref()
    }

    /// Judges by a bundle of schemas, too, whichever dialect is spoken.
    fn set_bundle(&mut self, bundle: &std::sync::Arc<Bundle>) {
        self.compiled.bundle = Some(std::sync::Arc::clone(bundle));
        self.dialects_mut().for_each(|one| one.set_bundle(bundle));
    }

    /// The protocol in its other dialects, as long as nobody else has them.
    fn dialects_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        self.dialects.alternatives.iter_mut().filter_map(|(_, one)| std::sync::Arc::get_mut(one))
    }

    /// The requirements that a reply to no request breaks.
    pub(crate) fn unmatched(&self) -> &[String] {
        self.extension.replies.as_ref().map_or(&[], |replies| &replies.unmatched)
    }

    /// Which message a reply is, given the name of the message that it answers (`None`: of an unknown one).
    pub fn reply_of(&self, body: &Value, dir: Direction, request: Option<&str>) -> Option<usize> {
        let replies = self.extension.replies.as_ref()?;
        let by_name = &self.compiled.by_name[dir as usize];
        if replies.error.get(body).is_some() {
            return by_name.get("error").copied();
        }
        by_name.get(&format!("{}.result", request?)).copied()
    }

    /// Whether an example of a message would be taken for that message.
    fn recognises(&self, message: &Message, example: &Value) -> bool {
        if !self.is_reply(example) {
            let found = self.message_of(example, message.dir);
            return found.is_some_and(|found| self.messages[found].name == message.name);
        }
        let request = message.name.strip_suffix(".result");
        let known =
            request.is_none_or(|name| self.compiled.by_name[message.dir.other() as usize].contains_key(name));
        let found = self.reply_of(example, message.dir, request);
        known && found.is_some_and(|found| self.messages[found].name == message.name)
    }

    /// Whether a message has its name as its discriminator: it is no reply, and no word of scenarios such as `turn-end`.
    pub fn says(&self, name: &str, dir: Direction) -> bool {
        let is_reply = self.extension.replies.is_some() && (name == "error" || name.ends_with(".result"));
        !is_reply && self.index_of(name, dir).is_some()
    }

    /// The session that a URL names, where the protocol puts its id there.
    pub fn session_in<'u>(&self, url: &'u str) -> Option<&'u str> {
        match &self.extension.session.join {
            extension::Join::Parameter(parameter) => address::value_in(&self.address, parameter, url),
            _ => None,
        }
    }

    /// A server's URL with a place for the session's id, where the protocol puts it there: a URL that leaves out
    /// the end of the protocol's address is completed.
    ///
    /// # Errors
    /// The place that the URL lacks, for example `{session}`.
    pub fn url_of(&self, url: &str) -> Result<String, String> {
        match &self.extension.session.join {
            extension::Join::Parameter(parameter) => address::complete(&self.address, parameter, url),
            _ => Ok(url.to_owned()),
        }
    }

    /// A schema of a pattern or invariant, compiled once.
    pub(crate) fn schema(&self, schema: &Value) -> Result<Schema, String> {
        let mut known = self.compiled.schemas.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = schema.to_string();
        if let Some(schema) = known.get(&text) {
            return Ok(schema.clone());
        }
        let in_order = ordered(schema)?;
        let compiled = Schema::new(&in_order)?;
        if known.len() < MAX_SCHEMAS {
            known.insert(text, compiled.clone());
        }
        Ok(compiled)
    }

    /// The discriminator's text in a message, whether known or not.
    pub fn type_of<'v>(&self, body: &'v Value) -> Option<&'v str> {
        self.extension.discriminator.get(body).and_then(Value::as_str)
    }

    /// The index of what a pattern means by a name: a message, or (from the server) a part of one.
    ///
    /// # Errors
    /// As [`Protocol::message_named`].
    pub(crate) fn pattern_named(&self, name: &str, dir: Direction) -> Result<usize, Diagnostics> {
        let part = self.extension.parts.get_index_of(name).filter(|_| dir == Direction::Recv);
        part.map_or_else(|| self.message_named(name, dir), |part| Ok(self.messages.len() + part))
    }

    /// Whether a message is one that may come at any time and says nothing about the rest: a heartbeat.
    pub fn is_ambient(&self, message: usize) -> bool {
        self.compiled.roles.is_ambient(message)
    }

    /// Parts of messages, compiled; the index of the first is the number of messages.
    pub(crate) fn parts(&self) -> &[PartOf] {
        &self.compiled.parts
    }

    /// Pointers to places that, by their schemas, none of the messages has that they are about; each a note at its place. A protocol that
    /// ships has none.
    pub fn unknown_places(&self) -> &[Diagnostic] {
        &self.compiled.unknown_places
    }

    /// Whether there is an invariant or a rule for clients of a name to suspend: one that a reading or an overlay leaves out counts, too.
    pub(crate) fn may_suspend(&self, name: &str) -> bool {
        self.extension.invariants.contains_key(name)
            || self.extension.client.contains_key(name)
            || self.compiled.left_out.iter().any(|known| known == name)
    }

    /// What is wrong with a name that is none of those.
    pub(crate) fn unknown_to_suspend(&self, name: &str) -> Diagnostic {
        let known = self.extension.invariants.keys().chain(self.extension.client.keys());
        Diagnostic::new(format!("unknown invariant `{name}`")).suggest(name, known.map(String::as_str))
    }

    /// Which messages have a part to play in every conversation.
    pub fn roles(&self) -> &Roles {
        &self.compiled.roles
    }

    /// The index of the message of a name and direction, if there is one.
    pub fn index_of(&self, name: &str, dir: Direction) -> Option<usize> {
        self.compiled.by_name[dir as usize].get(name).copied()
    }

    /// The index of the message of a name and direction.
    ///
    /// # Errors
    /// An unknown name, with the nearest known one; the diagnostic has no place.
    pub fn message_named(&self, name: &str, dir: Direction) -> Result<usize, Diagnostics> {
        self.index_of(name, dir).ok_or_else(|| {
            let side = if dir == Direction::Send { "client" } else { "server" };
            let known = self.compiled.by_name[dir as usize].keys().map(String::as_str);
            let error = Diagnostic::new(format!("the {side} sends no message `{name}`"));
            if ConnectionEvent::ALL.iter().any(|event| event.name() == name) {
                return error
                    .hint("it is an event of the connection, which only patterns of invariants and of `errors` can name")
                    .into();
            }
            error.suggest(name, known).into()
        })
    }
}

/// A value as one short piece of text for a message.
pub(crate) fn shorten(value: &Value) -> String {
    match json_within(value, 4 * LONGEST + 8) {
        Ok(text) => clip(&text),
        // Even characters of four bytes are more than fit.
        Err(text) => clip(&(text + " ")),
    }
}

/// Longest text that a message quotes, in characters.
const LONGEST: usize = 120;

/// The beginning of a text, with a mark where more follows.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
