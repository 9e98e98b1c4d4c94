//! Schedule and execute cases.

pub(crate) mod address;
pub(crate) mod case;
pub(crate) mod context;
mod error;
pub(crate) mod isolation;
pub(crate) mod loop_lag;
pub mod options;
pub mod prompts;
pub(crate) mod server;
pub(crate) mod suite;
pub mod testbed;
pub(crate) mod triage;

use std::sync::Arc;

pub(crate) use case::verdict::without_silence;
pub use error::RunError;
pub use isolation::leaks::LeakDetector;
pub use options::{Attempts, Limits, RunOptions, Timing};
pub use suite::run::run;
pub use triage::activity::Heard;

use crate::reference;
use crate::target::Spec;

/// The server under test.
#[derive(Debug, Clone)]
pub enum Target {
    /// A running server.
    Url {
        /// Its URL: `ws://…` or `wss://…`.
        url: String,
        /// Extra headers of the upgrade request; their values are never shown.
        headers: Vec<(String, String)>,
    },
    /// The built-in reference server, started for the run: this variant of it.
    Reference(reference::Variant),
    /// A server that the configuration describes: launched, or running already.
    Configured(Arc<Spec>),
}
