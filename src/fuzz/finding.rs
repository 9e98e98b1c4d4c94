//! Findings: steps, and what they break.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::executor::Execution;
use super::fingerprint::Fingerprint;
use super::input::Input;
use super::program::Program;
use crate::protocol::Protocol;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::synthesis::text::without_values;

/// A confirmed finding: steps, and what they break.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What its steps break: what was found first, then what joined it. Never empty.
    pub evidence: Vec<Evidence>,
    /// The cases that only together have caused it, with their numbers; none where one suffices.
    pub together: Vec<(u64, Program)>,
    /// Steps that do something malformed or unusual; the rest is opening, waiting and judging.
    pub steps: usize,
    /// Cases run to confirm and shrink it.
    pub replays: usize,
    /// When it was added, since the campaign began.
    pub at: Duration,
    /// The name of its first case, and of the file.
    pub name: String,
    /// As a run reports it.
    pub report: CaseReport,
}

/// One thing that the steps of a finding break.
#[derive(Debug, Clone)]
pub struct Evidence {
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

impl Evidence {
    /// What a run shows: its failure, and the `reason` for it if there is a better one than the failure's own.
    pub(super) fn of(
        execution: &Execution,
        case: u64,
        fingerprint: Fingerprint,
        failure: Option<&Failure>,
        reason: Option<String>,
    ) -> Self {
        let message = reason
            .or_else(|| failure.map(|failure| failure.message.clone()))
            .or_else(|| execution.outcome.report.reason.clone());
        Self {
            fingerprint,
            verdict: failure.map_or(Verdict::Failed, |failure| failure.verdict),
            message: message.unwrap_or_default(),
            case,
            program: execution.program.clone(),
        }
    }
}

impl Finding {
    /// What was found first.
    pub fn first(&self) -> &Evidence {
        &self.evidence[0]
    }

    /// What was found last.
    pub fn last(&self) -> &Evidence {
        &self.evidence[self.evidence.len() - 1]
    }

    /// The requirements that its steps show broken.
    pub fn requirements(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.evidence.iter().flat_map(|one| one.fingerprint.requirements.clone()).collect();
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

    /// Whether its evidence has the oracle and the requirements of a fingerprint already.
    pub fn covers(&self, print: &Fingerprint) -> bool {
        let mut same = self.evidence.iter().filter(|one| one.fingerprint.oracle == print.oracle).peekable();
        let ids: Vec<&String> = same.clone().flat_map(|one| &one.fingerprint.requirements).collect();
        same.peek().is_some() && print.requirements.iter().all(|id| ids.contains(&id))
    }

    /// Its cases as a scenario file has them: each of those that only together have caused it, or one for each of the circumstances
    /// in which its steps break something.
    pub fn cases(&self, protocol: &Protocol) -> Vec<Value> {
        if !self.together.is_empty() {
            let case = |(index, program): &(u64, Program)| {
                let name = format!("{}-{index}", self.name);
                program.render(protocol, &name, &format!("Case {index}"), &[]).case
            };
            return self.together.iter().map(case).collect();
        }
        let mut programs: Vec<&Program> = Vec::new();
        for one in &self.evidence {
            if !programs.contains(&&one.program) {
                programs.push(&one.program);
            }
        }
        programs.iter().map(|program| self.case(program, protocol)).collect()
    }

    /// The case of one of its programs.
    fn case(&self, program: &Program, protocol: &Protocol) -> Value {
        let mut about = self.evidence.iter().filter(|one| one.program == *program).peekable();
        let first = about.peek().copied().unwrap_or_else(|| self.first());
        let (name, title) = (name_of(&first.fingerprint), without_values(&first.message));
        let about: Vec<&Vec<String>> = about.map(|one| &one.fingerprint.requirements).collect();
        // A failure without a requirement would not count in a case that covers others.
        let mut covers: Vec<String> = if about.iter().any(|ids| ids.is_empty()) {
            Vec::new()
        } else {
            about.into_iter().flatten().cloned().collect()
        };
        covers.sort_unstable();
        covers.dedup();
        program.render(protocol, &name, &title, &covers).case
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
        crate::output::replace(&path, scenario).map_err(cannot)?;
        Ok(path)
    }
}

/// How many inputs do something; waits do not count.
pub fn steps(program: &Program) -> usize {
    program.inputs.iter().filter(|input| input.mutation != "-").count()
}

/// The name of a finding's case: letters, digits and hyphens.
pub fn name_of(fingerprint: &Fingerprint) -> String {
    use std::hash::{Hash, Hasher};
    let Fingerprint { oracle, requirements, state, .. } = fingerprint;
    let mut hasher = rustc_hash::FxHasher::default();
    // Names of files must not change with the order of oracles.
    (oracle.name(), requirements, state, fingerprint.identity()).hash(&mut hasher);
    format!("{oracle}-{:08x}", hasher.finish() as u32)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::oracle::Oracle;

    fn evidence(oracle: Oracle, ids: &[&str], program: &serde_json::Value) -> Evidence {
        Evidence {
            fingerprint: Fingerprint {
                oracle,
                requirements: ids.iter().map(|id| (*id).to_owned()).collect(),
                state: "opened".to_owned(),
                signature: "x".to_owned(),
                mutations: None,
                crash: None,
            },
            verdict: Verdict::Failed,
            message: format!("{oracle} is wrong"),
            case: 1,
            program: serde_json::from_value(program.clone()).expect("a program"),
        }
    }

    #[test]
    fn what_the_same_steps_break_is_one_finding() {
        let program = |text: &str, fresh: bool| {
            serde_json::json!({
                "inputs": [{ "client": "alice", "command": "text", "mutation": "x", "action": { "text": text }, "duty": "survive" }],
                "own": false, "fresh": fresh, "witness": false,
            })
        };
        let first = evidence(Oracle::Alive, &["A"], &program("x", false));
        let report = blank_report("alive-1", "x");
        let mut found = Finding {
            evidence: vec![first],
            together: Vec::new(),
            steps: 1,
            replays: 3,
            at: Duration::ZERO,
            name: "alive-1".into(),
            report,
        };
        let other = evidence(Oracle::FreshConnection, &["B"], &program("x", true));
        assert!(found.has_steps_of(&other.program), "whatever is asked afterwards");
        assert!(!found.has_steps_of(&evidence(Oracle::Alive, &[], &program("y", false)).program));
        assert!(found.covers(&found.first().fingerprint) && !found.covers(&other.fingerprint));
        found.evidence.push(other);
        assert_eq!(found.requirements(), ["A", "B"]);

        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &crate::protocol::LoadOptions::default()).expect("it loads");
        let covers = |found: &Finding| -> Vec<Value> {
            found.cases(&protocol).iter().map(|case| case["covers"].clone()).collect()
        };
        assert_eq!(covers(&found), [serde_json::json!(["A"]), serde_json::json!(["B"])], "a case each");
        found.evidence.push(evidence(Oracle::Refused, &["C"], &program("x", false)));
        assert_eq!(covers(&found)[0], serde_json::json!(["A", "C"]), "in the same circumstances one case");
        found.evidence.push(evidence(Oracle::Framing, &[], &program("x", false)));
        assert_eq!(covers(&found)[0], Value::Null, "whatever fails, for it has no requirement");
    }

    #[test]
    fn the_name_of_a_finding_stays_the_same() {
        let print = Fingerprint {
            oracle: Oracle::Refused,
            requirements: vec!["A-1".to_owned()],
            state: "opened".to_owned(),
            signature: "x".to_owned(),
            mutations: None,
            crash: None,
        };
        assert_eq!(name_of(&print), "refused-4aecbcb2");
    }
}
