//! Styles: legal behaviours of a server that a suite must not mind. They are the dual of faults.
//!
//! A dialect's own styles stand in its `styles.rs`; those of the wire, which every server may have, in [`wire`].

pub(super) mod pieces;
mod table;
pub(super) mod wire;

pub(super) use table::styles;

/// One legal behaviour that the plain reference server does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// What `--style` calls it.
    pub name: &'static str,
    /// The behaviour in one sentence.
    pub what: &'static str,
    /// The requirements and ambiguities that allow it, or the section of another document.
    pub allowed_by: &'static [&'static str],
    /// Requirements about which a suite may warn.
    pub warns: &'static [&'static str],
    /// Styles that a server cannot have besides.
    pub excludes: &'static [&'static str],
}

impl Style {
    /// Whether a server can have both.
    pub fn goes_with(&self, other: &Self) -> bool {
        self.name != other.name
            && !self.excludes.contains(&other.name)
            && !other.excludes.contains(&self.name)
    }
}
