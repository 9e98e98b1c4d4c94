//! The scenario DSL: model, loader, templates, turns.

mod load;
pub mod model;
pub mod template;
pub mod turn;
mod verify;

use std::sync::Arc;
use std::time::Duration;

pub use load::{embedded, load};

use crate::source::{Document, Part};

/// A case of a scenario file, checked against its protocol.
#[derive(Debug, Clone)]
pub struct LoadedCase {
    /// `family/name`.
    pub id: String,
    /// The family.
    pub family: String,
    /// The case.
    pub case: model::Case,
    /// The file, as it can be opened from the working folder; for an embedded one its path in the repository.
    pub file: String,
    /// The file's text and places.
    pub document: Arc<Document>,
    /// JSON Pointer of the case in the document.
    pub pointer: String,
    /// Line of the case, from 1.
    pub line: usize,
}

impl LoadedCase {
    /// Every requirement that the case or one of its steps covers.
    pub fn covered(&self) -> Vec<String> {
        fn collect(steps: &[model::Step], ids: &mut Vec<String>) {
            for step in steps {
                ids.extend(step.covers.iter().cloned());
                collect(step.unchanged.as_deref().unwrap_or_default(), ids);
                step.parallel.iter().flatten().for_each(|branch| collect(branch, ids));
            }
        }
        let mut ids = self.case.covers.clone();
        collect(&self.case.steps, &mut ids);
        ids.sort();
        ids.dedup();
        ids
    }

    /// Line, column and source line of a place in the case, given relative to it.
    pub fn place(&self, below: &str) -> (usize, usize, &str) {
        self.document.place(self.document.span(&format!("{}{below}", self.pointer), Part::Key).start)
    }
}

/// A length of time as scenarios write it: `250ms`, `3s`, `1.5s`.
///
/// # Errors
/// What is expected instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 0.001),
        (None, Some(number)) => (number, 1.0),
        (None, None) => return Err(format!("`{text}` is no length of time; write `250ms` or `3s`")),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * scale);
    seconds
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("`{text}` is no length of time; write `250ms` or `3s`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for bad in ["", "3", "s", "-1s", "1m", "1e99s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
