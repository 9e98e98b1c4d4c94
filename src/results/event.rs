//! The events of a run. Every report is a pure function of them: `--json` writes them as they come, and
//! console and JUnit can be made from such a file again.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::results::Counts;
use crate::results::case_id;
use crate::results::cause::Cause;
pub use crate::results::evidence::{Call, FrameRecord, GeneratedStep, LogLine, ShownFrame, Way};
use crate::results::excused::ExcusedList;
use crate::results::failure::is_none;
pub use crate::results::failure::{Failure, StepPlace};
pub use crate::results::window::Window;

/// What became of a case, or of a requirement. In order of gravity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A capability that it needs is not offered.
    NotApplicable,
    /// Nothing touched it.
    #[default]
    NotExercised,
    /// It held wherever it was exercised.
    Passed,
    /// Failed first and passed when it was run again. For cases only.
    Flaky,
    /// Failed, as the baseline knows.
    Known,
    /// A SHOULD or MAY is broken.
    Warned,
    /// A MUST is broken.
    Failed,
    /// The harness or the target broke: no conformance verdict.
    Error,
}

impl Verdict {
    /// Whether it says nothing about the server.
    pub fn says_nothing(self) -> bool {
        matches!(self, Self::NotApplicable | Self::NotExercised)
    }
}

/// One event of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum RunEvent {
    /// A run begins.
    RunStarted(Box<RunStarted>),
    /// A case begins (an attempt of it).
    CaseStarted {
        /// `family/name`.
        case: String,
        /// From 1.
        attempt: u32,
    },
    /// A case is done, after all its attempts.
    CaseFinished(Box<CaseReport>),
    /// A run is done.
    RunFinished(Box<Summary>),
}

/// The part of a run that was done by one of several processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which, from 1.
    pub index: u32,
    /// Of how many.
    pub total: u32,
    /// The protocol's cases in all of them together.
    pub all: usize,
    /// A digest of their ids: shards with the same one are parts of the same selection.
    #[serde(default)]
    pub selection: u64,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.total)
    }
}

/// What is run against what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunStarted {
    /// Version of frameproof.
    pub version: String,
    /// The protocol's name.
    pub protocol: String,
    /// The protocol's own title and version.
    pub title: String,
    /// Where the server is, secrets redacted; or `reference server` with its address.
    pub target: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Tells the run from others on the same server; with the seed it gives the same messages. None: the server is started for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The part that this is, of a run with `--shard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The reading: `strict`, `default` or `lenient`.
    pub reading: String,
    /// How many cases are selected.
    pub cases: usize,
    /// Cases that run side by side.
    pub jobs: usize,
    /// The seconds after which the run ends, whatever the server does. None: there is no such end, or it is that of a run against the
    /// reference server where the user names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_within: Option<f64>,
    /// Level and text of every requirement that the reports may have to quote, by id.
    pub requirements: BTreeMap<String, RequirementText>,
    /// How many of its cases are not among the events that a report is made of: there are too many. No file says this.
    #[serde(skip)]
    pub left_out: usize,
}

/// A requirement as reports quote it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequirementText {
    /// `MUST`, `SHOULD` or `MAY`.
    pub level: String,
    /// The area that it belongs to, for grouping.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub area: String,
    /// One sentence.
    pub text: String,
    /// Where the document says it.
    pub source: String,
    /// The reading that was used, where the document is ambiguous: its id and the answer taken.
    pub reading: Option<String>,
}

/// All about one case. By default: of one that nothing is known of.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CaseReport {
    /// `family/name`.
    pub case: String,
    /// Further runs of it, with `--repeat`, that ended in the same way; where the events are put together, this report stands for them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub repeats: u64,
    /// Its title.
    pub title: String,
    /// The scenario file, as it can be opened from the working folder; for an embedded one its path in the
    /// repository.
    pub file: String,
    /// Line of the case in it, from 1.
    pub line: usize,
    /// The requirements that it and its steps name.
    #[serde(default)]
    pub covers: Vec<String>,
    /// What became of it (after baseline and retries).
    pub verdict: Verdict,
    /// Why it was not run, or why the harness gave up.
    pub reason: Option<String>,
    /// Capabilities for want of which it was not run, and which the user can say that the server offers (`--offer`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unoffered: Vec<String>,
    /// Seconds, of the last attempt.
    pub seconds: f64,
    /// Seconds since the start of the run at which it began.
    pub started: f64,
    /// What is wrong, in the last attempt.
    pub failures: Vec<Failure>,
    /// Failures of earlier attempts (with `--retries`), oldest first.
    pub earlier: Vec<Vec<Failure>>,
    /// How often each requirement was exercised, by id.
    pub exercised: Counts,
    /// The wire log up to a bound: of a failed case, or of every case where that is wanted; else empty.
    pub wire: Vec<FrameRecord>,
    /// Frames left out at the beginning of `wire`.
    pub wire_omitted: usize,
    /// What the launched server wrote while a failed case ran; those beside it ran, too.
    #[serde(default)]
    pub log: Vec<LogLine>,
    /// Lines left out of `log`, beside those that one of its lines stands for.
    #[serde(default)]
    pub log_omitted: usize,
    /// What the scripted model was asked with this case's cues, where the wire log is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<Call>,
    /// Of a finding: its steps, shrunk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<GeneratedStep>,
    /// The root cause, where many cases can have the same: why the opening failed, or in which way the server fell silent.
    #[serde(rename = "opening", default)]
    pub cause: Option<Cause>,
    /// Its scenario ships with frameproof: `file` is a path in the repository.
    #[serde(default)]
    pub embedded: bool,
    /// It sent a cue, so that the model was to say something. Not written.
    #[serde(skip)]
    pub cued: bool,
    /// The root cause as it is known once more is known of the server. Not written.
    #[serde(skip)]
    pub precise_cause: Option<Cause>,
    /// The first case with the same root cause.
    #[serde(default)]
    pub same_as: Option<String>,
    /// Where a window of time stood for a barrier: what did not come in it may have come later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Deviations from the protocol that the overlay excuses.
    #[serde(default)]
    pub excused: ExcusedList,
    /// The command that runs this case alone again.
    pub reproduce: String,
    /// The baseline entry that excuses its failures, if one does.
    pub known: Option<String>,
}

impl CaseReport {
    /// Whether something went wrong that no baseline knows.
    pub fn is_notable(&self) -> bool {
        matches!(self.verdict, Verdict::Failed | Verdict::Error | Verdict::Warned | Verdict::Flaky)
    }

    /// The command that shows its steps, of an embedded case. Its file lies in the folder of its protocol.
    pub fn explained_by(&self) -> Option<String> {
        let protocol = self.file.split('/').rev().nth(1).map(|name| format!("{name} ")).unwrap_or_default();
        let case = case_id::without_preamble(&self.case);
        self.embedded.then(|| format!("frameproof explain {protocol}{case}"))
    }

    /// The failures that tell why: of a flaky case those of earlier attempts.
    pub fn decisive_failures(&self) -> Vec<Failure> {
        if self.verdict == Verdict::Flaky { self.earlier.concat() } else { self.failures.clone() }
    }

    /// The first thing to tell of it, where there is one: the first failure's message, or else the reason.
    pub fn headline(&self) -> Option<&str> {
        let failures = match self.verdict {
            Verdict::Flaky => self.earlier.iter().flatten().next(),
            _ => self.failures.first(),
        };
        failures.map(|failure| failure.message.as_str()).or(self.reason.as_deref())
    }

    /// The last `count` lines of the wire log that are neither ambient nor automatic, what is automatic among them, and the lines that
    /// show the failures wherever they are, in the order of time: two clients' lines were noted as they were looked at.
    pub fn last_frames(&self, count: usize, failures: &[Failure]) -> Vec<ShownFrame<'_>> {
        let mut lines: Vec<&FrameRecord> = self.wire.iter().collect();
        lines.sort_by(|one, other| one.ms.total_cmp(&other.ms));
        // Heartbeats and the like would push out what matters.
        let telling = lines.iter().enumerate().filter(|(_, line)| !line.ambient && !line.automatic);
        let from = telling.rev().nth(count.saturating_sub(1)).map_or(0, |(place, _)| place);
        let mut next = 0;
        let mut shown: Vec<ShownFrame<'_>> = Vec::new();
        // Of the automatic lines that are shown last.
        let mut run = 0;
        for (place, line) in lines.into_iter().enumerate() {
            // The wire log of a flaky case is that of the attempt that passed.
            let shows = |failure: &Failure| failure.frames.contains(&line.index);
            let marked = self.verdict != Verdict::Flaky && failures.iter().any(shows);
            let is_quiet = line.ambient && !line.automatic;
            if !marked && (place < from || is_quiet) {
                continue;
            }
            let is_automatic = line.automatic && !marked;
            run = if is_automatic { run + 1 } else { 0 };
            let gap = place != next;
            next = place + 1;
            match shown.last_mut() {
                // One is as short as what would be told of it.
                Some(before) if run > 1 => *before = ShownFrame { line, folded: run, ..*before },
                _ => shown.push(ShownFrame { line, marked, gap, folded: 0 }),
            }
        }
        shown
    }
}

/// Why a run ended before all its cases had run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Enough cases had failed.
    FailFast,
    /// A signal.
    Interrupted,
    /// Its time was up.
    Time,
    /// This machine had no more of something for frameproof itself.
    Shortage,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FailFast => "fail-fast",
            Self::Interrupted => "interrupted",
            Self::Time => "time is up",
            Self::Shortage => "a resource of this machine is exhausted",
        })
    }
}

/// The run as a whole.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    /// How many cases got each verdict.
    pub cases: BTreeMap<Verdict, usize>,
    /// Each observable server requirement's verdict and how often it was exercised, by id.
    pub requirements: BTreeMap<String, RequirementResult>,
    /// Baseline entries that no longer fail, as messages.
    pub stale_baseline: Vec<String>,
    /// Deviations from the protocol that the overlay excuses, over all cases.
    #[serde(default)]
    pub excused: ExcusedList,
    /// Capabilities for want of which cases were not run, with how many those were, and which the user can say that the server offers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unoffered: BTreeMap<String, usize>,
    /// What else is worth knowing about the failures, in sentences.
    #[serde(default)]
    pub hints: Vec<String>,
    /// Of a campaign: how often each command was tried in each state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Why it ended early.
    pub stopped: Option<StopReason>,
    /// Seconds.
    pub seconds: f64,
    /// The exit code that follows from it.
    pub exit_code: u8,
}

/// How often each command was tried in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The states, in the order in which they are shown.
    pub states: Vec<String>,
    /// Each command, with its counts in the order of the states.
    pub commands: Vec<(String, Vec<u64>)>,
}

/// One requirement over the whole run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequirementResult {
    /// Worst verdict.
    pub verdict: Verdict,
    /// How often it was exercised.
    pub exercised: u64,
    /// Cases in which it was broken.
    pub broken_in: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn line(index: u64, ms: f64, ambient: bool) -> Value {
        json!({ "index": index, "ms": ms, "client": "a", "dir": "<-", "text": "{}", "ambient": ambient })
    }

    #[test]
    fn frames_are_shown_in_the_order_of_time() {
        let case: CaseReport = serde_json::from_value(json!({
            "case": "a/b", "title": "", "file": "", "line": 1, "verdict": "failed", "seconds": 1.0, "started": 0.0,
            "reproduce": "", "failures": [], "earlier": [], "exercised": {}, "wire_omitted": 0, "wire": [
                line(0, 1.0, false), line(1, 5.0, false), line(2, 3.0, false), line(3, 4.0, true), line(4, 6.0, false),
            ],
        }))
        .expect("a report");
        let failure: Failure = serde_json::from_value(json!({
            "verdict": "failed", "check": "c", "requirements": [], "message": "out of order", "frames": [0],
        }))
        .expect("a failure");
        let shown = case.last_frames(3, std::slice::from_ref(&failure));
        let shown: Vec<_> = shown.iter().map(|shown| (shown.line.index, shown.marked, shown.gap)).collect();
        assert_eq!(shown, [(0, true, false), (2, false, false), (1, false, true), (4, false, false)]);
    }

    #[test]
    fn runs_of_automatic_messages_are_told_in_one_line() {
        // `+`: automatic; `~`: ambient; `*`: both; `.`: neither.
        let shown = |signs: &str, marked: &[u64]| {
            let wire = signs.chars().enumerate().map(|(at, sign)| {
                let mut line = line(at as u64, at as f64, "~*".contains(sign));
                line["automatic"] = json!("+*".contains(sign));
                line
            });
            let mut case: CaseReport = serde_json::from_value(json!({
                "case": "a/b", "title": "", "file": "", "line": 1, "verdict": "failed", "seconds": 1.0, "started": 0.0,
                "reproduce": "", "failures": [], "earlier": [], "exercised": {}, "wire_omitted": 0, "wire": [],
            }))
            .expect("a report");
            case.wire = serde_json::from_value(wire.collect()).expect("lines");
            let failure = Failure::new(crate::results::Check::Step, Verdict::Failed, "wrong");
            let failure = failure.shown_by(marked.iter().copied());
            let told = |shown: &ShownFrame<'_>| {
                let gap = if shown.gap { "…" } else { "" };
                match shown.folded {
                    0 => format!("{gap}{}", shown.line.index),
                    count => format!("{gap}({count} to {})", shown.line.index),
                }
            };
            case.last_frames(2, &[failure]).iter().map(told).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("...++.++++", &[]), "…2 (2 to 4) 5 (4 to 9)");
        // One alone is shown, and heartbeats without an answer neither part a run nor count.
        assert_eq!(shown("..+.", &[]), "…1 2 3");
        assert_eq!(shown("..+~+*+", &[]), "0 1 (4 to 6)");
        // What shows the failure is shown.
        assert_eq!(shown("..+++++", &[4]), "0 1 (2 to 3) 4 (2 to 6)");
        assert_eq!(shown("++++", &[]), "(4 to 3)");
    }
}
