//! The scenario DSL: files as people write them, and the checked cases that are made of them.

pub mod case;
mod compile;
pub mod file;
pub mod frame;
pub mod lint;
mod load;
mod notes;
mod outline;
mod preamble;
mod recovery;
pub mod synthetic;
pub mod turn;
pub mod verbs;
mod verify;
pub mod write;

use std::sync::Arc;

pub use load::{embedded, embedded_files, from_documents, load};
pub use outline::{Listed, Outline, outlines};
pub use preamble::Beginning;
pub(crate) use verify::{CLOSE, TURN_END, means};

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
    pub case: case::Case,
    /// The file, as it can be opened from the working folder; for an embedded one its path in the repository.
    pub file: String,
    /// It ships with the binary, so that there need be no such file.
    pub embedded: bool,
    /// The file's text and places.
    pub document: Arc<Document>,
    /// JSON Pointer of the case in the document.
    pub pointer: String,
    /// Line of the case, from 1.
    pub line: usize,
    /// What is perhaps not meant in it.
    pub notes: Vec<crate::source::Diagnostic>,
    /// The case whose steps are its first ones.
    pub preamble: Option<Arc<LoadedCase>>,
}

impl LoadedCase {
    /// Its name in the family.
    pub fn name(&self) -> &str {
        self.id.split_once('/').map_or(&*self.id, |(_, name)| name)
    }

    /// Every requirement that the case or one of its steps covers.
    pub fn covered(&self) -> Vec<String> {
        let mut ids = self.case.covers.clone();
        self.case.steps.iter().for_each(|step| step.covered(&mut ids));
        ids.sort();
        ids.dedup();
        ids
    }

    /// The case as it stands in its file, with the indentation taken away.
    pub fn source(&self) -> String {
        let start = self.document.span(&self.pointer, Part::Value).start;
        let from = self.document.place(start).0 - 1;
        let indent_of = |line: &str| line.len() - line.trim_start().len();
        let mut lines = self.document.text.lines().skip(from);
        let first = lines.next().unwrap_or_default();
        let indent = indent_of(first);
        let rest = lines.take_while(|line| line.trim().is_empty() || indent_of(line) > indent);
        let lines: Vec<&str> = std::iter::once(first).chain(rest).collect();
        let cut = |line: &&str| line.get(indent..).unwrap_or_default().trim_end().to_owned();
        lines.iter().map(cut).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// Line, column and source line of a place in the case, given relative to it.
    /// Steps of a preamble stand in its own file ([`Self::file_of`]).
    pub fn place(&self, below: &str) -> (usize, usize, &str) {
        let (case, below) = self.origin(below);
        case.document.place(case.document.span(&format!("{}{below}", case.pointer), Part::Key).start)
    }
}
