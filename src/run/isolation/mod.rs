//! What crosses from one session into another.

pub(crate) mod leaks;
pub(crate) mod markers;
pub(crate) mod precheck;
