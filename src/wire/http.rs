//! Plain HTTP requests, each in a thread of its own.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio_tungstenite::tungstenite::http::Uri;
use ureq::Timeout;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::{Endpoint, Trust, tls};
use crate::shortage;

/// How a connection breaks that there was.
const BROKEN: [io::ErrorKind; 4] = [
    io::ErrorKind::ConnectionReset,
    io::ErrorKind::ConnectionAborted,
    io::ErrorKind::BrokenPipe,
    io::ErrorKind::UnexpectedEof,
];

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
    /// The body, as far as it was to be read and came; what is not UTF-8 is replaced.
    pub body: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoAnswer {
    /// The server took the connection, and sent no HTTP answer, in time or at all: the reason.
    #[error("{0}")]
    Silence(String),
    /// The request did not come to a server: it is none, there is no connection, or this machine has no more of something.
    #[error("{0}")]
    Unsent(String),
}

/// An answer that is on its way.
pub type Answering = tokio::sync::oneshot::Receiver<Result<Answer, NoAnswer>>;

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

    /// Sends it, in a thread of its own: nothing waits for that when the run is given up. `most`: how much of the answer's body is read,
    /// in bytes.
    ///
    /// # Errors
    /// See [`NoAnswer`].
    pub async fn send(self, deadline: Duration, trust: &Trust, most: u64) -> Result<Answer, NoAnswer> {
        let gone = |_| Err(NoAnswer::Unsent("no answer".to_owned()));
        self.start(deadline, trust, most)?.await.unwrap_or_else(gone)
    }

    /// Begins to send it, as [`Self::send`] does: what comes of it arrives here.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self, deadline: Duration, trust: &Trust, most: u64) -> Result<Answering, NoAnswer> {
        let trust = trust.clone();
        let (done, answer) = tokio::sync::oneshot::channel();
        let own = move || {
            // An error means that nobody waits any more.
            let _ = done.send(self.tried(deadline, &trust, most));
        };
        match std::thread::Builder::new().spawn(own) {
            Ok(_) => Ok(answer),
            Err(error) => {
                let short = shortage::note_start(&error).map(|shortage| shortage.to_string());
                Err(NoAnswer::Unsent(short.unwrap_or_else(|| error.to_string())))
            }
        }
    }

    /// The usual authorities first, then those of the file: a handshake that fails has sent nothing yet.
    fn tried(&self, deadline: Duration, trust: &Trust, most: u64) -> Result<Answer, NoAnswer> {
        let first = self.blocking(deadline, RootCerts::WebPki, most);
        let own: Vec<Certificate<'static>> =
            trust.own().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
        match first {
            Err(error) if is_of_tls(&error) && !own.is_empty() => {
                let own = RootCerts::Specific(Arc::new(own));
                self.blocking(deadline, own, most).map_err(NoAnswer::from)
            }
            first => first.map_err(NoAnswer::from),
        }
    }

    fn blocking(&self, deadline: Duration, roots: RootCerts, most: u64) -> Result<Answer, ureq::Error> {
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
        // A body that never ends, or is shorter than it was said to be: what came of it counts.
        let _ = answer.body_mut().as_reader().take(most).read_to_end(&mut body);
        Ok(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

/// The handshake of TLS failed.
fn is_of_tls(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Rustls(_) => true,
        ureq::Error::Io(error) => error.kind() == io::ErrorKind::InvalidData,
        _ => false,
    }
}

impl From<ureq::Error> for NoAnswer {
    fn from(error: ureq::Error) -> Self {
        let is_short = matches!(&error, ureq::Error::Io(error) if shortage::note(error).is_some());
        let is_answered = match &error {
            ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => false,
            ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => true,
            ureq::Error::Io(error) => BROKEN.contains(&error.kind()),
            _ => false,
        };
        let what = describe(error);
        if is_answered && !is_short { Self::Silence(what) } else { Self::Unsent(what) }
    }
}

/// What went wrong, as a user can act on it.
fn describe(error: ureq::Error) -> String {
    let error = match error {
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => error,
        ureq::Error::Rustls(error) => io::Error::new(io::ErrorKind::InvalidData, error),
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
