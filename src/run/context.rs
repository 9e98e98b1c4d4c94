//! What a run has found out before its first case.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::check::RulesetPair;
use crate::protocol::Protocol;
use crate::reference::Variant;
use crate::run::loop_lag::LoopLag;
use crate::run::options::{CaseOptions, GoesOn, Retention};
use crate::run::run_id::RunId;
use crate::run::triage::activity::ServerActivity;
use crate::run::triage::model_calls::ModelCalls;
use crate::run::{LeakDetector, RunOptions, Target};
use crate::source::Diagnostics;

/// A case by its id, with its round and attempt.
type Execution = (String, u32, u32);

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
    /// Makes sessions and keys of this run others than those of a run before, which the same seed gave.
    pub run_id: RunId,
    /// How often each case was run.
    pub executions: Arc<Mutex<HashMap<Execution, u32>>>,
    /// What cases that run side by side receive of each other; none: they are not watched for that.
    pub leaks: Option<Arc<LeakDetector>>,
    /// What the server was seen to do over all cases.
    pub activity: Arc<ServerActivity>,
    /// What the scripted model was asked.
    pub calls: Arc<ModelCalls>,
    /// How late this process is.
    pub lag: Arc<LoopLag>,
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
            // A server that was there before may remember the last run.
            run_id: options
                .randomness
                .run_id
                .unwrap_or_else(|| if is_reference { RunId::default() } else { RunId::fresh() }),
            executions: Arc::default(),
            leaks: None,
            activity: Arc::default(),
            calls: Arc::default(),
            lag: Arc::default(),
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
            retention: if self.options.kept.trace.is_some() { Retention::Trace } else { Retention::Report },
            goes_on: GoesOn::Never,
            seed,
            salt: self.run_id.salt(0),
        }
    }

    /// The salt for the next execution of a case: one that is run again must not meet what it has left behind itself.
    pub fn next_salt(&self, case: &str, round: u32, attempt: u32) -> u64 {
        let mut executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        let times = executions.entry((case.to_owned(), round, attempt)).or_default();
        let salt = self.run_id.salt(*times);
        *times += 1;
        salt
    }
}
