//! Running programs: as the campaign does it, and as a replay does it, on ground of its own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use super::crashes;
use super::finding::{Fingerprint, fingerprints};
use super::program::{Program, Rendered};
use crate::results::event::{Failure, Verdict};
use crate::run::testbed::{Ground, Single};
use crate::scenario::LoadedCase;
use crate::scenario::model::Case;
use crate::source::Document;
use crate::trace::{Direction, End, Event, Payload};

/// A target, and how long it may take to answer.
#[derive(Clone)]
pub struct Executor {
    /// The target.
    pub ground: Arc<Ground>,
    /// A place for the cases, which stand in no file yet.
    document: Arc<Document>,
}

/// A program that was run.
#[derive(Clone)]
pub struct Execution {
    /// The program.
    pub program: Program,
    /// The scenario that it was.
    pub rendered: Rendered,
    /// What came of it.
    pub single: Single,
}

impl Executor {
    /// A executor for a target.
    pub fn new(ground: Ground) -> Self {
        // An empty document always parses.
        let document = Document::parse("fuzz", "{}").map(Arc::new);
        let document = document.unwrap_or_else(|_| unreachable!("an empty map is YAML"));
        Self { ground: Arc::new(ground), document }
    }

    /// The case as the runner takes it.
    fn loaded(&self, case: &Value) -> Result<LoadedCase, String> {
        let case: Case = serde_json::from_value(case.clone()).map_err(|error| error.to_string())?;
        Ok(LoadedCase {
            id: format!("fuzz/{}", case.name),
            family: "fuzz".to_owned(),
            case,
            file: "fuzz".to_owned(),
            embedded: false,
            document: Arc::clone(&self.document),
            pointer: String::new(),
            line: 1,
            notes: Vec::new(),
        })
    }

    /// Runs a program. `None`: it is no scenario (which shrinking may bring about).
    pub async fn run(&self, program: Program, seed: u64, deadline: Duration) -> Option<Execution> {
        let rendered = program.render(self.ground.protocol(), "case", "A fuzzed case", &[]);
        let loaded = self.loaded(&rendered.case).ok()?;
        let single = self.ground.run(&loaded, seed, Some(deadline)).await;
        Some(Execution { program, rendered, single })
    }

    /// Runs a program on ground of its own, where there is such a thing.
    pub async fn replay(&self, program: Program, seed: u64, deadline: Duration) -> Option<Execution> {
        let Some(own) = self.ground.fork().await else {
            if self.ground.is_launched() {
                self.ground.renew().await;
            }
            return self.run(program, seed, deadline).await;
        };
        let executor = Self { ground: Arc::new(own), document: Arc::clone(&self.document) };
        let mut ran = executor.run(program, seed, deadline).await;
        if let (Some(ran), Some(how)) = (&mut ran, executor.ground.fallen().await.first()) {
            ran.single.died(how);
        }
        if let Ok(ground) = Arc::try_unwrap(executor.ground) {
            ground.close().await;
        }
        ran
    }

    /// Replays programs side by side, at most `jobs` at once; the results stand in the programs' order.
    pub async fn replay_all(
        &self,
        programs: Vec<Program>,
        seed: u64,
        deadline: Duration,
        jobs: usize,
    ) -> Vec<Option<Execution>> {
        // On the only server that there can be, one replay would be harmed by another.
        let jobs = if self.ground.is_launched() && !self.ground.forks() { 1 } else { jobs };
        let mut results: Vec<Option<Execution>> = programs.iter().map(|_| None).collect();
        let mut waiting = programs.into_iter().enumerate();
        let mut running = JoinSet::new();
        loop {
            while running.len() < jobs.max(1) {
                let Some((index, program)) = waiting.next() else { break };
                let executor = self.clone();
                running.spawn(async move { (index, executor.replay(program, seed, deadline).await) });
            }
            match running.join_next().await {
                // A replay that panicked is one that did not show the finding.
                Some(Ok((index, ran))) => results[index] = ran,
                Some(Err(_)) => {}
                None => return results,
            }
        }
    }

    /// Replays a program so many times, side by side; the runs that show a finding.
    pub async fn shown_again(
        &self,
        program: &Program,
        times: usize,
        wanted: &Fingerprint,
        seed: u64,
        deadline: Duration,
    ) -> Vec<Execution> {
        let again = self.replay_all(vec![program.clone(); times], seed, deadline, times).await;
        again.into_iter().flatten().filter(|ran| ran.shows(wanted)).collect()
    }
}

impl Execution {
    /// Everything that is wrong.
    pub fn wrong(&self) -> Vec<Fingerprint> {
        fingerprints(&self.program, &self.rendered, &self.single)
            .into_iter()
            .map(|(print, _)| print)
            .collect()
    }

    /// Whether there is something to look into, or harm that may last. What a `SHOULD` or a single frame is about does none; it
    /// counts where it is `new`.
    pub fn is_suspect(&self, new: &dyn Fn(&Fingerprint) -> bool) -> bool {
        let harmless = |failure: &Failure| failure.verdict == Verdict::Warned;
        let all = fingerprints(&self.program, &self.rendered, &self.single);
        let counts = |(print, failure): &(Fingerprint, Option<Failure>)| {
            let lasts = !print.is_of_a_frame() && !failure.as_ref().is_some_and(harmless);
            lasts || new(print)
        };
        self.single.broke().is_some() || all.iter().any(counts)
    }

    /// What keeps a case that does no harm from its end, and why in a sentence: no `SHOULD` does.
    pub fn obstacle(&self) -> Option<(Fingerprint, String)> {
        let all = fingerprints(&self.program, &self.rendered, &self.single).into_iter();
        let stops =
            |failure: &Option<Failure>| failure.as_ref().is_none_or(|one| one.verdict != Verdict::Warned);
        let (print, failure) = all.into_iter().find(|(_, failure)| stops(failure))?;
        let why = failure.map(|failure| failure.message).or(self.single.report.reason.clone());
        Some((print, why.unwrap_or_default()))
    }

    /// Whether the server's death can have harmed it: a connection broke off, or none could be had.
    pub fn is_struck(&self) -> bool {
        let lost = |event: &Event| {
            event.dir == Direction::Recv && matches!(event.payload, Payload::End(End::Eof | End::Reset))
        };
        self.single.broke().is_some() || self.single.trace.iter().any(lost)
    }

    /// Whether it shows the defect: the same oracle, and a requirement that it held broken.
    pub fn shows(&self, wanted: &Fingerprint) -> bool {
        self.wrong().iter().any(|print| is_same_defect(print, wanted))
    }
}

/// Whether a fingerprint may be of the same defect as another that is wanted, before shrinking has shown what it takes.
pub fn is_same_defect(one: &Fingerprint, other: &Fingerprint) -> bool {
    let shared = one.requirements.iter().any(|id| other.requirements.contains(id));
    // Without a requirement it is the message that tells defects apart.
    let nameless = one.requirements.is_empty() && other.requirements.is_empty();
    let alike = match other.oracle.as_str() {
        "target" => crashes::is_of(one.what(), other.what()),
        _ => one.what() == other.what(),
    };
    one.oracle == other.oracle && (shared || nameless && alike)
}
