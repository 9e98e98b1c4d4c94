//! Fingerprints: which failures may be of the same defect.

use super::crashes;
use super::generate::mutate::DEEP;
use super::input::Input;
use super::oracle::Oracle;
use super::program::{OPENED, Program};
use super::render::Rendered;
use super::step_writer::Part;
use super::text::without_values;
use crate::results::Check;
use crate::results::event::{Failure, Verdict};
use crate::run::testbed::{Single, death_of};
use crate::run::without_silence;

/// What makes two findings the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    /// The oracle that failed.
    pub oracle: Oracle,
    /// The requirements that it says are broken.
    pub requirements: Vec<String>,
    /// The state in which the case begins.
    pub state: String,
    /// The message without its values; unless it is about a frame, also the mutations of the inputs.
    pub signature: String,
}

/// What a failure is about, before shrinking has shown what it takes.
pub(super) type Subject = (Oracle, Vec<String>, String);

impl Fingerprint {
    /// Of the target itself, and of no requirement.
    fn of_target(signature: String) -> Self {
        let state = OPENED.to_owned();
        Self { oracle: Oracle::Target, requirements: Vec::new(), state, signature }
    }

    /// Of a server that crashed in this way.
    pub fn of_crash(how: &str) -> Self {
        Self::of_target(crashes::signature(how))
    }

    /// The signature without the mutations of the inputs.
    pub fn what(&self) -> &str {
        self.signature.rsplit_once(" [").map_or(&self.signature, |(what, _)| what)
    }

    /// What it is about. Of RFC 6455 many things can be broken in one way, and no requirement distinguishes them; nor does one
    /// distinguish crashes.
    pub(super) fn subject(&self) -> Subject {
        let signature = match self.oracle {
            Oracle::Framing | Oracle::Target => self.signature.clone(),
            _ => String::new(),
        };
        (self.oracle, self.requirements.clone(), signature)
    }

    /// Whether it may be of the same defect as another that is wanted, before shrinking has shown what it takes.
    pub fn is_same_defect(&self, wanted: &Self) -> bool {
        let shared = self.requirements.iter().any(|id| wanted.requirements.contains(id));
        // Without a requirement the message distinguishes defects.
        let nameless = self.requirements.is_empty() && wanted.requirements.is_empty();
        let alike = match wanted.oracle {
            Oracle::Target => crashes::is_of(self.what(), wanted.what()),
            _ => self.what() == wanted.what(),
        };
        self.oracle == wanted.oracle && (shared || nameless && alike)
    }
}

/// The fingerprints of everything that is wrong with a case, each with its failure; a target that is gone included.
pub fn fingerprints(
    program: &Program,
    rendered: &Rendered,
    outcome: &Single,
) -> Vec<(Fingerprint, Option<Failure>)> {
    let state = program.state_name().to_owned();
    let mut found = Vec::new();
    // Where the server crashed, the crash is the failure.
    let judged = outcome.report.failures.iter().enumerate().filter(|(_, one)| one.verdict != Verdict::Error);
    let judged = judged.filter(|(_, failure)| !echoes_deep_input(program, failure));
    for (index, failure) in judged {
        let at = outcome.failed_at.get(index).map_or("", String::as_str);
        let oracle = oracle_of(failure, at, rendered);
        let mut signature = signature(failure);
        // A wrong frame says itself what is wrong, whatever the inputs were; what fails before the first input was caused by none.
        if !oracle.is_about_a_frame() && oracle != Oracle::Setup {
            signature += &mutations(program);
        }
        let requirements = failure.requirements.clone();
        let print = Fingerprint { oracle, requirements, state: state.clone(), signature };
        found.push((print, Some(failure.clone())));
    }
    // A case without a server says nothing.
    if found.is_empty()
        && !outcome.trace.is_empty()
        && let Some(reason) = outcome.broke()
    {
        let signature = death_of(reason).map_or_else(|| without_values(reason), crashes::signature);
        found.push((Fingerprint { state, ..Fingerprint::of_target(signature) }, None));
    }
    found
}

/// What was sent deep may come back as deep: too deep for our parser, and no fault of the server.
fn echoes_deep_input(program: &Program, failure: &Failure) -> bool {
    let is_deep = |input: &Input| input.mutation == DEEP;
    failure.check == "frame"
        && failure.message.contains("nests deeper than")
        && program.inputs.iter().any(is_deep)
}

fn oracle_of(failure: &Failure, at: &str, rendered: &Rendered) -> Oracle {
    match Check::from(failure.check.as_str()) {
        Check::Step | Check::Connection => oracle_of_step(at, rendered),
        Check::Schema => Oracle::Schema,
        Check::Message => Oracle::Message,
        Check::Frame => Oracle::Frame,
        Check::Limit => Oracle::Limit,
        Check::Reply => Oracle::Reply,
        Check::Memory => Oracle::Memory,
        Check::Leak | Check::Silence | Check::Invariant(_) => Oracle::Invariant,
    }
}

/// The oracle that a step of a case asks: by the part of the case, else by the step's verb.
fn oracle_of_step(at: &str, rendered: &Rendered) -> Oracle {
    let verb = at.rsplit('/').next().unwrap_or_default();
    let index = at.split('/').nth(2).and_then(|index| index.parse::<usize>().ok());
    let part = index.and_then(|index| rendered.parts.get(index)).copied();
    match (part, verb) {
        (Some(Part::Setup), _) => Oracle::Setup,
        (Some(Part::OtherSession), "unseen") => Oracle::Isolated,
        (Some(Part::OtherSession), _) => Oracle::OtherSession,
        (Some(Part::FreshConnection), _) => Oracle::FreshConnection,
        (Some(Part::CleanTurn), _) => Oracle::CleanTurn,
        (Some(Part::Framing), _) => Oracle::Framing,
        (_, "alive") => Oracle::Alive,
        (_, "rejected") => Oracle::Refused,
        (_, "unchanged") => Oracle::StateKept,
        _ => Oracle::Sequence,
    }
}

fn signature(failure: &Failure) -> String {
    let check = if failure.check == "step" { "" } else { failure.check.as_str() };
    // Which silence it was depends on what else was sent.
    format!("{check} {}", without_values(without_silence(&failure.message))).trim().to_owned()
}

/// The mutations of the inputs.
fn mutations(program: &Program) -> String {
    let mut kinds: Vec<&str> =
        program.inputs.iter().map(|input| input.mutation.as_str()).filter(|how| *how != "-").collect();
    kinds.sort_unstable();
    kinds.dedup();
    format!(" [{}]", kinds.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::event::CaseReport;
    use serde_json::json;

    fn failure(check: &str, message: &str) -> Failure {
        serde_json::from_value(json!({
            "verdict": "failed", "check": check, "requirements": [], "message": message, "frames": [],
        }))
        .expect("a failure")
    }

    fn program(how: &str) -> Program {
        serde_json::from_value(json!({
            "inputs": [{ "client": "alice", "command": "text", "mutation": how, "action": { "text": "" }, "duty": "survive" }],
            "own": false, "fresh": false, "witness": false,
        }))
        .expect("a program")
    }

    #[test]
    fn what_was_sent_deep_may_come_back_deep() {
        let limits = crate::frame::Limits::default();
        let error = crate::frame::parse_text(&"[".repeat(100), &limits).expect_err("too deep").to_string();
        for (how, check, message, expected) in [
            ("deep", "frame", error.as_str(), true),
            ("long-text", "frame", &error, false),
            ("deep", "frame", "the frame is not JSON", false),
            ("deep", "step", &error, false),
        ] {
            assert_eq!(echoes_deep_input(&program(how), &failure(check, message)), expected, "{how} {check}");
        }
    }

    #[test]
    fn a_failure_is_of_the_oracle_that_asked() {
        let rendered = Rendered {
            case: json!({}),
            places: Vec::new(),
            parts: vec![
                Part::Setup,
                Part::Inputs,
                Part::Framing,
                Part::CleanTurn,
                Part::FreshConnection,
                Part::OtherSession,
            ],
        };
        for (check, at, expected) in [
            ("step", "/steps/0/expect", Oracle::Setup),
            ("connection", "/steps/1/alive", Oracle::Alive),
            ("step", "/steps/1/unchanged/2/rejected", Oracle::Refused),
            ("step", "/steps/1/unchanged", Oracle::StateKept),
            ("step", "/steps/1/expect", Oracle::Sequence),
            ("step", "/steps/2/ended", Oracle::Framing),
            ("step", "/steps/3/expect", Oracle::CleanTurn),
            ("step", "/steps/4/expect", Oracle::FreshConnection),
            ("step", "/steps/5/unseen", Oracle::Isolated),
            ("step", "/steps/5/alive", Oracle::OtherSession),
            ("schema", "", Oracle::Schema),
            ("message", "", Oracle::Message),
            ("frame", "", Oracle::Frame),
            ("reply", "", Oracle::Reply),
            ("limit", "", Oracle::Limit),
            ("memory", "", Oracle::Memory),
            ("order-of-pieces", "", Oracle::Invariant),
        ] {
            assert_eq!(oracle_of(&failure(check, "x"), at, &rendered), expected, "{check} {at}");
        }
    }

    #[test]
    fn a_frame_is_wrong_whatever_the_inputs_were() {
        let rendered =
            Rendered { case: json!({}), places: Vec::new(), parts: vec![Part::Setup, Part::Inputs] };
        for (check, at, expected) in [
            ("reply", "", "reply it answers no request"),
            ("schema", "", "schema it answers no request"),
            ("step", "/steps/0/expect", "it answers no request"),
            ("step", "/steps/1/alive", "it answers no request [bom]"),
        ] {
            let failures = vec![failure(check, "it answers no request")];
            let outcome = Single {
                report: CaseReport { failures, ..CaseReport::default() },
                trace: Vec::new(),
                marks: Vec::new(),
                failed_at: vec![at.to_owned()],
            };
            let found = fingerprints(&program("bom"), &rendered, &outcome);
            assert_eq!(found[0].0.signature, expected, "{check}");
        }
    }
}
