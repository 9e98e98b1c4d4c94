//! HTTP: set-up calls, and readiness by a GET.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::error::LaunchError;
use super::spec::{Call, Vars};
use crate::shortage;
use crate::template;
use crate::wire::Trust;

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
    let (status, answer) = request(&call.method, &url, headers, body, deadline, trust)
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
    let answer = request("GET", url, Vec::new(), None, deadline, trust).await;
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
    trust: &Trust,
) -> Result<(u16, String), String> {
    let trust = trust.clone();
    let (done, answer) = tokio::sync::oneshot::channel();
    let (method, url) = (method.to_owned(), url.to_owned());
    std::thread::spawn(move || {
        // An error means that nobody waits any more.
        let _ = done.send(tried(&method, &url, &headers, body.as_deref(), deadline, &trust));
    });
    answer.await.unwrap_or_else(|_| Err("no answer".to_owned()))
}

/// The usual authorities first, then those of the file: a handshake that fails has sent nothing yet.
fn tried(
    method: &str,
    url: &str,
    headers: &[(String, String)],
    body: Option<&str>,
    deadline: Duration,
    trust: &Trust,
) -> Result<(u16, String), String> {
    let usual = RootCerts::WebPki;
    let first = blocking(method, url, headers, body, deadline, usual);
    let own: Vec<Certificate<'static>> =
        trust.own().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    match first {
        Err(ureq::Error::Rustls(_) | ureq::Error::Io(_))
            if url.starts_with("https://") && !own.is_empty() =>
        {
            let own = RootCerts::Specific(Arc::new(own));
            blocking(method, url, headers, body, deadline, own).map_err(told)
        }
        first => first.map_err(told),
    }
}

/// What went wrong, as a user can act on it.
fn told(error: ureq::Error) -> String {
    if let ureq::Error::Io(error) = &error {
        shortage::note(error);
    }
    let error = match error {
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => error,
        ureq::Error::Rustls(error) => std::io::Error::new(std::io::ErrorKind::InvalidData, error),
        other => return other.to_string(),
    };
    let shown = crate::wire::tls_error(&error);
    match shown == error.to_string() {
        true => shown,
        false => format!("{shown}; --ca-file FILE trusts whoever signed a certificate of one's own"),
    }
}

fn blocking(
    method: &str,
    url: &str,
    headers: &[(String, String)],
    body: Option<&str>,
    deadline: Duration,
    roots: RootCerts,
) -> Result<(u16, String), ureq::Error> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(deadline))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .tls_config(TlsConfig::builder().root_certs(roots).build())
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
            agent.run(request?)
        }
        None => agent.run(request.body(())?),
    };
    let mut answer = answer?;
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(MAX_ANSWER).lossy_utf8(true).read_to_string();
    Ok((status, text?))
}
