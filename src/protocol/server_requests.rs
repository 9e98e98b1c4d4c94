//! Requests of the server: messages that it sends and the client answers, with ids of the server's own.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::extension::{At, Extension, Pattern};
use super::{Matcher, Protocol, is_subset};
use crate::frame::Pointer;
use crate::source::Diagnostics;
use crate::template;
use crate::trace::Direction;

/// Messages of the server that request an answer from the client, all of one form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Requests {
    /// The requests: messages that the server sends.
    pub message: Pattern,
    /// Where a request has its id, which the answer repeats with its JSON type. Default: `replies.id`.
    pub id: Option<Pointer>,
    /// The answer: what is sent where a step says `reply`. `{{id}}` is the request's id, `{{reply}}` what the step gives,
    /// `{{reply.NAME}}` a member of it. Default, where the protocol has `replies`: their `id` and `result`, and
    /// the constants that all messages of clients have in common, for example `jsonrpc: '2.0'`.
    pub reply: Option<Value>,
    /// The refusal: what is sent where a step says `refuse`. `{{refuse}}` is what the step gives, for example `{ code, message }`.
    /// Default, where the protocol has `replies`: their `id` and `error`, and
    /// the same constants.
    pub refuse: Option<Value>,
    /// How the server reports the end of a request, answered or not: the message, and the place of the request's id in it.
    pub resolved: Option<At>,
}

/// What a client says to a request of the server's.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This result.
    Reply(Value),
    /// This error.
    Refuse(Value),
}

/// Which of the two forms an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// `reply`.
    Reply,
    /// `refuse`.
    Refuse,
}

/// A field that may be null, which is not the same as that it is left out.
pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl AnswerKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Reply, Self::Refuse];

    /// Its key, in files and in templates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Refuse => "refuse",
        }
    }
}

impl Answer {
    /// What `reply` and `refuse` of a step say.
    ///
    /// # Errors
    /// It has both.
    pub fn of(reply: Option<Value>, refuse: Option<Value>) -> Result<Option<Self>, &'static str> {
        match (reply, refuse) {
            (Some(_), Some(_)) => Err("a request gets one answer: `reply` or `refuse`"),
            (reply, refuse) => Ok(reply.map(Self::Reply).or(refuse.map(Self::Refuse))),
        }
    }

    /// Its form.
    pub fn kind(&self) -> AnswerKind {
        match self {
            Self::Reply(_) => AnswerKind::Reply,
            Self::Refuse(_) => AnswerKind::Refuse,
        }
    }

    /// What the step gives, with its templates.
    pub fn given(&self) -> &Value {
        let (Self::Reply(given) | Self::Refuse(given)) = self;
        given
    }
}

/// [`Requests`], compiled.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// Its name in the protocol file.
    pub name: String,
    /// The requests.
    pub matcher: Matcher,
    /// Where their id is.
    pub id: Pointer,
    /// The message that says that one is over, and where it names it.
    pub resolved: Option<(Matcher, Pointer)>,
    forms: [Option<Form>; 2],
}

/// The form of an answer.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub template: Value,
    /// Where the request's id stands in it.
    id: Option<Pointer>,
    /// What of it is the same in every answer.
    constant: Value,
    /// Where the rest stands.
    places: Vec<Pointer>,
}

/// A part of an answer that a step has to give, or gives in vain.
#[derive(Debug, PartialEq, Eq)]
pub enum Lack {
    /// The form has a place for a member that is not given.
    Missing(String),
    /// The form has no place for a member that is given.
    NoPlace(String),
}

impl ServerRequest {
    /// Compiles the requests of a protocol. What is wrong with them is left out here, and told when the protocol is verified.
    pub(super) fn all(protocol: &Protocol) -> Vec<Self> {
        let requests = protocol.extension.requests.iter();
        requests.filter_map(|(name, one)| Self::new(name, one, protocol).ok()?).collect()
    }

    /// `None`: nothing says where the id is.
    fn new(name: &str, one: &Requests, protocol: &Protocol) -> Result<Option<Self>, Diagnostics> {
        let Some(id) = id_of(one, &protocol.extension) else { return Ok(None) };
        let resolved = match &one.resolved {
            Some(at) => Some((Matcher::new(&at.message, protocol)?, at.at.clone())),
            None => None,
        };
        let forms = AnswerKind::ALL.map(|kind| {
            let template = template_of(one, kind, protocol)?;
            Some(Form::new(template, &protocol.extension.discriminator))
        });
        let matcher = Matcher::new(&one.message, protocol)?;
        Ok(Some(Self { name: name.to_owned(), matcher, id, resolved, forms }))
    }

    pub(super) fn form(&self, kind: AnswerKind) -> Option<&Form> {
        self.forms[kind as usize].as_ref()
    }

    /// The message that answers in this form, as a template of `id`, and of `reply` or `refuse`.
    pub fn template(&self, kind: AnswerKind) -> Option<&Value> {
        self.form(kind).map(|form| &form.template)
    }

    /// Whether a message of the server's may be one of these requests, whatever it contains.
    pub fn may_be(&self, message: usize) -> bool {
        self.matcher.may_be(message)
    }

    /// The id that a client's message answers, where it has one of the forms of an answer.
    pub fn answered_by<'v>(&self, body: &'v Value) -> Option<&'v Value> {
        self.forms.iter().flatten().find_map(|form| form.id_in(body))
    }

    /// What a form lacks of what a step gives, or does not take. Of a template, nobody can tell before it is filled in.
    pub fn lacks(&self, answer: &Answer) -> Vec<Lack> {
        let kind = answer.kind();
        let Some(form) = self.form(kind) else { return Vec::new() };
        if answer.given().as_str().is_some_and(|text| !template::is_constant(&json!(text))) {
            return Vec::new();
        }
        let mentioned = template::mentions(&form.template);
        if mentioned.iter().any(|(name, _)| name == kind.name()) {
            return Vec::new();
        }
        let prefix = format!("{}.", kind.name());
        let members: Vec<(&str, bool)> = mentioned
            .iter()
            .filter_map(|(name, needed)| Some((name.strip_prefix(&prefix)?, *needed)))
            .collect();
        let none = Map::new();
        let given = answer.given().as_object().unwrap_or(&none);
        let missing = members
            .iter()
            .filter(|(member, needed)| *needed && template::dig(answer.given(), member).is_none());
        let missing = missing.map(|(member, _)| Lack::Missing((*member).to_owned()));
        let has_place =
            |key: &String| members.iter().any(|(member, _)| member.split('.').next() == Some(key));
        let vain = given.keys().filter(|key| !has_place(key)).map(|key| Lack::NoPlace(key.clone()));
        missing.chain(vain).collect()
    }
}

impl Form {
    pub fn new(template: Value, discriminator: &Pointer) -> Self {
        let mut form = Self { template, id: None, constant: Value::Null, places: Vec::new() };
        let template = form.template.clone();
        form.constant = form.part(&template, "").unwrap_or_else(|| json!({}));
        if discriminator.get(&form.template).is_none() {
            // An answer that says not what it is must not say that it is something else.
            form.places.push(discriminator.clone());
        }
        form
    }

    /// What is constant of a part of the template; notes where the rest is.
    fn part(&mut self, template: &Value, at: &str) -> Option<Value> {
        match template {
            Value::Object(map) => {
                let mut constant = Map::new();
                for (key, value) in map {
                    let below = format!("{at}/{}", crate::source::escape_token(key));
                    constant.extend(self.part(value, &below).map(|value| (key.clone(), value)));
                }
                Some(Value::Object(constant))
            }
            constant if template::is_constant(constant) => Some(constant.clone()),
            open => {
                let place = Pointer::new(at).ok()?;
                let is_id = open.as_str().is_some_and(is_id);
                self.id = self.id.take().or_else(|| is_id.then(|| place.clone()));
                self.places.push(place);
                None
            }
        }
    }

    /// Whether an answer can be told by its id.
    pub fn bears_id(&self) -> bool {
        self.id.is_some()
    }

    /// The id in a message of this form.
    fn id_in<'v>(&self, body: &'v Value) -> Option<&'v Value> {
        let id = self.id.as_ref()?.get(body)?;
        let has = |place: &Pointer| {
            let in_form = place.get(&self.template).is_some();
            in_form == place.get(body).is_some()
        };
        (is_subset(&self.constant, body) && self.places.iter().all(has)).then_some(id)
    }
}

/// `{{id}}` alone.
fn is_id(text: &str) -> bool {
    text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).is_some_and(|name| name.trim() == "id")
}

/// Where requests have their id.
pub(super) fn id_of(one: &Requests, extension: &Extension) -> Option<Pointer> {
    one.id.clone().or_else(|| extension.replies.as_ref().map(|replies| replies.id.clone()))
}

/// The form of an answer: the protocol's own, or that of its `replies` with what all messages of clients have in common.
pub(super) fn template_of(one: &Requests, kind: AnswerKind, protocol: &Protocol) -> Option<Value> {
    let (own, other) = match kind {
        AnswerKind::Reply => (&one.reply, &one.refuse),
        AnswerKind::Refuse => (&one.refuse, &one.reply),
    };
    if own.is_some() || other.is_some() {
        return own.clone();
    }
    let replies = protocol.extension.replies.as_ref()?;
    let mut template = Value::Object(envelope(protocol));
    replies.id.put(&mut template, json!("{{id}}"));
    let place = if kind == AnswerKind::Reply { &replies.result } else { &replies.error };
    place.put(&mut template, json!(format!("{{{{{}}}}}", kind.name())));
    Some(template)
}

/// The constants that the schemas of all messages of clients have in common, for example `"jsonrpc": "2.0"`.
fn envelope(protocol: &Protocol) -> Map<String, Value> {
    let sent = protocol.messages.iter().filter(|message| message.dir == Direction::Send);
    let mut common: Option<Map<String, Value>> = None;
    for message in sent {
        let mut constants = Map::new();
        add_constants(&message.payload, &message.payload, 0, &mut constants);
        match &mut common {
            None => common = Some(constants),
            Some(common) => common.retain(|name, value| constants.get(name) == Some(value)),
        }
    }
    let mut common = Value::Object(common.unwrap_or_default());
    // The type of a message is its own, even in a protocol whose clients send only one.
    protocol.extension.discriminator.take(&mut common);
    match common {
        Value::Object(common) => common,
        _ => Map::new(),
    }
}

/// The members to which a schema gives one value.
fn add_constants(schema: &Value, root: &Value, depth: u8, constants: &mut Map<String, Value>) {
    const DEEPEST: u8 = 16;
    if depth > DEEPEST {
        return;
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = member.get("const") {
            constants.insert(name.clone(), value.clone());
        }
    }
    let referred =
        schema["$ref"].as_str().and_then(|to| to.strip_prefix('#')).and_then(|at| root.pointer(at));
    for part in schema["allOf"].as_array().into_iter().flatten().chain(referred) {
        add_constants(part, root, depth + 1, constants);
    }
}

impl Protocol {
    /// The requests of the server's, by the protocol's own names.
    pub fn server_requests(&self) -> &[ServerRequest] {
        &self.compiled.requests
    }

    /// Which request a message of the server's is, if it is one.
    pub fn server_request(&self, message: Option<usize>, body: &Value) -> Option<&ServerRequest> {
        self.server_requests().iter().find(|one| one.matcher.matches(message, Direction::Recv, body))
    }

    /// The requests that a message of this name may be.
    pub fn server_requests_named(&self, name: &str) -> impl Iterator<Item = &ServerRequest> {
        let message = self.index_of(name, Direction::Recv);
        self.server_requests().iter().filter(move |one| message.is_some_and(|message| one.may_be(message)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(template: Value) -> Form {
        Form::new(template, &Pointer::new("/type").expect("a pointer"))
    }

    #[test]
    fn an_answer_is_told_by_its_form() {
        let nested =
            form(json!({ "type": "response", "to": { "id": "{{id}}" }, "ok": true, "data": "{{reply}}" }));
        let bare = form(json!({ "id": "{{id}}", "result": "{{reply}}" }));
        for (form, body, id) in [
            (
                &nested,
                json!({ "type": "response", "to": { "id": 7 }, "ok": true, "data": null }),
                Some(json!(7)),
            ),
            (&nested, json!({ "type": "response", "to": { "id": 7 }, "ok": false, "data": null }), None),
            (&nested, json!({ "type": "response", "to": {}, "ok": true, "data": null }), None),
            (&bare, json!({ "id": "7", "result": {} }), Some(json!("7"))),
            (&bare, json!({ "id": "7", "error": {} }), None),
            (&bare, json!({ "id": "7", "type": "ask", "result": {} }), None),
        ] {
            assert_eq!(form.id_in(&body).cloned(), id, "{body}");
        }
        assert!(!form(json!({ "type": "yes", "of": "x-{{id}}" })).bears_id());
    }
}
