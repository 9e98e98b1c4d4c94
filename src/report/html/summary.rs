//! Verdict and figures at a glance, and what else is worth knowing of the whole run.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::bars::{Look, bar, look};
use super::clip;
use super::clip::sentence;
use crate::report::runs::{Run, total};
use crate::report::{often, verdict_of};
use crate::results::event::{Summary, Verdict};

/// Facts that are listed of each kind.
const LISTED: usize = 50;

/// How many there are of what.
fn several(runs: &[Run<'_>]) -> String {
    let protocols: BTreeSet<&str> = runs.iter().map(|run| run.started.protocol.as_str()).collect();
    let what = if protocols.len() == runs.len() { "protocols" } else { "runs" };
    format!("{} {what}", runs.len())
}

/// What the page is called.
pub(super) fn title(runs: &[Run<'_>]) -> String {
    let name = match runs {
        [run] => clip::name(&run.started.protocol, 60).into_owned(),
        runs => several(runs),
    };
    format!("{name}: {}", total(runs).as_ref().map_or("no verdict", verdict_of))
}

pub(super) fn summary(runs: &[Run<'_>]) -> Markup {
    let total = total(runs);
    let verdict = total.as_ref().map_or("no verdict", verdict_of);
    let good = total.as_ref().is_some_and(|total| total.exit_code == 0);
    let mut cases = BTreeMap::new();
    let mut requirements = BTreeMap::new();
    for run in runs {
        run.cases.iter().for_each(|case| *cases.entry(case.verdict).or_default() += 1);
        let results = run.summary.iter().flat_map(|summary| summary.requirements.values());
        results.for_each(|result| *requirements.entry(result.verdict).or_default() += 1);
    }
    let class = look(if good { Verdict::Passed } else { Verdict::Failed });
    html! {
        header.top {
            p.brand { "frameproof" }
            h1 {
                span class={ "verdict " (class.class) } {
                    span aria-hidden="true" { (class.sign) } " " (verdict)
                }
                @if let [run] = runs { (sentence(&run.started.title)) }
                @else { (several(runs)) }
            }
            @if let [run] = runs { p.target { "against " (sentence(&run.started.target)) } }
            @if let Some(stopped) = total.as_ref().and_then(|total| total.stopped) {
                p.stopped { "The run ended early: " (stopped) "." }
            }
            div.figures { (bar("cases", &cases)) (bar("requirements", &requirements)) }
            @if runs.len() > 1 { (overview(runs)) }
            (facts(runs, total.as_ref()))
        }
    }
}

/// One line for each of several runs.
fn overview(runs: &[Run<'_>]) -> Markup {
    let told = [Verdict::Passed, Verdict::Failed, Verdict::Error, Verdict::Warned, Verdict::NotApplicable];
    let count = |run: &Run<'_>, verdict| run.cases.iter().filter(|case| case.verdict == verdict).count();
    html! {
        table.overview {
            thead { tr {
                th scope="col" { "Protocol" } th scope="col" { "Verdict" }
                @for verdict in told { th scope="col" { (look(verdict).word) } }
                th scope="col" { "seconds" }
            } }
            tbody {
                @for run in runs {
                    @let good = run.summary.is_some_and(|summary| summary.exit_code == 0);
                    @let Look { class, sign, .. } = look(if good { Verdict::Passed } else { Verdict::Failed });
                    tr {
                        th scope="row" { (clip::name(&run.started.protocol, 60)) }
                        td { span class={ "sign " (class) } aria-hidden="true" { (sign) } (run.summary.map_or("no verdict", verdict_of)) }
                        @for verdict in told { td.number { (count(run, verdict)) } }
                        td.number { (run.summary.map_or_else(String::new, |summary| format!("{:.2}", summary.seconds))) }
                    }
                }
            }
        }
    }
}

fn facts(runs: &[Run<'_>], total: Option<&Summary>) -> Markup {
    let Some(first) = runs.first().map(|run| run.started) else { return html! {} };
    html! {
        dl.facts {
            div { dt { "started" } dd { time { (first.started.get(..19).unwrap_or(&first.started)) "Z" } } }
            @if let Some(total) = total { div { dt { "took" } dd { (format!("{:.2} s", total.seconds)) } } }
            div { dt { "reading" } dd { (sentence(&first.reading)) } }
            div { dt { "seed" } dd { (first.seed) } }
            @if let Some(id) = &first.run_id { div { dt { "run" } dd { (sentence(id)) } } }
            div { dt { "at a time" } dd { (first.jobs) } }
            div { dt { "frameproof" } dd { (sentence(&first.version)) } }
        }
    }
}

/// Hints, the baseline's stale entries and what the overlay excuses.
pub(super) fn notes(runs: &[Run<'_>]) -> Markup {
    let summaries = || runs.iter().filter_map(|run| run.summary);
    let stale: Vec<&String> = summaries().flat_map(|summary| &summary.stale_baseline).collect();
    let left_out: Vec<String> = runs.iter().filter_map(|run| run.started.left_out_note()).collect();
    let hints: Vec<&String> = left_out.iter().chain(summaries().flat_map(|summary| &summary.hints)).collect();
    let excused: Vec<_> = summaries().flat_map(|summary| summary.excused.iter()).collect();
    if stale.is_empty() && hints.is_empty() && excused.is_empty() {
        return html! {};
    }
    html! {
        section #notes aria-labelledby="notes-h" {
            h2 #notes-h { "Notes" }
            @for (what, list) in [("Stale baseline entries", stale), ("Hints", hints)] {
                @if !list.is_empty() {
                    h3 { (what) }
                    ul.notes {
                        @for text in list.iter().take(LISTED) { li { (sentence(text)) } }
                        (more(list.len()))
                    }
                }
            }
            @if !excused.is_empty() {
                h3 { "Excused by the overlay" }
                ul.notes {
                    @for one in excused.iter().take(LISTED) {
                        li {
                            @for id in one.requirements.iter().take(LISTED) { code { (sentence(id)) } " " }
                            (sentence(&one.message)) " "
                            span.muted { "(" (often(one.count)) ", first in " (sentence(&one.place)) ")" }
                        }
                    }
                    (more(excused.len()))
                }
            }
        }
    }
}

/// That a list goes on.
fn more(count: usize) -> Markup {
    let more = count.saturating_sub(LISTED);
    html! { @if more > 0 { li.muted { "and " (more) " more" } } }
}
