//! What went wrong, each cause once: what, what the document says, who said what when, and how to see it again.

use maud::{Markup, html};
use serde_json::Value;

use super::bars::{badge, look};
use super::clip::{self, sentence};
use super::links::Links;
use super::rows::rows;
use super::sequence;
use crate::report::diff::{self, Comparison};
use crate::report::escape;
use crate::report::failure_groups::FailureGroup;
use crate::report::runs::Run;
use crate::results::Check;
use crate::results::event::{CaseReport, Failure, GeneratedStep, RunStarted};

/// Bytes of evidence on a page; what comes then is told in brief.
const EVIDENCE: usize = 3_000_000;
/// Failures of a case that are shown.
const FAILURES: usize = 12;
/// Steps of a finding, and characters of each.
const STEPS: usize = 50;
const STEP: usize = 1_000;
/// Lines of a difference, and characters of each.
const LINES: usize = 160;
const LINE: usize = 400;

/// The section.
pub(super) fn section(groups: &[FailureGroup<'_>], runs: &[Run<'_>], links: &Links) -> Markup {
    let mut left = EVIDENCE;
    let mut article = |group: &FailureGroup<'_>| {
        let article = Article { group, started: runs[group.run].started, links, named: runs.len() > 1 };
        let shown = article.render(if left > 0 { Depth::Full } else { Depth::Brief });
        left = left.saturating_sub(escape::lines(&shown.0).len());
        shown
    };
    html! {
        section #failures aria-labelledby="failures-h" {
            h2 #failures-h { "Failures" @if !groups.is_empty() { " " span.count { (causes(groups.len())) } } }
            @if groups.is_empty() { p.empty { "Nothing failed, and nothing was warned of." } }
            @for group in groups { (article(group)) }
        }
    }
}

fn causes(count: usize) -> String {
    if count == 1 { "1 cause".to_owned() } else { format!("{count} causes") }
}

/// How much is told.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Full,
    Brief,
}

struct Article<'s, 'e> {
    group: &'s FailureGroup<'e>,
    started: &'e RunStarted,
    links: &'s Links,
    /// The protocol is told, for there are several.
    named: bool,
}

impl Article<'_, '_> {
    fn render(&self, depth: Depth) -> Markup {
        let case = self.group.first;
        let failures = case.decisive_failures();
        let shown = if depth == Depth::Full { FAILURES } else { 1 };
        let id = self.links.case(case);
        html! {
            article.story.item id=(id) data-verdict=(look(case.verdict).class) tabindex="-1" {
                h3 {
                    (badge(case.verdict)) " "
                    @if self.named { span.muted { (clip::name(&self.started.protocol, 60)) } " " }
                    a.case href={ "#" (id) } { (sentence(&case.case)) }
                    @if !self.group.others.is_empty() { " " span.count { "and " (self.group.others.len()) " more" } }
                }
                p.title { (sentence(&case.title)) }
                @if let Some(reason) = &case.reason { p.reason { (sentence(reason)) } }
                @for failure in failures.iter().take(shown) { (self.failure(failure, depth)) }
                @if failures.len() > shown { p.muted { "and " (failures.len() - shown) " more in this case" } }
                @if !case.steps.is_empty() { (steps(&case.steps)) }
                @if depth == Depth::Full { (self.wire(&failures)) }
                @else {
                    p.muted { "The frames are left out, so that the page stays small. " code { "frameproof report FILE -v" } " has them." }
                }
                (again(case))
                (self.others())
            }
        }
    }

    fn failure(&self, failure: &Failure, depth: Depth) -> Markup {
        let at = if failure.check == Check::Step { "at" } else { "while at" };
        html! {
            div class={ "failure " (look(failure.verdict).class) } {
                p.message { span aria-hidden="true" { (look(failure.verdict).sign) } " " (sentence(&failure.message)) }
                @for id in failure.requirements.iter().take(FAILURES) { (self.requirement(id, failure)) }
                @if let Some(step) = &failure.step {
                    p.step {
                        span.muted { (at) " " (clip::name(&step.file, 200)) ":" (step.line) }
                        " " code { (clip::name(step.source.trim().trim_start_matches("- "), 200)) }
                    }
                }
                @if depth == Depth::Full { (values(failure)) }
            }
        }
    }

    fn requirement(&self, id: &str, failure: &Failure) -> Markup {
        let text = self.started.requirements.get(id);
        html! {
            div.requirement {
                @match self.links.to_requirement(id) {
                    Some(link) => a.id href=(link) { (sentence(id)) },
                    None => span.id { (sentence(id)) },
                }
                @if let Some(text) = text {
                    " " b.level { (sentence(&text.level)) } " " (sentence(&text.text)) " "
                    cite { "(" (sentence(&text.source)) ")" }
                    @if let Some(reading) = failure.reading(text) { p.reading { "Reading " (sentence(reading)) } }
                }
            }
        }
    }

    fn wire(&self, failures: &[Failure]) -> Markup {
        let case = self.group.first;
        let rows = rows(case, failures);
        html! {
            @if !rows.is_empty() {
                h4 { "Sequence of messages" }
                (sequence::diagram(&rows))
            }
        }
    }

    fn others(&self) -> Markup {
        let others = &self.group.others;
        html! {
            @if !others.is_empty() {
                details.others {
                    summary { (others.len()) @if others.len() == 1 { " more case" } @else { " more cases" } " with the same cause" }
                    ul {
                        @for case in others {
                            li id=(self.links.case(case)) tabindex="-1" {
                                (badge(case.verdict)) " " code { (sentence(&case.case)) } " " (sentence(&case.title))
                                pre.command { (sentence(&case.reproduce)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The steps of a finding, shrunk.
fn steps(steps: &[GeneratedStep]) -> Markup {
    html! {
        h4 { "Steps" }
        ol.steps {
            @for step in steps.iter().take(STEPS) {
                li {
                    b { (clip::name(&step.client, 40)) } " " (clip::name(&step.what, 120))
                    @if !step.text.is_empty() { pre.value { (clip::clipped(&step.text, STEP)) } }
                }
            }
        }
        @if steps.len() > STEPS { p.muted { "and " (steps.len() - STEPS) " more, in the scenario" } }
    }
}

/// How to see it again.
fn again(case: &CaseReport) -> Markup {
    html! {
        h4 { "Reproduce" }
        pre.command tabindex="0" { (sentence(&case.reproduce)) }
        p.muted {
            "The case: " code { (clip::name(&case.file, 200)) ":" (case.line) }
            @if let Some(explain) = case.explained_by() { ", shown by " code { (sentence(&explain)) } }
        }
    }
}

/// Expected against actual.
fn values(failure: &Failure) -> Markup {
    match (&failure.expected, &failure.actual) {
        (Some(expected), Some(actual)) => difference(&diff::compare(failure, expected, actual)),
        (Some(expected), None) => value("expected", expected),
        // The marked frame has it.
        (None, Some(_)) if !failure.frames.is_empty() => html! {},
        (None, Some(actual)) => value("came", actual),
        (None, None) => html! {},
    }
}

fn value(what: &str, value: &Value) -> Markup {
    let text = match value {
        Value::String(text) => text.clone(),
        // Values always serialise.
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    };
    html! { p.what { (what) } pre.value { (clip::clipped(&text, 4_000)) } }
}

fn difference(comparison: &Comparison) -> Markup {
    let lines = &comparison.lines;
    html! {
        p.what { del { "− expected" } " " ins { "+ came" } }
        pre.value.diff {
            @for (sign, line) in lines.iter().take(LINES) {
                @let line = clip::clipped(line, LINE);
                @match sign {
                    '-' => del { "− " (line) "\n" },
                    '+' => ins { "+ " (line) "\n" },
                    _ => span { "  " (line) "\n" },
                }
            }
            @if lines.len() > LINES { span { "… " (lines.len() - LINES) " more lines\n" } }
            @if comparison.more { span.muted { "  … other fields are not compared\n" } }
        }
        @if let Some(schema) = &comparison.schema { (value("where", schema)) }
    }
}
