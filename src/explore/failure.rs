//! What is wrong with a walk that was run, and which failures may be of the same defect.

use super::render::{Origin, Rendered};
use super::walk::Walk;
use crate::results::event::{Failure, Verdict};
use crate::run::testbed::CaseRun;
use crate::synthesis::text::without_values;

/// What makes two failures the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// The requirements that are broken.
    pub requirements: Vec<String>,
    /// What has noticed it, and the message without its values.
    pub shape: String,
}

impl Fingerprint {
    /// Whether it may be of the same defect as another.
    pub fn is_same_defect(&self, other: &Self) -> bool {
        let shared = self.requirements.iter().any(|id| other.requirements.contains(id));
        let nameless = self.requirements.is_empty() && other.requirements.is_empty();
        shared || nameless && self.shape == other.shape
    }

    /// The name of a finding's case: letters, digits and hyphens.
    pub fn name(&self) -> String {
        use std::hash::{Hash, Hasher};
        let mut hasher = rustc_hash::FxHasher::default();
        self.hash(&mut hasher);
        let first = self.requirements.first().map_or("walk".to_owned(), |id| id.to_lowercase());
        let first: String = first.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("{first}-{:08x}", hasher.finish() as u32)
    }
}

/// A walk that was run.
#[derive(Clone)]
pub struct Execution {
    /// The walk.
    pub walk: Walk,
    /// The scenario that it was.
    pub rendered: Rendered,
    /// What came of it.
    pub outcome: CaseRun,
}

impl Execution {
    /// Everything that is wrong, each with its failure.
    pub fn failures(&self) -> Vec<(Fingerprint, Option<Failure>)> {
        let failures = self.outcome.report.failures.iter();
        let mut found: Vec<_> = failures
            // Where the server crashed, the crash is the failure.
            .filter(|failure| failure.verdict != Verdict::Error)
            .map(|failure| (of(failure), Some(failure.clone())))
            .collect();
        // A walk without a server says nothing.
        if found.is_empty()
            && self.outcome.has_begun
            && let Some(reason) = self.outcome.broke()
        {
            found.push((Fingerprint { requirements: Vec::new(), shape: without_values(reason) }, None));
        }
        found
    }

    /// Whether it shows a defect.
    pub fn shows(&self, wanted: &Fingerprint) -> bool {
        self.failures().iter().any(|(print, _)| print.is_same_defect(wanted))
    }

    /// How many of its moves were done.
    pub fn moves_done(&self) -> usize {
        let first = self.outcome.report.failures.iter().zip(&self.outcome.failed_at);
        let first = first.filter(|(failure, _)| failure.verdict != Verdict::Warned);
        let step = first.filter_map(|(_, at)| at.split('/').nth(2)?.parse::<usize>().ok()).min();
        let origin = step.and_then(|step| self.rendered.origins.get(step));
        match origin {
            Some(Origin::Opening) => 0,
            Some(Origin::Move(index)) => *index,
            Some(Origin::Closing) | None if self.outcome.broke().is_none() => self.walk.moves.len(),
            _ => 0,
        }
    }
}

fn of(failure: &Failure) -> Fingerprint {
    let shape = format!("{} {}", failure.check, without_values(failure.core()));
    Fingerprint { requirements: failure.requirements.clone(), shape }
}
