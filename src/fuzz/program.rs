//! A fuzzed case as it is made, stored and shrunk, and the scenario that it is when it is run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::input::{Input, Obligation};
use super::obligation::{framing_step, refusal_steps};
use crate::protocol::Protocol;
use crate::protocol::extension::Exchange;

/// The client whose messages are spoilt.
pub const ALICE: &str = "alice";
/// A second client, of the same session where there is such a thing.
pub const BOB: &str = "bob";
/// The client of another session that must not notice.
pub const WITNESS: &str = "witness";
/// How much memory a repeated program may take, in MiB.
pub const GROWTH: u32 = 12;
/// A client that comes afterwards.
const FRESH: &str = "fresh";

/// A fuzzed case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Program {
    /// The state in which it begins, as `fuzzing.states` calls it; none: after the opening.
    #[serde(default)]
    pub state: Option<String>,
    /// What is done.
    pub inputs: Vec<Input>,
    /// Afterwards a turn on the same connection.
    pub own: bool,
    /// Afterwards a turn on a fresh connection.
    pub fresh: bool,
    /// Another session runs alongside.
    pub witness: bool,
    /// The state in which the other session waits.
    #[serde(default)]
    pub witness_state: Option<String>,
    /// How often it is done; where it has inputs, the launched server's memory is held against [`GROWTH`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
}

/// What a part of a rendered case asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Connections are opened and the state is entered: nothing has been spoilt yet.
    Before,
    /// The inputs and the obligations for each.
    Inputs,
    /// How a connection ends after what RFC 6455 forbids.
    Framing,
    /// The connection lives on.
    Alive,
    /// The session is left and used by a clean turn.
    Own,
    /// A fresh connection works.
    Fresh,
    /// The other session is unharmed.
    Witness,
}

/// A case ready to run.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The case, as it stands in a scenario file.
    pub case: Value,
    /// For each input the JSON Pointer of its first step, below the case.
    pub places: Vec<String>,
    /// For each step what it asks.
    pub parts: Vec<Part>,
}

impl Program {
    /// Whether every input is one that the server must refuse.
    pub fn all_refused(&self) -> bool {
        !self.inputs.is_empty()
            && self.inputs.iter().all(|input| matches!(input.obligation, Obligation::Refuse { .. }))
    }

    /// Whether the state in which it begins passes by itself.
    fn passes(&self, protocol: &Protocol) -> bool {
        let states = &protocol.extension.fuzzing.states;
        self.state.as_ref().and_then(|state| states.get(state)).is_some_and(|state| state.passing)
    }

    /// The invariants that are not judged: those that hold for proper clients only; all of them where it is the
    /// reader's choice what an input says, or where RFC 6455 says that nothing more is read, for the monitors would not know
    /// what the server took it for.
    fn suspended<'p>(&self, protocol: &'p Protocol) -> Vec<&'p String> {
        let blind = self.inputs.iter().any(|input| {
            super::generate::mutate::is_tolerable(&input.mutation)
                || matches!(input.obligation, Obligation::MustClose { .. })
        });
        let extension = &protocol.extension;
        match blind {
            true => extension.invariants.keys().collect(),
            // A reading may have left one out.
            false => {
                let known = |name: &&String| extension.invariants.contains_key(name.as_str());
                extension.fuzzing.suspend.iter().filter(known).collect()
            }
        }
    }

    /// The scenario's case.
    pub fn render(&self, protocol: &Protocol, name: &str, title: &str, covers: &[String]) -> Rendered {
        let mut writer = Writer {
            protocol,
            steps: Vec::new(),
            parts: Vec::new(),
            part: Part::Before,
            gone: BTreeSet::new(),
        };
        if self.witness {
            writer.open(WITNESS, Some("other"), None);
            writer.turn(WITNESS, "{{secret}} {{cue.clean}}", &[]);
            writer.enter(WITNESS, self.witness_state.as_deref());
        }
        writer.open(ALICE, None, None);
        writer.enter(ALICE, self.state.as_deref());
        let bob = self.inputs.iter().any(|input| input.client == BOB);
        if bob {
            writer.open(BOB, None, None);
        }
        writer.part = Part::Inputs;
        let compared = !self.passes(protocol);
        let places = writer.inputs(&self.inputs, self.all_refused(), compared, self.own);
        self.afterwards(&mut writer, bob);
        let mut case = json!({ "name": name, "title": title });
        let turn = self.state.as_ref().and_then(|state| protocol.extension.fuzzing.states.get(state));
        if let Some(turn) = turn.filter(|situation| !situation.turn.is_empty()) {
            case["turn"] = json!(turn.turn);
        }
        let mut turns = super::model_scripts::all(protocol);
        let waiting =
            self.witness_state.as_ref().and_then(|state| protocol.extension.fuzzing.states.get(state));
        if let Some(waiting) = waiting.filter(|situation| !situation.turn.is_empty()) {
            turns.insert(WITNESS.to_owned(), json!(waiting.turn));
        }
        let text = json!(writer.steps).to_string();
        turns.retain(|name, _| text.contains(&format!("{{{{cue.{name}}}}}")));
        case["turns"] = Value::Object(turns);
        if text.contains("{{secret}}") {
            case["vars"] = json!({ "secret": "the-secret-of-the-other-session" });
        }
        if !covers.is_empty() {
            case["covers"] = json!(covers);
        }
        let suspended = self.suspended(protocol);
        if !suspended.is_empty() {
            case["suspend"] = json!(suspended);
        }
        if let Some(times) = self.repeat {
            case["repeat"] = json!(times);
            if !self.inputs.is_empty() {
                case["max-growth"] = json!(GROWTH);
            }
        }
        case["settle"] = json!(false);
        case["steps"] = json!(writer.steps);
        Rendered { case, places, parts: writer.parts }
    }

    fn afterwards(&self, writer: &mut Writer<'_>, bob: bool) {
        let protocol = writer.protocol;
        let fuzzing = &protocol.extension.fuzzing;
        writer.part = Part::Alive;
        let connected = !writer.gone.contains(ALICE);
        if !self.all_refused() && connected {
            writer.alive(ALICE);
        }
        writer.part = Part::Own;
        if self.own && connected {
            if (self.all_refused() || self.inputs.is_empty()) && !self.passes(protocol) {
                writer.leave(ALICE, self.state.as_deref());
                writer.settle(ALICE);
                writer.turn(ALICE, "{{cue.clean}}", &[]);
            } else if !fuzzing.rest.is_empty() {
                writer.settle(ALICE);
                writer.rest(ALICE);
                writer.settle(ALICE);
                writer.turn(ALICE, "{{cue.clean}}", &[]);
            }
        }
        writer.part = Part::Fresh;
        if self.fresh {
            writer.open(FRESH, Some("later"), None);
            writer.turn(FRESH, "{{cue.clean}}", &[]);
        }
        writer.part = Part::Witness;
        if self.witness {
            let covers = if fuzzing.isolated.is_empty() { &fuzzing.survives } else { &fuzzing.isolated };
            writer.step(json!({ "alive": WITNESS, "covers": covers }));
            let covers = covers.clone();
            writer.leave_blaming(WITNESS, self.witness_state.as_deref(), &covers);
            writer.settle(WITNESS);
            writer.turn(WITNESS, "{{cue.clean}}", &covers);
            if !fuzzing.isolated.is_empty() {
                writer.step(json!({ "unseen": "{{secret}}", "as": ALICE, "covers": fuzzing.isolated }));
                if bob {
                    writer.step(json!({ "unseen": "{{secret}}", "as": BOB, "covers": fuzzing.isolated }));
                }
            }
        }
    }
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

/// An exchange as steps of one client: its variables are the client's own.
fn exchange(
    protocol: &Protocol,
    client: &str,
    exchange: &[Exchange],
    cue: &str,
    blame: &[String],
) -> Vec<Value> {
    let fuzzing = &protocol.extension.fuzzing;
    let situations = fuzzing.states.values().flat_map(|state| state.enter.iter().chain(&state.leave));
    let saved = fuzzing.prepare.iter().chain(situations).flat_map(|step| step.save.keys());
    let names: Vec<&String> = saved.collect();
    let own = |value: &Value| {
        let mut text = value.to_string();
        for name in &names {
            text = text.replace(&format!("{{{{{name}}}}}"), &format!("{{{{{name}_{client}}}}}"));
        }
        if !cue.is_empty() {
            text = text.replace("{{cue}}", cue);
        }
        serde_json::from_str(&text).unwrap_or(Value::Null)
    };
    let step = |step: &Exchange| {
        let mut out = Map::new();
        out.insert("as".into(), json!(client));
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                out.insert(key.into(), value);
            }
        };
        put("send", step.send.as_ref().map(own));
        put("expect", step.expect.as_ref().map(|names| json!(names)));
        put("with", step.with.as_ref().map(own));
        put("where", step.schema.as_ref().map(own));
        if step.expect.is_some() {
            let covers = if step.covers.is_empty() { blame } else { &step.covers };
            put("covers", (!covers.is_empty()).then(|| json!(covers)));
            let save: Map<String, Value> =
                step.save.iter().map(|(name, at)| (format!("{name}_{client}"), json!(at))).collect();
            put("save", (!save.is_empty()).then(|| Value::Object(save)));
        }
        Value::Object(out)
    };
    exchange.iter().map(step).collect()
}

struct Writer<'w> {
    protocol: &'w Protocol,
    steps: Vec<Value>,
    parts: Vec<Part>,
    part: Part,
    /// Clients that are without a connection, or may be.
    gone: BTreeSet<String>,
}

impl Writer<'_> {
    fn step(&mut self, step: Value) {
        let mut step = step;
        if let Some(map) = step.as_object_mut() {
            // Empty covers say nothing.
            map.retain(|key, value| key != "covers" || value.as_array().is_none_or(|ids| !ids.is_empty()));
        }
        self.steps.push(step);
        self.parts.push(self.part);
    }

    fn open(&mut self, client: &str, session: Option<&str>, way: Option<&str>) {
        for step in opening(self.protocol, client, session, way) {
            self.step(step);
        }
    }

    fn exchange(&mut self, client: &str, steps: &[Exchange], cue: &str, blame: &[String]) {
        for step in exchange(self.protocol, client, steps, cue, blame) {
            self.step(step);
        }
    }

    fn enter(&mut self, client: &str, state: Option<&str>) {
        let cue = if client == WITNESS { "{{cue.witness}}" } else { "{{cue}}" };
        if let Some(situation) = state.and_then(|state| self.protocol.extension.fuzzing.states.get(state)) {
            self.exchange(client, &situation.enter, cue, &[]);
            if let Some(way) = &situation.reopen {
                self.step(json!({ "drop": client }));
                self.open(client, None, Some(way));
            }
            self.settle(client);
        }
    }

    fn leave(&mut self, client: &str, state: Option<&str>) {
        self.leave_blaming(client, state, &[]);
    }

    fn leave_blaming(&mut self, client: &str, state: Option<&str>, blame: &[String]) {
        if let Some(situation) = state.and_then(|state| self.protocol.extension.fuzzing.states.get(state)) {
            self.exchange(client, &situation.leave, "", blame);
        }
    }

    /// Brings the session to rest. What the inputs have set off may go wrong meanwhile, and say so: that is not the answer.
    fn rest(&mut self, client: &str) {
        for mut step in exchange(self.protocol, client, &self.protocol.extension.fuzzing.rest, "", &[]) {
            if step.get("expect").is_some() {
                step["past-errors"] = json!(true);
            }
            self.step(step);
        }
    }

    /// Waits for what is under way; where only silence could tell, what follows waits for its own.
    fn settle(&mut self, client: &str) {
        self.step(json!({ "settle": client }));
    }

    fn turn(&mut self, client: &str, text: &str, blame: &[String]) {
        let start = super::model_scripts::start(self.protocol, client, text);
        self.step(json!({ "send": start, "as": client }));
        let covers = if blame.is_empty() { &self.protocol.extension.turn.covers } else { blame };
        self.step(json!({ "expect": "turn-end", "as": client, "covers": covers }));
    }

    /// Whether the server answers, whatever came before.
    fn alive(&mut self, client: &str) {
        let part = std::mem::replace(&mut self.part, Part::Alive);
        let covers = &self.protocol.extension.fuzzing.survives;
        self.step(json!({ "alive": client, "covers": covers }));
        self.part = part;
    }

    /// After an input that may end its connection: how it ends, and another connection if one is `needed`.
    fn end(&mut self, input: &Input, needed: bool) {
        let part = self.part;
        self.part = Part::Framing;
        framing_step(input, &self.protocol.extension.fuzzing.survives)
            .into_iter()
            .for_each(|step| self.step(step));
        self.part = part;
        if !input.may_end() {
            return;
        }
        if !needed {
            self.gone.insert(input.client.clone());
            return;
        }
        if !input.hangs_up() {
            self.step(json!({ "drop": input.client }));
        }
        self.open(&input.client, None, None);
    }

    /// The inputs; those that must be refused are sent back to back and held against the state together, where that is to be `compared`.
    fn inputs(&mut self, inputs: &[Input], all_refused: bool, compared: bool, own: bool) -> Vec<String> {
        let fuzzing = &self.protocol.extension.fuzzing;
        if !all_refused {
            let input = |(index, input): (usize, &Input)| {
                // What an input before has broken is not to be laid at this one's door.
                if input.may_close() && inputs[..index].iter().any(|before| before.involves(&input.client)) {
                    self.alive(&input.client);
                }
                let place = format!("/steps/{}", self.steps.len());
                input.steps().into_iter().for_each(|step| self.step(step));
                let needed = own || inputs[index + 1..].iter().any(|later| later.involves(&input.client));
                self.end(input, needed);
                place
            };
            return inputs.iter().enumerate().map(input).collect();
        }
        let keeps = compared && self.protocol.extension.state.is_some() && !fuzzing.unchanged.is_empty();
        let base = match keeps {
            true => format!("/steps/{}/unchanged/", self.steps.len()),
            false => format!("/steps/{}", ""),
        };
        let first = if keeps { 0 } else { self.steps.len() };
        let mut steps: Vec<Value> = Vec::new();
        let mut places = Vec::new();
        for input in inputs {
            places.push(format!("{base}{}", first + steps.len()));
            steps.extend(input.steps());
        }
        steps.extend(refusal_steps(inputs, &fuzzing.survives));
        if keeps {
            self.step(json!({ "unchanged": steps, "as": ALICE, "covers": fuzzing.unchanged }));
        } else {
            steps.into_iter().for_each(|step| self.step(step));
        }
        places
    }
}
