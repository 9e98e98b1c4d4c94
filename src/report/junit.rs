//! JUnit XML, for Jenkins, GitLab, dorny/test-reporter and mikepenz/action-junit-report.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use indexmap::IndexMap;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::escape::xml;
use crate::results::event::{
    CaseReport, Failure, RequirementText, RunEvent, RunStarted, ShownFrame, Verdict,
};
use crate::results::recorded::{Current, Recorded};
use crate::shortage;
use crate::text::beginning;

/// Longest text of one failure in bytes: GitLab takes 30 MB for a whole file.
const MAX_TEXT: usize = 64 * 1024;
/// Frames of the wire log in a failure's text.
const FRAMES: usize = 40;

/// Renders the events of a run.
///
/// # Errors
/// The XML writer's reason.
pub fn render(events: &[RunEvent]) -> Result<String, String> {
    let mut bytes = Vec::new();
    write(events, &mut bytes)?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Writes the events of a run, case by case: what a file of theirs takes in memory does not depend on how many they are.
///
/// # Errors
/// The XML writer's reason, that of the events, or that of `out`.
pub fn write(events: &(impl Recorded + ?Sized), out: &mut dyn Write) -> Result<(), String> {
    let (report, suites) = outline(events)?;
    let written = |written: std::io::Result<()>| written.map_err(|error| shortage::describe(&error));
    written(out.write_all(whole(&report)?.strip_suffix(REPORT_END).unwrap_or_default().as_bytes()))?;
    let mut current = Current::default();
    for Cases { suite, cases } in suites {
        // A suite always has properties, and therefore an end tag.
        written(out.write_all(within(Report::new(NAME), suite.clone(), 1, SUITE_END)?.as_bytes()))?;
        for (run, place) in cases {
            let RunEvent::CaseFinished(case) = &*events.event(place)? else {
                return Err("what is read has changed in the meantime".to_owned());
            };
            let mut alone = TestSuite::new("");
            alone.add_test_case(test_case(case, current.at(events, run)?, suite.name.as_str()));
            written(out.write_all(within(Report::new(NAME), alone, 2, SUITE_END)?.as_bytes()))?;
        }
        written(out.write_all(SUITE_TAG.as_bytes()))?;
    }
    written(out.write_all(REPORT_END.as_bytes()))
}

const NAME: &str = "frameproof";
/// What the writer ends a report with, the last suite in it, and the properties or cases of that.
const REPORT_END: &str = "</testsuites>\n";
const SUITE_TAG: &str = "    </testsuite>\n";
const SUITE_END: &str = "    </testsuite>\n</testsuites>\n";

/// A suite without its cases, and where they are, each behind where its run begins.
struct Cases {
    suite: TestSuite,
    cases: Vec<(usize, usize)>,
}

/// What stands at the beginning of the report and of its suites: their counts and times.
fn outline(events: &(impl Recorded + ?Sized)) -> Result<(Report, Vec<Cases>), String> {
    let mut report = Report::new(NAME);
    let mut suites: IndexMap<String, Cases> = IndexMap::new();
    let mut run = None;
    let mut current = Current::default();
    let mut seconds = 0.0;
    for place in 0..events.count() {
        match &*events.event(place)? {
            RunEvent::RunStarted(begin) => {
                report.timestamp = report.timestamp.or_else(|| begin.started.parse().ok());
                run = Some(place);
            }
            RunEvent::CaseFinished(case) => {
                let Some(run) = run else { continue };
                let begin = current.at(events, run)?;
                let family = case.case.split('/').next().unwrap_or_default();
                let name = xml(&format!("{}.{family}", begin.protocol)).into_owned();
                let known = suites.entry(name);
                let name = known.key().clone();
                let Cases { suite, cases } =
                    known.or_insert_with(|| Cases { suite: suite(name, begin), cases: Vec::new() });
                let time = suite.time.unwrap_or_default().saturating_add(duration(case.seconds));
                suite.set_time(time);
                count(case.verdict, suite);
                cases.push((run, place));
            }
            RunEvent::RunFinished(summary) => {
                seconds += summary.seconds;
                if let Some((_, Cases { suite, .. })) = suites.last_mut() {
                    for hint in &summary.hints {
                        suite.add_property(Property::new("hint", xml(hint).into_owned()));
                    }
                }
                report.set_time(duration(seconds));
            }
            RunEvent::CaseStarted { .. } => {}
        }
    }
    for Cases { suite, .. } in suites.values() {
        report.tests += suite.tests;
        report.failures += suite.failures;
        report.errors += suite.errors;
        report.skipped += suite.skipped;
    }
    Ok((report, suites.into_values().collect()))
}

/// A suite, as the run tells it that had its first case.
fn suite(name: String, begin: &RunStarted) -> TestSuite {
    let mut suite = TestSuite::new(name);
    // The type is the writer's own.
    suite.timestamp = begin.started.parse().ok();
    suite.add_property(Property::new("seed", begin.seed.to_string()));
    if let Some(id) = &begin.run_id {
        suite.add_property(Property::new("run-id", xml(id).into_owned()));
    }
    suite.add_property(Property::new("target", xml(&begin.target).into_owned()));
    suite.add_property(Property::new("reading", xml(&begin.reading).into_owned()));
    suite
}

/// Counts a case, as [`test_case`] shows it.
fn count(verdict: Verdict, suite: &mut TestSuite) {
    suite.tests += 1;
    match verdict {
        Verdict::Failed => suite.failures += 1,
        Verdict::Error => suite.errors += 1,
        Verdict::Known | Verdict::NotApplicable | Verdict::NotExercised => suite.skipped += 1,
        Verdict::Passed | Verdict::Warned | Verdict::Flaky => {}
    }
}

fn whole(report: &Report) -> Result<String, String> {
    report.to_string().map_err(|error| error.to_string())
}

/// A suite as the writer has it in a report: behind the declaration, the report's tag and `above - 1` tags of the suite itself, and before
/// this end.
fn within(mut report: Report, suite: TestSuite, above: usize, end: &str) -> Result<String, String> {
    report.test_suites.push(suite);
    let text = whole(&report)?;
    // These tags stand on a line each: what they say is ours.
    let inner = text.splitn(above + 2, '\n').nth(above + 1).and_then(|inner| inner.strip_suffix(end));
    inner.map(str::to_owned).ok_or_else(|| "the XML has another form than expected".to_owned())
}

fn test_case(case: &CaseReport, begin: &RunStarted, class: &str) -> TestCase {
    let name = case.case.rsplit('/').next().unwrap_or(&case.case);
    let status = match case.verdict {
        Verdict::Failed | Verdict::Error => {
            let kind =
                if case.verdict == Verdict::Failed { NonSuccessKind::Failure } else { NonSuccessKind::Error };
            let mut status = TestCaseStatus::non_success(kind);
            status.set_message(message_of(case));
            status.set_type(type_of(&case.failures));
            status.set_description(text_of(case, &case.failures, begin));
            status.add_reruns(case.earlier.iter().map(|failures| rerun(case, failures, begin)));
            status
        }
        Verdict::Flaky => TestCaseStatus::Success {
            flaky_runs: case.earlier.iter().map(|failures| rerun(case, failures, begin)).collect(),
        },
        Verdict::Known => {
            let mut status = TestCaseStatus::skipped();
            let why = case.known.as_deref().unwrap_or_default();
            status.set_message(xml(&format!("known failure: {why}")).into_owned());
            status
        }
        Verdict::NotApplicable | Verdict::NotExercised => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(xml(case.reason.as_deref().unwrap_or("not exercised")).into_owned());
            status
        }
        Verdict::Passed | Verdict::Warned => TestCaseStatus::success(),
    };
    let mut test = TestCase::new(xml(name).into_owned(), status);
    test.set_classname(xml(class).into_owned());
    test.set_time(duration(case.seconds));
    test.extra.insert("file".into(), xml(&case.file).into_owned().into());
    test.extra.insert("line".into(), case.line.to_string().into());
    // What a case is about, and what it broke; all that it exercised is in the JSON lines.
    let mut ids: Vec<&String> = case.covers.iter().collect();
    ids.extend(case.failures.iter().flat_map(|failure| &failure.requirements));
    ids.sort();
    ids.dedup();
    let ids: Vec<String> = ids.into_iter().map(|id| xml(id).into_owned()).collect();
    if !ids.is_empty() {
        test.add_property(Property::new("requirements", ids.join(" ")));
    }
    test.add_property(Property::new("title", xml(&case.title).into_owned()));
    if case.repeats > 0 {
        test.add_property(Property::new("runs", (case.repeats + 1).to_string()));
    }
    if !case.windows.is_empty() {
        let windows: Vec<String> = case.windows.iter().map(ToString::to_string).collect();
        test.add_property(Property::new("windows", windows.join("; ")));
    }
    if let Some(known) = &case.known {
        test.add_property(Property::new("known-failure", xml(known).into_owned()));
    }
    if case.verdict == Verdict::Warned {
        test.set_system_out(text_of(case, &case.failures, begin));
    }
    test
}

/// Seconds as a duration. The events may come from a file, and say anything: from nothing to a thousand years.
fn duration(seconds: f64) -> Duration {
    const LONGEST: f64 = 3.2e10;
    // Not `clamp`, which keeps NaN.
    Duration::from_secs_f64(if seconds > 0.0 { seconds.min(LONGEST) } else { 0.0 })
}

fn type_of(failures: &[Failure]) -> String {
    let check = failures.first().map_or_else(|| "error".to_owned(), |failure| failure.check.to_string());
    xml(&check).into_owned()
}

fn rerun(case: &CaseReport, failures: &[Failure], begin: &RunStarted) -> TestRerun {
    // Always a failure: consumers know flakyFailure and rerunFailure, not the error forms.
    let mut rerun = TestRerun::new(NonSuccessKind::Failure);
    let message = failures.first().map_or("failed", |failure| failure.message.as_str());
    rerun.set_message(xml(message).into_owned());
    rerun.set_type(type_of(failures));
    rerun.set_description(text_of(case, failures, begin));
    rerun
}

fn message_of(case: &CaseReport) -> String {
    let first = case.failures.iter().find(|failure| failure.verdict == Verdict::Failed);
    let text = match (first.or(case.failures.first()), &case.reason) {
        (Some(failure), _) => format!("{}: {}", failure.requirements.join(" "), failure.message),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "failed".to_owned(),
    };
    xml(text.trim_start_matches(": ")).into_owned()
}

/// The whole group as text, for consumers that show only that.
fn text_of(case: &CaseReport, failures: &[Failure], begin: &RunStarted) -> String {
    let mut out = format!("{}\n{}\n", case.case, case.title);
    if let Some(reason) = &case.reason {
        let _ = writeln!(out, "\n{reason}");
    }
    for failure in failures {
        let _ = writeln!(out, "\n{}", failure.message);
        for id in &failure.requirements {
            let text = begin.requirements.get(id);
            let _ = writeln!(out, "  {}", requirement(id, text));
            if let Some(reading) = text.and_then(|text| failure.reading(text)) {
                let _ = writeln!(out, "    reading {reading}");
            }
        }
        if let Some(step) = &failure.step {
            let _ = writeln!(out, "  at {}:{}: {}", step.file, step.line, step.source);
        }
        if let Some(expected) = &failure.expected {
            let _ = writeln!(out, "  expected: {expected}");
        }
        if let Some(actual) = &failure.actual {
            let _ = writeln!(out, "  actual:   {actual}");
        }
    }
    if let Some(first) = &case.same_as {
        let _ = writeln!(out, "\nit failed for the same reason as {first}, which has the evidence");
        let _ = write!(out, "\nreproduce: {}", case.reproduce);
        return bounded(&out);
    }
    frames(case, failures, &mut out);
    let skipped = case.log.len().saturating_sub(FRAMES);
    if !case.log.is_empty() {
        let _ = writeln!(out, "\noutput of the server at the time:");
    }
    for line in &case.log[skipped..] {
        let _ = writeln!(out, "{:>9.1} ms  {} | {}", line.ms, line.process, line.text);
    }
    if let Some(explain) = case.explained_by() {
        let _ = writeln!(out, "\nthe scenario is embedded: `{explain}` shows it");
    }
    let _ = write!(out, "\nreproduce: {}", case.reproduce);
    bounded(&out)
}

/// A text as it may stand in the file, cut at a bound.
fn bounded(text: &str) -> String {
    xml(beginning(text, MAX_TEXT)).into_owned()
}

/// The last frames, and those that show the failure wherever they are, marked.
fn frames(case: &CaseReport, failures: &[Failure], out: &mut String) {
    if !case.wire.is_empty() {
        let _ = writeln!(out, "\nlast frames (> shows the failure):");
    }
    for frame in case.last_frames(FRAMES, failures) {
        if let Some(summary) = frame.summary() {
            let _ = writeln!(out, "  {summary}");
            continue;
        }
        let ShownFrame { line, marked, .. } = frame;
        let sign = if marked { '>' } else { ' ' };
        let _ = writeln!(out, "{sign}{:>9.1} ms  {:<8} {} {}", line.ms, line.client, line.way, line.text);
    }
}

fn requirement(id: &str, text: Option<&RequirementText>) -> String {
    match text {
        Some(text) => format!("{id} ({}): {} [{}]", text.level, text.text, text.source),
        None => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_at_a_character() {
        assert_eq!(bounded("short é"), "short é");
        let long = bounded(&format!("a{}", "é".repeat(MAX_TEXT)));
        assert_eq!((long.len(), long.chars().last()), (MAX_TEXT - 1, Some('é')));
    }
}
