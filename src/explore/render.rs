//! The scenario that a walk is when it is run.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::model::{Model, Phase};
use super::scripts;
use super::table::{Ends, Loses, Table};
use super::walk::{ALICE, Act, Actor, ClosingChecks, Loss, Move, Walk};
use crate::protocol::Protocol;
use crate::protocol::extension::Exchange;
use crate::scenario::TURN_END;
use crate::synthesis::exchanges::{Speaker, opening, spoken};
use crate::synthesis::model_scripts;

/// A client that comes afterwards.
const FRESH: &str = "fresh";
/// What the other session says, and nobody else hears.
const SECRET: &str = "the-secret-of-the-other-session";
/// What a step of a rendered walk is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The first connection.
    Opening,
    /// The move of this number, from 0.
    Move(usize),
    /// What is asked afterwards.
    Closing,
}

/// A walk ready to run.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The case, as a scenario file has it.
    pub case: Value,
    /// For each step what it is of.
    pub origins: Vec<Origin>,
}

impl Walk {
    /// The scenario's case.
    pub fn render(&self, protocol: &Protocol, table: &Table, name: &str, title: &str) -> Rendered {
        let mut writer = Writer::new(protocol, table);
        writer.opening(ALICE, None, None);
        writer.settle(Actor::Alice);
        for (index, step) in self.moves.iter().enumerate() {
            writer.origin = Origin::Move(index);
            writer.step_of(step);
        }
        writer.origin = Origin::Closing;
        writer.closing(self.closing);
        let text = json!(writer.steps).to_string();
        let mut case = json!({ "name": name, "title": title });
        let mut turns = scripts::all(protocol);
        turns.retain(|name, _| text.contains(&format!("{{{{cue.{name}}}}}")));
        if !turns.is_empty() {
            case["turns"] = Value::Object(turns);
        }
        let needs = self.needs(protocol);
        if !needs.is_empty() {
            case["needs"] = json!(needs);
        }
        if text.contains("{{secret}}") {
            case["vars"] = json!({ "secret": SECRET });
        }
        case["steps"] = Value::Array(writer.steps);
        Rendered { case, origins: writer.origins }
    }
}

impl Walk {
    /// The capabilities that its turns need.
    fn needs(&self, protocol: &Protocol) -> BTreeSet<String> {
        let of = |step: &Move| match &step.act {
            Act::Scripted(name) => protocol.extension.explore.turns.get(name).map(|turn| turn.needs.clone()),
            _ => None,
        };
        self.moves.iter().filter_map(of).flatten().collect()
    }
}

struct Writer<'w> {
    protocol: &'w Protocol,
    table: &'w Table,
    model: Model<'w>,
    steps: Vec<Value>,
    origins: Vec<Origin>,
    origin: Origin,
}

impl<'w> Writer<'w> {
    fn new(protocol: &'w Protocol, table: &'w Table) -> Self {
        let model = Model::new(protocol, table);
        Self { protocol, table, model, steps: Vec::new(), origins: Vec::new(), origin: Origin::Opening }
    }

    fn step(&mut self, step: Value) {
        self.steps.push(step);
        self.origins.push(self.origin);
    }

    fn all(&mut self, steps: Vec<Value>) {
        steps.into_iter().for_each(|step| self.step(step));
    }

    fn opening(&mut self, client: &str, session: Option<&str>, way: Option<&str>) {
        self.all(opening(self.protocol, client, session, way));
    }

    /// Looks past what a client has received.
    fn settle(&mut self, actor: Actor) {
        self.step(json!({ "settle": actor.name() }));
    }

    /// A move, and what comes of it.
    fn step_of(&mut self, step: &Move) {
        let from = self.steps.len();
        self.act(step);
        // Whoever came in the middle of a state that passes by itself may have come behind its end.
        let sees_end = |other: &Actor| step.act != Act::Wait || self.model.has_seen(*other);
        let seeing: Vec<Actor> = self.model.others(step.by).into_iter().filter(sees_end).collect();
        self.model.apply(step);
        self.after(step, &seeing);
        if step.watched {
            self.wrap(from, Actor::Bystander.name(), &self.protocol.extension.fuzzing.isolated);
        }
    }

    /// Compares the state that a client sees before and after the steps from a place on.
    fn wrap(&mut self, from: usize, client: &str, covers: &[String]) {
        let steps = self.steps.split_off(from);
        self.origins.truncate(from);
        if !steps.is_empty() {
            self.step(json!({ "unchanged": steps, "as": client, "covers": covers }));
        }
    }

    fn act(&mut self, step: &Move) {
        let by = step.by;
        match &step.act {
            Act::Open => self.open(by),
            Act::Reopen(loss, way) => self.reopen(by, *loss, way.as_deref()),
            Act::Leave => self.step(json!({ "close": by.name() })),
            Act::Turn(script, text) => {
                let text = text.around(&format!("{{{{cue.{script}}}}}"));
                self.turn(by.name(), &text);
            }
            Act::Scripted(name) => {
                if let Some(turn) = self.protocol.extension.explore.turns.get(name) {
                    self.exchange(by, by, &turn.steps, &scripts::of_turn(name));
                }
            }
            Act::Enter(name) => self.enter(by, name),
            Act::Exit(way) => {
                if let Some((state, owner)) = self.model.situation(by) {
                    let way = way.as_ref().and_then(|way| state.ways.get(way));
                    self.exchange(by, owner, way.unwrap_or(&state.leave), "");
                }
            }
            Act::Wait => self.expect_end(by, &self.protocol.extension.turn.covers),
            Act::Query => self.query(by),
            Act::Message(name) => {
                if let Some(message) = self.protocol.extension.explore.messages.get(name) {
                    self.exchange(by, by, message, "");
                }
            }
        }
    }

    /// What the other clients of the session see of a turn that has ended, and that nothing of it is taken for a later one's.
    /// `seeing`: those who were there.
    fn after(&mut self, step: &Move, seeing: &[Actor]) {
        let ends_turn = match &step.act {
            Act::Turn(..) | Act::Wait => true,
            Act::Scripted(_) | Act::Exit(_) | Act::Enter(_) => *self.model.phase(step.by) == Phase::Rest,
            _ => false,
        };
        if ends_turn {
            let others = self.model.others(step.by);
            if let Some(shared) = &self.protocol.extension.explore.shared
                && self.has_end(step)
            {
                seeing.iter().for_each(|other| self.expect_end(*other, &shared.covers));
            }
            self.settle(step.by);
            others.into_iter().for_each(|other| self.settle(other));
        }
    }

    /// Whether the exchange of a move waits for the end of a turn.
    fn has_end(&self, step: &Move) -> bool {
        let extension = &self.protocol.extension;
        let waits = |steps: &[Exchange]| {
            let names = |step: &Exchange| {
                step.expect.as_ref().is_some_and(|names| names.as_slice().iter().any(|name| name == TURN_END))
            };
            steps.iter().any(names)
        };
        match &step.act {
            Act::Scripted(name) => extension.explore.turns.get(name).is_some_and(|turn| waits(&turn.steps)),
            Act::Enter(name) => extension.fuzzing.states.get(name).is_some_and(|state| waits(&state.enter)),
            _ => true,
        }
    }

    fn open(&mut self, by: Actor) {
        self.opening(by.name(), self.table.session_name(by), None);
        self.settle(by);
        if by == Actor::Bystander && self.table.is_isolated && *self.model.phase(by) == Phase::Rest {
            self.turn(by.name(), "{{secret}} {{cue.clean}}");
            self.settle(by);
        }
    }

    fn reopen(&mut self, by: Actor, loss: Loss, way: Option<&str>) {
        let from = self.steps.len();
        let verb = match loss {
            Loss::Cut => "drop",
            Loss::Closed => "close",
        };
        self.step(json!({ verb: by.name() }));
        self.opening(by.name(), None, way);
        self.settle(by);
        let extension = &self.protocol.extension;
        let passes = self.model.situation(by).is_some_and(|(state, _)| Table::ends(state) == Ends::ByItself);
        let keeps = &extension.explore.keeps;
        if self.table.has_state && self.table.loses == Loses::Nothing && !passes && !keeps.is_empty() {
            self.wrap(from, by.name(), keeps);
        }
    }

    fn enter(&mut self, by: Actor, name: &str) {
        let Some(state) = self.protocol.extension.fuzzing.states.get(name) else { return };
        self.exchange(by, by, &state.enter, &scripts::of_state(name));
        if let Some(way) = &state.reopen {
            self.step(json!({ "drop": by.name() }));
            self.opening(by.name(), None, Some(way));
        }
        if Table::ends(state) == Ends::ByLeaving {
            self.settle(by);
        }
    }

    fn query(&mut self, by: Actor) {
        if let Some(state) = &self.protocol.extension.state {
            self.exchange(by, by, &state.query, "");
        }
        if let Some(owner) = Some(self.model.situation(by).map_or(by, |(_, owner)| owner)) {
            self.exchange(by, owner, self.model.shown(by), "");
        }
    }

    /// The steps of an exchange. In a state that passes by itself nothing may be lost of what tells its end.
    fn exchange(&mut self, by: Actor, of: Actor, steps: &[Exchange], script: &str) {
        let cue = if script.is_empty() { String::new() } else { format!("{{{{cue.{script}}}}}") };
        let speaker = Speaker { by: by.name(), of: of.name() };
        let mut steps = spoken(self.protocol, speaker, steps, &cue, &[]);
        let passes = self.model.situation(by).is_some_and(|(state, _)| Table::ends(state) == Ends::ByItself);
        for step in steps.iter_mut().filter(|step| passes && step.get("expect").is_some()) {
            step["keep"] = json!(true);
        }
        self.all(steps);
    }

    fn turn(&mut self, client: &str, text: &str) {
        let start = model_scripts::start(self.protocol, client, text);
        self.step(json!({ "send": start, "as": client }));
        let covers = &self.protocol.extension.turn.covers;
        self.step(with_covers(json!({ "expect": TURN_END, "as": client }), covers));
    }

    fn expect_end(&mut self, actor: Actor, covers: &[String]) {
        self.step(with_covers(json!({ "expect": TURN_END, "as": actor.name() }), covers));
    }

    fn closing(&mut self, closing: ClosingChecks) {
        for step in self.model.leaving() {
            self.step_of(&step);
        }
        if closing == ClosingChecks::Brief {
            return;
        }
        let clean = Act::Turn(model_scripts::CLEAN.to_owned(), super::walk::Text::Plain);
        for by in Actor::ALL {
            for act in [Act::Query, clean.clone()] {
                let step = Move { by, act, watched: false };
                if self.model.is_legal(&step) {
                    self.step_of(&step);
                }
            }
        }
        // Where there is one session, and one client in it, nobody else can come.
        if !self.table.is_single || self.table.is_shared {
            let session = if self.table.is_single { None } else { Some("later") };
            self.opening(FRESH, session, None);
            self.turn(FRESH, "{{cue.clean}}");
        }
        self.unseen();
    }

    /// Nothing of the other session was shown to the others.
    fn unseen(&mut self) {
        if !json!(self.steps).to_string().contains("{{secret}}") {
            return;
        }
        let covers = self.protocol.extension.fuzzing.isolated.clone();
        for actor in [Actor::Alice, Actor::Bob]
            .into_iter()
            .filter(|actor| self.model.is_connected(*actor))
            .collect::<Vec<_>>()
        {
            self.step(json!({ "unseen": "{{secret}}", "as": actor.name(), "covers": covers }));
        }
    }
}

/// Empty covers say nothing.
fn with_covers(mut step: Value, covers: &[String]) -> Value {
    if let Some(map) = step.as_object_mut().filter(|_| !covers.is_empty()) {
        let map: &mut Map<String, Value> = map;
        map.insert("covers".to_owned(), json!(covers));
    }
    step
}
