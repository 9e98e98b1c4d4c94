//! The page around the sections: what it may do, how it looks, how it is searched.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::bars::{VERDICTS, look};
use super::links::Links;
use super::{cases, failures, heat, matrix, sequence, summary};
use crate::report::failure_groups::{self, grouped};
use crate::report::runs::Run;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The only styles and the only script that a browser takes from the page, by their hashes; and nothing from elsewhere.
fn policy(style: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}' 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(style),
        hash(SCRIPT)
    )
}

/// What is around every page. `style`: what this kind of page has of its own.
pub(super) fn document(title: &str, style: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(style));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
                @if !style.is_empty() { style { (PreEscaped(style)) } }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The whole page.
pub(super) fn page(runs: &[Run<'_>], links: &Links) -> Markup {
    let groups = grouped(runs);
    let body = html! {
        a.skip href="#failures" { "Skip to the failures" }
        (sequence::definitions())
        (summary::summary(runs))
        (tools(&groups, heat::is_there(runs)))
        main {
            (failures::section(&groups, runs, links))
            (summary::notes(runs))
            (heat::section(runs))
            (matrix::section(runs, links))
            (cases::section(runs, links))
        }
        footer { "Made by frameproof from the events of the run. The page needs no network." }
    };
    document(&summary::title(runs), "", &body)
}

/// The bar that stays: where to go, and the filter, which needs the script.
fn tools(groups: &[failure_groups::FailureGroup<'_>], has_coverage: bool) -> Markup {
    html! {
        nav.tools aria-label="Page" {
            ul {
                li { a href="#failures" { "Failures " span.count { (groups.len()) } } }
                @if has_coverage { li { a href="#coverage" { "States" } } }
                li { a href="#requirements" { "Requirements" } }
                li { a href="#cases" { "Cases" } }
            }
            form #filter role="search" hidden {
                label.vh for="text" { "Filter by text, case or requirement" }
                input #text type="search" placeholder="Filter: text, case, requirement  ( / )" autocomplete="off" spellcheck="false";
                label.vh for="verdict" { "Verdict" }
                select #verdict {
                    option value="" { "all verdicts" }
                    @for verdict in VERDICTS { option value=(look(verdict).class) { (look(verdict).word) } }
                }
                output #shown for="text verdict" aria-live="polite" {}
            }
        }
    }
}
