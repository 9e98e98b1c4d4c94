//! From a seed and a number to a program.

pub mod frames;
pub mod from_schema;
pub mod mutate;
pub mod rng;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fuzz::input::{Action, Input, Obligation, literal};
use crate::fuzz::model_scripts;
use crate::fuzz::obligation::obligation_of;
use crate::fuzz::program::{ALICE, BOB, Program, opening};
use crate::protocol::extension::{Exchange, Join};
use crate::protocol::{Message, Protocol};
use crate::trace::Direction;
use rng::SeededRng;

/// Inputs of one volley; of those that are refused, which are sent back to back, there may be more.
const VOLLEY: usize = 16;
/// Refused inputs of one volley.
const SALVO: usize = 256;
/// Longest program that is grown.
const LONGEST: usize = 24;

/// Makes programs.
#[derive(Debug)]
pub struct Generator {
    protocol: Arc<Protocol>,
    /// Indices of the commands.
    commands: Vec<usize>,
    /// The states that can be entered; `None` is the one after the opening.
    states: Vec<Option<String>>,
    /// Types that clients may not send, or that nobody knows.
    types: Vec<String>,
    /// The name and script names of turns.
    scripts: Vec<String>,
}

impl Generator {
    /// A generator for the states in `states`.
    pub fn new(protocol: &Arc<Protocol>, states: Vec<Option<String>>) -> Self {
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
            states,
            types,
        }
    }

    /// The commands' names.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(|index| self.protocol.messages[*index].name.as_str())
    }

    /// Program number `index` of a campaign. `skip` names (command, mutation) pairs of known findings, which would hide
    /// others.
    pub fn program(
        &self,
        seed: u64,
        index: u64,
        corpus: &[Program],
        skip: &dyn Fn(&Input) -> bool,
    ) -> Program {
        let mut rng = SeededRng::new(seed, index);
        let kind = rng.below(20);
        let mut program = match kind {
            0..=6 => self.volley(&mut rng, true),
            7..=8 => self.volley(&mut rng, false),
            9..=11 => self.frames(&mut rng),
            _ => self.sequence(&mut rng, corpus),
        };
        program.inputs.retain(|input| !skip(input));
        // Frames that are no good end their connection: it is others that show what they have done.
        program.fresh = rng.chance(if (9..=11).contains(&kind) { 70 } else { 35 });
        program.witness = rng.chance(35);
        if program.witness && rng.chance(50) {
            let waiting = self.protocol.extension.fuzzing.states.iter();
            let waiting: Vec<&String> = waiting
                .filter(|(name, state)| {
                    !state.leave.is_empty() && self.states.contains(&Some((*name).clone()))
                })
                .map(|(name, _)| name)
                .collect();
            program.witness_state = rng.pick(&waiting).map(|name| (*name).clone());
        }
        program
    }

    fn empty(&self, rng: &mut SeededRng) -> Program {
        let state = if rng.chance(40) { None } else { rng.pick(&self.states).cloned().flatten() };
        Program {
            state,
            inputs: Vec::new(),
            own: true,
            fresh: false,
            witness: false,
            witness_state: None,
            repeat: None,
        }
    }

    /// Spoilt messages of one client, back to back: those that must be refused, or those that need not.
    fn volley(&self, rng: &mut SeededRng, refused: bool) -> Program {
        let mut program = self.empty(rng);
        let most = if refused && rng.chance(50) { SALVO } else { VOLLEY };
        let wanted = 1 + rng.below(most);
        for _ in 0..wanted * 4 {
            if program.inputs.len() >= wanted {
                break;
            }
            let input = self.spoilt(ALICE, rng);
            if matches!(input.obligation, Obligation::Refuse { .. }) == refused {
                program.inputs.push(input);
            }
        }
        program
    }

    /// Frames below the messages, some between commands.
    fn frames(&self, rng: &mut SeededRng) -> Program {
        let mut program = self.empty(rng);
        for _ in 0..1 + rng.below(4) {
            program.inputs.push(self.framed(ALICE, rng));
            if rng.chance(25) {
                program.inputs.push(self.valid(ALICE, rng));
            }
        }
        program.own = rng.chance(50);
        program
    }

    /// A command in unusual frames, or frames that RFC 6455 forbids.
    fn framed(&self, client: &str, rng: &mut SeededRng) -> Input {
        let Some(message) = self.command(rng) else { return self.turn(client, rng) };
        let body = self.body(message, rng);
        let kind = rng.pick(frames::KINDS).copied().unwrap_or_default();
        frames::input(client, kind, &body, &mut |bound| rng.below(bound))
    }

    /// Commands in whatever order: from a place that a program before has reached, or from the beginning.
    fn sequence(&self, rng: &mut SeededRng, corpus: &[Program]) -> Program {
        let grown = if rng.chance(75) { rng.pick(corpus) } else { None };
        let grown =
            grown.filter(|program| !program.inputs.iter().any(|input| mutate::is_tolerable(&input.mutation)));
        let start = |program: &Program| Program {
            state: program.state.clone(),
            inputs: program.inputs.iter().take(LONGEST).cloned().collect(),
            witness_state: program.witness_state.clone(),
            ..*program
        };
        let mut program = grown.map_or_else(|| self.empty(rng), start);
        let (more, two) = (1 + rng.below(6), rng.chance(35));
        for _ in 0..more {
            let client = if two && rng.chance(45) { BOB } else { ALICE };
            match rng.below(20) {
                0..=9 => program.inputs.push(self.valid(client, rng)),
                10..=13 => program.inputs.push(self.turn(client, rng)),
                16 => program.inputs.push(self.framed(client, rng)),
                14..=15 => {
                    // What may be read in two ways stands in volleys only: no monitor is judged there.
                    let spoilt = self.spoilt(client, rng);
                    program
                        .inputs
                        .extend(Some(spoilt).filter(|input| !mutate::is_tolerable(&input.mutation)));
                }
                17 => {
                    // A command that comes twice.
                    let last = program.inputs.last().cloned();
                    program.inputs.extend(
                        last.filter(|input| matches!(input.action, Action::Send(_) | Action::Text(_))),
                    );
                }
                18 => program.inputs.push(self.race(rng)),
                _ => program.inputs.push(self.reconnect(client, rng)),
            }
            if rng.chance(60) {
                program.inputs.push(Input::pause(client, &self.protocol.extension.fuzzing.survives));
            }
        }
        program
    }

    fn command(&self, rng: &mut SeededRng) -> Option<&Message> {
        rng.pick(&self.commands).map(|index| &self.protocol.messages[*index])
    }

    /// A valid message of a command, as far as frameproof can tell, with templates for ids.
    fn body(&self, message: &Message, rng: &mut SeededRng) -> Value {
        let example = rng.pick(&message.examples).cloned().unwrap_or(json!({}));
        let mut body = match rng.chance(50) {
            true => example,
            false => {
                let made = from_schema::generate(message.payload(), message.payload(), rng);
                if message.violations(&made).is_empty() { made } else { example }
            }
        };
        self.fill(&mut body, &message.name, rng);
        body
    }

    /// Puts ids in: those that the server told, and now and then one that nobody did.
    fn fill(&self, body: &mut Value, command: &str, rng: &mut SeededRng) {
        let fuzzing = &self.protocol.extension.fuzzing;
        for at in &fuzzing.fresh {
            if let Some(place) = body.pointer_mut(at.as_str()).filter(|place| !place.is_null()) {
                *place = json!("{{uuid}}");
            }
        }
        for (name, rule) in &fuzzing.ids {
            let places = rule.on.iter().filter(|place| place.on.as_slice().iter().any(|one| one == command));
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

    fn valid(&self, client: &str, rng: &mut SeededRng) -> Input {
        let Some(message) = self.command(rng) else { return self.turn(client, rng) };
        if model_scripts::command(&self.protocol) == Some(message.name.as_str()) && rng.chance(70) {
            return self.turn(client, rng);
        }
        let body = self.body(message, rng);
        Input {
            client: client.to_owned(),
            action: Action::Send(body),
            command: message.name.clone(),
            mutation: "valid".to_owned(),
            obligation: Obligation::Survive,
        }
    }

    fn turn(&self, client: &str, rng: &mut SeededRng) -> Input {
        let script = rng.pick(&self.scripts).cloned().unwrap_or_default();
        let body = model_scripts::start(&self.protocol, client, &format!("{{{{cue.{script}}}}}"));
        Input {
            client: client.to_owned(),
            action: Action::Send(body),
            command: model_scripts::command(&self.protocol).unwrap_or("turn").to_owned(),
            mutation: script,
            obligation: Obligation::Survive,
        }
    }

    /// A message that is not as it should be.
    fn spoilt(&self, client: &str, rng: &mut SeededRng) -> Input {
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
        // Replies are told apart by ids: one that comes twice, or that is none, makes them anyone's guess.
        if let Some(replies) = &self.protocol.extension.replies
            && let Ok(body) = serde_json::from_str::<Value>(&text)
            && replies.id.get(&body).is_some_and(|id| *id != json!("{{uuid}}"))
        {
            return self.valid(client, rng);
        }
        let owed = if mutate::is_tolerable(how) {
            Obligation::Survive
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
    fn race(&self, rng: &mut SeededRng) -> Input {
        let (one, other) = (self.valid(ALICE, rng), self.valid(BOB, rng));
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
    fn reconnect(&self, client: &str, rng: &mut SeededRng) -> Input {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    fn generator(name: &str) -> Generator {
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a protocol");
        let states = protocol.extension.fuzzing.states.keys().cloned().map(Some);
        Generator::new(&protocol, std::iter::once(None).chain(states).collect())
    }

    #[test]
    fn the_same_number_is_the_same_program() {
        for name in Protocol::embedded_names() {
            let (one, other) = (generator(name), generator(name));
            let program = |made: &Generator, index| made.program(9, index, &[], &|_| false);
            for index in 0..50 {
                assert_eq!(program(&one, index), program(&other, index), "{name} {index}");
            }
            assert!((0..20).any(|index| program(&one, index) != program(&one, index + 1)));
        }
    }

    #[test]
    fn a_lost_connection_is_made_again_in_ways_that_are_defined() {
        for name in Protocol::embedded_names() {
            let generator = generator(name);
            let avoid = &generator.protocol.extension.fuzzing.avoid;
            for index in 0..60 {
                let input = generator.reconnect(ALICE, &mut SeededRng::new(2, index));
                let Action::Steps(steps) = &input.action else { panic!("steps") };
                let sent = steps.iter().filter_map(|step| step.get("opening")?.as_str());
                for way in sent {
                    let told = &generator.protocol.extension.openings[way];
                    let avoided = told.iter().filter(|step| {
                        step.send.as_ref().is_some_and(|sent| avoid.iter().any(|name| sent["type"] == **name))
                    });
                    assert!(avoided.count() < 2, "{name}: {way}");
                }
            }
        }
    }

    #[test]
    fn every_program_is_a_scenario_that_the_loader_takes() {
        for name in Protocol::embedded_names() {
            let generator = generator(name);
            let protocol = &generator.protocol;
            let (mut refused, mut kinds) = (0, std::collections::BTreeSet::new());
            for index in 0..60 {
                let program = generator.program(4, index, &[], &|_| false);
                refused += usize::from(program.all_refused());
                kinds.extend(program.inputs.iter().map(|input| input.mutation.clone()));
                let case = program.render(protocol, "case", "A case", &[]).case;
                let text = crate::scenario::write::file(&[], &[case]);
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("case.yaml");
                std::fs::write(&path, &text).expect("written");
                if let Err(errors) = crate::scenario::load(&path, protocol) {
                    panic!("{name} {index}: {errors}\n{text}");
                }
            }
            assert!(refused > 3, "{name}: {refused}");
            assert!(kinds.len() > 15, "{name}: {kinds:?}");
        }
    }
}
