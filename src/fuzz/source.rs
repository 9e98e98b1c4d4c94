//! The programs of a campaign, in order: those of a corpus first, then generated ones.

use super::feedback::Feedback;
use super::findings::Findings;
use super::generate::Generator;
use super::program::Program;

/// Makes the programs of a campaign.
pub(super) struct ProgramSource {
    generator: Generator,
    /// Programs of a campaign before, which come first.
    stored: std::vec::IntoIter<Program>,
    seed: u64,
    /// The next one's number.
    made: u64,
}

impl ProgramSource {
    pub fn new(generator: Generator, stored: Vec<Program>, seed: u64) -> Self {
        Self { generator, stored: stored.into_iter(), seed, made: 0 }
    }

    /// How many were made.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// The next program and its number. It depends on the seed and on what was learned and found before, and on nothing else.
    pub fn next(&mut self, feedback: &Feedback, findings: &Findings) -> (u64, Program) {
        let index = self.made;
        self.made += 1;
        let program = self.stored.next().unwrap_or_else(|| {
            let skip = |input: &_| findings.is_known_input(input);
            self.generator.program(self.seed, index, &feedback.corpus, &skip)
        });
        (index, program)
    }
}
