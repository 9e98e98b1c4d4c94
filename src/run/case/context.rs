//! What a case is given, and what holds while one of its steps runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::model::CaseHangs;
use crate::protocol::{Protocol, ReadingName};
use crate::run::case::environment::CaseServer;
use crate::run::context::RunContext;
use crate::run::isolation::leaks::LeakProbe;
use crate::run::options::CaseOptions;
use crate::scenario::LoadedCase;

/// What a case is given. It does not change while the case runs.
pub(crate) struct CaseContext<'r> {
    pub run: &'r RunContext,
    pub protocol: Arc<Protocol>,
    pub loaded: &'r LoadedCase,
    pub options: CaseOptions,
    pub server: &'r CaseServer,
    /// Distinguishes what this case receives from what others receive; none: no other case runs.
    pub probe: Option<Arc<LeakProbe>>,
    /// What it has left hanging in the model ends with it.
    pub hangs: CaseHangs,
}

impl<'r> CaseContext<'r> {
    pub fn new(
        run: &'r RunContext,
        loaded: &'r LoadedCase,
        options: CaseOptions,
        server: &'r CaseServer,
    ) -> Self {
        let leaks = run.leaks.as_ref().zip(server.shared);
        Self {
            run,
            protocol: Arc::clone(&run.protocol),
            loaded,
            options,
            server,
            hangs: run.calls.hangs.begin(),
            probe: leaks.map(|(all, shared)| Arc::new(all.begin(&loaded.id, shared))),
        }
    }
}

/// What holds while a step runs: set when it begins, and gone when it ends.
#[derive(Debug, Default)]
pub(crate) struct StepContext {
    /// Pointer of the step, relative to the case; empty: no step runs.
    pub pointer: String,
    /// The client that the step's templates are about.
    pub client: String,
    /// What a failure of the step counts.
    pub tolerance: Tolerance,
    /// The document may be read so that what it asks for need not be.
    pub is_tolerated: bool,
    /// The requirements that it was held against in vain: it does not exercise them.
    pub failed: Vec<String>,
    /// It had nothing to look at, and exercises nothing.
    pub vacuous: bool,
}

/// What a verb needs to know of the step that it stands in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepScope<'s> {
    /// The client that does it.
    pub client: &'s str,
    /// Pointer of the step, relative to the case.
    pub at: &'s str,
    /// The step's own requirements.
    pub covers: &'s [String],
    /// The requirements that its failure breaks: its own, or else the case's.
    pub blame: &'s [String],
}

/// What a failure of a step counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tolerance {
    /// As much as the requirements that it breaks.
    #[default]
    Full,
    /// No more than a warning.
    Warns,
    /// Nothing: the reading that was chosen allows it.
    Allowed,
}

impl Tolerance {
    /// `taken`: the answer taken for the ambiguity by which the step may fail.
    pub fn of(taken: Option<ReadingName>, warns: bool) -> Self {
        match taken {
            Some(ReadingName::Lenient) => Self::Allowed,
            Some(ReadingName::Default) => Self::Warns,
            _ if warns => Self::Warns,
            _ => Self::Full,
        }
    }
}

/// Whether the server has said all that it had to say.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// Clients whose requests may still be worked on when the case ends.
    pub runs_on: BTreeSet<String>,
    /// Windows of time that stood for a barrier: by the step (empty: none ran), with whether it was one of silence.
    pub windows: BTreeMap<(String, bool), Duration>,
    /// At the end, on every connection.
    pub settled: bool,
    /// How many lines the wire log had when the server had last been silent towards all clients for long enough.
    pub silent_at: Option<u64>,
}
