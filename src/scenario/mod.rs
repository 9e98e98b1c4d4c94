//! The scenario DSL: model, loader, templates, turns.

pub mod frame;
mod load;
pub mod model;
mod notes;
mod salvage;
pub mod turn;
mod verify;

use std::sync::Arc;

pub use load::{embedded, from_documents, load};

pub use crate::source::duration;
pub use crate::template;

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
    /// What is perhaps not meant in it.
    pub notes: Vec<crate::source::Diagnostic>,
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
