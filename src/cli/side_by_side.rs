//! Several suites at the same time.

use std::sync::{Arc, mpsc};

use tokio::sync::watch::Receiver;

use super::runtime::Runtime;
use crate::protocol::Protocol;
use crate::results::event::{RunEvent, Summary};
use crate::run::{self, RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::shortage::{self, Shortage};

/// One suite, ready to run.
pub(super) struct SuiteRun {
    pub protocol: Arc<Protocol>,
    pub cases: Vec<LoadedCase>,
    pub target: Target,
    pub options: RunOptions,
    pub stopped: Receiver<bool>,
}

/// Runs suites at the same time; their events come one suite after the other, the first one's as they happen.
pub(super) fn side_by_side(
    runtime: &Runtime,
    suites: Vec<SuiteRun>,
    sink: &mut impl FnMut(RunEvent),
) -> Vec<Result<Summary, RunError>> {
    std::thread::scope(|scope| {
        let start = |suite: SuiteRun| {
            let (send, events) = mpsc::channel();
            let run = move || {
                let SuiteRun { protocol, cases, target, options, stopped } = suite;
                // Whoever listens does so to the end.
                let mut sink = |event: &RunEvent| drop(send.send(event.clone()));
                runtime.block_on(run::run(protocol, cases, target, options, &mut sink, stopped))
            };
            (std::thread::Builder::new().spawn_scoped(scope, run), events)
        };
        let running: Vec<_> = suites.into_iter().map(start).collect();
        let ends = running.into_iter().map(|(run, events)| {
            events.iter().for_each(&mut *sink);
            match run {
                Ok(run) => run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => {
                    Err(RunError::Shortage(shortage::note_start(&error).unwrap_or(Shortage::Processes)))
                }
            }
        });
        ends.collect()
    })
}
