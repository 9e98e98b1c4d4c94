//! What the protocol's own data says to do, as the steps of a client.

use serde_json::{Map, Value, json};

use crate::protocol::extension::Exchange;
use crate::protocol::{Protocol, Situation};

/// A state of the protocol's `fuzzing.states`.
pub fn state_of<'p>(protocol: &'p Protocol, name: Option<&str>) -> Option<&'p Situation> {
    name.and_then(|name| protocol.extension.fuzzing.states.get(name))
}

/// Steps that open a client's connection (again), with what the protocol does first on a connection.
pub fn opening(
    protocol: &Protocol,
    client: &str,
    session: Option<&str>,
    opening: Option<&str>,
) -> Vec<Value> {
    let mut step = json!({ "open": client });
    if let Some(session) = session {
        step["session"] = json!(session);
    }
    if let Some(opening) = opening {
        step["opening"] = json!(opening);
    }
    let survives = &protocol.extension.fuzzing.survives;
    if !survives.is_empty() {
        step["covers"] = json!(survives);
    }
    let mut steps = vec![step];
    steps.extend(exchange(protocol, client, &protocol.extension.fuzzing.prepare, "", &[]));
    steps
}

/// Who says an exchange, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Speaker<'s> {
    /// The client that does it.
    pub by: &'s str,
    /// The client whose variables it uses: the one that has begun what this goes on with.
    pub of: &'s str,
}

impl<'s> Speaker<'s> {
    /// A client that goes on with what is its own.
    pub fn own(client: &'s str) -> Self {
        Self { by: client, of: client }
    }
}

/// An exchange as steps of one client: its variables are the client's own.
pub fn exchange(
    protocol: &Protocol,
    client: &str,
    exchange: &[Exchange],
    cue: &str,
    blame: &[String],
) -> Vec<Value> {
    spoken(protocol, Speaker::own(client), exchange, cue, blame)
}

/// An exchange as steps of a client. Every client has variables of its own. What a failed `expect` breaks is said in the exchange,
/// or else by `blame`.
pub fn spoken(
    protocol: &Protocol,
    speaker: Speaker<'_>,
    exchange: &[Exchange],
    cue: &str,
    blame: &[String],
) -> Vec<Value> {
    let names = saved(protocol);
    let owner = speaker.of;
    let own = |value: &Value| {
        let mut text = value.to_string();
        for name in &names {
            text = text.replace(&format!("{{{{{name}}}}}"), &format!("{{{{{name}_{owner}}}}}"));
        }
        if !cue.is_empty() {
            text = text.replace("{{cue}}", cue);
        }
        serde_json::from_str(&text).unwrap_or(Value::Null)
    };
    let step = |step: &Exchange| {
        let mut out = Map::new();
        out.insert("as".into(), json!(speaker.by));
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                out.insert(key.into(), value);
            }
        };
        put("send", step.send.as_ref().map(own));
        put("expect", step.expect.as_ref().map(|names| json!(names)));
        put("with", step.with.as_ref().map(own));
        put("where", step.schema.as_ref().map(own));
        put("reply", step.reply.as_ref().map(own));
        put("refuse", step.refuse.as_ref().map(own));
        if step.expect.is_some() {
            let covers = if step.covers.is_empty() { blame } else { &step.covers };
            put("covers", (!covers.is_empty()).then(|| json!(covers)));
            let save: Map<String, Value> =
                step.save.iter().map(|(name, at)| (format!("{name}_{owner}"), json!(at))).collect();
            put("save", (!save.is_empty()).then(|| Value::Object(save)));
        }
        Value::Object(out)
    };
    exchange.iter().map(step).collect()
}

/// The names of all values that exchanges of the protocol's data save.
fn saved(protocol: &Protocol) -> Vec<&String> {
    let (fuzzing, explore) = (&protocol.extension.fuzzing, &protocol.extension.explore);
    let states = fuzzing.states.values().flat_map(|state| {
        let ways = state.ways.values().flatten();
        state.enter.iter().chain(&state.leave).chain(ways).chain(&state.shows)
    });
    let turns = explore.turns.values().flat_map(|turn| &turn.steps);
    let messages = explore.messages.values().flatten();
    let all = fuzzing.prepare.iter().chain(states).chain(turns).chain(messages);
    all.flat_map(|step| step.save.keys()).collect()
}
