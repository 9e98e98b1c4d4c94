//! What a case is given, and what holds while one of its steps runs.

use std::sync::Arc;

use crate::protocol::{Protocol, ReadingName};
use crate::run::case::environment::CaseServer;
use crate::run::case::roles::Roles;
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
    pub roles: Roles,
}

impl<'r> CaseContext<'r> {
    /// # Errors
    /// A pattern of the protocol does not compile (found when the protocol is loaded, too).
    pub fn new(
        run: &'r RunContext,
        loaded: &'r LoadedCase,
        options: CaseOptions,
        server: &'r CaseServer,
    ) -> Result<Self, String> {
        let leaks = run.leaks.as_ref().zip(server.shared);
        Ok(Self {
            run,
            protocol: Arc::clone(&run.protocol),
            loaded,
            options,
            server,
            probe: leaks.map(|(all, shared)| Arc::new(all.begin(&loaded.id, shared))),
            roles: Roles::of(&run.protocol).map_err(|error| error.to_string())?,
        })
    }
}

/// What holds while a step runs.
#[derive(Debug, Default)]
pub(crate) struct StepContext {
    /// Pointer of the step, relative to the case; empty: no step runs.
    pub pointer: String,
    /// The client that the step's templates are about.
    pub client: String,
    /// The answer taken for the ambiguity by which the step may fail.
    pub tolerated: Option<ReadingName>,
    /// A failure of the step is no more than a warning.
    pub warns: bool,
}

/// Whether the server has said all that it had to say.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// At the end, on every connection.
    pub settled: bool,
    /// How many lines the wire log had when the server had last been silent towards all clients for long enough.
    pub silent_at: Option<usize>,
}
