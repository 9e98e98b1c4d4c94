//! The steps of a rendered case, each with the part of the case that it is of.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::input::{Input, Obligation};
use super::obligation::{framing_step, refusal_steps};
use super::program::{ALICE, BYSTANDER};
use crate::protocol::Protocol;
use crate::protocol::extension::Exchange;
use crate::synthesis::exchanges::{exchange, opening, state_of};
use crate::synthesis::model_scripts;

/// What a part of a rendered case asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Connections are opened and the state is entered: nothing was mutated yet.
    Setup,
    /// The inputs and the obligations for each.
    Inputs,
    /// How a connection ends after what RFC 6455 forbids.
    Framing,
    /// The connection stays usable.
    Alive,
    /// The state is left, and a clean turn succeeds.
    CleanTurn,
    /// A fresh connection works.
    FreshConnection,
    /// The other session is unharmed.
    OtherSession,
}

/// Whether refused inputs are compared with the state before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// The state must be the same afterwards, where the protocol can tell.
    WithState,
    /// The state passes by itself.
    None,
}

/// Writes the steps of a case.
pub(super) struct StepWriter<'w> {
    pub protocol: &'w Protocol,
    steps: Vec<Value>,
    /// The part of each step.
    parts: Vec<Part>,
    /// The part of what is written next.
    pub part: Part,
    /// Clients that are without a connection, or may be.
    gone: BTreeSet<String>,
}

impl<'w> StepWriter<'w> {
    pub fn new(protocol: &'w Protocol) -> Self {
        Self { protocol, steps: Vec::new(), parts: Vec::new(), part: Part::Setup, gone: BTreeSet::new() }
    }

    /// The steps, and the part of each.
    pub fn finish(self) -> (Vec<Value>, Vec<Part>) {
        (self.steps, self.parts)
    }

    /// Whether a client may be without a connection.
    pub fn may_be_disconnected(&self, client: &str) -> bool {
        self.gone.contains(client)
    }

    pub fn step(&mut self, step: Value) {
        let mut step = step;
        if let Some(map) = step.as_object_mut() {
            // Empty covers say nothing.
            map.retain(|key, value| key != "covers" || value.as_array().is_none_or(|ids| !ids.is_empty()));
        }
        self.steps.push(step);
        self.parts.push(self.part);
    }

    pub fn open(&mut self, client: &str, session: Option<&str>, way: Option<&str>) {
        for step in opening(self.protocol, client, session, way) {
            self.step(step);
        }
    }

    fn exchange(&mut self, client: &str, steps: &[Exchange], cue: &str, blame: &[String]) {
        for step in exchange(self.protocol, client, steps, cue, blame) {
            self.step(step);
        }
    }

    pub fn enter(&mut self, client: &str, state: Option<&str>) {
        let cue = if client == BYSTANDER { "{{cue.witness}}" } else { "{{cue}}" };
        if let Some(state) = state_of(self.protocol, state) {
            self.exchange(client, &state.enter, cue, &[]);
            if let Some(way) = &state.reopen {
                self.step(json!({ "drop": client }));
                self.open(client, None, Some(way));
            }
            self.settle(client);
        }
    }

    /// Leaves a state; if that fails, the requirements in `blame` are broken.
    pub fn leave(&mut self, client: &str, state: Option<&str>, blame: &[String]) {
        if let Some(state) = state_of(self.protocol, state) {
            self.exchange(client, &state.leave, "", blame);
        }
    }

    /// Brings the session to rest. What the inputs have set off may go wrong meanwhile, and say so: that is not the answer.
    pub fn rest(&mut self, client: &str) {
        for mut step in exchange(self.protocol, client, &self.protocol.extension.fuzzing.rest, "", &[]) {
            if step.get("expect").is_some() {
                step["past-errors"] = json!(true);
            }
            self.step(step);
        }
    }

    /// Waits for what is under way; where only silence could tell, what follows waits for its own.
    pub fn settle(&mut self, client: &str) {
        self.step(json!({ "settle": client }));
    }

    pub fn turn(&mut self, client: &str, text: &str, blame: &[String]) {
        let start = model_scripts::start(self.protocol, client, text);
        self.step(json!({ "send": start, "as": client }));
        let covers = if blame.is_empty() { &self.protocol.extension.turn.covers } else { blame };
        self.step(json!({ "expect": "turn-end", "as": client, "covers": covers }));
    }

    /// Whether the server answers, whatever came before.
    pub fn alive(&mut self, client: &str) {
        let part = std::mem::replace(&mut self.part, Part::Alive);
        let covers = &self.protocol.extension.fuzzing.survives;
        self.step(json!({ "alive": client, "covers": covers }));
        self.part = part;
    }

    /// After an input that may end its connection: how it ends, and another connection if one is `needed`.
    fn end(&mut self, input: &Input, needed: Needed) {
        let part = self.part;
        // What the protocol refuses by a close is one of its refusals.
        let refuses = matches!(&input.obligation, Obligation::MustClose { covers, .. } if !covers.is_empty());
        self.part = if refuses { Part::Inputs } else { Part::Framing };
        framing_step(input, &self.protocol.extension.fuzzing.survives)
            .into_iter()
            .for_each(|step| self.step(step));
        self.part = part;
        if !input.may_end() {
            return;
        }
        if needed == Needed::NoMore {
            self.gone.insert(input.client.clone());
            return;
        }
        if !input.hangs_up() {
            self.step(json!({ "drop": input.client }));
        }
        self.open(&input.client, None, None);
    }

    /// The inputs, one after the other; returns the place of each. `after`: whether the clients need their connections afterwards.
    pub fn inputs(&mut self, inputs: &[Input], after: Needed) -> Vec<String> {
        let input = |(index, input): (usize, &Input)| {
            // What an input before has broken must not be blamed on this one.
            if input.may_close() && inputs[..index].iter().any(|before| before.involves(&input.client)) {
                self.alive(&input.client);
            }
            let place = format!("/steps/{}", self.steps.len());
            input.steps().into_iter().for_each(|step| self.step(step));
            let again = inputs[index + 1..].iter().any(|later| later.involves(&input.client));
            self.end(input, if again { Needed::Later } else { after });
            place
        };
        inputs.iter().enumerate().map(input).collect()
    }

    /// Inputs that must be refused, sent back to back; returns the place of each.
    pub fn refused_inputs(&mut self, inputs: &[Input], comparison: Comparison) -> Vec<String> {
        let fuzzing = &self.protocol.extension.fuzzing;
        let keeps_state = comparison == Comparison::WithState
            && self.protocol.extension.state.is_some()
            && !fuzzing.unchanged.is_empty();
        let (base, first) = if keeps_state {
            (format!("/steps/{}/unchanged/", self.steps.len()), 0)
        } else {
            ("/steps/".to_owned(), self.steps.len())
        };
        let mut steps: Vec<Value> = Vec::new();
        let mut places = Vec::new();
        for input in inputs {
            places.push(format!("{base}{}", first + steps.len()));
            steps.extend(input.steps());
        }
        steps.extend(refusal_steps(inputs, &fuzzing.survives));
        if keeps_state {
            self.step(json!({ "unchanged": steps, "as": ALICE, "covers": fuzzing.unchanged }));
        } else {
            steps.into_iter().for_each(|step| self.step(step));
        }
        places
    }
}

/// Whether a client needs its connection again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// For what comes later.
    Later,
    /// Nothing is done on it any more.
    NoMore,
}
