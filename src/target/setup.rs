//! HTTP: set-up calls, and readiness by a GET.

use std::time::Duration;

use serde_json::Value;

use super::error::LaunchError;
use super::spec::{Call, Vars};
use crate::template;

/// Longest answer that is read, in bytes.
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
pub(super) async fn call(call: &Call, vars: &mut Vars, deadline: Duration) -> Result<(), LaunchError> {
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
    let (status, answer) = request(&call.method, &url, headers, body, deadline)
        .await
        .map_err(|why| failed(format!("failed: {why}")))?;
    let good = call.status.map_or((200..300).contains(&status), |wanted| wanted == status);
    if !good {
        let wanted = call.status.map_or("a status from 200 to 299".to_owned(), |status| status.to_string());
        return Err(failed(format!("was answered with HTTP {status}, not {wanted}: {}", quote(&answer))));
    }
    if call.save.is_empty() {
        return Ok(());
    }
    let answer: Value = serde_json::from_str(&answer).map_err(|error| {
        failed(format!("was answered with what is no JSON ({error}): {}", quote(&answer)))
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
pub(super) async fn answers(url: &str, deadline: Duration) -> bool {
    let answer = request("GET", url, Vec::new(), None, deadline).await;
    answer.is_ok_and(|(status, _)| (200..400).contains(&status))
}

fn quote(text: &str) -> String {
    let short: String = text.trim().chars().take(QUOTED).collect();
    if short.is_empty() { "nothing".to_owned() } else { short }
}

/// One request, in a thread of its own: nothing waits for it when the run is given up.
async fn request(
    method: &str,
    url: &str,
    headers: Vec<(String, String)>,
    body: Option<String>,
    deadline: Duration,
) -> Result<(u16, String), String> {
    let (done, answer) = tokio::sync::oneshot::channel();
    let (method, url) = (method.to_owned(), url.to_owned());
    std::thread::spawn(move || {
        // An error means that nobody waits any more.
        let _ = done.send(blocking(&method, &url, &headers, body, deadline));
    });
    answer.await.unwrap_or_else(|_| Err("no answer".to_owned()))
}

fn blocking(
    method: &str,
    url: &str,
    headers: &[(String, String)],
    body: Option<String>,
    deadline: Duration,
) -> Result<(u16, String), String> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(deadline))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .build();
    let agent = ureq::Agent::new_with_config(config);
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = match body {
        Some(body) => {
            let request = request.header("content-type", "application/json").body(body);
            agent.run(request.map_err(|error| error.to_string())?)
        }
        None => agent.run(request.body(()).map_err(|error| error.to_string())?),
    };
    let mut answer = answer.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(MAX_ANSWER).lossy_utf8(true).read_to_string();
    Ok((status, text.map_err(|error| error.to_string())?))
}
