//! Where a walk through a document is: written out only where something is wrong.

use std::fmt;

use crate::source::escape_token;

/// Where the invariants are, by name.
pub(super) const INVARIANTS: &str = "/x-frameproof/invariants";

/// A place in a document, as the way to it.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    /// A place that is known as a JSON Pointer.
    At(&'p str),
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    /// As a JSON Pointer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::At(pointer) => f.write_str(pointer),
            Self::Key(above, key) => write!(f, "{above}/{}", escape_token(key)),
            Self::Index(above, index) => write!(f, "{above}/{index}"),
        }
    }
}
