//! Globs of a baseline, most of which are names.

use std::collections::BTreeSet;

use globset::{Glob, GlobMatcher};

/// A glob, which is most often a name.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Name(String),
    Glob(GlobMatcher),
}

impl Pattern {
    pub fn new(pattern: &str) -> Result<Self, globset::Error> {
        if pattern.contains(['*', '?', '[', ']', '{', '}', '\\', '!', ',']) {
            return Ok(Self::Glob(Glob::new(pattern)?.compile_matcher()));
        }
        Ok(Self::Name(pattern.to_owned()))
    }

    pub fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Name(name) => name == text,
            Self::Glob(glob) => glob.is_match(text),
        }
    }

    /// Whether it fits one of these.
    pub fn is_among(&self, ids: &BTreeSet<&str>) -> bool {
        match self {
            Self::Name(name) => ids.contains(name.as_str()),
            Self::Glob(glob) => ids.iter().any(|id| glob.is_match(id)),
        }
    }
}
