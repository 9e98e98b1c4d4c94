//! All cases of the runs, by family.

use maud::{Markup, html};

use super::bars::{badge, look};
use super::clip;
use super::clip::sentence;
use super::links::Links;
use super::rows::rows;
use super::sequence;
use crate::report::runs::Run;
use crate::results::event::CaseReport;

/// Requirements that a case's row names.
const NAMED: usize = 24;

/// The section.
pub(super) fn section(runs: &[Run<'_>], links: &Links) -> Markup {
    html! {
        section #cases aria-labelledby="cases-h" {
            h2 #cases-h { "Cases" }
            @for run in runs { (table(run, runs.len() == 1, links)) }
        }
    }
}

fn table(run: &Run<'_>, open: bool, links: &Links) -> Markup {
    html! {
        details.cases.group open[open] {
            summary { span.name { (clip::name(&run.started.protocol, 60)) } " " span.muted { (run.cases.len()) " cases" } }
            table {
                thead { tr { th scope="col" { "Verdict" } th scope="col" { "Case" } th scope="col" { "Requirements" } th.time scope="col" { "ms" } } }
                tbody { @for case in &run.cases { (row(case, links)) } }
            }
        }
    }
}

fn row(case: &CaseReport, links: &Links) -> Markup {
    let id = links.case(case);
    // What went wrong is told above, and has its place there.
    let own = (!case.is_notable()).then_some(id);
    html! {
        tr.item id=[own] data-verdict=(look(case.verdict).class) tabindex="-1" {
            td { (badge(case.verdict)) }
            td {
                a.case href={ "#" (id) } { (sentence(&case.case)) }
                p.title { (sentence(&case.title)) }
                @if case.repeats > 0 { p.why { "in " (case.repeats + 1) " runs" } }
                @if let Some(known) = &case.known { p.why { "known: " (sentence(known)) } }
                @if own.is_some() && !case.wire.is_empty() {
                    details.diagram {
                        summary { "Sequence of messages" }
                        (sequence::diagram(&rows(case, &[])))
                    }
                }
                @if let Some(reason) = case.reason.as_ref().filter(|_| !case.is_notable()) { p.why { (sentence(reason)) } }
            }
            td.ids {
                @for id in case.covers.iter().take(NAMED) {
                    a href=[links.to_requirement(id)] { (clip::name(id, 40)) } " "
                }
            }
            td.time { (format!("{:.1}", case.seconds * 1e3)) }
        }
    }
}
