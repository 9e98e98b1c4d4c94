//! What happens in a campaign, and what comes of it.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::feedback::Coverage;
use super::finding::Finding;
use super::program::Program;
use crate::shortage::Shortage;

/// Where a campaign is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Cases run.
    pub cases: u64,
    /// Those of them in which an input was sent: before it, all that is sent is valid.
    pub fuzzed: u64,
    /// Messages sent.
    pub sent: u64,
    /// Since the beginning.
    pub time: Duration,
    /// Programs in the corpus.
    pub corpus: usize,
    /// Confirmed findings.
    pub findings: usize,
}

/// What happens in a campaign.
pub enum CampaignEvent<'e> {
    /// A round is over.
    Progress(Progress),
    /// A finding is confirmed and shrunk; its scenario file.
    Finding(&'e Finding, &'e str),
    /// The steps of a finding break something else, too: it is reported with it, as the last of its evidence. Its scenario file.
    Joined(&'e Finding, &'e str),
    /// A program joins the corpus.
    Novel(&'e Program),
    /// Something that the user should know.
    Note(String),
}

/// Why a campaign is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CampaignEnd {
    /// Its time or its cases are used up, or it has found as much as it may.
    Done,
    /// By a signal.
    Interrupted,
    /// The target refuses connections.
    Refusing(String),
    /// This machine had no more of something for frameproof itself.
    Shortage(Shortage),
}

/// What came of a campaign.
pub struct CampaignReport {
    /// Totals.
    pub progress: Progress,
    /// Confirmed findings, shrunk, each once.
    pub findings: Vec<Finding>,
    /// Failures that replays did not reproduce.
    pub unconfirmed: usize,
    /// States and commands.
    pub coverage: Coverage,
    /// The states that the protocol declares.
    pub states: Vec<String>,
    /// How often each requirement was exercised.
    pub exercised: BTreeMap<String, u64>,
    /// Why it is over.
    pub ended: CampaignEnd,
    /// Its time and the slack were over while cases or replays still ran.
    pub cut: bool,
}

impl CampaignReport {
    /// Why the campaign says nothing about the server, although it ran to its end.
    pub fn inconclusive(&self) -> Option<&'static str> {
        let Progress { cases, fuzzed, .. } = self.progress;
        if fuzzed == 0 {
            return Some("nothing was fuzzed");
        }
        if fuzzed < cases.div_ceil(2) {
            return Some("most cases ended before their first input");
        }
        let most_failed = u64::try_from(self.unconfirmed).is_ok_and(|failed| failed > fuzzed / 2);
        most_failed.then_some("most cases failed, and no replay reproduced it")
    }
}

/// A note for the user.
#[derive(Debug, Clone)]
pub(super) struct Note {
    /// What such notes have in common: of one kind only the first is reported.
    pub kind: String,
    /// What it says.
    pub text: String,
}

impl Note {
    /// A note that is like no other.
    pub fn unique(text: String) -> Self {
        Self { kind: text.clone(), text }
    }
}

/// Notes of a campaign: what a server does wrong without doing it again is without end.
const NOTES: usize = 10_000;

/// Where the events of a campaign go.
pub(super) struct EventSink<'c> {
    sink: &'c mut (dyn FnMut(CampaignEvent<'_>) + Send),
    /// Kinds of notes that were reported, by their digests.
    noted: HashSet<u64>,
    digest: RandomState,
}

impl<'c> EventSink<'c> {
    pub fn new(sink: &'c mut (dyn FnMut(CampaignEvent<'_>) + Send)) -> Self {
        Self { sink, noted: HashSet::new(), digest: RandomState::new() }
    }

    /// Reports an event.
    pub fn send(&mut self, event: CampaignEvent<'_>) {
        (self.sink)(event);
    }

    /// Reports a note, unless one of its kind was reported before, or very many.
    pub fn note(&mut self, note: Note) {
        if self.noted.len() < NOTES && self.noted.insert(self.digest.hash_one(&note.kind)) {
            self.send(CampaignEvent::Note(note.text));
        }
    }
}
