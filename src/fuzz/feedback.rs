//! Feedback: which inputs had a new answer, and how often each command was tried in each state.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use serde_json::Value;

use super::program::{BYSTANDER, OPENED, Program};
use super::render::Rendered;
use super::step_writer::Part;
use crate::protocol::Protocol;
use crate::run::testbed::CaseRun;
use crate::trace::{Direction, Event, Payload};

/// Answers of one input that make its signature.
const ANSWERS: usize = 3;
/// Programs kept, and their size in all; the oldest are dropped first.
const CORPUS: usize = 512;
const CORPUS_BYTES: usize = 8 << 20;
/// Answers that are known. What a server says is without end: behind so many, nothing is new.
const SEEN: usize = 1 << 18;

/// How often each command was tried in each state: command, then state.
pub type Coverage = BTreeMap<String, BTreeMap<String, u64>>;

/// What is known of the behaviour of the target.
pub struct Feedback {
    protocol: Arc<Protocol>,
    /// Messages that answer the barrier, which say nothing about an input.
    barrier: BTreeSet<String>,
    /// Digests of state, command, mutation and answers.
    seen: HashSet<u64>,
    digest: RandomState,
    /// The sizes of the programs of the corpus.
    sizes: VecDeque<usize>,
    /// The programs that had a new answer.
    pub corpus: Vec<Program>,
    /// States and commands.
    pub coverage: Coverage,
}

impl Feedback {
    /// Nothing is known yet.
    pub fn new(protocol: &Arc<Protocol>) -> Self {
        let barrier = protocol.extension.barrier_query().iter().filter_map(|step| step.expect.as_ref());
        Self {
            barrier: barrier.flat_map(|names| names.as_slice().to_vec()).collect(),
            protocol: Arc::clone(protocol),
            seen: HashSet::new(),
            digest: RandomState::new(),
            sizes: VecDeque::new(),
            corpus: Vec::new(),
            coverage: Coverage::new(),
        }
    }

    /// Learns from what came of a program. The part of it that led to something new joins the corpus. Returns that
    /// part, if there is one.
    pub fn learn(&mut self, program: &Program, rendered: &Rendered, outcome: &CaseRun) -> Option<Program> {
        // Both are in the order in which they came.
        let mut marks = outcome.marks.as_slice();
        let start = |place: &String| -> Option<usize> {
            let at = marks.iter().position(|(pointer, _)| is_below(pointer, place))?;
            marks = &marks[at..];
            Some(marks[0].1.min(outcome.trace.len()))
        };
        let starts: Vec<Option<usize>> = rendered.places.iter().map(start).collect();
        let end = self.end_of_inputs(rendered, outcome);
        let mut newest = None;
        let mut phase = OPENED.to_owned();
        let mut at = 0;
        for (index, input) in program.inputs.iter().enumerate() {
            let Some(start) = starts.get(index).copied().flatten() else { break };
            self.follow(&outcome.trace[at..start], &mut phase);
            at = start;
            let stop = starts.get(index + 1).copied().flatten().unwrap_or(end).max(start);
            let answers = self.answers(&outcome.trace[start..stop], &input.client);
            *self.coverage.entry(input.command.clone()).or_default().entry(phase.clone()).or_default() += 1;
            // What two clients do at once ends as it ends: it would make the campaign depend on chance.
            if input.mutation == "race" || input.command == "wait" {
                continue;
            }
            let key = self.digest.hash_one((&phase, &input.command, &input.mutation, answers));
            if self.seen.len() < SEEN && self.seen.insert(key) {
                newest = Some(index);
            }
        }
        let mut part = program.clone();
        part.inputs.truncate(newest? + 1);
        (part.bystander, part.fresh_connection_after, part.bystander_state) = (false, false, None);
        if !self.corpus.contains(&part) {
            self.sizes.push_back(part.size());
            self.corpus.push(part.clone());
        }
        while self.corpus.len() > CORPUS
            || (self.corpus.len() > 1 && self.sizes.iter().sum::<usize>() > CORPUS_BYTES)
        {
            self.corpus.remove(0);
            self.sizes.pop_front();
        }
        Some(part)
    }

    /// Where in the trace the inputs are over.
    fn end_of_inputs(&self, rendered: &Rendered, outcome: &CaseRun) -> usize {
        let last = rendered.parts.iter().rposition(|part| *part == Part::Inputs);
        let after = last.map(|index| index + 1).filter(|index| *index < rendered.parts.len());
        let place = after.map(|index| format!("/steps/{index}"));
        place.and_then(|place| start_of(outcome, &place)).unwrap_or(outcome.trace.len())
    }

    fn follow(&self, events: &[Event], phase: &mut String) {
        for event in events.iter().filter(|event| &*event.client != BYSTANDER) {
            for (message, body) in self.messages(event) {
                let mut phases = self.protocol.roles().phases.iter();
                if let Some((name, _)) = phases.find(|(_, on)| on.matches(message, event.dir, &body)) {
                    phase.clone_from(name);
                }
            }
        }
    }

    /// What is in a frame: one message, or those of a batch.
    fn messages(&self, event: &Event) -> Vec<(Option<usize>, Value)> {
        let Payload::Text(text) = &event.payload else { return Vec::new() };
        let bodies = match crate::frame::parse_within(text) {
            Ok(Value::Array(members)) if self.protocol.may_batch(event.dir) => members,
            Ok(body) => vec![body],
            Err(_) => return Vec::new(),
        };
        let of = |body: Value| {
            // Which request a reply answers is not looked up: a result by another name is a phase of its own.
            let message = self.protocol.message_of(&body, event.dir).or_else(|| {
                let reply = self.protocol.is_reply(&body);
                reply.then(|| self.protocol.reply_of(&body, event.dir, None)).flatten()
            });
            (message, body)
        };
        bodies.into_iter().map(of).collect()
    }

    /// The first answers to an input, as one text: types, error codes, close codes.
    fn answers(&self, events: &[Event], client: &str) -> String {
        let mut found = Vec::new();
        for event in events.iter().filter(|event| event.dir == Direction::Recv && &*event.client == client) {
            match &event.payload {
                Payload::Close { code, .. } => found.push(format!("close {}", code.unwrap_or(0))),
                Payload::End(end) => found.push(format!("{end:?}")),
                _ => found.extend(
                    self.messages(event)
                        .iter()
                        .filter_map(|(message, body)| self.answer(*message, body, event.dir)),
                ),
            }
            found.dedup();
            if found.len() >= ANSWERS {
                break;
            }
        }
        found.join(", ")
    }

    /// What an answer says: its type, and the code of an error. Nothing of one that says nothing about the input.
    fn answer(&self, message: Option<usize>, body: &Value, dir: Direction) -> Option<String> {
        let name = self.protocol.type_of(body).unwrap_or("reply").to_owned();
        if self.protocol.extension.ambient.contains(&name) || self.barrier.contains(&name) {
            return None;
        }
        let errors = self.protocol.roles().errors.as_ref();
        let error = errors.filter(|(on, _)| on.matches(message, dir, body));
        let code = error.and_then(|(_, at)| at.as_ref()?.get(body));
        Some(code.map_or(name.clone(), |code| format!("{name} {code}")))
    }
}

/// Where in the trace of a case the step at a place began, if it did.
pub(super) fn start_of(outcome: &CaseRun, place: &str) -> Option<usize> {
    let mut marks = outcome.marks.iter();
    marks.find(|(pointer, _)| is_below(pointer, place)).map(|(_, at)| (*at).min(outcome.trace.len()))
}

fn is_below(pointer: &str, place: &str) -> bool {
    pointer.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
}
