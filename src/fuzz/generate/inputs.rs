//! Inputs of one client: valid commands, turns, frames, and those that are mutated.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{frames, from_schema, mutate};
use crate::fuzz::input::{Action, Input, Obligation, literal};
use crate::fuzz::obligation::{obligation_of, owed_for_command, readers_choice};
use crate::fuzz::program::{ALICE, BOB};
use crate::protocol::extension::{Exchange, Join};
use crate::protocol::{Message, Protocol};
use crate::synthesis::exchanges::opening;
use crate::synthesis::fresh;
use crate::synthesis::model_scripts;
use crate::synthesis::rng::SeededRng;
use crate::trace::Direction;

/// Makes inputs.
#[derive(Debug)]
pub(super) struct InputMaker {
    pub protocol: Arc<Protocol>,
    /// Indices of the commands.
    commands: Vec<usize>,
    /// Types that clients may not send, or that nobody knows.
    types: Vec<String>,
    /// The name and script names of turns.
    scripts: Vec<String>,
}

impl InputMaker {
    pub fn new(protocol: &Arc<Protocol>) -> Self {
        let avoid = &protocol.extension.fuzzing.avoid;
        let messages = || protocol.messages.iter().enumerate();
        let commands = messages().filter(|(_, one)| one.dir == Direction::Send && !avoid.contains(&one.name));
        // A reply's name is frameproof's own word.
        let servers = messages().filter(|(_, one)| one.dir == Direction::Recv && !one.name.contains('.'));
        let mut types: Vec<String> = servers.map(|(_, one)| one.name.clone()).collect();
        types.extend(["frobnicate", "", "__proto__", "type"].map(str::to_owned));
        Self {
            commands: commands.map(|(index, _)| index).collect(),
            scripts: model_scripts::all(protocol).keys().cloned().collect(),
            protocol: Arc::clone(protocol),
            types,
        }
    }

    /// A command in unusual frames, or frames that RFC 6455 forbids.
    pub fn framed(&self, client: &str, rng: &mut SeededRng) -> Input {
        let Some(message) = self.command(rng) else { return self.turn(client, rng) };
        let body = self.body(message, rng);
        let kind = rng.pick(frames::KINDS).copied().unwrap_or_default();
        let mut input = frames::input(client, kind, &body, &mut |bound| rng.below(bound));
        let hangs_up = input.hangs_up();
        match &mut input.obligation {
            // What is not a message is refused as a mistake where a mistake closes the connection.
            Obligation::MayClose { codes } => {
                let all = codes.drain(..).chain(self.protocol.extension.fuzzing.close_codes());
                input.obligation = Obligation::may_close(all.collect::<Vec<_>>());
            }
            Obligation::Survive if !hangs_up => {
                input.obligation = owed_for_command(&self.protocol, &message.name);
            }
            _ => {}
        }
        input
    }

    fn command(&self, rng: &mut SeededRng) -> Option<&Message> {
        rng.pick(&self.commands).map(|index| &self.protocol.messages[*index])
    }

    /// A valid message of a command, as far as frameproof can tell, with templates for ids.
    fn body(&self, message: &Message, rng: &mut SeededRng) -> Value {
        let example = rng.pick(&message.examples).cloned().unwrap_or(json!({}));
        let mut body = if rng.chance(50) {
            example
        } else {
            let made = from_schema::generate(message.payload(), message.payload(), rng);
            if message.violations(&made).is_empty() { made } else { example }
        };
        self.fill(&mut body, &message.name, rng);
        body
    }

    /// Puts ids in: those that the server sent, and now and then one that it did not.
    fn fill(&self, body: &mut Value, command: &str, rng: &mut SeededRng) {
        let fuzzing = &self.protocol.extension.fuzzing;
        fresh::renew(&self.protocol, body);
        for (name, rule) in &fuzzing.ids {
            let places =
                rule.fields.iter().filter(|place| place.message.as_slice().iter().any(|one| one == command));
            for place in places {
                let Some(slot) = body.pointer_mut(place.at.as_str()) else { continue };
                *slot = json!(match rng.below(10) {
                    0..=5 => format!("{{{{seen.{name}}}}}"),
                    6 => format!("{{{{seen.{name}.first}}}}"),
                    7 => format!("{{{{seen.{name}.own}}}}"),
                    8 if !rule.grants => format!("{{{{seen.{name}.witness}}}}"),
                    _ => format!("nobody-{}", rng.below(3)),
                });
            }
        }
    }

    pub fn valid(&self, client: &str, rng: &mut SeededRng) -> Input {
        let Some(message) = self.command(rng) else { return self.turn(client, rng) };
        if model_scripts::command(&self.protocol) == Some(message.name.as_str()) && rng.chance(70) {
            return self.turn(client, rng);
        }
        let body = self.body(message, rng);
        if self.protocol.may_batch(Direction::Send) && rng.chance(25) {
            return self.batch(client, message, body, rng);
        }
        Input {
            client: client.to_owned(),
            action: Action::Send(body),
            command: message.name.clone(),
            mutation: "valid".to_owned(),
            obligation: owed_for_command(&self.protocol, &message.name),
        }
    }

    /// A message with others in one frame. What each may end, the frame may.
    fn batch(&self, client: &str, message: &Message, body: Value, rng: &mut SeededRng) -> Input {
        let mut members = vec![body];
        let mut obligation = owed_for_command(&self.protocol, &message.name);
        for _ in 0..1 + rng.below(3) {
            let Some(other) = self.command(rng) else { break };
            members.push(self.body(other, rng));
            match (&mut obligation, owed_for_command(&self.protocol, &other.name)) {
                (_, Obligation::Survive) => {}
                (Obligation::MayClose { codes }, Obligation::MayClose { codes: more }) => codes.extend(more),
                (own, other) => *own = other,
            }
        }
        Input {
            client: client.to_owned(),
            action: Action::Send(Value::Array(members)),
            command: message.name.clone(),
            mutation: "batch".to_owned(),
            obligation,
        }
    }

    pub fn turn(&self, client: &str, rng: &mut SeededRng) -> Input {
        let script = rng.pick(&self.scripts).cloned().unwrap_or_default();
        let body = model_scripts::start(&self.protocol, client, &format!("{{{{cue.{script}}}}}"));
        let command = model_scripts::command(&self.protocol);
        Input {
            client: client.to_owned(),
            action: Action::Send(body),
            command: command.unwrap_or("turn").to_owned(),
            mutation: script,
            obligation: owed_for_command(&self.protocol, command.unwrap_or_default()),
        }
    }

    /// A message that is not as it should be.
    pub fn mutated(&self, client: &str, rng: &mut SeededRng) -> Input {
        let (command, body) = match self.command(rng) {
            Some(message) => (message.name.clone(), self.body(message, rng)),
            None => ("text".to_owned(), json!({})),
        };
        let (text, how, command) = match rng.chance(70) {
            true => {
                let kind = self.protocol.extension.discriminator.as_str();
                let (text, how) = mutate::near_valid(&body, kind, &self.types, rng);
                (text, how, command)
            }
            false => {
                // Cut anywhere, a template would be none: ids stand as plain texts.
                let plain = plain(body);
                let (text, how) = mutate::broken(&plain.to_string(), rng);
                (literal(&text), how, "text".to_owned())
            }
        };
        // Replies are distinguished by ids: one that comes twice, or that is none, makes them ambiguous.
        if let Some(replies) = &self.protocol.extension.replies
            && let Ok(body) = serde_json::from_str::<Value>(&text)
        {
            let messages = match &body {
                Value::Array(members) if self.protocol.may_batch(Direction::Send) => members.as_slice(),
                body => std::slice::from_ref(body),
            };
            let is_ambiguous = |message| replies.id.get(message).is_some_and(|id| !fresh::is_new(id));
            if messages.iter().any(is_ambiguous) {
                return self.valid(client, rng);
            }
        }
        let owed = if mutate::is_tolerable(how) {
            readers_choice(&self.protocol)
        } else {
            obligation_of(&self.protocol, &text)
        };
        Input {
            client: client.to_owned(),
            action: Action::Text(text),
            command,
            mutation: how.to_owned(),
            obligation: owed,
        }
    }

    /// Two clients do something at once.
    pub fn race(&self, rng: &mut SeededRng) -> Input {
        let (one, other) = (self.valid(ALICE, rng), self.valid(BOB, rng));
        // Whose connection a command may end has no part in a race: both are needed afterwards.
        if one.may_close() || other.may_close() {
            return other;
        }
        let step = json!({ "parallel": [one.steps(), other.steps()] });
        Input {
            client: BOB.to_owned(),
            action: Action::Steps(vec![step]),
            command: format!("{} | {}", one.command, other.command),
            mutation: "race".to_owned(),
            obligation: Obligation::Survive,
        }
    }

    /// The connection is lost, and made again.
    pub fn reconnect(&self, client: &str, rng: &mut SeededRng) -> Input {
        let fuzzing = &self.protocol.extension.fuzzing;
        // Two commands to be avoided, on one connection, are what they are avoided for.
        let name = |step: &Exchange| {
            let name = self.protocol.extension.discriminator.get(step.send.as_ref()?)?;
            Some(fuzzing.avoid.contains(&name.as_str()?.to_owned()))
        };
        let defined = |steps: &[Exchange]| steps.iter().filter(|step| name(step) == Some(true)).count() < 2;
        let openings = self.protocol.extension.openings.iter();
        let ways: Vec<&String> = openings.filter(|(_, steps)| defined(steps)).map(|(way, _)| way).collect();
        // A connection that is its own session begins anew in the first way only.
        let way = match self.protocol.extension.session.join {
            Join::Connection => None,
            _ => rng.pick(&ways).map(|way| way.as_str()),
        };
        let cut = if rng.chance(70) { "drop" } else { "close" };
        let mut steps = vec![json!({ cut: client })];
        steps.extend(opening(&self.protocol, client, None, way));
        Input {
            client: client.to_owned(),
            action: Action::Steps(steps),
            command: "reconnect".to_owned(),
            mutation: format!("{cut}-{}", way.unwrap_or("anew")),
            obligation: Obligation::Survive,
        }
    }
}

/// A value without templates.
fn plain(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains("{{") => json!("x1"),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, plain(value))).collect(),
        other => other,
    }
}
