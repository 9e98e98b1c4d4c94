//! A server that serves cases: somebody else's, or one that can be started again.

use std::sync::Arc;

use crate::reference;
use crate::target::Instance;

pub(crate) enum ServerHandle {
    /// Somebody else's.
    Foreign,
    Reference(reference::Server),
    Launched(Arc<Instance>),
}

impl ServerHandle {
    pub(crate) async fn stop(self) {
        match self {
            Self::Foreign => {}
            Self::Reference(server) => server.stop().await,
            Self::Launched(instance) => instance.stop().await,
        }
    }
}
