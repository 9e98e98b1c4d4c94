//! How a run's report begins.

use std::collections::BTreeMap;

use crate::protocol::{Protocol, Requirement};
use crate::results::event::{RequirementText, RunStarted};
use crate::run::Target;
use crate::run::context::RunContext;
use crate::run::run_id::RunId;

/// What is run against what.
pub(crate) fn started(run: &RunContext, target: &Target, url: &str, cases: usize) -> RunStarted {
    let (protocol, options) = (&*run.protocol, &*run.options);
    let run_id = Some(run.run_id).filter(|id| *id != RunId::default());
    let shown = crate::wire::shown(url);
    RunStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: protocol.name.clone(),
        title: format!("{} {}", protocol.title, protocol.version),
        target: match target {
            Target::Url { .. } => shown,
            Target::Configured(spec) => format!("{} ({shown})", spec.name),
            Target::Reference(variant) => variant.to_string(),
        },
        started: jiff::Timestamp::now().to_string(),
        seed: options.randomness.seed,
        run_id: run_id.map(|id| id.to_string()),
        shard: None,
        reading: reading(protocol),
        cases,
        jobs: options.jobs,
        ends_within: None,
        requirements: requirement_texts(protocol),
        left_out: 0,
    }
}

/// What reports quote of each requirement, by id.
pub(crate) fn requirement_texts(protocol: &Protocol) -> BTreeMap<String, RequirementText> {
    let text = |requirement: &Requirement| {
        let reading = requirement.reading.as_deref().and_then(|id| protocol.answer_taken(id));
        let text = RequirementText {
            level: requirement.level.to_string(),
            area: requirement.area.clone(),
            text: requirement.text.clone(),
            source: requirement.source.clone(),
            reading,
        };
        (requirement.id.clone(), text)
    };
    protocol.requirements.0.values().map(text).collect()
}

/// The reading that is taken, and the dialect, where it is not the document's own.
pub(crate) fn reading(protocol: &Protocol) -> String {
    let taken = format!("{:?}", protocol.reading).to_lowercase();
    protocol.dialect().map_or(taken.clone(), |dialect| format!("dialect {dialect}, {taken}"))
}
