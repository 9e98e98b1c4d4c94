//! Whether the scripted model was there, was named to the server and was asked: what is said where its words are missing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{CueState, Observer, Record};
use crate::protocol::Protocol;
use crate::protocol::extension::TargetTool;
use crate::run::Target;
use crate::run::context::RunContext;
use crate::run::triage::activity::ActivityLevel;

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

/// Names of tools that are kept; a server may offer as many as it likes.
const TOOLS: usize = 100;

/// Counts what the model is asked, and keeps the names of the tools that it is offered.
#[derive(Debug, Default)]
pub(crate) struct ModelUse(Mutex<(Count, BTreeSet<String>)>);

impl ModelUse {
    pub fn observer(self: &Arc<Self>) -> Observer {
        let asked = Arc::clone(self);
        Arc::new(move |record| {
            if let Record::Request(request) = record {
                let mut asked = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
                let (count, offered) = &mut *asked;
                count.requests += 1;
                count.found += u64::from(request.cue == CueState::Found);
                count.last = Some(request.cue);
                for tool in &request.tools {
                    if offered.len() < TOOLS && !offered.contains(tool) {
                        offered.insert(tool.clone());
                    }
                }
            }
        })
    }

    pub fn count(&self) -> Count {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// The classes of tools, of those that a protocol names, that the server has offered the model in no request; none where it
    /// has offered nothing at all.
    pub fn not_offered(&self, protocol: &Protocol) -> Option<NotOffered> {
        let offered = self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        let tools = protocol.extension.tools.iter();
        let needed =
            tools.filter(|(_, tool)| tool.target != TargetTool::Absent && !offered.contains(&tool.name));
        let needed: Vec<_> = needed.collect();
        let is_mapped = needed.iter().any(|(_, tool)| tool.target != TargetTool::AsDescribed);
        let classes: Vec<_> =
            needed.into_iter().map(|(class, tool)| (class.clone(), tool.name.clone())).collect();
        (!offered.is_empty() && !classes.is_empty()).then_some(NotOffered { offered, classes, is_mapped })
    }
}

/// Tools that cases call and that the server does not offer.
pub(crate) struct NotOffered {
    offered: BTreeSet<String>,
    /// Class and name of each.
    classes: Vec<(String, String)>,
    /// The target names one of them itself.
    pub is_mapped: bool,
}

impl NotOffered {
    /// Whether the tool of this class is among them.
    pub fn has(&self, class: &str) -> bool {
        self.classes.iter().any(|(one, _)| one == class)
    }

    pub fn text(&self) -> String {
        const SHOWN: usize = 8;
        let mut offered: Vec<_> = self.offered.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        if self.offered.len() > SHOWN {
            offered.push(format!("{} more", self.offered.len() - SHOWN));
        }
        let missing: Vec<_> =
            self.classes.iter().map(|(class, name)| format!("`{name}` (class {class})")).collect();
        format!("the server offers the model {}; not {}", offered.join(", "), missing.join(", "))
    }

    pub const ADVICE: &str =
        "name its own tool of the class in [target.NAME.tools.CLASS], or list the class in `without-tools`";
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
                    "its address is set in {} of [target.{}]: does the server read it? OpenAI's clients want it with /v1, Anthropic's \
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
pub(crate) fn hint(target: &Target, asked: &ModelUse, cued: CueResults, run: &RunContext) -> Option<String> {
    let (heard, options) = (&run.activity, &run.options);
    let Target::Configured(spec) = target else { return None };
    // A server that plays cues itself needs no model.
    let needed = cued.failed > 0 && (spec.model.listen.is_some() || cued.failed > cued.passed);
    if !needed || heard.extent() <= ActivityLevel::Openings || !options.prompts.is_default() {
        return None;
    }
    let Some(Missing { text, advice }) = missing(target, asked.count()) else {
        let not_offered = asked.not_offered(&run.protocol)?;
        return Some(format!("{}: {}", not_offered.text(), NotOffered::ADVICE));
    };
    let doctor = options.reproduce.doctor();
    Some(format!("{text}: {advice}; `{doctor}` checks it step by step"))
}
