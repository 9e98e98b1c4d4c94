//! What `doctor` finds, step by step; and how it tells that there is no server at all.

use std::time::Instant;

use crate::results::event::{FrameRecord, LogLine};
use crate::run::RunError;
use crate::run::Target;
use crate::target::LaunchError;
use crate::wire::ConnectError;

/// The first steps.
pub(crate) const STARTS: &str = "does it start?";
const READY: &str = "is it ready?";
pub(crate) const UPGRADES: &str = "upgrade?";
pub(crate) const APART: &str = "are sessions isolated?";
/// The last step: what it leaves pending disturbs no other, not even where all share one session.
pub(crate) const ASKS: &str = "is approval requested?";

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// As it should.
    Ok,
    /// Something is missing.
    Problem,
    /// It could not be tried, or says nothing.
    Unknown,
    /// Something is missing that the baseline knows.
    Known,
}

/// What was found in one step.
#[derive(Debug, Clone)]
pub struct StepFinding {
    /// The step, as a question.
    pub step: &'static str,
    /// How it went.
    pub state: StepState,
    /// What was found, in a sentence.
    pub text: String,
    /// What to do about it; empty: nothing.
    pub advice: String,
    /// What else is wrong that no step before has told.
    pub also: Vec<String>,
    /// The frames that show it.
    pub frames: Vec<FrameRecord>,
    /// What else shows it, such as the answer to the upgrade.
    pub notes: Vec<String>,
    /// What the server wrote.
    pub log: Vec<LogLine>,
}

impl StepFinding {
    pub(crate) fn new(step: &'static str, state: StepState, text: impl Into<String>, advice: &str) -> Self {
        let (text, advice) = (text.into(), advice.to_owned());
        Self {
            step,
            state,
            text,
            advice,
            also: Vec::new(),
            frames: Vec::new(),
            notes: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Whether no step comes behind this one.
    pub fn is_last(&self) -> bool {
        self.step == ASKS
    }
}

/// Tells why there is no server to walk through: in the step at which that shows, those before it good.
pub(crate) fn unreachable(
    error: RunError,
    target: &Target,
    clock: Instant,
    sink: &mut (dyn FnMut(&StepFinding) + Send),
) -> Result<bool, RunError> {
    let advice = error.advice(target);
    if error.is_misconfigured() || error.is_shortage() {
        return Err(error);
    }
    let (error, output) = match error {
        RunError::Launch(failure) => (failure.error, failure.output),
        RunError::Target(error) => (LaunchError::Connect(error), Vec::new()),
        other => return Err(other),
    };
    let step = match &error {
        LaunchError::NotReady { .. } => READY,
        LaunchError::Setup { .. } => "set-up calls?",
        LaunchError::Connect(_) | LaunchError::Fell(_) => UPGRADES,
        _ => STARTS,
    };
    if step != STARTS {
        let start = if step == READY { Start::Launched } else { Start::Ready };
        sink(&StepFinding::new(STARTS, StepState::Ok, started(target, start), ""));
    }
    let silent = output.is_empty() && (step != STARTS || matches!(error, LaunchError::Exited { .. }));
    let mut finding = StepFinding::new(step, StepState::Problem, error.to_string(), &advice);
    if let LaunchError::Connect(ConnectError::Http { status, body, .. }) = error {
        let status = crate::wire::named_status(status);
        finding.text = format!("the server answers the upgrade with HTTP {status}");
        finding.notes.push(format!("<- HTTP/1.1 {status}"));
        finding.notes.extend(body.lines().map(|line| format!("<- {line}")));
    }
    finding.log = LogLine::of(&output, clock);
    if silent && matches!(target, Target::Configured(spec) if spec.is_launched()) {
        finding.notes.push("it wrote no output".to_owned());
    }
    sink(&finding);
    Ok(false)
}

/// How far the start of a server came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Launched,
    Ready,
}

pub(crate) fn started(target: &Target, start: Start) -> String {
    match target {
        Target::Configured(spec) if spec.is_launched() => {
            let names: Vec<&str> = spec.processes.iter().map(|process| process.name.as_str()).collect();
            let how = if start == Start::Ready { "launched and ready" } else { "launched" };
            let surroundings = spec.surroundings().map(|text| format!("; {text}")).unwrap_or_default();
            format!("{how}: {}{surroundings}", names.join(", "))
        }
        Target::Reference { .. } => "the reference server was started".to_owned(),
        _ => "frameproof does not launch it: it is already running".to_owned(),
    }
}
