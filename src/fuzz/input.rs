//! One input: something that is done to the server, and what the protocol obliges it to.
//!
//! A fuzzed case is a list of inputs. It is made, mutated, shrunk and stored in this one form, and turned into the steps of a
//! scenario when it is run. Ids that only the server knows stand in it as the scenario's own templates (`{{seen.call}}`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::synthesis::fresh;

/// One input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Input {
    /// The client that does it.
    pub client: String,
    /// What it does.
    pub action: Action,
    /// The kind of command, for the table of states and commands: a message's name, `text`, `frames`, …
    pub command: String,
    /// The mutation: `valid`, `missing-field`, `truncated`, … Part of the novelty that guides the campaign.
    pub mutation: String,
    /// What the server owes for it.
    #[serde(rename = "duty")]
    pub obligation: Obligation,
}

/// What an input does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Sends a JSON object; templates are filled in.
    Send(Value),
    /// Sends a text message, whatever it is; templates are filled in.
    Text(String),
    /// Does further steps of a scenario, as they stand in a scenario file but for `as`: everything else that the DSL
    /// can do — `{"binary": "…"}`, `{"drop": "alice"}`, raw RFC 6455 frames. Shrinking drops elements of its lists and
    /// shortens its texts, and skips what the loader then refuses.
    Steps(Vec<Value>),
}

/// What the server owes for an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obligation {
    /// The protocol's error, and no change of state. `covers`: the requirements that say so; `tolerated`: the ambiguity
    /// by which it may be otherwise.
    Refuse {
        /// Requirement ids.
        covers: Vec<String>,
        /// A reading's id.
        tolerated: Option<String>,
    },
    /// Anything that the monitors allow: the input is valid, or the document leaves open what it is.
    Survive,
    /// Survive, or end this connection in good order: a close frame with one of these codes (none given: any that a server
    /// may send). For what RFC 6455 leaves to the server.
    MayClose {
        /// Close codes.
        codes: Vec<u16>,
    },
    /// End this connection, by a close frame with one of these codes. For violations of RFC 6455, for a client's close, and for what the
    /// protocol refuses in this way.
    MustClose {
        /// Close codes.
        codes: Vec<u16>,
        /// The protocol's requirements that say so. Empty: RFC 6455 does.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        covers: Vec<String>,
    },
}

impl Obligation {
    /// To survive; where there are codes, a close frame with one of them may end the connection.
    pub fn may_close(codes: impl IntoIterator<Item = u16>) -> Self {
        let codes = codes.into_iter().collect::<BTreeSet<u16>>();
        if codes.is_empty() { Self::Survive } else { Self::MayClose { codes: codes.into_iter().collect() } }
    }
}

impl Input {
    /// The steps of a scenario that do it.
    pub fn steps(&self) -> Vec<Value> {
        let own = |verb: &str, value: &Value| json!({ verb: value, "as": self.client });
        match &self.action {
            Action::Send(message) => vec![own("send", message)],
            Action::Text(text) => vec![own("raw", &json!(fresh::written(text)))],
            Action::Steps(steps) => steps.iter().map(|step| self.with_client(step)).collect(),
        }
    }

    /// Whether another input is of the same command and the same mutation.
    pub fn is_like(&self, other: &Self) -> bool {
        self.command == other.command && self.mutation == other.mutation
    }

    /// Whether another input does the same, whatever it was made from.
    pub fn does_as(&self, other: &Self) -> bool {
        let said = |action: &Action| match action {
            Action::Send(message) => Some(message.to_string()),
            Action::Text(text) => Some(text.clone()),
            Action::Steps(_) => None,
        };
        let same = self.action == other.action
            || said(&self.action).is_some_and(|text| said(&other.action) == Some(text));
        self.client == other.client && same
    }

    /// What each client of a race does by itself.
    pub fn apart(&self) -> Vec<Self> {
        let Action::Steps(steps) = &self.action else { return Vec::new() };
        let [race] = steps.as_slice() else { return Vec::new() };
        let branches = race.get("parallel").and_then(Value::as_array).into_iter().flatten();
        let sends = branches.flat_map(|branch| branch.as_array().into_iter().flatten());
        let alone = |(step, command): (&Value, &str)| {
            Some(Self {
                client: step.get("as")?.as_str()?.to_owned(),
                action: Action::Send(step.get("send")?.clone()),
                command: command.to_owned(),
                mutation: "valid".to_owned(),
                obligation: Obligation::Survive,
            })
        };
        sends.zip(self.command.split(" | ")).filter_map(alone).collect()
    }

    /// Whether the client may be without its connection afterwards.
    pub fn may_end(&self) -> bool {
        self.may_close() || self.hangs_up()
    }

    /// Whether the server may or must end the connection.
    pub fn may_close(&self) -> bool {
        matches!(self.obligation, Obligation::MayClose { .. } | Obligation::MustClose { .. })
    }

    /// Whether the client itself cuts the connection in the end.
    pub fn hangs_up(&self) -> bool {
        self.final_drop().is_some()
    }

    /// The step by which the client itself cuts the connection in the end.
    pub fn final_drop(&self) -> Option<&Value> {
        match &self.action {
            Action::Steps(steps) => steps.last().filter(|step| step.get("drop").is_some()),
            _ => None,
        }
    }

    /// Whether it needs a client's connection.
    pub fn involves(&self, client: &str) -> bool {
        self.client == client
            || matches!(&self.action, Action::Steps(steps) if steps.iter().any(|step| step.get("parallel").is_some()))
    }

    /// A barrier in the middle of a sequence, so that what follows comes after what was set off.
    pub fn pause(client: &str, survives: &[String]) -> Self {
        let mut step = json!({ "alive": client });
        if !survives.is_empty() {
            step["covers"] = json!(survives);
        }
        Self {
            client: client.to_owned(),
            action: Action::Steps(vec![step]),
            command: "wait".to_owned(),
            mutation: "-".to_owned(),
            obligation: Obligation::Survive,
        }
    }

    /// A step with its `as`, where it takes one: those that name their client themselves do not.
    fn with_client(&self, step: &Value) -> Value {
        const OWN: &[&str] = &[
            "open", "close", "drop", "stall", "unstall", "settle", "restart", "assert", "parallel", "repeat",
            "alive", "ended", "refusal",
        ];
        let mut step = step.clone();
        if let Some(map) = step.as_object_mut()
            && !map.contains_key("as")
            && !OWN.iter().any(|verb| map.contains_key(*verb))
        {
            map.insert("as".to_owned(), json!(self.client));
        }
        step
    }
}

/// A text that stands for itself in a scenario: what looks like a template in it is made one that yields it.
pub fn literal(text: &str) -> String {
    text.replace("{{", r#"{{_|"{{"}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::template::expand;

    #[test]
    fn inputs_are_steps() {
        let input = |action| Input {
            client: "alice".into(),
            action,
            command: "c".into(),
            mutation: "valid".into(),
            obligation: Obligation::Survive,
        };
        assert_eq!(input(Action::Text("x".into())).steps(), [json!({ "raw": "x", "as": "alice" })]);
        assert_eq!(
            input(Action::Steps(vec![json!({ "binary": "AA==" }), json!({ "drop": "bob" })])).steps(),
            [json!({ "binary": "AA==", "as": "alice" }), json!({ "drop": "bob" })]
        );
    }

    #[test]
    fn a_race_comes_apart() {
        let race = Input {
            client: "bob".into(),
            action: Action::Steps(vec![json!({ "parallel": [
                [{ "send": { "type": "a" }, "as": "alice" }], [{ "send": { "type": "b" }, "as": "bob" }],
            ] })]),
            command: "a | b".into(),
            mutation: "race".into(),
            obligation: Obligation::Survive,
        };
        let apart = race.apart();
        let named: Vec<_> = apart.iter().map(|one| (one.client.as_str(), one.command.as_str())).collect();
        assert_eq!(named, [("alice", "a"), ("bob", "b")]);
        let text = Input { action: Action::Text(r#"{"type":"a"}"#.into()), ..apart[0].clone() };
        assert!(apart[0].does_as(&text), "the same words");
        assert!(!apart[1].does_as(&text) && !race.does_as(&apart[0]));
        assert!(text.apart().is_empty());
    }

    #[test]
    fn a_literal_survives_its_expansion() {
        for text in ["{{", "a{{b}}c", "}}{{{{", "{{{", "{\"a\":{\"b\":1}}"] {
            assert_eq!(expand(&json!(literal(text)), &mut |_| None), Ok(json!(text)), "{text}");
        }
    }
}
