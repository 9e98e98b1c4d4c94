//! A server, for as long as a case needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::results::death::Death;
use crate::run::case::environment::CaseServer;
use crate::run::case::outcome::{CaseOutcome, CloseHandshake};
use crate::run::server::handle::ServerHandle;

/// How long the end of a process may take to show after its connections broke.
const GRACE: Duration = Duration::from_secs(1);
/// How often this is halved for a server that lives on, by the [`Sign`]: it need not be waited for each time. A server that dies cuts
/// its connections first, and may need a while for the rest.
const HALVED: [u32; 3] = [2, 1, 6];

/// What gives reason to look whether a server has ended.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// Connections ended with a close frame.
    Closed,
    /// Connections ended without one.
    Cut,
    /// A close frame behind the last step was not returned.
    Missed,
}

/// How often a death was waited for in vain in this run since the last one, by the sign.
pub(crate) type FruitlessWaits = [AtomicU32; 3];

/// What serves one case.
pub(crate) struct Lease {
    pub server: CaseServer,
    pub(crate) own: Option<ServerHandle>,
    /// A case has told of the server's death.
    pub(crate) reported: Arc<AtomicBool>,
    pub(crate) fruitless_waits: Arc<FruitlessWaits>,
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
        let sign = if outcome.was_cut() { Sign::Cut } else { Sign::Closed };
        if outcome.lost_connection() { self.died(sign).await } else { None }
    }

    /// Waits for the end of a shared server that may be about to end since the case is over: none of the next case's making.
    pub async fn await_end(&self, outcome: &CaseOutcome) {
        if self.own.is_none()
            && outcome.end.death().is_none()
            && outcome.close_handshake == CloseHandshake::Missed
        {
            // Whoever is served next finds out.
            self.died(Sign::Missed).await;
        }
    }

    async fn died(&self, sign: Sign) -> Option<Death> {
        let instance = self.server.instance.as_ref()?;
        let kind = sign as usize;
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
