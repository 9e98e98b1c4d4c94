//! Reference servers: one dialect a protocol over a shared engine, each with deliberate faults.
//!
//! They are what a newcomer's first run tests, what a client author develops against, and, with a fault, what
//! proves that the suite finds it. Deterministic: a server plays the cue in the user's text and waits only where
//! that asks for it.

mod agentloop;
mod codelab;
mod codey;
mod engine;
mod faults;
mod frail;
mod frail_frames;
mod frailties;
mod minicodex;
mod server;
mod socket;
mod tinyvex;

use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use server::{Options, Restarter, Server, StartError, start};
use socket::Socket;

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

/// One protocol's server: what it does with a connection whose upgrade has been granted.
trait Dialect: Send + Sync {
    /// Serves a connection until it ends. `path` is the request's, with its query.
    fn serve<'d>(&'d self, socket: Socket, path: String) -> BoxFuture<'d, ()>;

    /// Gives up at once, as if the process had been killed, and makes the server that begins on what this one had
    /// stored. None: it stores nothing.
    fn restarted(&self) -> Option<Arc<dyn Dialect>> {
        None
    }
}

/// Makes a server, with the fault of this name.
type Make = fn(Option<&str>) -> Arc<dyn Dialect>;

/// A protocol that has a reference server.
struct Entry {
    name: &'static str,
    /// The address's path; `{…}` is a channel parameter.
    path: &'static str,
    faults: &'static [Fault],
    /// Makes the server, with the fault of this name.
    make: Make,
    /// How to make one that spells the messages otherwise, by the dialect's name.
    dialects: &'static [(&'static str, Make)],
}

/// Every reference server.
const ENTRIES: &[Entry] = &[
    Entry {
        name: "agentloop",
        path: "/",
        faults: agentloop::FAULTS,
        make: |fault| Arc::new(agentloop::Service::new(fault)),
        dialects: &[],
    },
    Entry {
        name: "codelab",
        path: "/ws/{session_id}",
        faults: codelab::FAULTS,
        make: |fault| Arc::new(codelab::Service::new(fault)),
        dialects: &[],
    },
    Entry {
        name: "codey",
        path: "/",
        faults: codey::FAULTS,
        make: |fault| Arc::new(codey::Service::new(fault)),
        dialects: &[],
    },
    Entry {
        name: "minicodex",
        path: "/ws",
        faults: minicodex::FAULTS,
        make: |fault| Arc::new(minicodex::Service::new(fault)),
        dialects: &[],
    },
    Entry {
        name: "tinyvex",
        path: "/ws",
        faults: tinyvex::FAULTS,
        make: |fault| Arc::new(tinyvex::Service::new(fault)),
        dialects: &[("snake-case", |fault| Arc::new(tinyvex::Service::in_snake_case(fault)))],
    },
];

fn entry(protocol: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == protocol)
}

/// The protocols that have a reference server.
pub fn names() -> Vec<&'static str> {
    ENTRIES.iter().map(|entry| entry.name).collect()
}

/// The faults of a protocol's reference server; empty where there is none of that name.
pub fn faults(protocol: &str) -> &'static [Fault] {
    entry(protocol).map_or(&[], |entry| entry.faults)
}

/// The faults of a protocol's reference server that only fuzzing finds: their `violates` are requirements of which a campaign
/// holds at least one broken; none: it is RFC 6455 that they violate.
pub fn fuzz_faults(protocol: &str) -> Vec<Fault> {
    let messages = frail::of(protocol).iter().map(|frailty| frailty.fault);
    messages.chain(frail_frames::of(protocol).iter().map(|torn| torn.fault)).collect()
}
