//! A server that serves cases: somebody else's, or one that can be started again.

use std::sync::Arc;

use crate::reference;
use crate::target::Instance;

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
            Self::Reference(restarter) => match restarter.restart().await {
                true => Ok(()),
                false => Err("the server is gone".to_owned()),
            },
            Self::Launched(instance) => {
                instance.restart().await.map_err(|error| format!("the server does not start again: {error}"))
            }
        }
    }
}

pub(crate) enum Server {
    /// Somebody else's.
    Foreign,
    Reference(reference::Server),
    Launched(Arc<Instance>),
}

impl Server {
    pub(crate) async fn stop(self) {
        match self {
            Self::Foreign => {}
            Self::Reference(server) => server.stop().await,
            Self::Launched(instance) => instance.stop().await,
        }
    }
}
