//! A server, for as long as a case needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::results::death::Death;
use crate::run::case::environment::CaseServer;
use crate::run::case::outcome::CaseOutcome;
use crate::run::server::handle::ServerHandle;

/// How long the end of a process may take to show after its connections broke.
const GRACE: Duration = Duration::from_secs(1);
/// How often this is halved for a server that ends connections and lives, with a close frame or by cutting them: it need not be
/// waited for each time. A server that dies cuts them first, and may need a while for the rest.
const HALVED: [u32; 2] = [2, 1];

/// What serves one case.
pub(crate) struct Lease {
    pub server: CaseServer,
    pub(crate) own: Option<ServerHandle>,
    /// A case has told of the server's death.
    pub(crate) reported: Arc<AtomicBool>,
    /// How often a death was waited for in vain in this run since the last one, behind close frames and without.
    pub(crate) fruitless_waits: Arc<[AtomicU32; 2]>,
}

impl Lease {
    /// Ends what was started for this case alone.
    pub async fn finish(self) {
        if let Some(server) = self.own {
            server.stop().await;
        }
    }

    /// Why the launched server is dead, if it is, and if a case gives reason to ask.
    pub async fn death(&self, outcome: &CaseOutcome) -> Option<Death> {
        let instance = self.server.instance.as_ref().filter(|_| outcome.lost_connection())?;
        let kind = usize::from(outcome.was_cut());
        let fruitless_waits = self.fruitless_waits[kind].load(Ordering::Relaxed).min(HALVED[kind]);
        let died = instance.died_within(GRACE / 2_u32.pow(fruitless_waits)).await;
        match died {
            Some(_) => self
                .fruitless_waits
                .iter()
                .for_each(|fruitless_waits| fruitless_waits.store(0, Ordering::Relaxed)),
            None => drop(self.fruitless_waits[kind].fetch_add(1, Ordering::Relaxed)),
        }
        died
    }
}
