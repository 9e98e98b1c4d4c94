//! How to run: what the user wants of a run, and what it comes to for one case.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::frame;
use crate::protocol::Protocol;
use crate::results::baseline::Baseline;
use crate::results::reproduce::Reproduce;
use crate::run::prompts::Prompts;
use crate::run::run_id::RunId;
use crate::wire::Trust;
use crate::wire::relay::Mutation;

/// What the user wants of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Cases side by side; at least 1.
    pub jobs: usize,
    /// Where everything random comes from.
    pub randomness: Randomness,
    /// How often cases and servers are tried.
    pub attempts: Attempts,
    /// How long things may take.
    pub timing: Timing,
    /// Plain prompts in place of cues, for a server that cannot be pointed at the scripted model.
    pub prompts: Prompts,
    /// The protocol without the overlays: what breaks it, but not the adapted one, is reported as excused.
    pub bare: Option<Arc<Protocol>>,
    /// Treat warnings as failures.
    pub strict: bool,
    /// Known failures.
    pub baseline: Option<Baseline>,
    /// What is kept of cases.
    pub kept: Kept,
    /// Bounds on what the target may send.
    pub limits: Limits,
    /// What connections go through.
    pub transport: Transport,
    /// The command that does the same again.
    pub reproduce: Reproduce,
}

/// What is kept of cases, beside the frames of those that fail.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Every frame, in a trace that is written here.
    pub trace: Option<PathBuf>,
    /// The frames of cases that pass, in their reports.
    pub frames: bool,
}

/// Where everything random comes from: the same seed and run id give the same messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Randomness {
    /// Seed of the random generator.
    pub seed: u64,
    /// Tells the run from others on the same server. `None`: a new one, unless the server is started for the run.
    pub run_id: Option<RunId>,
}

/// How often cases and servers are tried.
#[derive(Debug, Clone, Copy)]
pub struct Attempts {
    /// Run the whole suite this many times; at least 1.
    pub repeat: u32,
    /// Run a failed case again up to this many times.
    pub retries: u32,
    /// Stop after this many failed cases.
    pub fail_fast: Option<usize>,
    /// How often a launched server that dies is launched again.
    pub max_deaths: u32,
    /// Run a failed case again if this process itself was late meanwhile.
    pub again_if_late: bool,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a step waits unless it says otherwise.
    pub step_deadline: Duration,
    /// Factor on every deadline, the scenario's own included.
    pub scale: f64,
    /// How long a silence must last that stands for the end of a turn, where the protocol knows no other. `None`:
    /// as the protocol says; with the reference server shorter, for it pauses only where its script says so.
    pub quiet: Option<Duration>,
    /// How long all cases may take together. `None`: several times what they take of a server that answers at once.
    pub limit: Option<Duration>,
    /// Wait for ever (a day): the server sits in a debugger.
    pub no_deadline: bool,
}

/// What connections go through.
#[derive(Debug, Clone, Default)]
pub struct Transport {
    /// Whose certificates count, for `wss://`.
    pub trust: Trust,
    /// What is done to the server's messages on their way, for self-tests. Not with `wss://`.
    pub mutation: Option<Arc<Mutation>>,
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

/// How one case is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseOptions {
    /// How long a step waits unless it says otherwise.
    pub step_deadline: Duration,
    /// Longest time that a step is given, before it is scaled, whatever it says itself: for a server that is known to be silent.
    pub longest_step: Option<Duration>,
    pub retention: Retention,
    pub goes_on: GoesOn,
    pub seed: u64,
    /// Makes sessions and keys of this run of the case others than those of one before, which the same seed gave; 0: as the seed gives them.
    pub salt: u64,
}

/// Whether a case goes on behind a frame that breaks a MUST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesOn {
    /// The violation is all that is asked for: cases that a machine makes.
    Never,
    /// Unless a step builds on the frame.
    UnlessBuiltOn,
    /// Whatever it is: all that one round shows is asked for.
    Always,
}

/// What is kept of a case beside what the report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    Report,
    /// Every event, whole, and where each step began.
    Trace,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: frame::Limits::default(), frames: 100_000, bytes: 256 << 20 }
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Self { repeat: 1, retries: 0, fail_fast: None, max_deaths: 5, again_if_late: true }
    }
}

impl Default for Timing {
    fn default() -> Self {
        // Five seconds: a language model that is scripted answers at once, a busy CI machine within this.
        Self {
            step_deadline: Duration::from_secs(5),
            scale: 1.0,
            quiet: None,
            limit: None,
            no_deadline: false,
        }
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            jobs: 8,
            randomness: Randomness::default(),
            attempts: Attempts::default(),
            timing: Timing::default(),
            prompts: Prompts::default(),
            bare: None,
            strict: false,
            baseline: None,
            kept: Kept::default(),
            limits: Limits::default(),
            transport: Transport::default(),
            reproduce: Reproduce::default(),
        }
    }
}

/// Longer than anybody sits before a debugger.
const DAY: Duration = Duration::from_secs(86_400);

impl Timing {
    /// A time, scaled.
    pub(crate) fn scaled(&self, time: Duration) -> Duration {
        time.mul_f64(self.scale.clamp(0.001, 1000.0))
    }

    /// A deadline, scaled; or one that is never reached.
    pub(crate) fn deadline(&self, time: Duration) -> Duration {
        if self.no_deadline { DAY } else { self.scaled(time) }
    }
}

impl CaseOptions {
    /// A step's own deadline, or the case's.
    pub fn deadline(&self, timing: &Timing, own: Option<Duration>) -> Duration {
        let time = own.unwrap_or(self.step_deadline);
        timing.deadline(self.longest_step.map_or(time, |longest| time.min(longest)))
    }
}
