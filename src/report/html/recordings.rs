//! Two recordings, side by side.

use maud::{Markup, html};
use serde_json::Value;

use super::clip;
use super::page::document;
use crate::recording::compare::{CaseComparison, ClientComparison, Comparison, Difference, Row};
use crate::recording::entry::Entry;
use crate::report::diff::{hunks, lines};
use crate::report::recordings::{head, ms, summary};

const STYLE: &str = include_str!("recordings.css");
/// Bytes of a page; what comes then is counted.
const PAGE: usize = 4_000_000;
/// Rows that are the same which are shown before and after a difference.
const NEAR: usize = 2;
/// Lines of a message, around each change, and characters of each.
const LINES: usize = 160;
const AROUND: usize = 6;
const LINE: usize = 400;
/// Messages that have changed which are open from the beginning.
const OPEN: usize = 40;

/// The page.
pub(super) fn page(found: &Comparison, title: &str, names: (&str, &str)) -> Markup {
    let (class, sign, verdict) =
        if found.differs() { ("failed", "✗", "different") } else { ("passed", "✓", "the same") };
    let mut left = PAGE;
    let mut open = OPEN;
    let mut hidden = 0;
    let mut sections = Vec::new();
    for case in found.cases.iter().filter(|case| case.counts().differ()) {
        for client in case.clients.iter().filter(|client| differs(client)) {
            if left == 0 {
                hidden += 1;
                continue;
            }
            let section = self::client(case, client, names, &mut open);
            left = left.saturating_sub(section.0.len());
            sections.push(section);
        }
    }
    let body = html! {
        a.skip href="#differences" { "Skip to the differences" }
        header.top {
            p.brand { "frameproof" }
            h1 { span class={ "verdict " (class) } { span aria-hidden="true" { (sign) } " " (verdict) } (clip::sentence(title)) }
            p.target { (clip::sentence(names.0)) " → " (clip::sentence(names.1)) }
            p.target { (summary(found)) }
        }
        main {
            (broken("Breaks now", "failed", &found.broken.1))
            (broken("Breaks no longer", "passed", &found.broken.0))
            section #differences aria-labelledby="differences-h" {
                h2 #differences-h { "What differs" }
                @if sections.is_empty() { p.empty { "Only ids, times and the division of texts differ." } }
                @else { p.muted { "Ids and counters of the second recording that correspond to those of the first have the values of the first." } }
                @for section in &sections { (section) }
                @if hidden > 0 { p.muted { "… and " (hidden) " more clients whose messages differ; the page has become too long." } }
            }
            (slower(found))
        }
        footer { "Made by frameproof from two recordings. The page needs no network." }
    };
    document(&format!("{verdict}: {}", clip::sentence(title)), STYLE, &body)
}

fn differs(client: &ClientComparison) -> bool {
    client.rows.iter().any(|row| row.difference.is_some())
}

fn broken(title: &str, class: &str, ids: &[String]) -> Markup {
    html! {
        @if !ids.is_empty() {
            section {
                h2 { (title) " " span.count { (ids.len()) } }
                p { @for id in ids { span class={ "badge " (class) } { (clip::name(id, 60)) } " " } }
            }
        }
    }
}

fn client(case: &CaseComparison, client: &ClientComparison, names: (&str, &str), open: &mut usize) -> Markup {
    let name = clip::name(&client.client, 60);
    // What is far from a difference is folded.
    let differs: Vec<usize> =
        (0..client.rows.len()).filter(|at| client.rows[*at].difference.is_some()).collect();
    let is_near = |at: usize| {
        let next = differs.partition_point(|differs| differs + NEAR < at);
        differs.get(next).is_some_and(|differs| *differs <= at + NEAR)
    };
    let mut parts: Vec<(bool, Vec<&Row>)> = Vec::new();
    for (at, row) in client.rows.iter().enumerate() {
        match parts.last_mut().filter(|(near, _)| *near == is_near(at)) {
            Some((_, rows)) => rows.push(row),
            None => parts.push((is_near(at), vec![row])),
        }
    }
    html! {
        article.story {
            h3 {
                @if let Some(case) = &case.case { span.case { (clip::sentence(case)) } " " }
                span.muted { "client " (name) }
            }
            div.pairs {
                div.sides.heads2 aria-hidden="true" { span { (clip::name(names.0, 60)) } span { (clip::name(names.1, 60)) } }
                @for (near, rows) in &parts {
                    @if *near { @for row in rows { (self::row(row, open)) } }
                    @else {
                        details.same {
                            summary { (rows.len()) " the same" }
                            @for row in rows { (self::row(row, open)) }
                        }
                    }
                }
            }
        }
    }
}

/// How a row looks, and what is wrong with it in words.
fn look(row: &Row) -> (&'static str, String) {
    match &row.difference {
        None => ("alike", String::new()),
        Some(Difference::Gone) => ("gone", "− only in the first".to_owned()),
        Some(Difference::New) => ("new", "+ only in the second".to_owned()),
        Some(Difference::Changed(_)) => ("changed", "≠ other values".to_owned()),
        Some(Difference::Moved(at)) => ("moved", format!("↕ in the other at {}", ms(*at))),
    }
}

fn row(row: &Row, open: &mut usize) -> Markup {
    let (class, word) = look(row);
    let is_open = matches!(row.difference, Some(Difference::Changed(_))) && *open > 0;
    *open -= usize::from(is_open);
    html! {
        details class={ "pair " (class) } open[is_open] {
            summary {
                @if !word.is_empty() { span.word { (word) } }
                div.sides { (side(row.before.as_deref())) (side(row.after.as_deref())) }
            }
            (bodies(row))
        }
    }
}

fn side(said: Option<&Entry>) -> Markup {
    html! {
        @match said {
            Some(said) => span { (head(said)) },
            None => span.none { "—" },
        }
    }
}

/// What was said: what has changed line by line, and the rest as it was.
fn bodies(row: &Row) -> Markup {
    let nothing = Value::Null;
    let body = |said: &Option<std::sync::Arc<Entry>>| said.as_ref().map(|said| said.body.clone());
    match (&row.difference, body(&row.before), body(&row.after)) {
        (Some(Difference::Changed(translated)), Some(before), _) => {
            let (one, other) = sides(hunks(lines(&before, translated), AROUND));
            html! { div.sides.json { (block(&one)) (block(&other)) } }
        }
        (_, before, after) => {
            let plain = |value: Option<&Value>| {
                let value = value.unwrap_or(&nothing);
                lines(value, value)
            };
            html! {
                div.sides.json {
                    @if before.is_some() { (block(&plain(before.as_ref()))) } @else { span {} }
                    @if after.is_some() { (block(&plain(after.as_ref()))) } @else { span {} }
                }
            }
        }
    }
}

/// Lines of a difference, each with its sign.
type Lines = Vec<(char, String)>;

/// The lines of each side, so that what belongs together stands side by side.
fn sides(lines: Lines) -> (Lines, Lines) {
    let (mut one, mut other) = (Lines::new(), Lines::new());
    let level = |one: &mut Lines, other: &mut Lines| {
        let most = one.len().max(other.len());
        one.resize(most, (' ', String::new()));
        other.resize(most, (' ', String::new()));
    };
    for (sign, line) in lines {
        match sign {
            '-' => one.push((sign, line)),
            '+' => other.push((sign, line)),
            _ => {
                level(&mut one, &mut other);
                one.push((sign, line.clone()));
                other.push((sign, line));
            }
        }
    }
    level(&mut one, &mut other);
    (one, other)
}

fn block(lines: &[(char, String)]) -> Markup {
    html! {
        pre tabindex="0" {
            @for (sign, line) in lines.iter().take(LINES) {
                @let line = clip::clipped(line, LINE);
                @match sign {
                    '-' => del { "− " (line) },
                    '+' => ins { "+ " (line) },
                    '…' => span { "…" },
                    _ => span { "  " (line) },
                }
            }
            @if lines.len() > LINES { span { "… " (lines.len() - LINES) " more lines" } }
        }
    }
}

fn slower(found: &Comparison) -> Markup {
    let all: Vec<_> = found
        .cases
        .iter()
        .flat_map(|case| case.slower.iter().map(move |slower| (&case.case, slower)))
        .collect();
    html! {
        @if !all.is_empty() {
            section {
                h2 { "At least twice as slow " span.count { (all.len()) } }
                ul.notes {
                    @for (case, one) in all.iter().take(50) {
                        li {
                            @if let Some(case) = case { (clip::sentence(case)) ", " }
                            "client " (clip::name(&one.client, 60)) ": " code { (clip::name(&one.kind, 60)) }
                            " " (ms(one.took.0)) " after what came before it, now " (ms(one.took.1))
                        }
                    }
                }
            }
        }
    }
}
