//! What is wrong with a step, and which of it a step before has told already.

use crate::results::Check;
use crate::results::event::{Failure, Verdict};
use crate::run::case::outcome::CaseOutcome;

/// Further violations that a step lists.
const LISTED: usize = 12;

/// The kinds of violations that were told.
#[derive(Default)]
pub(super) struct Reported(Vec<(Check, Vec<String>)>);

impl Reported {
    /// What a step's case breaks that was not told before, one sentence for each kind; it counts as told from now on. What stands
    /// behind the first may be its consequence.
    pub fn news(&mut self, outcome: &CaseOutcome) -> Vec<String> {
        let mut news = Vec::new();
        for failure in outcome.failures.iter().chain(&outcome.consequences).filter(|one| is_wrong(one)) {
            let kind = (failure.check.clone(), failure.requirements.clone());
            if self.0.contains(&kind) {
                continue;
            }
            self.0.push(kind);
            news.push(sentence(failure));
        }
        let more = news.len().saturating_sub(LISTED);
        if more > 0 {
            news.truncate(LISTED);
            news.push(format!("{more} more kinds of violations"));
        }
        news
    }
}

/// Whether a failure is more than a warning.
pub(super) fn is_wrong(failure: &Failure) -> bool {
    failure.verdict != Verdict::Warned
}

/// Why a step failed, in a sentence.
pub(super) fn reason(outcome: &CaseOutcome) -> String {
    if let Some(reason) = outcome.end.reason() {
        return reason;
    }
    let failure = outcome.failures.iter().find(|failure| is_wrong(failure));
    failure.or(outcome.failures.first()).map_or_else(|| "it failed".to_owned(), sentence)
}

fn sentence(failure: &Failure) -> String {
    match failure.requirements.is_empty() {
        true => failure.message.clone(),
        false => format!("{} ({})", failure.message, failure.requirements.join(" ")),
    }
}
