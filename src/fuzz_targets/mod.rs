//! The fuzz targets: for each a function that takes any bytes and panics when its property is broken. `fuzz/` hands them
//! to libFuzzer; `tests/it/fuzz_corpus.rs` replays the committed seeds and every input that once broke something. They call
//! the same public functions that production calls. `docs/fuzzing.md` says how to use them.
//!
//! They are no cargo feature: `cargo test` would need one for itself, and would compile the library a second time.

mod all_rules_protocol;
mod dictionary;
mod frame;
mod loaders;
mod message;
mod monitors;
mod mutate;
mod oracle;
mod report;
mod schema_frames;
mod seeds;

use std::sync::{Arc, LazyLock};

pub use dictionary::{dictionary, words};
pub use frame::{frame, frame_agrees, frame_value};
pub use loaders::{baseline, overlay, protocol, scenario, trace};
pub use monitors::{agrees, monitors};
pub use mutate::mutate_json;
pub use report::{junit_of, report};
pub use schema_frames::{SchemaFrame, frame_structured};
pub use seeds::seeds;

pub use message::message;

use crate::protocol::{LoadOptions, Protocol};

/// A fuzz target.
#[derive(Clone)]
pub struct FuzzTarget {
    /// Its name, as `cargo fuzz run` takes it.
    pub name: String,
    /// The folders of `fuzz/seeds` that it begins with; its own is the first.
    pub seeds: Vec<String>,
    body: Body,
}

type Plain = fn(&[u8]);

#[derive(Clone, Copy)]
enum Body {
    Plain(Plain),
    /// For a protocol: its index in [`shipped`].
    Of(fn(usize, &[u8]), usize),
}

impl FuzzTarget {
    /// Runs the target's body.
    ///
    /// # Panics
    /// The property of the target does not hold for `bytes`.
    pub fn run(&self, bytes: &[u8]) {
        match self.body {
            Body::Plain(body) => body(bytes),
            Body::Of(body, protocol) => body(protocol, bytes),
        }
    }
}

/// Every target: those about no protocol in particular, and one for the messages of each shipped protocol.
pub fn targets() -> Vec<FuzzTarget> {
    let messages: Vec<String> =
        shipped().iter().map(|protocol| format!("message_{}", protocol.name)).collect();
    let plain: [(&str, Plain); 11] = [
        ("frame", frame),
        ("frame_agrees", frame_agrees),
        ("frame_value", frame_value),
        ("frame_structured", frame_structured),
        ("trace", trace),
        ("scenario", scenario),
        ("protocol", protocol),
        ("overlay", overlay),
        ("baseline", baseline),
        ("monitors", monitors),
        ("report", report),
    ];
    let mut targets: Vec<FuzzTarget> = plain
        .into_iter()
        .map(|(name, body)| {
            let mut seeds = vec![name.to_owned()];
            if ["frame", "frame_agrees", "frame_value"].contains(&name) {
                seeds = std::iter::once("frame".to_owned()).chain(messages.iter().cloned()).collect();
            }
            FuzzTarget { name: name.to_owned(), seeds, body: Body::Plain(body) }
        })
        .collect();
    targets.extend(messages.into_iter().enumerate().map(|(index, name)| FuzzTarget {
        seeds: vec![name.clone()],
        name,
        body: Body::Of(message::message_of, index),
    }));
    targets
}

/// The shipped protocols, compiled once a process: libFuzzer calls a body with nothing but bytes.
fn shipped() -> &'static [Arc<Protocol>] {
    static SHIPPED: LazyLock<Vec<Arc<Protocol>>> = LazyLock::new(|| {
        let load = |name: &str| {
            Protocol::embedded(name, &LoadOptions::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        Protocol::embedded_names().into_iter().map(load).collect()
    });
    &SHIPPED
}
