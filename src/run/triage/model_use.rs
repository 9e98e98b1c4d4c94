//! Whether the scripted model was there, was named to the server and was asked: what is said where its words are missing.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{CueState, Observer, Record};
use crate::run::triage::activity::{ActivityLevel, ServerActivity};
use crate::run::{RunOptions, Target};

/// What to do where the server is not told of the model.
const POINT_THERE: &str = "point the server to it: env = { OPENAI_BASE_URL = \"{{model}}/v1\" } or ANTHROPIC_BASE_URL = \"{{model}}\"";

/// What the model was asked, so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub requests: u64,
    /// Those with a cue that can be played.
    pub found: u64,
    /// The last one's.
    pub last: Option<CueState>,
}

/// Counts what the model is asked.
#[derive(Debug, Default)]
pub(crate) struct ModelUse(Mutex<Count>);

impl ModelUse {
    pub fn observer(self: &Arc<Self>) -> Observer {
        let asked = Arc::clone(self);
        Arc::new(move |record| {
            if let Record::Request(request) = record {
                let mut count = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
                count.requests += 1;
                count.found += u64::from(request.cue == CueState::Found);
                count.last = Some(request.cue);
            }
        })
    }

    pub fn count(&self) -> Count {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many cases came to what, of those that said something which the model was to see.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CueResults {
    pub failed: usize,
    pub passed: usize,
}

/// What is wrong, and what to do about it.
pub(crate) struct Missing {
    pub text: String,
    pub advice: String,
}

/// Why the model's words do not come back, as far as that shows on the model's side; none: it was asked and answered.
pub(crate) fn missing(target: &Target, count: Count) -> Option<Missing> {
    let Target::Configured(spec) = target else { return None };
    let (text, advice) = match (&spec.model.listen, count) {
        (None, _) if !spec.is_launched() => return None,
        (None, _) => (
            format!(
                "no scripted model was started: `{{{{model}}}}` does not occur in [target.{}]",
                spec.name
            ),
            format!("{POINT_THERE}; or give `prompts`, see docs/targets.md"),
        ),
        (Some(_), Count { requests: 0, .. }) => (
            "the scripted model received no request".to_owned(),
            match spec.model.named_in.as_slice() {
                [] => POINT_THERE.to_owned(),
                places => format!(
                    "its address stands in {} of [target.{}]: does the server read that? OpenAI's clients want it with /v1, Anthropic's \
                     without",
                    places.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>().join(", "),
                    spec.name
                ),
            },
        ),
        (Some(_), Count { last: Some(CueState::Bad), found: 0, .. }) => (
            "the scripted model received a damaged cue".to_owned(),
            "the server changes the user's text: `[[cue:…]]` must be passed on unchanged".to_owned(),
        ),
        (Some(_), Count { found: 0, .. }) => (
            "the scripted model received requests without the cue".to_owned(),
            "the user's text must be in a user message of the request, word for word".to_owned(),
        ),
        _ => return None,
    };
    Some(Missing { text, advice })
}

/// What a run says of it: where cases failed that needed the model, and the server's silence is not the reason.
pub(crate) fn hint(
    target: &Target,
    count: Count,
    cued: CueResults,
    heard: &ServerActivity,
    options: &RunOptions,
) -> Option<String> {
    let Target::Configured(spec) = target else { return None };
    // A server that plays cues itself needs no model.
    let needed = cued.failed > 0 && (spec.model.listen.is_some() || cued.failed > cued.passed);
    if !needed || heard.extent() <= ActivityLevel::Openings || !options.prompts.is_default() {
        return None;
    }
    let Missing { text, advice } = missing(target, count)?;
    let doctor = options.reproduce.doctor();
    Some(format!("{text}: {advice}; `{doctor}` checks it step by step"))
}
