//! The context window: what it counts, and how it is compacted.

use serde_json::{Value, json};

use super::Behaviour;
use super::faults::Defect;
use super::styles::Style;

/// Tokens that fit. Small, so that a test can fill it.
const MAX_TOKENS: u64 = 32_000;
/// Tokens at which the context is compacted without being asked.
const THRESHOLD: u64 = MAX_TOKENS / 10 * 8;
/// Tokens of a system prompt, where that counts.
const PROMPT: u64 = 900;
/// Tokens below which there is little to compact.
const LITTLE: u64 = 300;
const STRATEGY: &str = "ThresholdContextManager";

/// The transcript of one conversation, as far as it is counted.
#[derive(Debug, Default)]
pub(super) struct Context {
    tokens: u64,
    entries: u64,
}

/// About four characters make a token.
pub(super) fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// A percentage as it is shown.
fn rounded(behaviour: &Behaviour, percent: f64) -> f64 {
    if behaviour.style(Style::RoundedUsage) && percent > 0.0 { percent + 0.1 } else { percent }
}

/// With one decimal.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 1000.0 / whole as f64).round() / 10.0 }
}

/// Tokens that fit.
pub(super) fn max_tokens(behaviour: &Behaviour) -> u64 {
    if behaviour.style(Style::LargeWindow) { 1000 * MAX_TOKENS } else { MAX_TOKENS }
}

impl Context {
    /// There is nothing to compact.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// There is little to compact.
    pub fn is_small(&self) -> bool {
        self.tokens < LITTLE
    }

    /// A compaction gains nothing.
    pub fn is_compact(&self) -> bool {
        self.tokens == 0
    }

    /// Adds an entry. The report of the compaction that it made necessary, if it did.
    pub fn add(&mut self, text: &str, behaviour: &Behaviour) -> Option<Value> {
        let full = self.tokens + tokens(text) > THRESHOLD && !behaviour.style(Style::LargeWindow);
        let report = full.then(|| self.compact(behaviour));
        self.tokens += tokens(text);
        self.entries += 1;
        report
    }

    /// Replaces the transcript by a summary an eighth of its size; the payload that reports it.
    pub fn compact(&mut self, behaviour: &Behaviour) -> Value {
        let keeps = behaviour.style(Style::NothingToCompact) && self.is_small();
        let (mut old, mut new) = (self.tokens, if keeps { self.tokens } else { self.tokens / 8 });
        let lacks_effect = new < old && behaviour.strikes(Defect::CompactionHasNoEffect);
        if !keeps && !lacks_effect {
            self.tokens = new;
            self.entries = self.entries.min(1);
        }
        if behaviour.style(Style::CountsThePrompt) {
            (old, new) = (old + PROMPT, new + PROMPT);
        }
        if old > 0 && behaviour.strikes(Defect::CompactsFromZero) {
            (old, new) = (0, 0);
        }
        let reduction = rounded(behaviour, percent(old - new, old));
        let mut report = json!({
            "oldTokenCount": old, "newTokenCount": new, "reductionPercent": reduction, "strategy": STRATEGY,
        });
        behaviour.mutate(&mut report, |defect, report| match defect {
            Defect::NoReduction => {
                report.as_object_mut().map(|report| report.remove("reductionPercent"));
            }
            Defect::ReductionOfTheRest => report["reductionPercent"] = json!(percent(new, old)),
            Defect::CompactionGrows => {
                report["newTokenCount"] = json!(old + 1);
                report["reductionPercent"] = json!(-percent(1, old));
            }
            Defect::OtherStrategy => report["strategy"] = json!("summary"),
            _ => {}
        });
        report
    }

    /// The payload of context_info.
    pub fn info(&self, behaviour: &Behaviour) -> Value {
        let (mut used, mut entries, mut most) = (self.tokens, json!(self.entries), max_tokens(behaviour));
        if behaviour.style(Style::CountsThePrompt) {
            (used, entries) = (used + PROMPT, json!(self.entries + 1));
        }
        if used > 0 && behaviour.strikes(Defect::StaleCounts) {
            (used, entries) = (0, json!(0))
        } else if behaviour.strikes(Defect::FractionalLength) {
            entries = json!(self.entries as f64 + 0.5)
        } else if used > 1 && behaviour.strikes(Defect::OverTheLimit) {
            most = (used / 2).max(1)
        }
        let usage = rounded(behaviour, percent(used, most));
        let usage = if behaviour.strikes(Defect::UsageAsText) {
            json!(format!("{usage}%"))
        } else if usage > 0.0 && behaviour.strikes(Defect::UsageAsFraction) {
            json!(usage / 100.0)
        } else {
            json!(usage)
        };
        json!({
            "tokenCount": used, "usagePercent": usage, "transcriptLength": entries, "maxTokens": most,
            "strategy": STRATEGY,
        })
    }
}
