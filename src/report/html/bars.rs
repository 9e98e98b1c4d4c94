//! How many of what: a bar, its legend, and the words and signs of verdicts. Never by colour alone.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::results::event::Verdict;

/// How a verdict is shown.
pub(super) struct Look {
    /// The class of elements, and the value of the filter.
    pub class: &'static str,
    pub sign: &'static str,
    pub word: &'static str,
}

/// All verdicts, the worst first.
pub(super) const VERDICTS: [Verdict; 8] = [
    Verdict::Error,
    Verdict::Failed,
    Verdict::Warned,
    Verdict::Flaky,
    Verdict::Known,
    Verdict::Passed,
    Verdict::NotApplicable,
    Verdict::NotExercised,
];

pub(super) fn look(verdict: Verdict) -> Look {
    let (class, sign, word) = match verdict {
        Verdict::Passed => ("passed", "✓", "passed"),
        Verdict::Flaky => ("flaky", "≈", "flaky"),
        Verdict::Known => ("known", "≡", "known to fail"),
        Verdict::Warned => ("warned", "!", "warned"),
        Verdict::Failed => ("failed", "✗", "failed"),
        Verdict::Error => ("error", "⚠", "error"),
        Verdict::NotApplicable => ("na", "–", "not applicable"),
        Verdict::NotExercised => ("none", "○", "not exercised"),
    };
    Look { class, sign, word }
}

/// A verdict as a badge.
pub(super) fn badge(verdict: Verdict) -> Markup {
    let Look { class, sign, word } = look(verdict);
    html! { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } }
}

/// Counts of verdicts as a bar with a legend.
pub(super) fn bar(what: &str, counts: &BTreeMap<Verdict, usize>) -> Markup {
    let total: usize = counts.values().sum();
    let parts: Vec<(Verdict, usize)> = VERDICTS
        .iter()
        .filter_map(|verdict| counts.get(verdict).map(|count| (*verdict, *count)))
        .filter(|(_, count)| *count > 0)
        .collect();
    html! {
        div.figure {
            p.total { b { (total) } " " (what) }
            svg.bar width="100%" height="10" aria-hidden="true" {
                @for (verdict, x, width) in segments(&parts) {
                    rect class=(look(verdict).class) x={ (x) "%" } width={ (width) "%" } height="10" {}
                }
            }
            ul.legend {
                @for (verdict, count) in &parts {
                    @let Look { class, sign, word } = look(*verdict);
                    li { span class={ "sign " (class) } aria-hidden="true" { (sign) } b { (count) } " " (word) }
                }
            }
        }
    }
}

/// Where the parts of a bar begin and how wide they are, in percent.
fn segments(parts: &[(Verdict, usize)]) -> Vec<(Verdict, String, String)> {
    let total: usize = parts.iter().map(|(_, count)| count).sum();
    // One of a thousand is seen, too.
    let share = |count: usize| (count as f64 / total.max(1) as f64 * 100.0).max(0.8);
    let all: f64 = parts.iter().map(|(_, count)| share(*count)).sum();
    let mut at = 0.0;
    let segment = |(verdict, count): &(Verdict, usize)| {
        let (x, width) = (at, share(*count) / all * 100.0);
        at += width;
        (*verdict, format!("{x:.2}"), format!("{width:.2}"))
    };
    parts.iter().map(segment).collect()
}
