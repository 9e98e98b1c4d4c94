//! Making a finding small: fewer inputs first, then smaller ones.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::executor::{Execution, Executor};
use super::fingerprint::Fingerprint;
use super::generate::{frames, mutate};
use super::input::{Action, Input, Obligation};
use super::obligation::obligation_of;
use super::program::Program;
use crate::protocol::Protocol;

/// Most replays of one finding.
const MOST: usize = 400;
/// Longest time for one finding.
const LONGEST: Duration = Duration::from_secs(20);
/// Longest time where every candidate launches a server.
const LAUNCHED: Duration = Duration::from_secs(60);
/// Inputs that are few enough to be tried one by one.
const FEW: usize = 12;
/// Most inputs that are tried alone.
const KINDS: usize = 64;
/// Replays that must show the finding, too, before a smaller program is taken.
const AGAIN: usize = 2;
/// Candidates tried side by side.
const JOBS: usize = 8;

/// How long an answer may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// To a program that is tried.
    pub first: Duration,
    /// To one that has shown the finding, when it is tried again.
    pub again: Duration,
}

/// Shrinks what a run shows: it is replaced by the run of a smaller program whenever one shows it, too, and `replays` counts the
/// cases run. Given up in the middle, what is there is as good as any, but larger. `until`: when it is over at the latest.
pub async fn shrink(
    executor: &Executor,
    (best, replays): (&mut Execution, &mut usize),
    wanted: &Fingerprint,
    seed: u64,
    patience: Patience,
    until: Option<Instant>,
) {
    let own = Instant::now() + if executor.target.is_launched() { LAUNCHED } else { LONGEST };
    let most = *replays + MOST;
    let until = until.map_or(own, |until| until.min(own));
    let (tried, digest) = (HashSet::new(), RandomState::new());
    let mut work = Work { executor, best, wanted, seed, patience, replays, most, until, tried, digest };
    // One input alone is what most findings take: of many, one of each kind first, then halves.
    if work.best.program.inputs.len() > FEW {
        let mut kinds = HashSet::new();
        let new = |input: &&Input| kinds.insert((input.command.clone(), input.mutation.clone()));
        let whole = work.best.program.clone();
        if !work.try_all(alone(&whole, new)).await {
            work.fewer_inputs(FEW).await;
        }
    }
    let whole = work.best.program.clone();
    work.try_all(alone(&whole, |_| true)).await;
    loop {
        let before = work.best.program.size();
        let circumstances = circumstances(&work.best.program);
        work.try_all(circumstances.into_iter()).await;
        work.fewer_inputs(1).await;
        work.smaller_inputs().await;
        if work.best.program.size() >= before || work.is_over() {
            break;
        }
    }
    executor.stop_spares().await;
}

/// Programs of one input each.
fn alone(program: &Program, which: impl FnMut(&&Input) -> bool) -> impl Iterator<Item = Program> {
    let alone = |input: &Input| Program { inputs: vec![input.clone()], ..program.bare() };
    program.inputs.iter().filter(which).map(alone).take(KINDS)
}

/// The same inputs in simpler circumstances.
fn circumstances(program: &Program) -> Vec<Program> {
    let with = |change: &dyn Fn(&mut Program)| {
        let mut program = program.clone();
        change(&mut program);
        program
    };
    vec![
        Program { state: None, ..program.bare() },
        program.bare(),
        with(&|program| program.state = None),
        with(&|program| (program.bystander, program.bystander_state) = (false, None)),
        with(&|program| program.bystander_state = None),
        with(&|program| program.clean_turn_after = false),
        with(&|program| program.fresh_connection_after = false),
    ]
}

struct Work<'w> {
    executor: &'w Executor,
    best: &'w mut Execution,
    wanted: &'w Fingerprint,
    seed: u64,
    patience: Patience,
    replays: &'w mut usize,
    most: usize,
    until: Instant,
    /// Digests of what was tried.
    tried: HashSet<u64>,
    digest: RandomState,
}

impl Work<'_> {
    fn is_over(&self) -> bool {
        *self.replays >= self.most || Instant::now() > self.until
    }

    /// Tries candidates, a batch at a time; takes the first that still shows the finding. `true`: there was one. A candidate is made
    /// when it is tried: there may be as many as a program has places, each nearly as large as the program.
    async fn try_all(&mut self, candidates: impl Iterator<Item = Program>) -> bool {
        let now = self.best.program.size();
        let mut rest = candidates.filter(|candidate| candidate.size() < now);
        loop {
            let fresh =
                rest.by_ref().filter(|one| self.tried.insert(self.digest.hash_one(json!(one).to_string())));
            let batch: Vec<Program> = fresh.take(JOBS).collect();
            if batch.is_empty() || self.is_over() {
                return false;
            }
            *self.replays += batch.len();
            let results = self.executor.try_candidates(batch, self.seed, self.patience.first, JOBS).await;
            for found in results.into_iter().flatten().filter(|execution| execution.reproduces(self.wanted)) {
                if self.is_steady(&found.program).await {
                    *self.best = found;
                    return true;
                }
            }
        }
    }

    /// Whether a program that has shown the finding once does so again: a failure by chance is no smaller reproducer.
    async fn is_steady(&mut self, program: &Program) -> bool {
        *self.replays += AGAIN;
        let deadline = self.patience.again;
        self.executor.reproductions(program, AGAIN, self.wanted, self.seed, deadline).await.len() == AGAIN
    }

    /// Leaves inputs out: halves, quarters, … and at last `least` at a time.
    async fn fewer_inputs(&mut self, least: usize) {
        let mut chunk = self.best.program.inputs.len().div_ceil(2);
        while chunk >= least && !self.is_over() {
            let program = self.best.program.clone();
            let count = program.inputs.len();
            let without = (0..count).step_by(chunk).map(|from| {
                let mut program = program.clone();
                program.inputs.drain(from..(from + chunk).min(count));
                program
            });
            if !self.try_all(without).await {
                if chunk == 1 {
                    return;
                }
                chunk = chunk.div_ceil(2);
            }
            chunk = chunk.min(self.best.program.inputs.len().max(1));
        }
    }

    async fn smaller_inputs(&mut self) {
        let mut index = 0;
        while index < self.best.program.inputs.len() && !self.is_over() {
            let protocol = self.executor.protocol().clone();
            let program = self.best.program.clone();
            let simpler = simpler(&protocol, &program.inputs[index]);
            let candidates = simpler.into_iter().map(|input| {
                let mut program = program.clone();
                program.inputs[index] = input;
                program
            });
            if !self.try_all(candidates).await {
                index += 1;
            }
        }
    }
}

/// Simpler inputs of the same kind, those that leave out most first.
pub fn simpler(protocol: &Protocol, input: &Input) -> Vec<Input> {
    let actions: Vec<Action> = match &input.action {
        Action::Send(value) => values(value).into_iter().filter(is_message).map(Action::Send).collect(),
        Action::Text(text) => texts(text).into_iter().map(Action::Text).collect(),
        Action::Steps(steps) => values(&json!(steps))
            .into_iter()
            .filter_map(|value| value.as_array().cloned().map(Action::Steps))
            .collect(),
    };
    let with = |action: Action| {
        let original = input;
        let input = Input { action, ..input.clone() };
        // A simpler text that is owed something else, or nothing, would be another finding.
        if let Some(text) = carried(&input) {
            let owed = obligation_of(protocol, &text);
            let stays = match &input.obligation {
                Obligation::Refuse { .. } | Obligation::MustClose { .. } => owed == input.obligation,
                Obligation::Survive | Obligation::MayClose { .. } => {
                    !matches!(owed, Obligation::MustClose { .. })
                }
            };
            if !stays {
                return None;
            }
        }
        // Frames that mean something else to the RFC would be owed something else.
        if let (Action::Steps(before), Action::Steps(steps)) = (&original.action, &input.action)
            && original.command == frames::COMMAND
            && (frames::meaning(before) != frames::meaning(steps)
                || original.final_drop() != input.final_drop())
        {
            return None;
        }
        Some(input)
    };
    input.apart().into_iter().chain(actions.into_iter().filter_map(with)).collect()
}

/// Whether a scenario can send it: a batch is of messages, and has one.
fn is_message(value: &Value) -> bool {
    value.as_array().is_none_or(|members| !members.is_empty() && members.iter().all(Value::is_object))
}

/// The text of the message that an input is, or that its frames carry.
fn carried(input: &Input) -> Option<String> {
    match &input.action {
        Action::Text(text) => Some(text.clone()),
        Action::Send(body) => Some(body.to_string()),
        Action::Steps(steps) => {
            let meaning = frames::meaning(steps).filter(|_| input.command == frames::COMMAND)?;
            let is_text = meaning.breach.is_none() && meaning.kinds.iter().any(|kind| kind == "text");
            let payload = || steps.iter().find_map(|step| step.pointer("/frame/payload"));
            is_text.then(|| payload().map_or_else(String::new, text_of))
        }
    }
}

/// A frame's payload as it is sent.
fn text_of(payload: &Value) -> String {
    payload.as_str().map_or_else(|| payload.to_string(), str::to_owned)
}

fn texts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // A number too great for a value would be changed by reading and writing it.
    if let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text)
        && value.to_string().as_str() == text
    {
        return values(&value).iter().map(Value::to_string).collect();
    }
    found.extend(cut(text));
    found
}

/// A text without a part of it: halves, quarters, eighths, and single characters of a short one.
fn cut(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let count = characters.len();
    let mut found = Vec::new();
    let mut chunk = count.div_ceil(2);
    while chunk >= 1 && found.len() < 96 {
        for from in (0..count).step_by(chunk) {
            let (before, after) = (&characters[..from], &characters[(from + chunk).min(count)..]);
            let rest: String = before.iter().chain(after).collect();
            // Half a template is none.
            if rest.matches("{{").count() == rest.matches("}}").count() || !rest.contains("{{") {
                found.push(rest);
            }
        }
        if chunk == 1 {
            break;
        }
        chunk = if chunk > 8 { chunk / 4 } else { chunk / 2 };
    }
    found
}

/// A value without one of its places, or with a simpler one there.
fn values(value: &Value) -> Vec<Value> {
    let places = mutate::places(value);
    let mut found = Vec::new();
    for at in &places {
        let mut without = value.clone();
        mutate::remove(&mut without, at);
        found.push(without);
    }
    for at in &places {
        let here = value.pointer(at).cloned().unwrap_or_default();
        for simple in simple(&here) {
            let mut with = value.clone();
            if let Some(place) = with.pointer_mut(at) {
                *place = simple;
            }
            found.push(with);
        }
    }
    found
}

fn simple(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) if text.contains("{{") => Vec::new(),
        Value::String(text) if text.chars().count() > 1 => {
            let half =
                |from: usize, to: usize| json!(text.chars().skip(from).take(to - from).collect::<String>());
            let count = text.chars().count();
            vec![json!("x"), half(0, count / 2), half(count / 2, count), half(0, count - 1)]
        }
        Value::Number(number) if number.to_string().len() > 1 => vec![json!(0), json!(1)],
        Value::Array(items) if !items.is_empty() => vec![json!([])],
        Value::Object(map) if !map.is_empty() => vec![json!({})],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_simpler() {
        let found = values(&json!({ "a": "long", "b": [1, 22] }));
        for expected in [
            json!({ "b": [1, 22] }),
            json!({ "a": "long", "b": [22] }),
            json!({ "a": "x", "b": [1, 22] }),
            json!({ "a": "long", "b": [1, 0] }),
        ] {
            assert!(found.contains(&expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn texts_get_shorter_and_keep_their_templates() {
        assert!(texts("{oops").contains(&"{oo".to_owned()));
        assert!(cut("a{{b}}c").iter().all(|text| !text.contains("{{") || text.contains("}}")));
        assert!(cut(r#"{"a":{"b":1}}"#).iter().any(|text| text.ends_with("}}")), "an object is no template");
        assert!(texts(r#"{"a":1}"#).contains(&"{}".to_owned()));
    }
}
