//! What lists say of cases. Of those that ship with the binary it is read without the cases themselves.

use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::{LoadedCase, embedded};
use crate::protocol::Protocol;
use crate::shortage;
use crate::source::Diagnostics;

/// Of each protocol, the outlines of its cases, which `build.rs` has read.
static OUTLINES: Dir<'_> = include_dir!("$OUT_DIR/outlines");

/// What lists say of a case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Outline {
    /// `family/name`.
    pub id: String,
    /// What must be true.
    pub title: String,
    /// Every requirement that the case or one of its steps covers, sorted.
    pub covered: Vec<String>,
}

/// What cases are chosen by.
pub trait Listed {
    /// `family/name`.
    fn id(&self) -> &str;
    /// Every requirement that the case or one of its steps covers.
    fn covered(&self) -> Vec<String>;
    /// The family, and the name in it.
    fn family_and_name(&self) -> (&str, &str) {
        self.id().split_once('/').unwrap_or(("", self.id()))
    }
}

impl Listed for Outline {
    fn id(&self) -> &str {
        &self.id
    }

    fn covered(&self) -> Vec<String> {
        self.covered.clone()
    }
}

impl Listed for LoadedCase {
    fn id(&self) -> &str {
        &self.id
    }

    fn covered(&self) -> Vec<String> {
        self.covered()
    }
}

impl From<&LoadedCase> for Outline {
    fn from(case: &LoadedCase) -> Self {
        Self { id: case.id.clone(), title: case.case.title.clone(), covered: case.covered() }
    }
}

/// The outlines of the cases that [`embedded`] has.
///
/// # Errors
/// As [`embedded`], for a protocol that was patched: then the cases are checked against it.
pub fn outlines(protocol: &Protocol) -> Result<Vec<Outline>, Diagnostics> {
    shortage::look_at_once();
    let file = OUTLINES.get_file(Path::new(&protocol.name)).filter(|_| protocol.is_shipped);
    if let Some(outlines) = file.and_then(|file| serde_json::from_slice(file.contents()).ok()) {
        return Ok(outlines);
    }
    Ok(embedded(protocol)?.iter().map(Outline::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    #[test]
    fn outlines_are_those_of_the_cases() {
        for name in Protocol::embedded_names() {
            let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
            let file = OUTLINES.get_file(Path::new(name));
            assert!(protocol.is_shipped && file.is_some(), "{name} was not read by build.rs");
            let cases = embedded(&protocol).expect("they load");
            let cases: Vec<Outline> = cases.iter().map(Outline::from).collect();
            assert_eq!(outlines(&protocol).expect("they are read"), cases, "{name}");
        }
    }
}
