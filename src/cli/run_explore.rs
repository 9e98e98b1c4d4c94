//! `run --explore`: after the suite, some long valid conversations with the same server.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use super::cannot::cannot_run;
use super::explore::{DEADLINE, show_event};
use super::runtime::Runtime;
use super::screen::Screen;
use super::source::quote;
use super::subject::heading;
use super::target::Chosen;
use super::{Failure, harness};
use crate::exit::Exit;
use crate::explore::campaign::{ExploreEvent, ExploreOptions, explore};
use crate::explore::results::{events, exit_of};
use crate::protocol::Protocol;
use crate::report::explore as show;
use crate::results::event::RunEvent;
use crate::run::testbed::Testbed;
use crate::run::{RunOptions, Target};

/// Most moves of a walk.
const MOVES: usize = 25;
/// Findings behind which it ends: the suite has had its say.
const FINDINGS: usize = 10;

/// What is explored, and how far.
pub(super) struct AfterRun<'c> {
    pub protocol: Arc<Protocol>,
    pub target: Target,
    pub chosen: Option<&'c Chosen>,
    /// As those of the suite.
    pub options: RunOptions,
    pub walks: u64,
    /// The arguments that choose the server again.
    pub subject: String,
    pub quiet: bool,
}

impl AfterRun<'_> {
    /// Explores. Gives the exploration as the events of a run of its own, and how it ended.
    pub fn explore(
        self,
        runtime: &Runtime,
        stopped: watch::Receiver<bool>,
    ) -> Result<(Vec<RunEvent>, Exit), Failure> {
        let folder: PathBuf = format!("reports/explore-{}", self.protocol.name).into();
        let (seed, jobs) = (self.options.randomness.seed, self.options.jobs);
        let opened = Testbed::open(Arc::clone(&self.protocol), self.target.clone(), self.options);
        let testbed =
            runtime.block_on(opened).map_err(|error| cannot_run(&error, &self.target, self.chosen))?;
        let started = testbed.started(0);
        let mut out = anstream::stdout();
        if !self.quiet {
            writeln!(out, "\n{}", heading("Exploring", &started, seed))?;
        }
        let command = |file: &str| format!("frameproof run{} --scenario {}", self.subject, quote(file));
        let mut screen = Screen::new(self.quiet);
        let mut sink = |event: ExploreEvent<'_>| show_event(&mut screen, &event, &folder, command);
        let options = ExploreOptions {
            seed,
            walks: Some(self.walks),
            time: None,
            moves: MOVES,
            jobs,
            deadline: DEADLINE,
            max_findings: FINDINGS,
            reproduce: format!(
                "{} --scenario {}/",
                self.subject.trim(),
                quote(&folder.display().to_string())
            ),
        };
        let report = runtime.block_on(explore(testbed, options, &mut sink, stopped));
        screen.clear();
        if let Some(error) = screen.failed.take() {
            return Err(harness(error, "findings are written below reports/ of the working folder"));
        }
        writeln!(out, "explored: {}", show::summary(&report))?;
        let place = |name: &str| {
            let file = folder.join(name).display().to_string();
            let again = command(&file);
            (file, again)
        };
        // A server that cannot be explored has been judged by the suite all the same.
        let exit = match exit_of(&report) {
            Exit::Nothing => Exit::Passed,
            other => other,
        };
        Ok((events(started, &report, &place), exit))
    }
}
