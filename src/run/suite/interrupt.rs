//! The stop signal.

use tokio::sync::watch;

/// Waits until the run is to stop, for ever if nobody can stop it.
pub(crate) async fn interrupted(stop: &mut watch::Receiver<bool>) -> bool {
    match stop.wait_for(|stop| *stop).await {
        Ok(_) => true,
        // Nobody is left who could stop the run.
        Err(_) => std::future::pending().await,
    }
}
