//! Known failures: a file that excuses them, and complains when they are gone.

use std::collections::BTreeSet;
use std::path::Path;

use globset::{Glob, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::{CaseReport, Failure, Verdict};
use crate::source::{Diagnostic, Diagnostics, Document, Part, decode};

/// A baseline file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineFile {
    /// The known failures.
    pub known: Vec<Known>,
}

/// One known failure.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// A glob over requirement ids (`MC-ABT-*`) or case ids (`abort/*`).
    #[serde(rename = "match")]
    pub pattern: String,
    /// Part of the failure's message: another failure of the same requirement is not excused.
    #[serde(default)]
    pub message: String,
    /// Why it is tolerated.
    pub reason: String,
    /// The last day on which it is excused, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A loaded baseline.
#[derive(Debug, Clone)]
pub struct Baseline {
    entries: Vec<(Known, GlobMatcher, bool)>,
}

impl Baseline {
    /// Reads a baseline. Entries that expired before `today` (`YYYY-MM-DD`) excuse nothing.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with its place.
    pub fn load(path: &Path, today: &str) -> Result<Self, Diagnostics> {
        let document = Document::read(path)?;
        let file: BaselineFile = decode(&document, "")?;
        let mut errors = Diagnostics::default();
        let mut entries = Vec::new();
        for (index, known) in file.known.into_iter().enumerate() {
            let at = format!("/known/{index}");
            let expired = match &known.expires {
                Some(date) if date.parse::<jiff::civil::Date>().is_err() => {
                    let at = format!("{at}/expires");
                    let message = format!("`{date}` is no date; write YYYY-MM-DD");
                    errors.push(Diagnostic::new(message).at(&document, &at, Part::Value));
                    continue;
                }
                Some(date) => date.as_str() < today,
                None => false,
            };
            match Glob::new(&known.pattern) {
                Ok(glob) => entries.push((known, glob.compile_matcher(), expired)),
                Err(error) => {
                    let at = format!("{at}/match");
                    errors.push(Diagnostic::new(format!("no glob: {error}")).at(&document, &at, Part::Value));
                }
            }
        }
        errors.or(Self { entries })
    }

    /// The entry that excuses a failure: its index and reason.
    pub fn entry_for(&self, case: &str, failure: &Failure) -> Option<(usize, &str)> {
        self.entries.iter().enumerate().find_map(|(index, (known, glob, expired))| {
            let named = glob.is_match(case) || failure.requirements.iter().any(|id| glob.is_match(id));
            let fits = named && failure.message.contains(&known.message) && !expired;
            fits.then_some((index, known.reason.as_str()))
        })
    }

    /// Messages about the entries that excused nothing.
    pub fn stale(&self, used: &BTreeSet<usize>) -> Vec<String> {
        let unused = self.entries.iter().enumerate().filter(|(index, _)| !used.contains(index));
        unused
            .map(|(_, (known, _, expired))| {
                let why = if *expired { "expired" } else { "no longer fails" };
                format!("`{}` ({}) {why}: remove it", known.pattern, known.reason)
            })
            .collect()
    }
}

/// A baseline file that excuses every failure of these reports.
pub fn write(reports: &[CaseReport]) -> String {
    let mut known: Vec<Known> = Vec::new();
    for report in reports {
        for failure in report.failures.iter().filter(|failure| failure.verdict == Verdict::Failed) {
            let pattern = failure.requirements.first().cloned().unwrap_or_else(|| report.case.clone());
            if !known.iter().any(|entry| entry.pattern == pattern) {
                known.push(Known {
                    pattern,
                    message: String::new(),
                    reason: format!("known since this baseline was written; seen in {}", report.case),
                    expires: None,
                });
            }
        }
    }
    let mut text = String::from(
        "# Known failures. An entry that no longer fails makes the run fail: remove it then.\nknown:",
    );
    if known.is_empty() {
        return text + " []\n";
    }
    for entry in known {
        // JSON strings are YAML strings.
        text += &format!("\n  - match: {}\n    reason: {}", quoted(&entry.pattern), quoted(&entry.reason));
    }
    text + "\n"
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
