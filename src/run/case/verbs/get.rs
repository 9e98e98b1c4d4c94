//! `get`: a plain HTTP request to the server, which an upgrade is not.

use serde_json::{Value, json};

use super::connection::{answered, unanswered};
use crate::protocol::is_subset;
use crate::run::case::client::Received;
use crate::run::case::connect::{altered, with_defaults};
use crate::run::case::context::StepScope;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::case::Get;
use crate::wire::http::Request;

/// How much of an answer's body is judged and shown, in characters.
const MAX_BODY: usize = 400;

impl Interpreter<'_> {
    pub(crate) async fn get(&mut self, verb: &Get, cx: &StepScope<'_>) -> Result<(), Abort> {
        let path = self.expand(&json!(verb.path), None)?;
        let path = path.as_str().unwrap_or_default().to_owned();
        let (upgrade, defaults) = (self.upgrade_of(&verb.upgrade)?, self.default_headers()?);
        let endpoint = altered(with_defaults(self.cx.server.endpoint.clone(), &defaults), &upgrade);
        let mut request = Request::get(&endpoint, &path).map_err(Abort::Error)?;
        // What negotiates a WebSocket has no meaning here.
        let is_plain = |name: &str| !name.to_ascii_lowercase().starts_with("sec-websocket-");
        request.headers = endpoint.headers.iter().filter(|(name, _)| is_plain(name)).cloned().collect();
        let sent = request.send(self.deadline(verb.within), &endpoint.trust).await;
        let (answer, what) = match sent {
            Ok(answer) => {
                let body: String = answer.body.chars().take(MAX_BODY).collect();
                let what = format!("was answered with HTTP {}", answer.status);
                (answered(answer.status, &answer.headers, &body), what)
            }
            Err(reason) => (unanswered(), format!("was not answered: {reason}")),
        };
        let what = format!("GET {path} {what}");
        let seen = Received::made(self.log.last_index(), answer);
        if let Some(with) = &verb.with {
            let with = self.expand(with, None)?;
            if !is_subset(&with, &seen.body) {
                return self.fail_step(cx.blame, what, Some(&seen), Some(with));
            }
        }
        let schema = match &verb.schema {
            Some(constraint) => self.compiled(constraint)?,
            None if verb.with.is_some() => return Ok(()),
            None => {
                let success: Value = json!({ "properties": { "status": { "type": "integer", "minimum": 200, "maximum": 299 } } });
                let compiled = self.cx.protocol.schema(&success).map_err(Abort::Error)?;
                (success, compiled)
            }
        };
        let (schema, compiled) = schema;
        match compiled.violations_within(&seen.body).first() {
            None => Ok(()),
            Some(violation) => {
                let message = format!("{what}; the answer {}", violation.problem);
                self.fail_step(cx.blame, message, Some(&seen), Some(json!({ "where": schema })))
            }
        }
    }
}
