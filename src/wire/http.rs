//! Plain HTTP requests, each in a thread of its own.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use tokio_tungstenite::tungstenite::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::{Endpoint, Trust, tls};
use crate::shortage;

/// How much of an answer's body is read, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The method; as `GET`.
    pub method: String,
    /// `http://` or `https://`.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// JSON.
    pub body: Option<String>,
}

/// What it was answered with, whatever the status; redirections are not followed.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Names in lower case, with values; those that are not text are missing.
    pub headers: Vec<(String, String)>,
    /// The body, its first MiB at most; what is not UTF-8 is replaced.
    pub body: String,
}

impl Request {
    /// A GET of a path of the server at a WebSocket address, without headers.
    ///
    /// # Errors
    /// The address or the path is no URL.
    pub fn get(endpoint: &Endpoint, path: &str) -> Result<Self, String> {
        let address = super::shown(&endpoint.url);
        let (scheme, rest) = address.split_once("://").unwrap_or(("ws", &address));
        let scheme = if scheme == "wss" { "https" } else { "http" };
        let url = format!("{scheme}://{}{path}", rest.split('/').next().unwrap_or_default());
        url.parse::<Uri>().map_err(|error| format!("{url}: {error}"))?;
        Ok(Self { method: "GET".to_owned(), url, ..Self::default() })
    }

    /// Sends it, in a thread of its own: nothing waits for that when the run is given up.
    ///
    /// # Errors
    /// There was no answer, in time or at all: the reason.
    pub async fn send(self, deadline: Duration, trust: &Trust) -> Result<Answer, String> {
        let trust = trust.clone();
        let (done, answer) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            // An error means that nobody waits any more.
            let _ = done.send(self.tried(deadline, &trust));
        });
        answer.await.unwrap_or_else(|_| Err("no answer".to_owned()))
    }

    /// The usual authorities first, then those of the file: a handshake that fails has sent nothing yet.
    fn tried(&self, deadline: Duration, trust: &Trust) -> Result<Answer, String> {
        let first = self.blocking(deadline, RootCerts::WebPki);
        let own: Vec<Certificate<'static>> =
            trust.own().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
        match first {
            Err(ureq::Error::Rustls(_) | ureq::Error::Io(_))
                if self.url.starts_with("https://") && !own.is_empty() =>
            {
                self.blocking(deadline, RootCerts::Specific(Arc::new(own))).map_err(told)
            }
            first => first.map_err(told),
        }
    }

    fn blocking(&self, deadline: Duration, roots: RootCerts) -> Result<Answer, ureq::Error> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(deadline))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .proxy(None)
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let mut request = ureq::http::Request::builder().method(self.method.as_str()).uri(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut answer = match &self.body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body.as_str());
                agent.run(request?)?
            }
            None => agent.run(request.body(())?)?,
        };
        let headers = answer.headers().iter();
        let headers = headers
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        let (status, headers) = (answer.status().as_u16(), headers.collect());
        let mut body = Vec::new();
        answer.body_mut().as_reader().take(MAX_ANSWER).read_to_end(&mut body)?;
        Ok(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
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
    let shown = tls::explain(&error);
    match shown == error.to_string() {
        true => shown,
        false => format!("{shown}; --ca-file FILE trusts a private certificate authority"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_the_same_server() {
        let of = |url: &str, path: &str| {
            let (max_message, deadline) = (1, Duration::ZERO);
            let endpoint = Endpoint {
                url: url.to_owned(),
                headers: Vec::new(),
                max_message,
                deadline,
                trust: Trust::default(),
                mutation: None,
            };
            Request::get(&endpoint, path).map(|request| request.url)
        };
        assert_eq!(of("ws://h:81/ws?a=b", "/readyz").as_deref(), Ok("http://h:81/readyz"));
        assert_eq!(of("wss://h/ws/{id}", "/a?b=c").as_deref(), Ok("https://h/a?b=c"));
        assert_eq!(of("ws://u:p@[::1]:9/", "/").as_deref(), Ok("http://[::1]:9/"));
        assert!(of("ws://h/", "/a b").is_err());
    }
}
