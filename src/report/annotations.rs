//! Marks where CI shows them: GitHub's annotations of a job, GitLab's report of code quality.

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::failure_groups::{FailureGroup, grouped};
use super::runs::{Run, runs};
use super::{clip, escape};
use crate::results::event::{RunEvent, Verdict};

/// GitHub shows ten annotations of a kind for each step, and drops the others.
const MOST: usize = 10;
/// Characters of a message.
const MESSAGE: usize = 1_000;

/// Where the files lie that a mark can point to.
#[derive(Debug, Default)]
pub struct Places {
    /// The working folder, seen from the root of the repository. Empty: it is the root.
    pub folder: PathBuf,
    /// What is marked for scenarios that are embedded in frameproof: the file that says which server is tested.
    pub configuration: Option<PathBuf>,
}

impl Places {
    /// File and line of a group's first failure.
    fn of(&self, group: &FailureGroup<'_>) -> Option<(String, usize)> {
        let case = group.first;
        if case.embedded {
            let file = self.configuration.as_ref()?;
            return Some((self.folder.join(file).display().to_string(), 1));
        }
        let step = case.failures.first().and_then(|failure| failure.step.as_ref());
        let (file, line) = step.map_or((&case.file, case.line), |step| (&step.file, step.line));
        (!file.is_empty()).then(|| (self.folder.join(file).display().to_string(), line))
    }
}

/// One cause in two lines.
struct Mark {
    verdict: Verdict,
    place: Option<(String, usize)>,
    title: String,
    message: String,
    /// The same from run to run.
    fingerprint: String,
}

fn marks(runs: &[Run<'_>], places: &Places) -> Vec<Mark> {
    let mark = |group: &FailureGroup<'_>| {
        let (case, started) = (group.first, runs[group.run].started);
        let failures = case.decisive_failures();
        let first = failures.first();
        let ids = first.map(|failure| failure.requirements.join(" ")).unwrap_or_default();
        let more = match group.others.len() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let space = if ids.is_empty() { "" } else { " " };
        let mut message = clip::name(case.headline().unwrap_or_default(), MESSAGE).into_owned();
        if let Some(text) = first.and_then(|failure| started.requirements.get(failure.requirements.first()?))
        {
            message += &format!("\n{} {} ({})", text.level, text.text, text.source);
        }
        if !case.reproduce.is_empty() {
            message += &format!("\nreproduce: {}", case.reproduce);
        }
        let mut digest = Sha256::new();
        for part in [&started.protocol, &case.case, &ids] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Mark {
            verdict: case.verdict,
            place: places.of(group),
            title: format!("{}: {}{space}{ids}{more}", started.protocol, case.case),
            message,
            fingerprint: digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    };
    grouped(runs).iter().map(mark).collect()
}

/// GitHub's commands, a line each, the worst cause first: ten at most.
pub fn github(events: &[RunEvent], places: &Places) -> String {
    let marks = marks(&runs(events), places);
    let shown = if marks.len() > MOST { MOST - 1 } else { marks.len() };
    let mut text = String::new();
    for mark in &marks[..shown] {
        let place = mark.place.as_ref();
        let place = place.map(|(file, line)| format!("file={},line={line},", property(file)));
        text += &format!(
            "::{} {}title={}::{}\n",
            command(mark.verdict),
            place.unwrap_or_default(),
            property(&mark.title),
            data(&mark.message)
        );
    }
    if let Some(worst) = marks[shown..].iter().map(|mark| mark.verdict).max() {
        let more = marks.len() - shown;
        text += &format!("::{} title=frameproof::{more} more causes, in the reports\n", command(worst));
    }
    text
}

fn command(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Failed | Verdict::Error => "error",
        _ => "warning",
    }
}

/// As GitHub's runner reads the text of a command. What the text itself has of commands is made harmless before.
fn data(text: &str) -> String {
    escape::lines(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(&escape::terminal(text)).replace(':', "%3A").replace(',', "%2C")
}

/// GitLab's report of code quality.
pub fn gitlab(events: &[RunEvent], places: &Places) -> String {
    let marks = marks(&runs(events), places);
    let issues = marks.into_iter().map(|mark| {
        let severity = match mark.verdict {
            Verdict::Error => "critical",
            Verdict::Failed => "major",
            Verdict::Warned => "minor",
            _ => "info",
        };
        // There is none without a place.
        let (file, line) = mark.place.unwrap_or_else(|| ("frameproof.toml".to_owned(), 1));
        json!({
            "description": escape::lines(&format!("{}: {}", mark.title, mark.message)),
            "check_name": "frameproof",
            "fingerprint": mark.fingerprint,
            "severity": severity,
            "location": { "path": escape::terminal(&file), "lines": { "begin": line } },
        })
    });
    format!("{:#}\n", Value::Array(issues.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_other_in_it() {
        assert_eq!(data("50%\n::error::x ##[group]"), "50%25%0A\\u{3a}:error::x \\u{23}#[group]");
        assert_eq!(property("a,b:c\n"), "a%2Cb%3Ac\\n");
    }
}
