//! Opening a connection, and telling apart the ways in which that fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::{ProtocolError, SubProtocolError, UrlError};
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, StatusCode, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_with_config};

use super::accept::pair;
use super::ahead::Ahead;
use super::relay::{Mutation, relay};
use super::tls::{self, Trust};
use crate::shortage::{self, Shortage};

/// How much of a refusing server's answer is quoted, in characters.
const MAX_BODY: usize = 400;
/// Bytes taken in one read. The library clears as many before each: its 128 KiB cost more than a small message does.
pub const READ_BUFFER: usize = 16 << 10;

/// Where to connect to, and how.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `ws://` or `wss://`.
    pub url: String,
    /// Extra headers of the upgrade request. Their values are never shown.
    pub headers: Vec<(String, String)>,
    /// Longest message taken, in bytes.
    pub max_message: usize,
    /// Longest wait for the connection and the upgrade.
    pub deadline: Duration,
    /// Whose certificates count, for `wss://`.
    pub trust: Trust,
    /// What is done to the server's messages on their way; not with `wss://`.
    pub mutation: Option<Arc<Mutation>>,
}

/// What is wrong with the sub-protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubProtocol {
    /// None of those that were offered.
    #[error("selects none of the sub-protocols that the client offers")]
    None,
    /// Another one than those that were offered, which RFC 6455 (4.1) forbids.
    #[error("selects a sub-protocol that the client does not offer")]
    Other,
    /// One, although none was offered, which RFC 6455 (4.1) forbids.
    #[error("selects a sub-protocol although the client offers none")]
    Unasked,
}

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error("{url}: {reason}")]
    BadUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The name does not resolve.
    #[error("{host} cannot be resolved: {reason}")]
    Unresolved {
        /// The host.
        host: String,
        /// The resolver's reason.
        reason: String,
    },
    /// Nothing listens there.
    #[error("{0} refused the connection: is the server running?")]
    Refused(String),
    /// The server answered the upgrade with an HTTP status of its own.
    #[error("the server answered the upgrade with HTTP {status}{}", if body.is_empty() { String::new() } else { format!(": {body}") })]
    Http {
        /// The status code.
        status: u16,
        /// The headers, their names in lower case.
        headers: Vec<(String, String)>,
        /// The beginning of the body.
        body: String,
    },
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// The answer to the upgrade is no WebSocket handshake.
    #[error("the server does not speak WebSocket: {0}")]
    NotWebSocket(String),
    /// The server takes the upgrade, and not with one of the sub-protocols that the client offers.
    #[error("the server {0}")]
    SubProtocol(SubProtocol),
    /// No TCP connection in time.
    #[error("no connection within {0:?}")]
    Silence(Duration),
    /// The connection was taken, and no TLS came to be on it.
    #[error("the server accepted the TCP connection and has not ended the TLS handshake within {0:?}")]
    Unsecured(Duration),
    /// The connection was taken, and the upgrade was never answered.
    #[error("the server accepted the TCP connection and sent no HTTP answer to the upgrade within {0:?}")]
    Unanswered(Duration),
    /// The connection broke while it was being opened.
    #[error("the connection broke during the upgrade: {0}")]
    Broken(String),
    /// This machine has no more of something: the server has no part in it.
    #[error("{0}")]
    Shortage(Shortage),
}

pub(super) type Stream = MaybeTlsStream<TcpStream>;

/// A connection behind its upgrade.
pub(super) struct Upgraded {
    pub stream: Stream,
    /// What came right behind the upgrade's answer.
    pub ahead: Vec<u8>,
    /// What the server's answer says besides.
    pub answer: Answer,
}

/// What the answer to an upgrade says.
pub(super) struct Answer {
    /// The sub-protocol that the server selected.
    pub selected: Option<String>,
    /// Extensions that it agrees to. None is ever asked for.
    pub extensions: Option<String>,
}

/// A URL as it may be shown: without user name, password and query, which may hold secrets.
pub fn shown(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or(host);
            format!("{scheme}://{host}{path}")
        }
        None => bare.to_owned(),
    }
}

impl ConnectError {
    /// Whether it says something about a server that is there and takes connections, and not about the way to it.
    #[must_use]
    pub fn is_verdict(&self) -> bool {
        matches!(self, Self::SubProtocol(_))
    }

    /// The same error with what the server said passed through `mask`.
    #[must_use]
    pub fn masked(self, mask: &dyn Fn(String) -> String) -> Self {
        match self {
            Self::Http { status, headers, body } => {
                let headers = headers.into_iter().map(|(name, value)| (name, mask(value))).collect();
                Self::Http { status, headers, body: mask(body) }
            }
            other => other,
        }
    }
}

/// Puts a relay before a server. It ends with the connection.
async fn mutated(server: TcpStream, mutation: &Arc<Mutation>, name: &str) -> Result<TcpStream, ConnectError> {
    let (near, far) = pair().await.map_err(|error| ConnectError::Broken(error.to_string()))?;
    let _ = (near.set_nodelay(true), near.set_zero_linger());
    tokio::spawn(relay(far, server, mutation.interceptor(name)));
    Ok(near)
}

/// An HTTP status with its name: `404 Not Found`.
pub fn named_status(status: u16) -> String {
    StatusCode::from_u16(status).map_or(status.to_string(), |status| status.to_string())
}

impl Endpoint {
    /// Checks the URL without connecting.
    ///
    /// # Errors
    /// [`ConnectError::BadUrl`].
    pub fn check(&self) -> Result<(), ConnectError> {
        self.parts().map(|_| ())
    }

    /// Host and port, as `HOST:PORT`.
    ///
    /// # Errors
    /// [`ConnectError::BadUrl`].
    pub fn address(&self) -> Result<String, ConnectError> {
        self.parts().map(|(_, host, port)| format!("{host}:{port}"))
    }

    fn parts(&self) -> Result<(Uri, String, u16), ConnectError> {
        let bad = |reason: String| ConnectError::BadUrl { url: shown(&self.url), reason };
        let uri: Uri = self.url.parse().map_err(|error| bad(format!("no URL: {error}")))?;
        let port = match uri.scheme_str() {
            Some("ws") => 80,
            Some("wss") => 443,
            Some(other) => {
                let hint = if other.starts_with("https") { "wss" } else { "ws" };
                return Err(bad(format!(
                    "the scheme must be ws or wss, not {other}; did you mean `{hint}://`?"
                )));
            }
            None => return Err(bad("a URL begins with ws:// or wss://".to_owned())),
        };
        let host = uri.host().ok_or_else(|| bad("the URL has no host".to_owned()))?.to_owned();
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let said = authority.rsplit('@').next().and_then(|rest| rest.strip_prefix(host.as_str()));
        if uri.port_u16().is_none() && said.is_some_and(|said| said.len() > 1) {
            return Err(bad("the port must be a number up to 65535".to_owned()));
        }
        let port = uri.port_u16().unwrap_or(port);
        Ok((uri, host, port))
    }

    /// What a header of the upgrade request says.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    /// The same with a header of the upgrade request; none: without it.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: Option<String>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.extend(value.map(|value| (name.to_owned(), value)));
        self
    }

    /// The same with those of these headers that it does not have.
    #[must_use]
    pub fn with_defaults(self, defaults: &[(String, String)]) -> Self {
        defaults.iter().fold(self, |endpoint, (name, value)| match endpoint.header(name) {
            Some(_) => endpoint,
            None => endpoint.with_header(name, Some(value.clone())),
        })
    }

    /// Connects and upgrades.
    pub(super) async fn connect(&self) -> Result<Upgraded, ConnectError> {
        let until = Instant::now() + self.deadline;
        let stream = self.by(until, self.dial(), ConnectError::Silence).await?;
        let stream = self.by(until, self.secure(stream), ConnectError::Unsecured).await?;
        let (socket, answer) =
            self.by(until, self.upgrade(Ahead::new(stream)), ConnectError::Unanswered).await?;
        let (stream, ahead) = socket.into_inner().into_parts();
        Ok(Upgraded { stream, ahead, answer })
    }

    async fn by<T>(
        &self,
        until: Instant,
        work: impl Future<Output = Result<T, ConnectError>>,
        late: fn(Duration) -> ConnectError,
    ) -> Result<T, ConnectError> {
        tokio::time::timeout_at(until, work).await.unwrap_or_else(|_| Err(late(self.deadline)))
    }

    async fn dial(&self) -> Result<TcpStream, ConnectError> {
        let (_, host, port) = self.parts()?;
        let stream = dial(&host, port).await?;
        let _ = stream.set_nodelay(true);
        // A test opens and cuts many connections: none may linger in TIME_WAIT, and a cut is a reset.
        let _ = stream.set_zero_linger();
        match &self.mutation {
            Some(mutation) => mutated(stream, mutation, &format!("{host}:{port}")).await,
            None => Ok(stream),
        }
    }

    async fn secure(&self, stream: TcpStream) -> Result<Stream, ConnectError> {
        let (uri, host, _) = self.parts()?;
        match uri.scheme_str() {
            Some("wss") => tls::secure(&host, stream, &self.trust).await,
            _ => Ok(MaybeTlsStream::Plain(stream)),
        }
    }

    async fn upgrade<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> Result<(WebSocketStream<S>, Answer), ConnectError> {
        let (uri, ..) = self.parts()?;
        let mut request = uri.into_client_request().map_err(classify)?;
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().map_err(|_| self.bad_header(name))?;
            let value: HeaderValue = value.parse().map_err(|_| self.bad_header(name.as_str()))?;
            request.headers_mut().insert(name, value);
        }
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .max_message_size(Some(self.max_message))
            .max_frame_size(Some(self.max_message));
        let upgraded = client_async_with_config(request, stream, Some(config)).await;
        let (socket, response) = upgraded.map_err(classify)?;
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let answer = Answer {
            selected: header("sec-websocket-protocol"),
            extensions: header("sec-websocket-extensions"),
        };
        Ok((socket, answer))
    }

    fn bad_header(&self, name: &str) -> ConnectError {
        ConnectError::BadUrl { url: shown(&self.url), reason: format!("`{name}` is not a valid header") }
    }
}

/// Bytes that the system takes from a server for a client that does not read. Its own choice grows to megabytes.
const RECEIVE_BUFFER: u32 = 64 << 10;

async fn dial(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let addresses =
        tokio::net::lookup_host((bare, port)).await.map_err(|error| match shortage::note(&error) {
            Some(shortage) => ConnectError::Shortage(shortage),
            None => ConnectError::Unresolved { host: host.to_owned(), reason: error.to_string() },
        })?;
    let mut last = ConnectError::Unresolved { host: host.to_owned(), reason: "no address".to_owned() };
    for address in addresses {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(|error| broken(&error))?;
        // What a system does not grant is no matter: a stalled client is then felt later.
        _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        match socket.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                last = ConnectError::Refused(address.to_string());
            }
            Err(error) => last = broken(&error),
        }
    }
    Err(last)
}

/// A connection that the system breaks, or does not give us.
fn broken(error: &std::io::Error) -> ConnectError {
    match shortage::note(error) {
        Some(shortage) => ConnectError::Shortage(shortage),
        None => ConnectError::Broken(error.to_string()),
    }
}

fn classify(error: Error) -> ConnectError {
    match error {
        Error::Http(response) => {
            let body = response.body().as_deref().unwrap_or_default();
            let body: String = String::from_utf8_lossy(body).chars().take(MAX_BODY).collect();
            let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = response.headers().iter();
            ConnectError::Http {
                status: response.status().as_u16(),
                headers: headers.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
                body: body.trim().to_owned(),
            }
        }
        Error::Url(UrlError::UnableToConnect(address)) => ConnectError::Refused(address),
        Error::Io(error) => broken(&error),
        // The stream was over before the answer was: as much of a break as a reset.
        Error::Protocol(ProtocolError::HandshakeIncomplete) => {
            ConnectError::Broken("the server ended it before its answer was complete".to_owned())
        }
        Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(error)) => {
            ConnectError::SubProtocol(match error {
                SubProtocolError::NoSubProtocol => SubProtocol::None,
                SubProtocolError::InvalidSubProtocol => SubProtocol::Other,
                SubProtocolError::ServerSentSubProtocolNoneRequested => SubProtocol::Unasked,
            })
        }
        Error::Protocol(error) => ConnectError::NotWebSocket(error.to_string()),
        Error::HttpFormat(error) => ConnectError::NotWebSocket(error.to_string()),
        other => ConnectError::NotWebSocket(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        for (url, expected) in [
            ("ws://127.0.0.1:1/ws", "ws://127.0.0.1:1/ws"),
            ("wss://me:pass@host:1/ws?token=abc#x", "wss://host:1/ws"),
            ("ws://host?token=a@b", "ws://host"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
