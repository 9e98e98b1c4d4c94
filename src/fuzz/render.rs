//! The scenario that a fuzzed case is when it is run.

use serde_json::{Map, Value, json};

use super::generate::mutate;
use super::input::Obligation;
use super::program::{ALICE, BOB, BYSTANDER, GROWTH, Program};
use super::step_writer::{Comparison, Needed, Part, StepWriter};
use crate::protocol::Protocol;
use crate::synthesis::exchanges::state_of;
use crate::synthesis::model_scripts;

/// A client that comes afterwards.
const FRESH: &str = "fresh";

/// A case ready to run.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The case, as a scenario file has it.
    pub case: Value,
    /// For each input the JSON Pointer of its first step, below the case.
    pub places: Vec<String>,
    /// For each step what it asks.
    pub parts: Vec<Part>,
}

impl Program {
    /// The invariants that are not judged: those that hold for proper clients only; all of them where it is the
    /// reader's choice what an input says, or where RFC 6455 says that nothing more is read, for the monitors would not know
    /// what the server took it for.
    fn suspended<'p>(&self, protocol: &'p Protocol) -> Vec<&'p String> {
        let unpredictable = self.inputs.iter().any(|input| {
            mutate::is_tolerable(&input.mutation) || matches!(input.obligation, Obligation::MustClose { .. })
        });
        let extension = &protocol.extension;
        // A reading may have left one out.
        let suspended = extension.fuzzing.suspend.iter();
        let (invariants, rules) = (&extension.invariants, &extension.client);
        if unpredictable {
            return invariants.keys().chain(suspended.filter(|name| rules.contains_key(*name))).collect();
        }
        suspended.filter(|name| invariants.contains_key(*name) || rules.contains_key(*name)).collect()
    }

    /// The scenario's case.
    pub fn render(&self, protocol: &Protocol, name: &str, title: &str, covers: &[String]) -> Rendered {
        let mut writer = StepWriter::new(protocol);
        self.before(&mut writer);
        writer.part = Part::Inputs;
        let comparison = if self.state_passes(protocol) { Comparison::None } else { Comparison::WithState };
        let places = if self.all_refused() {
            writer.refused_inputs(&self.inputs, comparison)
        } else {
            let after = if self.clean_turn_after { Needed::Later } else { Needed::NoMore };
            writer.inputs(&self.inputs, after)
        };
        self.afterwards(&mut writer);
        let (steps, parts) = writer.finish();
        let mut case = json!({ "name": name, "title": title });
        if let Some(state) = state_of(protocol, self.state.as_deref()).filter(|state| !state.turn.is_empty())
        {
            case["turn"] = json!(state.turn);
        }
        let text = json!(steps).to_string();
        case["turns"] = Value::Object(self.turns(protocol, &text));
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
        case["steps"] = json!(steps);
        Rendered { case, places, parts }
    }

    /// Whether the state in which it begins passes by itself.
    fn state_passes(&self, protocol: &Protocol) -> bool {
        state_of(protocol, self.state.as_deref()).is_some_and(|state| state.passing)
    }

    /// Whether a second client does something.
    fn has_bob(&self) -> bool {
        self.inputs.iter().any(|input| input.client == BOB)
    }

    /// The scripts of the model that the steps in `text` name.
    fn turns(&self, protocol: &Protocol, text: &str) -> Map<String, Value> {
        let mut turns = model_scripts::all(protocol);
        let waiting = state_of(protocol, self.bystander_state.as_deref());
        if let Some(waiting) = waiting.filter(|state| !state.turn.is_empty()) {
            turns.insert(BYSTANDER.to_owned(), json!(waiting.turn));
        }
        turns.retain(|name, _| text.contains(&format!("{{{{cue.{name}}}}}")));
        turns
    }

    /// Opens connections and enters states.
    fn before(&self, writer: &mut StepWriter<'_>) {
        if self.bystander {
            writer.open(BYSTANDER, Some("other"), None);
            writer.turn(BYSTANDER, "{{secret}} {{cue.clean}}", &[]);
            writer.enter(BYSTANDER, self.bystander_state.as_deref());
        }
        writer.open(ALICE, None, None);
        writer.enter(ALICE, self.state.as_deref());
        if self.has_bob() {
            writer.open(BOB, None, None);
        }
    }

    /// What is asked after the inputs.
    fn afterwards(&self, writer: &mut StepWriter<'_>) {
        writer.part = Part::Alive;
        let is_connected = !writer.may_be_disconnected(ALICE);
        if !self.all_refused() && is_connected {
            writer.alive(ALICE);
        }
        writer.part = Part::CleanTurn;
        if self.clean_turn_after && is_connected {
            self.clean_turn(writer);
        }
        writer.part = Part::FreshConnection;
        if self.fresh_connection_after {
            writer.open(FRESH, Some("later"), None);
            writer.turn(FRESH, "{{cue.clean}}", &[]);
        }
        writer.part = Part::OtherSession;
        if self.bystander {
            self.bystander_is_unharmed(writer);
        }
    }

    /// A clean turn on the same connection, if the session can be brought to rest.
    fn clean_turn(&self, writer: &mut StepWriter<'_>) {
        let protocol = writer.protocol;
        if (self.all_refused() || self.inputs.is_empty()) && !self.state_passes(protocol) {
            writer.leave(ALICE, self.state.as_deref(), &[]);
            writer.settle(ALICE);
            writer.turn(ALICE, "{{cue.clean}}", &[]);
        } else if !protocol.extension.fuzzing.rest.is_empty() {
            writer.settle(ALICE);
            writer.rest(ALICE);
            writer.settle(ALICE);
            writer.turn(ALICE, "{{cue.clean}}", &[]);
        }
    }

    /// The other session goes on, and nothing of it was shown to the others.
    fn bystander_is_unharmed(&self, writer: &mut StepWriter<'_>) {
        let fuzzing = &writer.protocol.extension.fuzzing;
        let covers = if fuzzing.isolated.is_empty() { &fuzzing.survives } else { &fuzzing.isolated };
        writer.step(json!({ "alive": BYSTANDER, "covers": covers }));
        writer.leave(BYSTANDER, self.bystander_state.as_deref(), covers);
        writer.settle(BYSTANDER);
        writer.turn(BYSTANDER, "{{cue.clean}}", covers);
        if !fuzzing.isolated.is_empty() {
            for client in [ALICE].into_iter().chain(self.has_bob().then_some(BOB)) {
                writer.step(json!({ "unseen": "{{secret}}", "as": client, "covers": fuzzing.isolated }));
            }
        }
    }
}
