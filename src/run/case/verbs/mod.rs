//! What each verb of a step does: one file a kind of verb.

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod expect;
pub(crate) mod file;
pub(crate) mod get;
pub(crate) mod raw;
pub(crate) mod repeat;
pub(crate) mod send;
pub(crate) mod survival;
