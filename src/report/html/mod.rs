//! One page that needs nothing else: no network, no second file, no JavaScript. For whoever has to find out who said what when.
//!
//! All text passes `escape::lines` at the end, in one place, and what has a meaning in HTML is escaped by the templates.

mod bars;
mod cases;
mod failures;
mod heat;
mod lifelines;
mod links;
mod matrix;
mod page;
mod recordings;
mod rows;
mod sequence;
mod summary;

use super::{clip, escape};
use crate::recording::compare::Comparison;
use crate::report::runs;
use crate::results::event::RunEvent;
use links::Links;

/// Renders two recordings side by side. `title`: of the protocol. `names`: of the recordings.
#[must_use]
pub fn recordings(found: &Comparison, title: &str, names: (&str, &str)) -> String {
    let page = recordings::page(found, title, names).into_string();
    escape::lines(&page).into_owned()
}

/// Renders the events of a run, or of several.
#[must_use]
pub fn render(events: &[RunEvent]) -> String {
    let runs = runs::runs(events);
    let links = Links::new(&runs);
    let page = page::page(&runs, &links).into_string();
    // Nothing of our own is changed by it.
    escape::lines(&page).into_owned()
}
