//! Every requirement, by protocol and area: what became of it, how often it was exercised, and why not.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};

use super::bars::{Look, VERDICTS, badge, look};
use super::clip;
use super::clip::sentence;
use super::links::Links;
use crate::report::often;
use crate::report::runs::Run;
use crate::results::event::{CaseReport, RequirementResult, Verdict};

/// Cases that are named of a requirement.
const NAMED: usize = 8;

/// The section.
pub(super) fn section(runs: &[Run<'_>], links: &Links) -> Markup {
    html! {
        section #requirements aria-labelledby="requirements-h" {
            h2 #requirements-h { "Requirements" }
            p.key aria-label="Signs" {
                @for verdict in VERDICTS {
                    @let Look { class, sign, word } = look(verdict);
                    @if occurs(runs, verdict) { span { span class={ "sign " (class) } aria-hidden="true" { (sign) } " " (word) } }
                }
            }
            @for (index, run) in runs.iter().enumerate() {
                @let table = Table { index, run, links, covering: covering(run) };
                (table.protocol(runs.len() > 1))
            }
        }
    }
}

fn occurs(runs: &[Run<'_>], verdict: Verdict) -> bool {
    let mut results =
        runs.iter().filter_map(|run| run.summary).flat_map(|summary| summary.requirements.values());
    results.any(|result| result.verdict == verdict)
}

/// The cases that are about a requirement, by its id.
fn covering<'e>(run: &Run<'e>) -> HashMap<&'e str, Vec<&'e CaseReport>> {
    let mut covering: HashMap<&str, Vec<&CaseReport>> = HashMap::new();
    for case in &run.cases {
        case.covers.iter().for_each(|id| covering.entry(id).or_default().push(case));
    }
    covering
}

/// An id without what all of the protocol's begin with.
fn short(id: &str) -> &str {
    id.split_once('-').map_or(id, |(_, rest)| rest)
}

/// The part of an id before its number, and the number.
fn split(id: &str) -> (&str, &str) {
    id.rsplit_once('-').unwrap_or(("", id))
}

/// The requirements of one run.
struct Table<'t, 'e> {
    index: usize,
    run: &'t Run<'e>,
    links: &'t Links,
    covering: HashMap<&'e str, Vec<&'e CaseReport>>,
}

type Results<'e> = Vec<(&'e str, &'e RequirementResult)>;

impl<'e> Table<'_, 'e> {
    fn areas(&self) -> Vec<(&'e str, Results<'e>)> {
        let mut areas: BTreeMap<&str, Results<'_>> = BTreeMap::new();
        for (id, result) in self.run.summary.iter().flat_map(|summary| &summary.requirements) {
            let area = self.run.started.requirements.get(id).map(|text| text.area.as_str());
            let area = area.filter(|area| !area.is_empty()).unwrap_or(split(id).0);
            areas.entry(area).or_default().push((id, result));
        }
        let by_number = |one: &(&str, &RequirementResult)| {
            let (prefix, number) = split(one.0);
            (prefix.to_owned(), number.len(), number.to_owned())
        };
        areas.values_mut().for_each(|results| results.sort_by_key(by_number));
        areas.into_iter().collect()
    }

    fn protocol(&self, several: bool) -> Markup {
        let areas = self.areas();
        html! {
            div.protocol {
                @if several { h3 { (clip::name(&self.run.started.protocol, 60)) " " span.muted { (sentence(&self.run.started.title)) } } }
                @if areas.is_empty() { p.empty { "The run ended before its requirements were summarized." } }
                @for (area, results) in &areas { (self.area(area, results)) }
            }
        }
    }

    fn area(&self, area: &str, results: &Results<'_>) -> Markup {
        let count = |verdict| results.iter().filter(|(_, result)| result.verdict == verdict).count();
        let counts: Vec<String> = VERDICTS
            .iter()
            .filter(|verdict| count(**verdict) > 0)
            .map(|verdict| format!("{} {}", count(*verdict), look(*verdict).word))
            .collect();
        html! {
            details.area.group {
                summary {
                    span.name { (clip::name(area, 24)) }
                    span.chips aria-hidden="true" {
                        @for (id, result) in results {
                            @let Look { class, sign, .. } = look(result.verdict);
                            i class=(class) {
                                @if result.verdict != Verdict::Passed { (sign) }
                                (clip::name(short(id), 10))
                            }
                        }
                    }
                    span.counts { (counts.join(", ")) }
                }
                table {
                    thead.vh { tr { th { "Verdict" } th { "Requirement" } th { "What the document says" } th { "Seen" } } }
                    tbody { @for (id, result) in results { (self.requirement(id, result)) } }
                }
            }
        }
    }

    fn requirement(&self, id: &str, result: &RequirementResult) -> Markup {
        let text = self.run.started.requirements.get(id);
        html! {
            tr.item id=[self.links.requirement(self.index, id)] data-verdict=(look(result.verdict).class) tabindex="-1" {
                td { (badge(result.verdict)) }
                th scope="row" { (sentence(id)) @if let Some(text) = text { " " b.level { (sentence(&text.level)) } } }
                td {
                    @if let Some(text) = text {
                        (sentence(&text.text)) " " cite { "(" (sentence(&text.source)) ")" }
                        @if let Some(reading) = &text.reading { p.reading { "Reading " (sentence(reading)) } }
                    }
                }
                td {
                    @if result.exercised > 0 { "exercised " (often(result.exercised)) }
                    (self.broken(&result.broken_in))
                    @for why in self.why_not(id, result.verdict) { p.why { (sentence(&why)) } }
                }
            }
        }
    }

    fn broken(&self, cases: &[String]) -> Markup {
        html! {
            @if !cases.is_empty() {
                p { "broken in "
                    @for (number, name) in cases.iter().take(NAMED).enumerate() {
                        @if number > 0 { ", " }
                        @match self.links.to_named(self.index, name) {
                            Some(link) => a href=(link) { (sentence(name)) },
                            None => (sentence(name)),
                        }
                    }
                    @if cases.len() > NAMED { " and " (cases.len() - NAMED) " more" }
                }
            }
        }
    }

    /// Why a requirement was not exercised.
    fn why_not(&self, id: &str, verdict: Verdict) -> Vec<String> {
        if !verdict.says_nothing() {
            return Vec::new();
        }
        let cases = self.covering.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut reasons: Vec<String> = Vec::new();
        for case in cases {
            let reason = match &case.reason {
                Some(reason) if case.verdict.says_nothing() => reason.clone(),
                _ if case.is_notable() => format!("{} failed before it was reached", case.case),
                _ => continue,
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons.truncate(NAMED);
        if cases.is_empty() {
            reasons.push("no case of this run covers it".to_owned());
        }
        reasons
    }
}
