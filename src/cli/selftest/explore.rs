//! `frameproof selftest --explore`.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use super::Selftest;
use super::driver::broken;
use crate::cli::explore::DEADLINE;
use crate::cli::signals::stop_on_signal;
use crate::cli::source::Suite;
use crate::cli::{Failure, runtime};
use crate::exit::Exit;
use crate::explore::campaign::{ExploreEnd, ExploreEvent, ExploreOptions, ExploreReport, explore};
use crate::explore::results;
use crate::reference::Variant;
use crate::report::explore as show;
use crate::run::Target;
use crate::run::testbed::Testbed;
use crate::selftest::report::Exploration;

/// Walks, without `--sample`.
const WALKS: usize = 100;
/// Most moves of a walk.
const MOVES: usize = 25;
/// Findings that are shown; one is too many.
const FINDINGS: usize = 10;

impl Selftest {
    /// Explores the correct servers: nothing may be found.
    pub(super) fn exploration(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_styles(suites)?;
        let runtime = runtime()?;
        let stopped = stop_on_signal(&runtime, None);
        let mut out = crate::cli::out();
        let mut found = 0;
        for suite in suites {
            let options = self.options();
            let jobs = options.jobs;
            let variant = Variant { styles: self.style.clone(), ..Variant::default() };
            let opened = Testbed::open(Arc::clone(&suite.protocol), Target::Reference(variant), options);
            let testbed = runtime.block_on(opened).map_err(broken)?;
            let options = ExploreOptions {
                seed: self.seed,
                walks: Some(self.sample.unwrap_or(WALKS) as u64),
                time: None,
                moves: MOVES,
                jobs,
                deadline: DEADLINE,
                max_findings: FINDINGS,
                reproduce: String::new(),
            };
            let mut written = Ok(());
            let mut sink = |event: ExploreEvent<'_>| {
                if let ExploreEvent::Finding(found, _) = event
                    && written.is_ok()
                {
                    written = write!(out, "{}", show::finding(found, None, ""));
                }
            };
            let report = runtime.block_on(explore(testbed, options, &mut sink, stopped.clone()));
            written?;
            found += report.findings.len();
            if report.ended == ExploreEnd::Interrupted {
                return Ok(Exit::Interrupted);
            }
            let exploration = exploration_of(self.seed, &report);
            let made: usize = exploration.counts.values().flatten().filter(|count| **count > 0).count();
            writeln!(
                out,
                "{}: {}; {made} of {} legal pairs of state and move were made",
                suite.protocol.name,
                show::summary(&report),
                made + exploration.never.len()
            )?;
            self.reporting.enter(suite, |of| of.exploration = Some(exploration))?;
        }
        Ok(if found > 0 { Exit::Failed } else { Exit::Passed })
    }
}

fn exploration_of(seed: u64, report: &ExploreReport) -> Exploration {
    let table = results::table(&report.coverage);
    Exploration {
        seed,
        walks: report.progress.walks,
        moves: report.progress.moves,
        findings: report.findings.len(),
        states: table.states,
        counts: table.commands.into_iter().collect::<BTreeMap<_, _>>(),
        never: report.never.iter().map(|(state, act)| format!("{state}: {act}")).collect(),
    }
}
