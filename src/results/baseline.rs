//! Known failures: a file that excuses them, and complains when they are gone.

use std::collections::BTreeSet;
use std::path::Path;

use globset::{Glob, GlobMatcher};
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::results::cause::Cause;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::source::{Diagnostic, Diagnostics, Document, Part, decode, nearest};

/// The case in whose name servers that died while no case failed by it are reported.
pub(crate) const LIVES_ON: &str = "target/lives-on";
/// What frameproof itself reports as cases.
const OWN: [&str; 3] = [LIVES_ON, "target/sessions-apart", "target/step"];

/// A baseline file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineFile {
    /// The known failures.
    pub known: Vec<BaselineEntry>,
}

/// One known failure.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineEntry {
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
    entries: Vec<Entry>,
    /// Only a part of the suite is run: an entry that it does not touch is not stale.
    pub partial: bool,
    /// The file.
    document: Option<Document>,
}

#[derive(Debug, Clone)]
struct Entry {
    known: BaselineEntry,
    glob: GlobMatcher,
    expired: bool,
}

impl Baseline {
    /// Reads a baseline. Entries that expired before `today` (`YYYY-MM-DD`) excuse nothing.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with its place.
    pub fn load(path: &Path, today: &str) -> Result<Self, Diagnostics> {
        Self::from_document(&Document::read(path)?, today)
    }

    /// As [`Baseline::load`], from a file that has been read already.
    ///
    /// # Errors
    /// As [`Baseline::load`].
    pub fn from_document(document: &Document, today: &str) -> Result<Self, Diagnostics> {
        let file: BaselineFile = decode(document, "")?;
        let mut errors = Diagnostics::default();
        let mut entries = Vec::new();
        for (index, known) in file.known.into_iter().enumerate() {
            let mut wrong = |field: &str, diagnostic: Diagnostic| {
                errors.push(diagnostic.at(document, &format!("/known/{index}/{field}"), Part::Value));
            };
            let expires = known.expires.as_deref().map(|date| (date, date.parse::<Date>()));
            let expired = match expires {
                Some((date, Err(_))) => {
                    wrong(
                        "expires",
                        Diagnostic::new(format!("`{date}` is not a date")).hint("write YYYY-MM-DD"),
                    );
                    false
                }
                Some((_, Ok(date))) => today.parse::<Date>().is_ok_and(|today| date < today),
                None => false,
            };
            if known.reason.trim().is_empty() {
                let hint = "say why the failure is tolerated, or where it is tracked";
                wrong("reason", Diagnostic::new("a known failure needs a reason").hint(hint));
            }
            match Glob::new(&known.pattern) {
                Ok(glob) => entries.push(Entry { known, glob: glob.compile_matcher(), expired }),
                Err(error) => {
                    let message = format!("`{}` is not a glob: {}", known.pattern, error.kind());
                    let hint = "a glob over requirement ids (`MC-ABT-*`) or case ids (`abort/*`)";
                    wrong("match", Diagnostic::new(message).hint(hint));
                }
            }
        }
        errors.or(Self { entries, partial: false, document: Some(document.clone()) })
    }

    /// The entries that excuse a failure: their indices and reasons. Each of them still has its use.
    pub fn entries_for(&self, case: &str, failure: &Failure) -> impl Iterator<Item = (usize, &str)> {
        self.entries.iter().enumerate().filter_map(move |(index, Entry { known, glob, expired })| {
            let named = glob.is_match(case) || failure.requirements.iter().any(|id| glob.is_match(id));
            let fits = named && failure.message.contains(&known.message) && !expired;
            fits.then_some((index, known.reason.as_str()))
        })
    }

    /// Entries that name none of these cases and requirements, which are all that there are: they are mistyped. What is wrong, where it is
    /// written, and what was perhaps meant.
    pub fn mistyped<'i>(&self, ids: impl Iterator<Item = &'i str> + Clone) -> Vec<Diagnostic> {
        let ids = ids.chain(OWN);
        let Some(document) = &self.document else { return Vec::new() };
        let entries = self.entries.iter().enumerate();
        let wrong = entries.filter(|(_, entry)| !ids.clone().any(|id| entry.glob.is_match(id)));
        let told = wrong.map(|(index, entry)| {
            let pattern = &entry.known.pattern;
            let note =
                Diagnostic::note(format!("the baseline's `{pattern}` names no case and no requirement"));
            let note = note.at(document, &format!("/known/{index}/match"), Part::Value);
            match nearest(pattern, ids.clone()) {
                Some(near) => note.hint(format!("did you mean `{near}`?")),
                None => note.hint(
                    "`frameproof list` shows the cases, `frameproof list --requirements` the requirements",
                ),
            }
        });
        told.collect()
    }

    /// Messages about the entries that excused nothing, and about those of them that say nothing of the server, for what they are
    /// about was not tried. `ran`: the cases and requirements that were touched by the run; `known`: those that there are.
    pub fn stale(
        &self,
        used: &BTreeSet<usize>,
        ran: &BTreeSet<&str>,
        known: &BTreeSet<&str>,
    ) -> (Vec<String>, Vec<String>) {
        let names = |entry: &Entry, ids: &BTreeSet<&str>| ids.iter().any(|id| entry.glob.is_match(id));
        let unused = self.entries.iter().enumerate().filter(|(index, _)| !used.contains(index));
        let unused = unused.map(|(_, entry)| entry);
        let (touched, rest): (Vec<&Entry>, Vec<&Entry>) =
            unused.partition(|entry| entry.expired || names(entry, ran));
        // Of a part of the suite nobody knows what else there is.
        let rest = rest.into_iter().filter(|_| !self.partial);
        let (untried, unknown): (Vec<&Entry>, Vec<&Entry>) = rest.partition(|entry| names(entry, known));
        let told = |entries: Vec<&Entry>, why: &str| -> Vec<String> {
            let told = entries.into_iter().map(|entry| {
                let message = match entry.known.message.as_str() {
                    "" => String::new(),
                    message => format!(" with \"{message}\""),
                };
                let why = match &entry.known.expires {
                    Some(date) if entry.expired => {
                        format!("expired on {date}: fix the server, or set a new date")
                    }
                    _ => why.to_owned(),
                };
                format!("`{}`{message} ({}) {why}", entry.known.pattern, entry.known.reason)
            });
            told.collect()
        };
        let mut stale = told(touched, "no longer fails: remove it");
        stale.extend(told(unknown, "names no existing case or requirement: is it mistyped?"));
        (stale, told(untried, "was not tried by this run"))
    }
}

/// A baseline file that excuses every failure of these reports; with `strict`, the warnings, too. It says how many cases were not
/// run at all.
pub fn write(reports: &[CaseReport], strict: bool) -> String {
    let mut known: Vec<BaselineEntry> = Vec::new();
    let (unknown, ran): (Vec<_>, Vec<_>) =
        reports.iter().partition(|report| report.cause == Some(Cause::NotRun));
    for report in ran {
        let fails = |failure: &&Failure| {
            failure.verdict == Verdict::Failed || strict && failure.verdict == Verdict::Warned
        };
        for failure in report.failures.iter().filter(fails) {
            let pattern = failure.requirements.first().cloned();
            let pattern = pattern.unwrap_or_else(|| globset::escape(&report.case));
            let message = lasting(&failure.message);
            // Of two entries of which one covers the other, the wider one is enough.
            let covered = |wide: &str, narrow: &str| narrow.contains(wide);
            if !known.iter().any(|entry| entry.pattern == pattern && covered(&entry.message, &message)) {
                known.retain(|entry| entry.pattern != pattern || !covered(&message, &entry.message));
                known.push(BaselineEntry {
                    pattern,
                    message,
                    reason: format!("failed when this baseline was written, in {}", report.case),
                    expires: None,
                });
            }
        }
    }
    let mut text = String::from(
        "# Known failures: they do not fail the run. An entry that no longer fails does: remove it then.\n",
    );
    if !unknown.is_empty() {
        // What they would come to nobody knows.
        text += &format!("# Not listed, because they were not run: {}.\n", unknown.len());
    }
    text += "known:";
    if known.is_empty() {
        return text + " []\n";
    }
    for entry in known {
        for (key, value) in
            [("- match", &entry.pattern), ("  message", &entry.message), ("  reason", &entry.reason)]
        {
            // JSON strings are YAML strings.
            text += &format!("\n  {key}: {}", serde_json::Value::from(value.as_str()));
        }
    }
    text + "\n"
}

/// Fewer characters say nothing: then the requirement alone is named.
const TELLING: usize = 6;

/// The longest part of a message that the next run will repeat: without quoted text, values, numbers and ids. Empty if that
/// leaves nothing that tells.
fn lasting(message: &str) -> String {
    let plain = without_quotes(message);
    let changes = |c: char| c.is_control() || "{}[]()".contains(c);
    let mut longest = "";
    for part in plain.split(changes) {
        // A word with a digit is a number or an id, a whole one: what is between the digits of a UUID changes, too.
        let (mut start, mut at) = (0, 0);
        for word in part.split_inclusive(' ') {
            let from = at;
            at += word.len();
            if word.contains(|c: char| c.is_ascii_digit()) {
                longest = longer(longest, &part[start..from]);
                start = at;
            }
        }
        longest = longer(longest, &part[start..]);
    }
    if longest.len() < TELLING { String::new() } else { longest.to_owned() }
}

fn longer<'t>(one: &'t str, other: &'t str) -> &'t str {
    let other = other.trim_matches([' ', ':', ',', '-', '.', ';', '=', '/']);
    if other.len() > one.len() { other } else { one }
}

/// With a line break for each quoted text, which is the server's. Names in backquotes are the protocol's, and stay.
fn without_quotes(message: &str) -> String {
    let mut plain = String::with_capacity(message.len());
    let mut within = None;
    let mut letters = message.chars();
    while let Some(letter) = letters.next() {
        match within {
            Some(_) if letter == '\\' => drop(letters.next()),
            Some(quote) if letter == quote => within = None,
            Some(_) => {}
            None if letter == '"' => {
                within = Some(letter);
                plain.push('\n');
            }
            None => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;

    fn read(text: &str, today: &str) -> Result<Baseline, Diagnostics> {
        Baseline::from_document(&Document::parse("b.yaml", text)?, today)
    }

    fn failure(id: &str, message: &str) -> Failure {
        Failure::new(Check::Step, Verdict::Failed, message).breaking(&[id.to_owned()])
    }

    fn report(case: &str, failures: Vec<Failure>) -> CaseReport {
        CaseReport {
            case: case.to_owned(),
            line: 1,
            verdict: Verdict::Failed,
            failures,
            ..CaseReport::default()
        }
    }

    #[test]
    fn an_entry_excuses_what_it_names_and_nothing_else() {
        let text = "known:\n  - { match: 'A-*', message: came late, reason: bug 1, expires: 2030-01-31 }\n";
        for (case, id, message, today, excused) in [
            ("f/c", "A-1", "it came late by 3 s", "2029-01-01", true),
            ("f/c", "A-1", "it came late by 3 s", "2030-01-31", true),
            ("f/c", "A-1", "it came late by 3 s", "2030-02-01", false),
            ("f/c", "A-1", "it never came", "2029-01-01", false),
            ("f/c", "B-1", "it came late", "2029-01-01", false),
            ("A-file/c", "B-1", "it came late", "2029-01-01", true),
        ] {
            let baseline = read(text, today).expect("valid");
            assert_eq!(
                baseline.entries_for(case, &failure(id, message)).next().is_some(),
                excused,
                "{case} {id} {message} {today}"
            );
        }
    }

    #[test]
    fn what_is_no_longer_needed_is_stale() {
        let text = "known:\n  - { match: A-1, reason: r }\n  - { match: B-1, reason: r }\n  - { match: C-1, reason: r, expires: 2020-01-01 }\n";
        let mut baseline = read(text, "2030-01-01").expect("valid");
        let used = BTreeSet::from([0]);
        let (none, one) = (BTreeSet::new(), BTreeSet::from(["B-1"]));
        let unknown = "`B-1` (r) names no existing case or requirement: is it mistyped?";
        let expired = "`C-1` (r) expired on 2020-01-01: fix the server, or set a new date";
        let gone = "`B-1` (r) no longer fails: remove it";
        let none_told: [&str; 0] = [];
        for (partial, ran, known, stale, untried) in [
            (false, &none, &none, &[expired, unknown][..], &none_told[..]),
            (false, &none, &one, &[expired], &["`B-1` (r) was not tried by this run"]),
            (false, &one, &one, &[gone, expired], &none_told),
            (true, &none, &one, &[expired], &none_told),
            (true, &one, &one, &[gone, expired], &none_told),
        ] {
            baseline.partial = partial;
            let told = baseline.stale(&used, ran, known);
            assert_eq!(
                (&told.0[..], &told.1[..]),
                (
                    &stale.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..],
                    &untried.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..]
                )
            );
        }
    }

    #[test]
    fn mistakes_have_places() {
        let text = "known:\n  - match: 'A-['\n    reason: x\n    expires: tomorrow\n  - match: A\n    reason: ' '\n    messag: m\n";
        let shown = read(text, "2030-01-01").expect_err("wrong").to_string();
        assert!(shown.contains("did you mean `message`?"), "{shown}");
        let shown = read(&text.replace("    messag: m\n", ""), "2030-01-01").expect_err("wrong").to_string();
        for part in [
            "`A-[` is not a glob",
            "b.yaml:2:12",
            "`tomorrow` is not a date",
            "b.yaml:4:14",
            "needs a reason",
            "b.yaml:6:13",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }

    #[test]
    fn what_is_written_excuses_what_it_was_written_from() {
        let failures = vec![
            failure("A-1", "`welcome` did not come within 5s"),
            failure("A-1", "/seq 3 comes after 7"),
            failure("B-1", "x: \"quoted: 'text'\" # {{not}} yaml"),
        ];
        let text = write(&[report("f/c", failures.clone())], false);
        let baseline = read(&text, "2030-01-01").expect("valid");
        assert_eq!(baseline.entries.len(), 3, "{text}");
        for failure in &failures {
            assert!(baseline.entries_for("f/c", failure).next().is_some(), "{text}");
        }
        assert!(baseline.entries_for("f/c", &failure("A-1", "something else")).next().is_none());
        assert_eq!(write(&[], false).lines().last(), Some("known: []"));
    }

    #[test]
    fn cases_that_were_not_run_are_counted_and_not_excused() {
        let ran = report("f/ran", vec![failure("A-1", "nothing came at all")]);
        let mut not = report("f/not", vec![failure("B-1", "not run: it is silent")]);
        not.cause = Some(Cause::NotRun);
        let text = write(&[ran, not], false);
        let baseline = read(&text, "2030-01-01").expect("valid");
        assert_eq!(baseline.entries.len(), 1, "{text}");
        assert!(text.contains("# Not listed, because they were not run: 1."), "{text}");
    }

    #[test]
    fn what_is_written_holds_for_the_next_run() {
        for (message, lasts) in [
            (
                "a run goes through its states in order: 7f3aedca-88f1-4edc-aabb-0123456789ab went back",
                "a run goes through its states in order",
            ),
            ("text of \"a long \\\" answer of the server\" was lost", "was lost"),
            ("it came after the run was closed (with k = 5)", "it came after the run was closed"),
            ("TextDelta: `content` is missing", "TextDelta: `content` is missing"),
            ("3 of 7", ""),
        ] {
            assert_eq!(lasting(message), lasts, "{message}");
        }
    }

    #[test]
    fn an_entry_that_another_covers_is_left_out() {
        let failures = vec![
            failure("A-1", "text came after the run was closed (`x`)"),
            failure("A-1", "came after the run was closed"),
            failure("A-1", "nothing at all came after the run was closed"),
        ];
        let text = write(&[report("f/c", failures.clone())], false);
        let baseline = read(&text, "2030-01-01").expect("valid");
        assert_eq!(baseline.entries.len(), 1, "{text}");
        assert!(failures.iter().all(|failure| baseline.entries_for("f/c", failure).count() == 1));
        // Two that fit the same failure, as a person may write them, are both of use.
        let text = "known:\n  - { match: A-1, message: closed, reason: r }\n  - { match: A-1, reason: r }\n";
        let baseline = read(text, "2030-01-01").expect("valid");
        assert_eq!(baseline.entries_for("f/c", &failures[0]).count(), 2);
    }
}
