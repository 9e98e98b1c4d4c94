//! `get`: a plain HTTP request to the server, which an upgrade is not.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::oneshot::error::TryRecvError;

use super::connection::{answered, unanswered};
use super::expect::describe;
use crate::protocol::is_subset;
use crate::results::Check;
use crate::run::case::connect::altered;
use crate::run::case::context::StepScope;
use crate::run::case::fail::Evidence;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::case::Get;
use crate::wire::http::{NoAnswer, Request};

/// How much of an answer's body is judged and shown, in characters.
const MAX_BODY: usize = 400;
/// How much of it is read, in bytes: as many characters have room.
const MAX_BYTES: u64 = 4 * MAX_BODY as u64;
/// How often it is looked whether the answer has come.
const POLL: Duration = Duration::from_millis(5);

impl Interpreter<'_> {
    pub(crate) async fn get(&mut self, verb: &Get, cx: &StepScope<'_>) -> Result<(), Abort> {
        let path = self.expand(&json!(verb.path), None)?;
        let path = path.as_str().unwrap_or_default().to_owned();
        let upgrade = self.upgrade_of(&verb.upgrade)?;
        let defaults = self.cx.protocol.upgrade_headers().map_err(Abort::NotApplicable)?;
        let endpoint = altered(self.cx.server.endpoint.clone().with_defaults(&defaults), &upgrade);
        let mut request = Request::get(&endpoint, &path).map_err(Abort::Error)?;
        // What negotiates a WebSocket has no meaning here.
        let is_plain = |name: &str| !name.to_ascii_lowercase().starts_with("sec-websocket-");
        request.headers = endpoint.headers.iter().filter(|(name, _)| is_plain(name)).cloned().collect();
        let deadline = self.deadline(verb.within);
        let cannot = |error: NoAnswer| Abort::Error(format!("GET {path}: {error}"));
        let mut answering = request.start(deadline, &endpoint.trust, MAX_BYTES).map_err(cannot)?;
        let sent = loop {
            match answering.try_recv() {
                Ok(sent) => break sent,
                Err(TryRecvError::Closed) => return Err(Abort::Error(format!("GET {path}: no answer"))),
                // What the server sends on its connections meanwhile is taken in; a broken MUST ends the wait.
                Err(TryRecvError::Empty) => drop(self.receive_until(Instant::now() + POLL).await?),
            }
        };
        let (answer, what) = match sent {
            Ok(answer) => {
                let body: String = answer.body.chars().take(MAX_BODY).collect();
                let what = format!("was answered with HTTP {}", answer.status);
                (answered(answer.status, &answer.headers, &body), what)
            }
            Err(NoAnswer::Silence(reason)) => (unanswered(), format!("was not answered: {reason}")),
            Err(error @ NoAnswer::Unsent(_)) => return Err(cannot(error)),
        };
        let what = format!("GET {path} {what}");
        if let Some(with) = &verb.with {
            let with = self.expand(with, None)?;
            if !is_subset(&with, &answer) {
                return self.fail_get(cx, what, answer, Some(with));
            }
        }
        let compiled = match &verb.schema {
            Some(constraint) => self.compiled(constraint)?.1,
            None if verb.with.is_some() => return Ok(()),
            None => {
                let status = json!({ "type": "integer", "minimum": 200, "maximum": 299 });
                let success = json!({ "properties": { "status": status } });
                self.cx.protocol.schema(&success).map_err(Abort::Error)?
            }
        };
        let message = match compiled.violations_within(&answer).first() {
            None => return Ok(()),
            // What is missing is all of it, whatever the schema says of its parts.
            Some(_) if answer["status"].is_null() => what,
            Some(violation) => format!("{what}; {}", describe(violation, &answer)),
        };
        // No expected value: the step, which is shown, says what it wants.
        self.fail_get(cx, message, answer, None)
    }

    /// No frame shows it: it was none.
    fn fail_get(
        &mut self,
        cx: &StepScope<'_>,
        what: String,
        answer: Value,
        expected: Option<Value>,
    ) -> Result<(), Abort> {
        let evidence = Evidence { expected, actual: Some(answer), frames: Vec::new() };
        self.fail_with(Check::Step, cx.blame, what, evidence)
    }
}
