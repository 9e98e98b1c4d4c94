//! Findings: what is the same defect, and how one is kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::crashes;
use super::generate::mutate::DEEP;
use super::input::{Action, Input};
use super::program::{Part, Program, Rendered};
use crate::protocol::Protocol;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::testbed::{Single, death_of};
use crate::run::without_silence;
use crate::scenario::write;

/// What makes two findings the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// The oracle that spoke: `refused`, `alive`, `framing`, `state-kept`, `clean-turn`, `fresh-connection`, `other-session`, `isolated`,
    /// `schema`, `frame`, `message`, `invariant`, `limit`, `memory`, `sequence`, `setup`, `target`.
    pub oracle: String,
    /// The requirements that it held broken.
    pub requirements: Vec<String>,
    /// The state in which the case begins.
    pub state: String,
    /// What is left of the message when values are taken out; unless it is about a frame, also how the inputs were spoilt.
    pub shape: String,
}

impl Fingerprint {
    /// Of the target itself, and of no requirement.
    fn of_target(shape: String) -> Self {
        let state = super::feedback::OPENED.to_owned();
        Self { oracle: "target".to_owned(), requirements: Vec::new(), state, shape }
    }

    /// Of a server that died in this way.
    pub fn of_death(how: &str) -> Self {
        Self::of_target(crashes::shape(how))
    }

    /// The shape without how the inputs were spoilt.
    pub fn what(&self) -> &str {
        self.shape.rsplit_once(" [").map_or(&self.shape, |(what, _)| what)
    }

    /// Whether a frame that was received shows it, whatever became of the connection afterwards.
    pub fn is_of_a_frame(&self) -> bool {
        matches!(self.oracle.as_str(), "schema" | "message" | "frame" | "invariant")
    }
}

/// A confirmed finding: steps, and what they show.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What its steps show: what was found first, then what joined it. Never empty.
    pub shown: Vec<Shown>,
    /// The cases that only together have brought it about, by their numbers; none where one suffices.
    pub together: Vec<(u64, Program)>,
    /// Steps that do something spoilt or unusual; the rest is opening, waiting and judging.
    pub steps: usize,
    /// Cases run to confirm and shrink it.
    pub replays: usize,
    /// When it was kept, since the campaign began.
    pub at: Duration,
    /// The name of its first case, and of the file.
    pub name: String,
    /// As a run reports it.
    pub report: CaseReport,
}

/// One thing that the steps of a finding show.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What it is.
    pub fingerprint: Fingerprint,
    /// Failed (a MUST) or warned (a SHOULD or MAY).
    pub verdict: Verdict,
    /// One sentence.
    pub message: String,
    /// The number of the case that showed it first.
    pub case: u64,
    /// The case, shrunk.
    pub program: Program,
}

/// The fingerprints of everything that is wrong with a case, each with its failure; a target that is gone included.
pub fn fingerprints(
    program: &Program,
    rendered: &Rendered,
    single: &Single,
) -> Vec<(Fingerprint, Option<Failure>)> {
    let state = program.state.clone().unwrap_or_else(|| super::feedback::OPENED.to_owned());
    let mut found = Vec::new();
    // Where the server died, what failed is its death.
    let judged = single.report.failures.iter().enumerate().filter(|(_, one)| one.verdict != Verdict::Error);
    let judged = judged.filter(|(_, failure)| !comes_back_deep(program, failure));
    for (index, failure) in judged {
        let at = single.failed_at.get(index).map_or("", String::as_str);
        let mut fingerprint = Fingerprint {
            oracle: oracle(failure, at, rendered),
            requirements: failure.requirements.clone(),
            state: state.clone(),
            shape: shape(failure),
        };
        // A wrong frame says itself what is wrong, whatever brought it about; and what fails before any input was brought about by none.
        if !fingerprint.is_of_a_frame() && fingerprint.oracle != "setup" {
            fingerprint.shape += &mutations(program);
        }
        found.push((fingerprint, Some(failure.clone())));
    }
    // A case that no server was there for says nothing.
    if found.is_empty()
        && !single.trace.is_empty()
        && let Some(reason) = single.broke()
    {
        let shape = death_of(reason).map_or_else(|| normal(reason), crashes::shape);
        found.push((Fingerprint { state, ..Fingerprint::of_target(shape) }, None));
    }
    found
}

/// What was sent deep may come back as deep: too deep for our parser, and no fault of the server.
fn comes_back_deep(program: &Program, failure: &Failure) -> bool {
    let is_deep = |input: &Input| input.mutation == DEEP;
    failure.check == "frame"
        && failure.message.contains("nests deeper than")
        && program.inputs.iter().any(is_deep)
}

fn oracle(failure: &Failure, at: &str, rendered: &Rendered) -> String {
    let name = match failure.check.as_str() {
        "step" | "connection" => {
            let verb = at.rsplit('/').next().unwrap_or_default();
            let index = at.split('/').nth(2).and_then(|index| index.parse::<usize>().ok());
            let part = index.and_then(|index| rendered.parts.get(index)).copied();
            match (part, verb) {
                (Some(Part::Before), _) => "setup",
                (Some(Part::Witness), "unseen") => "isolated",
                (Some(Part::Witness), _) => "other-session",
                (Some(Part::Fresh), _) => "fresh-connection",
                (Some(Part::Own), _) => "clean-turn",
                (Some(Part::Framing), _) => "framing",
                (_, "alive") => "alive",
                (_, "rejected") => "refused",
                (_, "unchanged") => "state-kept",
                _ => "sequence",
            }
        }
        check @ ("schema" | "message" | "frame" | "limit" | "reply" | "memory") => check,
        _ => "invariant",
    };
    name.to_owned()
}

fn shape(failure: &Failure) -> String {
    let check = if failure.check == "step" { "" } else { failure.check.as_str() };
    // Which silence it was hangs on what else was said.
    format!("{check} {}", normal(without_silence(&failure.message))).trim().to_owned()
}

/// How the inputs were spoilt.
fn mutations(program: &Program) -> String {
    let mut kinds: Vec<&str> =
        program.inputs.iter().map(|input| input.mutation.as_str()).filter(|how| *how != "-").collect();
    kinds.sort_unstable();
    kinds.dedup();
    format!(" [{}]", kinds.join(" "))
}

/// A message without the values in it.
pub fn normal(text: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => {
                quote = None;
                out.push_str("\u{2026}\"");
            }
            Some(_) => {}
            None if c == '"' || c == '`' => {
                quote = Some(c);
                out.push('"');
            }
            None if c.is_ascii_digit() => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            None => out.push(c),
        }
    }
    out.chars().take(160).collect()
}

/// How many inputs do something; waits do not count.
pub fn steps(program: &Program) -> usize {
    program.inputs.iter().filter(|input| input.mutation != "-").count()
}

impl Finding {
    /// What was found first.
    pub fn first(&self) -> &Shown {
        &self.shown[0]
    }

    /// What was found last.
    pub fn last(&self) -> &Shown {
        &self.shown[self.shown.len() - 1]
    }

    /// The requirements that its steps show broken.
    pub fn requirements(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.shown.iter().flat_map(|shown| shown.fingerprint.requirements.clone()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether a program does the same in the same state, whatever is asked afterwards.
    pub fn has_steps_of(&self, program: &Program) -> bool {
        let own = &self.first().program;
        let same = |(one, other): (&Input, &Input)| one.does_as(other);
        self.together.is_empty()
            && own.state == program.state
            && own.inputs.len() == program.inputs.len()
            && own.inputs.iter().zip(&program.inputs).all(same)
    }

    /// Whether an oracle has said so already.
    pub fn tells(&self, print: &Fingerprint) -> bool {
        let mut same = self.shown.iter().filter(|shown| shown.fingerprint.oracle == print.oracle).peekable();
        let ids: Vec<&String> = same.clone().flat_map(|shown| &shown.fingerprint.requirements).collect();
        same.peek().is_some() && print.requirements.iter().all(|id| ids.contains(&id))
    }

    /// Its cases as they stand in a scenario file: one for each of the circumstances in which its steps show something.
    pub fn cases(&self, protocol: &Protocol) -> Vec<Value> {
        let mut programs: Vec<&Program> = Vec::new();
        for shown in &self.shown {
            if !programs.contains(&&shown.program) {
                programs.push(&shown.program);
            }
        }
        let case = |program: &&Program| {
            let mut about = self.shown.iter().filter(|shown| shown.program == **program).peekable();
            let first = about.peek().copied().unwrap_or_else(|| self.first());
            let (name, title) = (name_of(&first.fingerprint), normal(&first.message));
            let about: Vec<&Vec<String>> = about.map(|shown| &shown.fingerprint.requirements).collect();
            // What has no requirement would be none of the case's business if it named others.
            let mut covers = match about.iter().any(|ids| ids.is_empty()) {
                true => Vec::new(),
                false => about.into_iter().flatten().cloned().collect::<Vec<String>>(),
            };
            covers.sort_unstable();
            covers.dedup();
            program.render(protocol, &name, &title, &covers).case
        };
        programs.iter().map(case).collect()
    }

    /// The file's name: what it is, and a number that is the same for the same finding.
    pub fn file_name(&self) -> String {
        format!("{}.yaml", self.name)
    }

    /// Writes the scenario into a folder.
    ///
    /// # Errors
    /// The path and the reason.
    pub fn write(&self, folder: &Path, scenario: &str) -> Result<PathBuf, String> {
        let path = folder.join(self.file_name());
        let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
        std::fs::create_dir_all(folder).map_err(cannot)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(cannot)?;
        std::io::Write::write_all(&mut file, scenario.as_bytes()).map_err(cannot)?;
        file.persist(&path).map_err(|error| cannot(error.error))?;
        Ok(path)
    }
}

/// The name of a finding's case: letters, digits and hyphens.
pub fn name_of(fingerprint: &Fingerprint) -> String {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    fingerprint.hash(&mut hasher);
    format!("{}-{:08x}", fingerprint.oracle, hasher.finish() as u32)
}

/// The scenario file of a finding.
pub fn scenario(comments: &[String], cases: &[Value]) -> String {
    write::file(comments, cases)
}

/// The report of a case that was not run by itself.
pub fn blank_report(name: &str, title: &str) -> CaseReport {
    CaseReport {
        case: format!("fuzz/{name}"),
        title: title.to_owned(),
        verdict: Verdict::Error,
        ..CaseReport::default()
    }
}

/// The size of a program: shrinking makes it less.
pub fn size(program: &Program) -> usize {
    let inputs = program.inputs.iter().map(|input| match &input.action {
        Action::Text(text) => text.len() + 1,
        Action::Send(value) => value.to_string().len(),
        Action::Steps(steps) => steps.iter().map(|step| step.to_string().len()).sum(),
    });
    let flags = [
        program.own,
        program.fresh,
        program.witness,
        program.state.is_some(),
        program.witness_state.is_some(),
    ];
    inputs.map(|size| size + 100).sum::<usize>() + flags.iter().filter(|flag| **flag).count() * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_deep_may_come_back_deep() {
        let limits = crate::frame::Limits::default();
        let error = crate::frame::parse_text(&"[".repeat(100), &limits).expect_err("too deep");
        let failure = |check: &str, message: String| -> Failure {
            serde_json::from_value(serde_json::json!({
                "verdict": "failed", "check": check, "requirements": [], "message": message, "frames": [],
            }))
            .expect("a failure")
        };
        let program = |how: &str| -> Program {
            serde_json::from_value(serde_json::json!({
                "inputs": [{ "client": "alice", "command": "text", "mutation": how, "action": { "text": "" }, "duty": "survive" }],
                "own": false, "fresh": false, "witness": false,
            }))
            .expect("a program")
        };
        for (how, check, message, expected) in [
            ("deep", "frame", error.to_string(), true),
            ("long-text", "frame", error.to_string(), false),
            ("deep", "frame", "the frame is not JSON".to_owned(), false),
            ("deep", "step", error.to_string(), false),
        ] {
            assert_eq!(comes_back_deep(&program(how), &failure(check, message)), expected, "{how} {check}");
        }
    }

    fn shown(oracle: &str, ids: &[&str], program: &serde_json::Value) -> Shown {
        Shown {
            fingerprint: Fingerprint {
                oracle: oracle.to_owned(),
                requirements: ids.iter().map(|id| (*id).to_owned()).collect(),
                state: "opened".to_owned(),
                shape: "x".to_owned(),
            },
            verdict: Verdict::Failed,
            message: format!("{oracle} is wrong"),
            case: 1,
            program: serde_json::from_value(program.clone()).expect("a program"),
        }
    }

    #[test]
    fn what_the_same_steps_show_is_one_finding() {
        let program = |text: &str, fresh: bool| {
            serde_json::json!({
                "inputs": [{ "client": "alice", "command": "text", "mutation": "x", "action": { "text": text }, "duty": "survive" }],
                "own": false, "fresh": fresh, "witness": false,
            })
        };
        let first = shown("alive", &["A"], &program("x", false));
        let report = blank_report("alive-1", "x");
        let mut found = Finding {
            shown: vec![first],
            together: Vec::new(),
            steps: 1,
            replays: 3,
            at: Duration::ZERO,
            name: "alive-1".into(),
            report,
        };
        let other = shown("fresh-connection", &["B"], &program("x", true));
        assert!(found.has_steps_of(&other.program), "whatever is asked afterwards");
        assert!(!found.has_steps_of(&shown("alive", &[], &program("y", false)).program));
        assert!(found.tells(&found.first().fingerprint) && !found.tells(&other.fingerprint));
        found.shown.push(other);
        assert_eq!(found.requirements(), ["A", "B"]);

        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &crate::protocol::LoadOptions::default()).expect("it loads");
        let covers = |found: &Finding| -> Vec<Value> {
            found.cases(&protocol).iter().map(|case| case["covers"].clone()).collect()
        };
        assert_eq!(covers(&found), [serde_json::json!(["A"]), serde_json::json!(["B"])], "a case each");
        found.shown.push(shown("refused", &["C"], &program("x", false)));
        assert_eq!(covers(&found)[0], serde_json::json!(["A", "C"]), "in the same circumstances one case");
        found.shown.push(shown("framing", &[], &program("x", false)));
        assert_eq!(covers(&found)[0], Value::Null, "whatever fails, for no requirement tells it");
    }

    #[test]
    fn values_are_no_part_of_a_shape() {
        assert_eq!(normal("`a` came 12 times, \"x y\" 3.5"), "\"\u{2026}\" came # times, \"\u{2026}\" #.#");
    }
}
