//! Feedback: which inputs had a new answer, and how often each command was tried in each state.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use super::observed::Answered;
use super::program::Program;

/// Programs kept, and their size in all; the oldest are dropped first.
const CORPUS: usize = 512;
const CORPUS_BYTES: usize = 8 << 20;
/// Answers that are known. What a server says is without end: behind so many, nothing is new.
const SEEN: usize = 1 << 18;

/// How often each command was tried in each state: command, then state.
pub type Coverage = BTreeMap<String, BTreeMap<String, u64>>;

/// What is known of the behaviour of the target.
#[derive(Default)]
pub struct Feedback {
    /// Digests of state, command, mutation and answers.
    seen: HashSet<u64>,
    digest: RandomState,
    /// The sizes of the programs of the corpus.
    sizes: VecDeque<usize>,
    /// The programs that had a new answer.
    pub corpus: Vec<Program>,
    /// States and commands.
    pub coverage: Coverage,
}

impl Feedback {
    /// Learns from what came of a program. The part of it that led to something new joins the corpus. Returns that
    /// part, if there is one.
    pub fn learn(&mut self, program: &Program, answered: &[Answered]) -> Option<Program> {
        let mut newest = None;
        for (index, (input, Answered { phase, answers })) in program.inputs.iter().zip(answered).enumerate() {
            *self.coverage.entry(input.command.clone()).or_default().entry(phase.clone()).or_default() += 1;
            // What two clients do at once ends as it ends: it would make the campaign depend on chance.
            if input.mutation == "race" || input.command == "wait" {
                continue;
            }
            let key = self.digest.hash_one((phase, &input.command, &input.mutation, answers));
            if self.seen.len() < SEEN && self.seen.insert(key) {
                newest = Some(index);
            }
        }
        let mut part = program.clone();
        part.inputs.truncate(newest? + 1);
        (part.bystander, part.fresh_connection_after, part.bystander_state) = (false, false, None);
        if !self.corpus.contains(&part) {
            self.sizes.push_back(part.size());
            self.corpus.push(part.clone());
        }
        while self.corpus.len() > CORPUS
            || (self.corpus.len() > 1 && self.sizes.iter().sum::<usize>() > CORPUS_BYTES)
        {
            self.corpus.remove(0);
            self.sizes.pop_front();
        }
        Some(part)
    }
}
