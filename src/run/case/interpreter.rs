//! The interpreter of a case's steps, made of the parts that each keep what is theirs.

use std::time::Duration;

use serde_json::Value;

use crate::run::case::automatic::Automatic;
use crate::run::case::capabilities::Capabilities;
use crate::run::case::client::Client;
use crate::run::case::connections::Connections;
use crate::run::case::context::{CaseContext, Settling, StepContext};
use crate::run::case::log::CaseLog;
use crate::run::case::loops::Loops;
use crate::run::case::think_time::Pauses;
use crate::run::case::variables::{Scope, Variables};
use crate::run::case::verdict::{CaseJudges, CaseVerdict};
use crate::source::schema::Violation;
use crate::trace::Direction;
use crate::wire::Standing;

pub(crate) use crate::run::case::outcome::{Abort, CaseOutcome};

/// The running case.
pub(crate) struct Interpreter<'r> {
    pub cx: &'r CaseContext<'r>,
    pub conns: Connections,
    pub vars: Variables,
    pub log: CaseLog,
    pub judges: CaseJudges,
    pub verdict: CaseVerdict,
    pub step: StepContext,
    pub settling: Settling,
    pub capabilities: Capabilities,
    pub automatic: Automatic,
    pub loops: Loops,
    pub pauses: Pauses,
}

impl<'r> Interpreter<'r> {
    pub fn new(cx: &'r CaseContext<'r>, seed: u64) -> Self {
        Self {
            conns: Connections::default(),
            vars: Variables::new(cx, seed),
            log: CaseLog::new(cx),
            judges: CaseJudges::new(cx),
            verdict: CaseVerdict::default(),
            step: StepContext::default(),
            settling: Settling::default(),
            capabilities: Capabilities::of(cx),
            automatic: Automatic::default(),
            loops: Loops::default(),
            pauses: Pauses::default(),
            cx,
        }
    }

    /// Fills in the templates of a value, for the step's client.
    pub fn expand(&mut self, value: &Value, with: Option<&Value>) -> Result<Value, Abort> {
        let scope = Scope { cx: self.cx, conns: &self.conns, client: &self.step.client };
        let expanded = self.vars.expand(value, &scope, with);
        expanded.map_err(|error| match self.cx.protocol.missing_parameter(value) {
            Some(missing) => Abort::NotApplicable(missing),
            None if self.vars.has_missed() => Abort::Vacuous,
            None => Abort::Error(error),
        })
    }

    /// Fills in a message of a client. A message that is wrong only as the client has seen no event yet is the author's mistake.
    pub fn expand_message(&mut self, message: &Value, with: Option<&Value>) -> Result<Value, Abort> {
        let expanded = self.expand(message, with)?;
        let protocol = &self.cx.protocol;
        if self.vars.saw_nothing()
            && let Some(index) = protocol.message_of(&expanded, Direction::Send)
        {
            let known = &protocol.messages[index];
            let violations = known.violations(&expanded);
            let is_null =
                |violation: &&Violation| expanded.pointer(&violation.at).is_some_and(Value::is_null);
            if let Some(violation) = violations.iter().find(is_null) {
                return Err(Abort::Error(format!(
                    "`{{{{last_seen}}}}` is null, as client `{}` has seen no event yet, and `{}` cannot have null at {}: write a value for \
                     that, such as `{{{{last_seen|0}}}}`",
                    self.step.client, known.name, violation.at
                )));
            }
        }
        Ok(expanded)
    }

    /// A step's own deadline, or the run's.
    pub fn deadline(&self, own: Option<Duration>) -> Duration {
        self.cx.options.deadline(&self.cx.run.options.timing, own)
    }

    /// An error where the client has written half a frame, to which anything sent now would belong.
    pub fn check_frame_boundary(&mut self, client: &str) -> Result<(), Abort> {
        if self.client(client)?.standing() == Some(Standing::MidFrame) {
            let message =
                format!("`{client}` has written half a frame: finish it with `bytes`, or `drop: {client}`");
            return Err(Abort::Error(message));
        }
        Ok(())
    }

    pub fn client(&mut self, name: &str) -> Result<&mut Client, Abort> {
        self.conns.client(name)
    }
}
