//! What lists say of cases. Of those that ship with the binary it is read without the cases themselves.

use serde::Deserialize;

use super::{LoadedCase, embedded, embedded_files};
use crate::protocol::Protocol;
use crate::source::{Diagnostics, Shipped};

/// What lists say of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// A scenario file, as far as outlines need it.
#[derive(Deserialize)]
struct File {
    family: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    title: String,
    #[serde(default)]
    covers: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    covers: Vec<String>,
    #[serde(default)]
    unchanged: Vec<Step>,
    #[serde(default)]
    repeat: Vec<Step>,
    #[serde(default)]
    parallel: Vec<Vec<Step>>,
}

impl Step {
    fn covered(self, ids: &mut Vec<String>) {
        ids.extend(self.covers);
        self.repeat.into_iter().for_each(|step| step.covered(ids));
        self.unchanged.into_iter().for_each(|step| step.covered(ids));
        self.parallel.into_iter().flatten().for_each(|step| step.covered(ids));
    }
}

impl Case {
    fn outline(self, family: &str) -> Outline {
        let mut covered = self.covers;
        self.steps.into_iter().for_each(|step| step.covered(&mut covered));
        covered.sort();
        covered.dedup();
        Outline { id: format!("{family}/{}", self.name), title: self.title, covered }
    }
}

/// The outlines of the cases that [`embedded`] has.
///
/// # Errors
/// As [`embedded`], for a protocol that was patched: then the cases are checked against it.
pub fn outlines(protocol: &Protocol) -> Result<Vec<Outline>, Diagnostics> {
    let read = |(path, _): &(&str, &str)| Shipped::read::<File>(&format!("scenarios/{path}"));
    let files: Option<Vec<File>> =
        if protocol.is_shipped { embedded_files(&protocol.name).iter().map(read).collect() } else { None };
    let Some(files) = files else {
        return Ok(embedded(protocol)?.iter().map(Outline::from).collect());
    };
    let outlines = |File { family, cases }| {
        cases.into_iter().map(move |case: Case| case.outline(&family)).collect::<Vec<_>>()
    };
    Ok(files.into_iter().flat_map(outlines).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    #[test]
    fn outlines_are_those_of_the_cases() {
        for name in Protocol::embedded_names() {
            let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
            let files = embedded_files(name);
            let read =
                |(path, _): &(&str, &str)| Shipped::read::<File>(&format!("scenarios/{path}")).is_some();
            assert!(protocol.is_shipped && !files.is_empty() && files.iter().all(read), "{name}");
            let cases = embedded(&protocol).expect("they load");
            let cases: Vec<Outline> = cases.iter().map(Outline::from).collect();
            assert_eq!(outlines(&protocol).expect("they are read"), cases, "{name}");
        }
    }
}
