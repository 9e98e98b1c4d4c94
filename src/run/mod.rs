//! Schedule and execute cases.

pub(crate) mod case;
pub(crate) mod isolation;
pub(crate) mod loop_lag;
pub mod prompts;
pub mod selftest;
pub(crate) mod server;
pub(crate) mod suite;
pub mod testbed;
pub(crate) mod triage;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use case::verdict::without_silence;
pub use isolation::leaks::Overheard;
pub use suite::schedule::{RunError, run};
pub use triage::activity::Heard;

use crate::frame;
use crate::protocol::Protocol;
use crate::target::Spec;
use crate::wire::Trust;

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
    /// The built-in reference server, started for the run.
    Reference {
        /// The fault that it has; none: the correct one.
        fault: Option<String>,
    },
    /// A server that the configuration describes: launched, or running already.
    Configured(Arc<Spec>),
}

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Cases side by side; at least 1.
    pub jobs: usize,
    /// How long a step waits unless it says otherwise.
    pub step_deadline: Duration,
    /// Factor on every deadline, the scenario's own included.
    pub timeout_scale: f64,
    /// How long a silence must last that stands for the end of a turn, where the protocol knows no other. `None`:
    /// as the protocol says; with the reference server shorter, for it pauses only where its script says so.
    pub quiet: Option<Duration>,
    /// The target is the reference server, which has every fixture. Set by [`run`].
    pub reference: bool,
    /// Makes the sessions of this run others than those of a run before, whose ids the same seed gave. Set by
    /// [`run`] for a server that was there before.
    pub salt: u64,
    /// Longest time that a step is given, before it is scaled, whatever it says itself: a server that is known to be silent. Set by
    /// [`run`].
    pub patience: Option<Duration>,
    /// Wait for ever (a day): the server sits in a debugger.
    pub no_deadline: bool,
    /// Plain prompts in place of cues, for a server that cannot be pointed at the scripted model.
    pub prompts: prompts::Prompts,
    /// The protocol without the overlays: what breaks it, but not the adapted one, is reported as excused.
    pub bare: Option<Arc<Protocol>>,
    /// What cases that run side by side hear of each other. Set by [`run`].
    pub overheard: Option<Arc<Overheard>>,
    /// What the server was heard to say over all cases. Made anew by [`run`].
    pub heard: Arc<Heard>,
    /// Keep the trace of each case for the caller (see [`single`]).
    pub keep: bool,
    /// How often a launched server that dies is launched again.
    pub max_deaths: u32,
    /// Stop after this many failed cases.
    pub fail_fast: Option<usize>,
    /// Run a failed case again up to this many times.
    pub retries: u32,
    /// Run the whole suite this many times; at least 1.
    pub repeat: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Treat warnings as failures.
    pub strict: bool,
    /// Known failures.
    pub baseline: Option<crate::results::baseline::Baseline>,
    /// Where to write the trace of the run.
    pub trace: Option<PathBuf>,
    /// Bounds on what the target may send.
    pub limits: Limits,
    /// Whose certificates count, for `wss://`.
    pub trust: Trust,
    /// The command to which a case's name is added in `reproduce`.
    pub reproduce: String,
}

/// Bounds on what a target may send in one case. Reaching one is a failure with a name.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bounds on one frame.
    pub frame: frame::Limits,
    /// Frames received in one case.
    pub frames: u64,
    /// Bytes received in one case.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: frame::Limits::default(), frames: 100_000, bytes: 256 << 20 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            jobs: 8,
            // Five seconds: a language model that is scripted answers at once, a busy CI machine within this.
            step_deadline: Duration::from_secs(5),
            timeout_scale: 1.0,
            quiet: None,
            reference: false,
            salt: 0,
            patience: None,
            no_deadline: false,
            prompts: prompts::Prompts::default(),
            bare: None,
            overheard: None,
            heard: Arc::default(),
            keep: false,
            max_deaths: 5,
            fail_fast: None,
            retries: 0,
            repeat: 1,
            seed: 0,
            strict: false,
            baseline: None,
            trace: None,
            limits: Limits::default(),
            trust: Trust::default(),
            reproduce: "frameproof run".to_owned(),
        }
    }
}

/// Longer than anybody sits before a debugger.
const DAY: Duration = Duration::from_secs(86_400);

impl Options {
    /// A deadline, scaled.
    pub(crate) fn scaled(&self, time: Duration) -> Duration {
        time.mul_f64(self.timeout_scale.clamp(0.001, 1000.0))
    }

    /// A deadline, scaled; or one that is never reached.
    pub(crate) fn deadline(&self, time: Duration) -> Duration {
        let time = self.patience.map_or(time, |most| time.min(most));
        if self.no_deadline { DAY } else { self.scaled(time) }
    }
}
