//! Fingerprints: which failures may be of the same defect.

use std::collections::BTreeSet;

use serde_json::Value;

use super::crashes::CrashKind;
use super::observed::Observed;
use super::oracle::Oracle;
use super::program::{OPENED, Program};
use super::render::Rendered;
use super::step_writer::Part;
use crate::results::Check;
use crate::results::death::Death;
use crate::results::event::{Failure, Verdict};
use crate::run::testbed::CaseRun;
use crate::synthesis::text::without_values;

/// What makes two findings the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    /// The oracle that failed.
    pub oracle: Oracle,
    /// The requirements that it says are broken.
    pub requirements: Vec<String>,
    /// The state in which the case begins.
    pub state: String,
    /// The message without its values.
    pub signature: String,
    /// The mutations of the inputs; none where the failure is not of the inputs: it is about a frame, or precedes them.
    pub mutations: Option<Vec<String>>,
    /// How the target crashed, if that is what it is.
    pub crash: Option<CrashKind>,
}

/// What a failure is about, before shrinking has shown what it takes.
pub(super) type Subject = (Oracle, Vec<String>, String);

impl Fingerprint {
    /// Of the target itself, and of no requirement.
    fn of_target(signature: String) -> Self {
        let state = OPENED.to_owned();
        Self {
            oracle: Oracle::Target,
            requirements: Vec::new(),
            state,
            signature,
            mutations: None,
            crash: None,
        }
    }

    /// Of a server that crashed in this way.
    pub fn of_crash(how: &Death) -> Self {
        let crash = CrashKind::of(how);
        Self { crash: Some(crash.clone()), ..Self::of_target(crash.to_string()) }
    }

    /// The signature with the mutations of the inputs.
    pub(super) fn identity(&self) -> String {
        match &self.mutations {
            Some(mutations) => format!("{} [{}]", self.signature, mutations.join(" ")),
            None => self.signature.clone(),
        }
    }

    /// What it is about. Of RFC 6455 many things can be broken in one way, and no requirement distinguishes them; nor does one
    /// distinguish crashes.
    pub(super) fn subject(&self) -> Subject {
        let signature = match self.oracle {
            Oracle::Framing | Oracle::Target => self.identity(),
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
            Oracle::Target => self.may_be_crash(wanted),
            _ => self.signature == wanted.signature,
        };
        self.oracle == wanted.oracle && (shared || nameless && alike)
    }

    /// Whether the target was lost in this way, as far as is known of the `wanted` one.
    pub(super) fn may_be_crash(&self, wanted: &Self) -> bool {
        match (&self.crash, &wanted.crash) {
            (Some(own), Some(wanted)) => own.is_of(wanted),
            _ => self.signature == wanted.signature,
        }
    }
}

/// The fingerprints of everything that is wrong with a case, each with its failure; a target that is gone included.
pub fn fingerprints(
    program: &Program,
    rendered: &Rendered,
    outcome: &CaseRun,
    observed: &Observed,
) -> Vec<(Fingerprint, Option<Failure>)> {
    let state = program.state_name().to_owned();
    let mut found = Vec::new();
    // Where the server crashed, the crash is the failure.
    let judged = outcome.report.failures.iter().enumerate().filter(|(_, one)| one.verdict != Verdict::Error);
    // What was sent deep may come back as deep: too deep for our parser, and no fault of the server.
    let is_echo = |one: &Failure| {
        one.check == Check::Frame && one.frames.iter().any(|frame| observed.too_deep.contains(frame))
    };
    let judged = judged.filter(|(_, failure)| !is_echo(failure));
    for (index, failure) in judged {
        let at = outcome.failed_at.get(index).map_or("", String::as_str);
        if is_taken_over(failure, at, rendered, observed) {
            continue;
        }
        let oracle = oracle_of(failure, at, rendered);
        // Who never sends a close frame does not send it after any frame.
        let hangs_up = oracle == Oracle::Framing && observed.hangs_up;
        // A wrong frame says itself what is wrong, whatever the inputs were; what fails before the first input was caused by none.
        let is_of_inputs = !oracle.is_about_a_frame() && oracle != Oracle::Setup && !hangs_up;
        let print = Fingerprint {
            oracle,
            requirements: failure.requirements.clone(),
            state: state.clone(),
            signature: if hangs_up { NO_CLOSE_FRAME.to_owned() } else { signature(failure) },
            mutations: is_of_inputs.then(|| mutations(program)),
            crash: None,
        };
        found.push((print, Some(failure.clone())));
    }
    // A case without a server says nothing.
    if found.is_empty()
        && outcome.has_begun
        && let Some(reason) = outcome.broke()
    {
        let lost = || Fingerprint::of_target(without_values(reason));
        let print = outcome.death().map_or_else(lost, Fingerprint::of_crash);
        found.push((Fingerprint { state, ..print }, None));
    }
    found
}

/// Whether a client lacks something because another one has taken its session over.
fn is_taken_over(failure: &Failure, at: &str, rendered: &Rendered, observed: &Observed) -> bool {
    if !matches!(failure.check, Check::Step | Check::Connection) {
        return false;
    }
    let (place, verb) = at.rsplit_once('/').unwrap_or_default();
    let client = rendered.case.pointer(place).and_then(|step| step.get("as").or_else(|| step.get(verb)));
    let client = client.and_then(Value::as_str);
    client.is_some_and(|client| observed.taken_over.contains(client))
        || failure.frames.iter().any(|frame| observed.takeovers.contains(frame))
}

/// Signature of a connection that the server has ended without a close frame, whatever code was due.
const NO_CLOSE_FRAME: &str = "no close frame";

fn oracle_of(failure: &Failure, at: &str, rendered: &Rendered) -> Oracle {
    match failure.check {
        Check::Step | Check::Connection => oracle_of_step(at, rendered),
        Check::Schema | Check::VendorSchema => Oracle::Schema,
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
        (_, "rejected") | (Some(Part::Inputs), "ended") => Oracle::Refused,
        (_, "unchanged") => Oracle::StateKept,
        _ => Oracle::Sequence,
    }
}

fn signature(failure: &Failure) -> String {
    let check = if failure.check == Check::Step { String::new() } else { failure.check.to_string() };
    // Which silence it was depends on what else was sent.
    format!("{check} {}", without_values(failure.core())).trim().to_owned()
}

/// The mutations of the inputs, each once.
fn mutations(program: &Program) -> Vec<String> {
    let mutations = program.inputs.iter().map(|input| &input.mutation).filter(|how| *how != "-");
    mutations.cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::event::CaseReport;
    use serde_json::json;

    fn failure(check: &str) -> Failure {
        Failure::new(Check::from(check), Verdict::Failed, "it is wrong").shown_by([0])
    }

    /// A case that failed in one way, at this step.
    fn run(check: &str, at: &str) -> CaseRun {
        CaseRun {
            report: CaseReport { failures: vec![failure(check)], ..CaseReport::default() },
            failed_at: vec![at.to_owned()],
            sent: 0,
            has_begun: true,
        }
    }

    fn program(how: &str) -> Program {
        serde_json::from_value(json!({
            "inputs": [{ "client": "alice", "command": "text", "mutation": how, "action": { "text": "" }, "duty": "survive" }],
            "own": false, "fresh": false, "witness": false,
        }))
        .expect("a program")
    }

    #[test]
    fn what_comes_back_as_deep_as_it_was_sent_is_no_failure() {
        let rendered = Rendered { case: json!({}), places: Vec::new(), parts: Vec::new() };
        let observed = Observed { too_deep: [0].into(), ..Observed::default() };
        for (check, observed, expected) in
            [("frame", &observed, 0), ("schema", &observed, 1), ("frame", &Observed::default(), 1)]
        {
            let found = fingerprints(&program("deep"), &rendered, &run(check, ""), observed);
            assert_eq!(found.len(), expected, "{check}");
        }
    }

    #[test]
    fn what_a_client_lacks_whose_session_was_taken_over_is_no_failure() {
        let case = json!({ "steps": [
            { "alive": "alice" }, { "expect": "turn-end", "as": "alice" }, { "alive": "bob" },
        ] });
        let rendered = Rendered { case, places: Vec::new(), parts: vec![Part::Inputs; 3] };
        let taken = Observed { taken_over: ["alice".to_owned()].into(), ..Observed::default() };
        let seen = Observed { takeovers: [0].into(), ..Observed::default() };
        for (check, at, observed, expected) in [
            ("step", "/steps/0/alive", &taken, 0),
            ("step", "/steps/1/expect", &taken, 0),
            ("step", "/steps/2/alive", &taken, 1),
            ("schema", "/steps/1/expect", &taken, 1),
            // The frame of the close shows it, whosever step it was.
            ("connection", "/steps/2/alive", &seen, 0),
            ("step", "/steps/0/alive", &Observed::default(), 1),
        ] {
            let found = fingerprints(&program("bom"), &rendered, &run(check, at), observed);
            assert_eq!(found.len(), expected, "{check} {at}");
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
            assert_eq!(oracle_of(&failure(check), at, &rendered), expected, "{check} {at}");
        }
    }

    #[test]
    fn a_frame_is_wrong_whatever_the_inputs_were() {
        let rendered =
            Rendered { case: json!({}), places: Vec::new(), parts: vec![Part::Setup, Part::Inputs] };
        for (check, at, expected) in [
            ("reply", "", "reply it is wrong"),
            ("schema", "", "schema it is wrong"),
            ("step", "/steps/0/expect", "it is wrong"),
            ("step", "/steps/1/alive", "it is wrong [bom]"),
        ] {
            let found = fingerprints(&program("bom"), &rendered, &run(check, at), &Observed::default());
            assert_eq!(found[0].0.identity(), expected, "{check}");
        }
    }

    #[test]
    fn who_never_sends_a_close_frame_has_one_defect() {
        let rendered = Rendered { case: json!({}), places: Vec::new(), parts: vec![Part::Framing] };
        let identity = |how: &str, hangs_up: bool| {
            let observed = Observed { hangs_up, ..Observed::default() };
            let outcome = run("step", "/steps/0/ended");
            fingerprints(&program(how), &rendered, &outcome, &observed)[0].0.identity()
        };
        for how in ["reserved-bits", "unmasked"] {
            assert_eq!(identity(how, true), NO_CLOSE_FRAME);
            assert_eq!(identity(how, false), format!("it is wrong [{how}]"));
        }
    }

    #[test]
    fn a_message_with_brackets_is_no_list_of_mutations() {
        let print = |signature: &str| Fingerprint {
            oracle: Oracle::Schema,
            requirements: Vec::new(),
            state: OPENED.to_owned(),
            signature: signature.to_owned(),
            mutations: None,
            crash: None,
        };
        assert!(!print("schema is not one of [a]").is_same_defect(&print("schema is not one of [b]")));
        let mutated = |how: &str| Fingerprint { mutations: Some(vec![how.to_owned()]), ..print("step x") };
        assert!(mutated("bom").is_same_defect(&mutated("deep")), "shrinking may change the mutations");
    }
}
