//! How often a campaign has tried each command in each state, as a heat map.

use maud::{Markup, html};

use super::clip;
use crate::report::runs::Run;
use crate::results::event::Coverage;

/// States and commands that are shown.
const STATES: usize = 60;
const COMMANDS: usize = 400;
/// Steps of heat.
const STEPS: f64 = 5.0;

/// Whether there is one.
pub(super) fn is_there(runs: &[Run<'_>]) -> bool {
    tables(runs).next().is_some()
}

fn tables<'r, 'e>(runs: &'r [Run<'e>]) -> impl Iterator<Item = (&'r Run<'e>, &'e Coverage)> {
    let of = |run: &'r Run<'e>| Some((run, run.summary?.coverage.as_ref()?));
    runs.iter().filter_map(of)
}

/// The section.
pub(super) fn section(runs: &[Run<'_>]) -> Markup {
    html! {
        @if is_there(runs) {
            section #coverage aria-labelledby="coverage-h" {
                h2 #coverage-h { "Commands by state" }
                @for (run, coverage) in tables(runs) {
                    @if runs.len() > 1 { h3 { (clip::name(&run.started.protocol, 60)) } }
                    (table(coverage))
                }
            }
        }
    }
}

fn table(coverage: &Coverage) -> Markup {
    let most = coverage.commands.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0);
    let untried =
        coverage.commands.iter().flat_map(|(_, counts)| counts).filter(|count| **count == 0).count();
    html! {
        p.muted {
            "How often each was tried in each state; the stronger the colour, the more often. "
            (untried) @if untried == 1 { " pair was" } @else { " pairs were" } " never tried (–)."
        }
        div.scroll tabindex="0" role="group" aria-label="Commands by state" {
            table.heat {
                thead { tr {
                    th scope="col" { "command" }
                    @for state in coverage.states.iter().take(STATES) { th scope="col" { (clip::name(state, 40)) } }
                } }
                tbody {
                    @for (command, counts) in coverage.commands.iter().take(COMMANDS) {
                        tr {
                            th scope="row" { (clip::name(command, 60)) }
                            @for count in counts.iter().take(STATES) {
                                td class={ "h" (heat(*count, most)) } { @if *count == 0 { "–" } @else { (count) } }
                            }
                        }
                    }
                }
            }
        }
        @if coverage.commands.len() > COMMANDS { p.muted { "and " (coverage.commands.len() - COMMANDS) " more commands" } }
    }
}

/// From 0 (never) to 5 (as often as any), by the logarithm.
fn heat(count: u64, most: u64) -> u64 {
    if count == 0 {
        return 0;
    }
    let part = (count as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    (part * STEPS).ceil().clamp(1.0, STEPS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_grows_with_the_count_and_only_nothing_is_cold() {
        let steps: Vec<u64> =
            [0, 1, 3, 10, 50, 200, 1_000].into_iter().map(|count| heat(count, 1_000)).collect();
        assert_eq!((steps[0], steps[6]), (0, 5));
        assert!(steps.is_sorted() && steps[1] == 1, "{steps:?}");
        assert_eq!((heat(1, 1), heat(0, 0), heat(u64::MAX, u64::MAX)), (5, 0, 5));
    }
}
