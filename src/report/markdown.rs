//! A summary in Markdown: for the page of a job in CI, or a comment on a merge request.

use std::fmt::Write as _;

use super::failure_groups::{FailureGroup, grouped};
use super::runs::{Run, runs, total};
use super::table::Table;
use super::{clip, counts, escape, verdict_of};
use crate::results::event::{CaseReport, Failure, RunEvent, RunStarted, Verdict};

/// Longest summary in bytes: GitHub takes 1 MiB of a step.
pub const MAX_BYTES: usize = 1_000_000;
/// Causes that are told in full.
const CAUSES: usize = 50;
/// Failures of a case.
const FAILURES: usize = 8;
/// Lines of the wire log of a case, and characters of each.
const FRAMES: usize = 12;
const FRAME: usize = 240;
/// Characters of a client's name.
const CLIENT: usize = 40;
/// Characters of a sentence.
const SENTENCE: usize = 600;
/// Characters of a command.
const COMMAND: usize = 2_000;
/// Cases named of a cause.
const NAMED: usize = 20;
/// What begins a heading, in words that no colour is needed for.
const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Failed | Verdict::Error => "❌",
        Verdict::Warned | Verdict::Flaky => "⚠️",
        Verdict::Passed | Verdict::Known | Verdict::NotApplicable | Verdict::NotExercised => "✅",
    }
}

/// Renders the events of a run, of several, or of a campaign: [`MAX_BYTES`] at most.
pub fn render(events: &[RunEvent]) -> String {
    let runs = runs(events);
    let total = total(&runs);
    let verdict = total.as_ref().map_or("no verdict", verdict_of);
    let good = total.as_ref().is_some_and(|total| total.exit_code == 0);
    let mut text = format!("## {} {verdict}\n\n", sign(if good { Verdict::Passed } else { Verdict::Failed }));
    if let Some(total) = &total {
        let _ = writeln!(text, "{}\n", counts(total));
    }
    for run in &runs {
        text += &about(run.started);
    }
    text += &format!("\n{}\n", overview(&runs));
    for left_out in runs.iter().filter_map(|run| run.started.left_out_note()).take(CAUSES) {
        text += &format!("{left_out}\n\n");
    }
    let groups = grouped(&runs);
    for (index, group) in groups.iter().enumerate() {
        let told = group_section(group, runs[group.run].started);
        // Room for the line that says that there is more.
        if index == CAUSES || text.len() + told.len() + 200 > MAX_BYTES {
            let _ = writeln!(text, "… and {} more causes, in the other reports.", groups.len() - index);
            break;
        }
        text += &told;
    }
    text
}

fn about(started: &RunStarted) -> String {
    format!(
        "{} against {} (seed {}, {} reading, frameproof {})  \n",
        prose(&started.title),
        code(&started.target),
        started.seed,
        prose(&started.reading),
        prose(&started.version),
    )
}

/// Requirements by verdict.
fn overview(runs: &[Run<'_>]) -> String {
    let header =
        ["protocol", "cases", "requirements passed", "failed", "warned", "not exercised", "not applicable"];
    let mut table = Table::new(header);
    for run in runs {
        let results = || run.summary.iter().flat_map(|summary| summary.requirements.values());
        let count = |wanted| results().filter(|result| result.verdict == wanted).count().to_string();
        table.row([
            prose(&run.started.protocol),
            (run.cases.len() + run.started.left_out).to_string(),
            count(Verdict::Passed),
            count(Verdict::Failed),
            count(Verdict::Warned),
            count(Verdict::NotExercised),
            count(Verdict::NotApplicable),
        ]);
    }
    table.markdown()
}

/// One cause, folded.
fn group_section(group: &FailureGroup<'_>, started: &RunStarted) -> String {
    let case = group.first;
    let failures = case.decisive_failures();
    let others = match group.others.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let mut text = format!(
        "<details><summary>{} <b>{}</b>{others}: {}</summary>\n\n{}\n\n",
        sign(case.verdict),
        html(&case.case),
        html(case.headline().unwrap_or_default()),
        prose(&case.title)
    );
    for failure in failures.iter().take(FAILURES) {
        text += &failed(failure, started);
    }
    if failures.len() > FAILURES {
        let _ = writeln!(text, "- … and {} more failures", failures.len() - FAILURES);
    }
    text += &format!("\n{}", fenced(&frames(case, &failures)));
    if !group.others.is_empty() {
        let named: Vec<String> = group.others.iter().take(NAMED).map(|case| code(&case.case)).collect();
        let more = group.others.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "For the same reason: {}{more}\n", named.join(", "));
    }
    if !case.reproduce.is_empty() {
        text += &format!("Reproduce:\n\n{}", fenced(&clip::name(&case.reproduce, COMMAND)));
    }
    text + "</details>\n\n"
}

fn failed(failure: &Failure, started: &RunStarted) -> String {
    let mut text = format!("- {}\n", prose(&failure.message));
    for id in &failure.requirements {
        let _ = match started.requirements.get(id) {
            Some(one) => writeln!(
                text,
                "  - {} {} {} ({})",
                code(id),
                prose(&one.level),
                prose(&one.text),
                prose(&one.source)
            ),
            None => writeln!(text, "  - {}", code(id)),
        };
    }
    if let Some(step) = &failure.step {
        let _ =
            writeln!(text, "  - at {}", code(&format!("{}:{} {}", step.file, step.line, step.source.trim())));
    }
    text
}

fn frames(case: &CaseReport, failures: &[Failure]) -> String {
    let mut text = String::new();
    for shown in case.last_frames(FRAMES, failures).into_iter().rev().take(2 * FRAMES).rev() {
        if let Some(summary) = shown.summary() {
            let _ = writeln!(text, "  {summary}");
            continue;
        }
        let (line, mark) = (shown.line, if shown.marked { '>' } else { ' ' });
        let frame = escape::terminal(&line.text);
        let _ = writeln!(
            text,
            "{mark} {:>9.1} ms {} {} {}",
            line.ms,
            clip::name(&escape::terminal(&line.client), CLIENT),
            line.way,
            clip::name(&frame, FRAME)
        );
    }
    text
}

/// A line of text that is no Markdown, whatever is in it: everything that could be is escaped.
fn prose(text: &str) -> String {
    let text = clip::name(text, SENTENCE);
    let mut out = String::with_capacity(text.len() + 16);
    for c in escape::terminal(&text).chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            // A mention or a reference would tell somebody, or lead somewhere.
            '@' => out += "&#64;",
            '#' => out += "&#35;",
            ':' => out += "&#58;",
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text in HTML.
fn html(text: &str) -> String {
    let mut out = String::new();
    for c in escape::terminal(&clip::name(text, SENTENCE)).chars() {
        match c {
            c if c.is_ascii_alphanumeric() || " /.-,;()'=".contains(c) || !c.is_ascii() => out.push(c),
            c => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
        }
    }
    out
}

/// A word in the type of code: longer rules than any in it.
fn code(text: &str) -> String {
    let text = escape::terminal(text);
    // A table's cell ends at a bar, even within code.
    format!("<code>{}</code>", html(&text))
}

/// A block of code, as it is: with a longer fence than any in it.
fn fenced(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n\n", escape::lines(text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markdown() {
        assert_eq!(
            prose("*a* [b](c) <i> @you #1 ::error"),
            "\\*a\\* \\[b\\]\\(c\\) &lt;i&gt; &#64;you &#35;1 \\\\u\\{3a\\}&#58;error"
        );
        assert_eq!(code("a`|b"), "<code>a&#96;&#124;b</code>");
        assert_eq!(fenced("a\n```\nb"), "````text\na\n```\nb\n````\n\n");
    }
}
