//! What a case is given, and what holds while one of its steps runs.

use std::sync::Arc;

use crate::protocol::{Protocol, ReadingName};
use crate::run::Options;
use crate::run::case::roles::Roles;
use crate::run::isolation::leaks::Ear;
use crate::run::server::handle::Restarter;
use crate::run::server::lease::Lease;
use crate::scenario::LoadedCase;
use crate::target::Instance;
use crate::wire::Endpoint;

/// What a case is given. It does not change while the case runs.
pub(crate) struct CaseContext<'r> {
    pub protocol: Arc<Protocol>,
    pub loaded: &'r LoadedCase,
    pub options: &'r Options,
    pub endpoint: Endpoint,
    /// What restarts the server, where it is ours.
    pub restarter: Option<Restarter>,
    /// The launched server.
    pub instance: Option<Arc<Instance>>,
    /// Distinguishes what this case receives from what others receive; none: no other case runs.
    pub probe: Option<Arc<Ear>>,
    pub roles: Roles,
}

impl<'r> CaseContext<'r> {
    /// # Errors
    /// A pattern of the protocol does not compile (found when the protocol is loaded, too).
    pub fn new(
        protocol: &Arc<Protocol>,
        loaded: &'r LoadedCase,
        options: &'r Options,
        lease: &Lease,
        probe: Option<Arc<Ear>>,
    ) -> Result<Self, String> {
        Ok(Self {
            roles: Roles::of(protocol).map_err(|error| error.to_string())?,
            protocol: Arc::clone(protocol),
            loaded,
            options,
            endpoint: lease.endpoint.clone(),
            restarter: lease.restarter.clone(),
            instance: lease.instance.clone(),
            probe,
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
