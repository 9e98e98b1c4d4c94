//! Reference servers: one dialect a protocol over a shared engine, each with deliberate faults.
//!
//! They are what a newcomer's first run tests, what a client author develops against, and, with a fault, what
//! proves that the suite finds it. Deterministic: a server plays the cue in the user's text and waits only where
//! that asks for it.

mod clients;
mod minicodex;
mod notes;
mod script;
mod server;

pub use server::{Options, Server, StartError, start};

/// One deliberate defect of a reference server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What `--fault` calls it.
    pub name: &'static str,
    /// The defect in one sentence.
    pub title: &'static str,
    /// The requirements that it violates: a suite must find these broken, and no others.
    pub violates: &'static [&'static str],
}

/// The protocols that have a reference server.
pub fn names() -> &'static [&'static str] {
    &["minicodex"]
}

/// The faults of a protocol's reference server; empty where there is none of that name.
pub fn faults(protocol: &str) -> &'static [Fault] {
    match protocol {
        "minicodex" => minicodex::FAULTS,
        _ => &[],
    }
}
