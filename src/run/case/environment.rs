//! What a case may do with the server that it runs against.

use std::sync::Arc;

use crate::reference;
use crate::target::Instance;
use crate::wire::Endpoint;

/// The server, as a case sees it.
pub(crate) struct CaseServer {
    pub endpoint: Endpoint,
    /// What restarts it, where it is ours.
    pub restarter: Option<Restarter>,
    /// The launched server.
    pub instance: Option<Arc<Instance>>,
    /// Distinguishes servers that other cases use as well; none: it is this case's own.
    pub shared: Option<usize>,
}

impl CaseServer {
    /// Memory that the launched server has resident, in bytes.
    pub async fn memory(&self) -> Option<u64> {
        match &self.instance {
            Some(instance) => instance.memory().await,
            None => None,
        }
    }
}

/// Restarts a server that is ours.
#[derive(Clone)]
pub(crate) enum Restarter {
    Reference(reference::Restarter),
    Launched(Arc<Instance>),
}

impl Restarter {
    /// Kills the server and starts it again on its data.
    pub async fn restart(&self) -> Result<(), String> {
        match self {
            Self::Reference(restarter) => {
                let again = restarter.restart().await;
                again.then_some(()).ok_or_else(|| "the server is gone".to_owned())
            }
            Self::Launched(instance) => {
                instance.restart().await.map_err(|error| format!("the server does not start again: {error}"))
            }
        }
    }
}
