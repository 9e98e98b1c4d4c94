//! Schedule and execute cases.

pub mod event;
