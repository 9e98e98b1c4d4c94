//! Reference servers: one dialect a protocol over a shared engine, each with deliberate faults.
//!
//! They are what a newcomer's first run tests, what a client author develops against, and, with a fault, what
//! proves that the suite finds it. Deterministic: a server plays the cue in the user's text and waits only where
//! that asks for it.

mod agentloop;
mod codelab;
mod codex;
mod codey;
mod engine;
mod faults;
mod minicodex;
mod server;
mod socket;
mod styles;
mod tinyvex;
mod upgrade;
mod variant;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use engine::Setup;
pub use engine::Trigger;
use faults::{frames, triggered};
pub use server::{Options, Restarter, Server, StartError, start};
use socket::Socket;
pub use styles::Style;
pub use variant::Variant;

/// One deliberate defect of a reference server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What `--fault` calls it.
    pub name: &'static str,
    /// The defect in one sentence.
    pub title: &'static str,
    /// The requirements that it violates: a suite must find these broken, and no others.
    pub violates: &'static [&'static str],
    /// Requirements that it violates, too, but not so that a suite finds them broken each time: it depends on what comes first.
    pub also: &'static [&'static str],
}

/// One protocol's server: what it does with a connection whose upgrade has been granted.
trait ConnectionHandler: Send + Sync {
    /// Serves a connection until it ends. `path` is the request's, with its query.
    fn serve<'d>(&'d self, socket: Socket, path: String) -> BoxFuture<'d, ()>;

    /// The HTTP status with which a request is answered instead of being upgraded, by its path and its Origin; none: it is
    /// upgraded.
    fn instead_of_upgrade(&self, _path: &str, _origin: Option<&str>) -> Option<&'static str> {
        None
    }

    /// Gives up at once, as if the process had been killed, and makes the server that begins on what this one had
    /// stored. None: it stores nothing.
    fn restarted(&self) -> Option<Arc<dyn ConnectionHandler>> {
        None
    }
}

/// Makes a variant of a server.
type Make = fn(&Setup) -> Arc<dyn ConnectionHandler>;

/// A protocol that has a reference server.
struct Entry {
    name: &'static str,
    /// The address's path; `{…}` is a channel parameter.
    path: &'static str,
    faults: &'static [Fault],
    /// Its own legal behaviours.
    styles: &'static [Style],
    /// Makes the server.
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
        styles: agentloop::STYLES,
        make: |setup| Arc::new(agentloop::Service::new(setup)),
        dialects: &[],
    },
    Entry {
        name: "codelab",
        path: "/ws/{session_id}",
        faults: codelab::FAULTS,
        styles: codelab::STYLES,
        make: |setup| Arc::new(codelab::Service::new(setup)),
        dialects: &[],
    },
    Entry {
        name: "codex",
        path: "/",
        faults: codex::FAULTS,
        styles: codex::STYLES,
        make: |setup| Arc::new(codex::Service::new(setup)),
        dialects: &[],
    },
    Entry {
        name: "codey",
        path: "/",
        faults: codey::FAULTS,
        styles: codey::STYLES,
        make: |setup| Arc::new(codey::Service::new(setup)),
        dialects: &[],
    },
    Entry {
        name: "minicodex",
        path: "/ws",
        faults: minicodex::FAULTS,
        styles: minicodex::STYLES,
        make: |setup| Arc::new(minicodex::Service::new(setup)),
        dialects: &[],
    },
    Entry {
        name: "tinyvex",
        path: "/ws",
        faults: tinyvex::FAULTS,
        styles: tinyvex::STYLES,
        make: |setup| Arc::new(tinyvex::Service::new(setup)),
        dialects: &[("snake-case", |setup| Arc::new(tinyvex::Service::in_snake_case(setup)))],
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
    let messages = triggered::of(protocol).iter().map(|triggered| triggered.fault);
    messages.chain(frames::of(protocol).iter().map(|frames| frames.fault)).collect()
}

/// The styles of a protocol's reference server: the wire's, which all have, and its own. Empty where there is no such server.
pub fn styles(protocol: &str) -> Vec<Style> {
    let Some(entry) = entry(protocol) else { return Vec::new() };
    styles::wire::STYLES.iter().chain(entry.styles).copied().collect()
}
