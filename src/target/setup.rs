//! HTTP: set-up calls, and readiness by a GET.

use std::time::Duration;

use serde_json::Value;

use super::error::LaunchError;
use super::spec::{Call, Vars};
use crate::template;
use crate::wire::Trust;
use crate::wire::http::{Answer, Request};

/// How much of an answer is read, in bytes.
const MAX_ANSWER: u64 = 1 << 20;
/// How much of an answer an error quotes, in characters.
const QUOTED: usize = 300;

/// Fills in a template of a target.
pub(super) fn fill(text: &str, vars: &Vars) -> Result<String, LaunchError> {
    let filled = template::expand(&Value::from(text), &mut |name| vars.get(name).map(|v| v.as_str().into()));
    match filled {
        Ok(Value::String(text)) => Ok(text),
        Ok(other) => Ok(other.to_string()),
        Err(error) => Err(LaunchError::Template { text: text.to_owned(), reason: error.to_string() }),
    }
}

/// Does a call and adds what it saves to the variables.
pub(super) async fn call(
    call: &Call,
    vars: &mut Vars,
    deadline: Duration,
    trust: &Trust,
) -> Result<(), LaunchError> {
    let url = fill(&call.url, vars)?;
    let shown = format!("{} {}", call.method, crate::wire::shown(&url));
    let failed = |reason: String| LaunchError::Setup { call: shown.clone(), reason };
    let headers = call.headers.iter().map(|(name, value)| Ok((name.clone(), fill(value, vars)?)));
    let headers = headers.collect::<Result<Vec<_>, LaunchError>>()?;
    let body = call.body.as_ref().map(|body| {
        let lookup = &mut |name: &str| vars.get(name).map(|value| Value::from(value.as_str()));
        template::expand(body, lookup).map_err(|error| failed(format!("cannot be filled in: {error}")))
    });
    let body = body.transpose()?.map(|body| body.to_string());
    let request = Request { method: call.method.clone(), url, headers, body };
    let sent = request.send(deadline, trust, MAX_ANSWER).await;
    let Answer { status, body: answer, .. } = sent.map_err(|why| failed(format!("failed: {why}")))?;
    let good = call.status.map_or((200..300).contains(&status), |wanted| wanted == status);
    if !good {
        let wanted = call.status.map_or("a status from 200 to 299".to_owned(), |status| status.to_string());
        return Err(failed(format!("was answered with HTTP {status}, not {wanted}: {}", quote(&answer))));
    }
    if call.save.is_empty() {
        return Ok(());
    }
    let answer: Value = serde_json::from_str(&answer).map_err(|error| {
        failed(format!("was answered with text that is not JSON ({error}): {}", quote(&answer)))
    })?;
    for (name, at) in &call.save {
        let value = match at.get(&answer) {
            Some(Value::String(text)) => text.clone(),
            Some(number @ Value::Number(_)) => number.to_string(),
            Some(other) => {
                let other = quote(&other.to_string());
                return Err(failed(format!("has neither text nor number at {at}, for `{name}`: {other}")));
            }
            None => {
                let answer = quote(&answer.to_string());
                return Err(failed(format!("has nothing at {at}, for `{name}`, in its answer {answer}")));
            }
        };
        vars.insert(name.clone(), value);
    }
    Ok(())
}

/// Whether a GET is answered with a status from 200 to 399.
pub(super) async fn answers(url: &str, deadline: Duration, trust: &Trust) -> bool {
    let request = Request { method: "GET".to_owned(), url: url.to_owned(), ..Request::default() };
    request.send(deadline, trust, MAX_ANSWER).await.is_ok_and(|answer| (200..400).contains(&answer.status))
}

fn quote(text: &str) -> String {
    let short: String = text.trim().chars().take(QUOTED).collect();
    if short.is_empty() { "nothing".to_owned() } else { short }
}
