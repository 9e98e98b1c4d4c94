//! What a client does by itself, whatever a scenario says: it answers pings, and requests that every client grants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extension::Pattern;
use super::verify_requests::mistakes;
use super::{Answer, Matcher, Protocol};
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};
use crate::trace::Direction;

/// What a client sends automatically when a message of the server comes. In the values of `send`, `reply` and `refuse`,
/// `{{message}}` is the server's message, `{{message.NAME}}` a member of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Automatic {
    /// The messages of the server that it is done for. Of several rules for a message, the first is followed.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// Sends this message.
    pub send: Option<Value>,
    /// The message is a request of the server's (see `requests`): answers it by this result.
    #[serde(default, deserialize_with = "super::given", skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// The same: answers it by this error.
    #[serde(default, deserialize_with = "super::given", skip_serializing_if = "Option::is_none")]
    pub refuse: Option<Value>,
}

/// [`Automatic`], compiled.
#[derive(Debug)]
pub struct ClientRule {
    /// Its name in the protocol file.
    pub name: String,
    /// The messages that it is done for.
    pub matcher: Matcher,
    /// What is done.
    pub act: Act,
}

/// What a client does.
#[derive(Debug)]
pub enum Act {
    /// It sends a message.
    Send(Value),
    /// It answers a request of the server's.
    Answer(Answer),
}

impl ClientRule {
    /// Compiles the rules of a protocol. What is wrong with them is left out here, and told when the protocol is verified.
    pub(super) fn all(protocol: &Protocol) -> Vec<Self> {
        let rules = protocol.extension.client.iter();
        rules.filter_map(|(name, rule)| Self::new(name, rule, protocol)).collect()
    }

    fn new(name: &str, rule: &Automatic, protocol: &Protocol) -> Option<Self> {
        let matcher = Matcher::new(&rule.message, protocol).ok()?;
        let answer = Answer::of(rule.reply.clone(), rule.refuse.clone()).ok()?;
        let act = answer.map(Act::Answer).or_else(|| rule.send.clone().map(Act::Send))?;
        Some(Self { name: name.to_owned(), matcher, act })
    }

    /// Whether it answers a message of this kind as a request of the server's.
    pub fn answers(&self, message: usize) -> bool {
        matches!(self.act, Act::Answer(_)) && self.matcher.may_be(message)
    }
}

impl Protocol {
    /// What clients do by themselves.
    pub fn client_rules(&self) -> &[ClientRule] {
        &self.compiled.client
    }

    /// A rule by which clients answer messages of one of these names, unless it is among the suspended ones.
    pub(crate) fn answering_rule(&self, names: &[String], suspended: &[String]) -> Option<&ClientRule> {
        let messages: Vec<usize> =
            names.iter().filter_map(|name| self.index_of(name, Direction::Recv)).collect();
        let rules = self.client_rules().iter().filter(|rule| !suspended.contains(&rule.name));
        rules.into_iter().find(|rule| messages.iter().any(|message| rule.answers(*message)))
    }
}

/// Checks `client`.
pub(super) fn verify_client(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    for (name, rule) in &protocol.extension.client {
        let at = format!("/x-frameproof/client/{}", escape_token(name));
        let mut push = |part: &str, message: String, hint: &str| {
            let error = Diagnostic::new(message).hint(hint.to_owned());
            errors.push(error.at(api, &format!("{at}{part}"), Part::Key));
        };
        let acts = [rule.send.is_some(), rule.reply.is_some(), rule.refuse.is_some()];
        if acts.iter().filter(|given| **given).count() != 1 {
            let message = "a rule for clients has exactly one of `send`, `reply` and `refuse`".to_owned();
            push("", message, "it says what the clients do");
        }
        if protocol.extension.invariants.contains_key(name) {
            let message = format!("an invariant is called `{name}`, too");
            push("", message, "`suspend` in scenarios names both");
        }
        let known = protocol.client_rules().iter().find(|known| known.name == *name);
        let Some(ClientRule { act: Act::Answer(answer), matcher, .. }) = known else { continue };
        let messages = matcher.alternatives().iter().filter_map(Matcher::messages).flatten();
        let names: Vec<String> = messages.map(|message| protocol.messages[*message].name.clone()).collect();
        if !names.is_empty() {
            for (message, hint) in mistakes(protocol, &names, answer) {
                push(&format!("/{}", answer.kind().name()), message, &hint);
            }
        }
    }
}
