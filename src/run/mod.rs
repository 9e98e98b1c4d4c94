//! Schedule and execute cases.

pub(crate) mod address;
pub(crate) mod alone;
pub(crate) mod case;
pub(crate) mod context;
mod error;
pub(crate) mod isolation;
pub(crate) mod loop_lag;
pub mod options;
pub mod prompts;
mod run_id;
pub(crate) mod server;
pub(crate) mod suite;
pub mod testbed;
pub(crate) mod triage;

use std::sync::Arc;

pub use error::RunError;
pub use isolation::leaks::LeakDetector;
pub use options::{Attempts, Kept, Limits, Randomness, RunOptions, Timing, Transport};
pub use run_id::RunId;
pub use suite::run::run;
pub use triage::activity::ServerActivity;

use crate::reference;
use crate::results::redact::Secrets;
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

impl Target {
    /// What of it must not be shown: values of headers, what a URL has besides scheme, host and path, and secrets of its environment.
    pub(crate) fn secrets(&self) -> Secrets {
        match self {
            Self::Reference(_) => Secrets::default(),
            Self::Url { url, headers } => Secrets::new(url, headers, &[]),
            Self::Configured(spec) => Secrets::new(&spec.url, &spec.headers, &spec.secrets),
        }
    }
}
