//! A baseline as a run writes it.

use std::collections::HashMap;
use std::num::NonZeroU32;

use super::BaselineEntry;
use crate::results::case_id;
use crate::results::cause::Cause;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::text::safe;

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
        let mut of_case: Vec<BaselineEntry> = Vec::new();
        for failure in report.failures.iter().filter(fails) {
            note(&mut of_case, &report.case, failure);
        }
        known.append(&mut of_case);
    }
    let known = without_behind(known);
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
        let case = entry.case.as_deref().map(safe::yaml);
        let pattern = entry.pattern.as_deref().map(safe::yaml);
        let message = Some(safe::yaml(&entry.message)).filter(|_| !entry.message.is_empty());
        let count = entry.count.map(|count| count.to_string());
        let fields = [("case", case), ("match", pattern), ("message", message), ("count", count)];
        let fields = fields.into_iter().chain([("reason", Some(safe::yaml(&entry.reason)))]);
        let mut lead = "-";
        for (key, value) in fields.filter_map(|(key, value)| Some((key, value?))) {
            text += &format!("\n  {lead} {key}: {value}");
            lead = " ";
        }
    }
    text + "\n"
}

/// Without the entries about a case behind a preamble that one about the case alone excuses as well.
fn without_behind(known: Vec<BaselineEntry>) -> Vec<BaselineEntry> {
    let excuses = |alone: &BaselineEntry, behind: &BaselineEntry| {
        alone.pattern == behind.pattern
            && behind.message.contains(&alone.message)
            && alone.count >= behind.count
    };
    let case = |entry: &BaselineEntry| entry.case.clone().unwrap_or_default();
    let mut alone: HashMap<String, Vec<&BaselineEntry>> = HashMap::new();
    known.iter().for_each(|entry| alone.entry(case(entry)).or_default().push(entry));
    let is_excused = |entry: &&BaselineEntry| {
        let case = case(entry);
        let without = case_id::without_preamble(&case);
        let entries = alone.get(without).filter(|_| without != case);
        entries.is_some_and(|entries| entries.iter().any(|alone| excuses(alone, entry)))
    };
    known.iter().filter(|entry| !is_excused(entry)).cloned().collect()
}

/// Adds a failure to what is known of its case: as an entry of its own, or to the count of one that fits it.
fn note(of_case: &mut Vec<BaselineEntry>, case: &str, failure: &Failure) {
    let pattern = failure.requirements.first().map(|id| globset::escape(id));
    let message = lasting(&failure.message);
    // Of two entries of which one covers the other, the wider one is enough, for the failures of both.
    let alike = |entry: &BaselineEntry| {
        entry.pattern == pattern && (message.contains(&entry.message) || entry.message.contains(&message))
    };
    let covered: Vec<BaselineEntry> = of_case.extract_if(.., |entry| alike(entry)).collect();
    let times =
        covered.iter().filter_map(|entry| entry.count).fold(1, |sum, count| count.get().saturating_add(sum));
    let widest = covered.into_iter().map(|entry| entry.message).chain([message]).min_by_key(String::len);
    of_case.push(BaselineEntry {
        case: Some(globset::escape(case)),
        pattern,
        message: widest.unwrap_or_default(),
        count: NonZeroU32::new(times),
        sometimes: false,
        reason: "failed when this baseline was written".to_owned(),
        expires: None,
    });
}

/// Fewer characters say nothing: then the requirement alone is named.
const SIGNIFICANT: usize = 6;

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
    if longest.len() < SIGNIFICANT { String::new() } else { longest.to_owned() }
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
    use std::collections::BTreeSet;

    use super::super::tests::{excuses, failure, read};
    use super::*;

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
    fn what_is_written_excuses_what_it_was_written_from() {
        let failures = vec![
            failure("A-1", "`welcome` did not come within 5s"),
            failure("A-1", "/seq 3 comes after 7"),
            failure("B-1", "x: \"quoted: 'text'\" # {{not}} yaml"),
        ];
        let text = write(&[report("f/c", failures.clone())], false);
        let baseline = read(&text, "2030-01-01").expect("valid");
        assert_eq!(baseline.entries.len(), 3, "{text}");
        assert_eq!(excuses(&baseline, "f/c", &failures), [true, true, true], "{text}");
        assert_eq!(excuses(&baseline, "f/d", &failures), [false, false, false], "another case: {text}");
        let other = failure("A-1", "something else");
        assert_eq!(excuses(&baseline, "f/c", std::slice::from_ref(&other)), [false]);
        // The doctor has cases of its own.
        assert!(baseline.reason_for("target/step", &failures[1]).is_some(), "{text}");
        assert!(baseline.reason_for("target/step", &other).is_none(), "{text}");
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
    fn a_case_behind_a_preamble_that_fails_as_it_does_alone_needs_no_entry() {
        let late = failure("A-1", "came after the run was closed");
        let reports = [
            report("f/c@history", vec![late.clone()]),
            report("f/c", vec![late.clone()]),
            report("f/c@variety", vec![late.clone(), failure("B-1", "nothing came")]),
            report("f/d@history", vec![late.clone(), late.clone()]),
            report("f/d", vec![late.clone()]),
        ];
        let text = write(&reports, false);
        let baseline = read(&text, "2030-01-01").expect("valid");
        let cases: Vec<&str> =
            baseline.entries.iter().filter_map(|entry| entry.known.case.as_deref()).collect();
        assert_eq!(cases, ["f/c", "f/c@variety", "f/d@history", "f/d"], "{text}");
        for report in &reports {
            let excused = excuses(&baseline, &report.case, &report.failures);
            assert!(excused.iter().all(|one| *one), "{}: {text}", report.case);
        }
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
        assert_eq!(excuses(&baseline, "f/c", &failures), [true, true, true], "{text}");
        // Two that fit the same failure, as a person may write them, are both of use.
        let text = "known:\n  - { match: A-1, message: closed, reason: r }\n  - { match: A-1, reason: r }\n";
        let baseline = read(text, "2030-01-01").expect("valid");
        assert_eq!(baseline.excuses("f/c", &failures[..1]).1, BTreeSet::from([0, 1]));
    }

    #[test]
    fn more_failures_than_noted_are_not_excused() {
        let repeated = failure("A-1", "text came after the end");
        let text = write(
            &[report("f/c", vec![repeated.clone(), repeated.clone(), failure("B-1", "nothing came")])],
            false,
        );
        let baseline = read(&text, "2030-01-01").expect("valid");
        assert!(text.contains("count: 2"), "{text}");
        assert_eq!(excuses(&baseline, "f/c", &vec![repeated.clone(); 2]), [true, true], "{text}");
        assert_eq!(excuses(&baseline, "f/c", &vec![repeated.clone(); 3]), [true, true, false], "{text}");
        // What fits two entries leaves the one with a count to what fits that one alone.
        let text = "known:\n  - { case: f/c, match: A-1, message: came, count: 1, reason: r }\n  - { case: f/c, match: A-1, message: text, reason: r }\n";
        let baseline = read(text, "2030-01-01").expect("valid");
        assert_eq!(excuses(&baseline, "f/c", &[repeated, failure("A-1", "nothing came")]), [true, true]);
        let shown = read("known:\n  - { reason: r }\n", "2030-01-01").expect_err("nothing named").to_string();
        assert!(
            shown.contains("names a case, a requirement, or both") && shown.contains("b.yaml:2:5"),
            "{shown}"
        );
        assert!(read("known:\n  - { case: f, count: 0, reason: r }\n", "2030-01-01").is_err());
    }
}
