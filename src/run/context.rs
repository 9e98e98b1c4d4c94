//! What a run has found out before its first case.

use std::sync::Arc;
use std::time::Duration;

use crate::check::RulesetPair;
use crate::protocol::Protocol;
use crate::reference::Variant;
use crate::run::options::{CaseOptions, Retention};
use crate::run::triage::activity::ServerActivity;
use crate::run::{LeakDetector, RunOptions, Target};
use crate::source::Diagnostics;

/// What the cases of a run share beside the server. It does not change once they run.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub protocol: Arc<Protocol>,
    /// The protocol without the overlays, in the same dialect.
    pub bare: Option<Arc<Protocol>>,
    /// What traces are judged by: compiled from the two.
    pub rules: RulesetPair,
    pub options: Arc<RunOptions>,
    /// The target is the reference server, which has every fixture.
    pub is_reference: bool,
    /// The silence that stands for the end of a turn, where it is not the protocol's own.
    pub quiet: Option<Duration>,
    /// Makes the sessions of this run others than those of a run before, whose ids the same seed gave.
    pub salt: u64,
    /// What cases that run side by side receive of each other; none: they are not watched for that.
    pub leaks: Option<Arc<LeakDetector>>,
    /// What the server was seen to do over all cases.
    pub activity: Arc<ServerActivity>,
}

impl RunContext {
    /// What is known before the server is asked.
    ///
    /// # Errors
    /// An invariant that does not compile (found when the protocol is loaded, too).
    pub fn new(protocol: &Arc<Protocol>, target: &Target, options: RunOptions) -> Result<Self, Diagnostics> {
        let reference = match target {
            Target::Reference(variant) => Some(variant),
            Target::Url { .. } | Target::Configured(_) => None,
        };
        let is_reference = reference.is_some();
        Ok(Self {
            rules: RulesetPair::compile(protocol, options.bare.as_ref())?,
            protocol: Arc::clone(protocol),
            bare: options.bare.clone(),
            is_reference,
            quiet: options.timing.quiet.or(reference.map(Variant::quiet)),
            // A server that was there before may remember the sessions of the last run.
            salt: if is_reference { 0 } else { fresh_salt() },
            leaks: None,
            activity: Arc::default(),
            options: Arc::new(options),
        })
    }

    /// The same with a server that speaks another dialect.
    ///
    /// # Errors
    /// As [`RunContext::new`].
    pub fn speaking(
        &self,
        protocol: &Arc<Protocol>,
        bare: Option<Arc<Protocol>>,
    ) -> Result<Self, Diagnostics> {
        let rules = RulesetPair::compile(protocol, bare.as_ref())?;
        Ok(Self { rules, protocol: Arc::clone(protocol), bare, ..self.clone() })
    }

    /// How a case is run, unless there is a reason to run it otherwise.
    pub fn case_options(&self, seed: u64) -> CaseOptions {
        CaseOptions {
            step_deadline: self.options.timing.step_deadline,
            longest_step: None,
            retention: if self.options.trace.is_some() { Retention::Trace } else { Retention::Report },
            seed,
            salt: self.salt,
        }
    }
}

/// A salt that no run had before.
pub(crate) fn fresh_salt() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().1
}
