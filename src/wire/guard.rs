//! Who may connect to a server that people start: nobody's web page, by whatever name it reaches us, and no more at a time than there
//! is room for.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::http::{HeaderMap, Uri};

/// Connections that are being turned away at a time; further ones are cut.
pub const TURNED_AWAY: usize = 64;
/// How long a client may take to read why it is turned away.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is asked of a client before it is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// Names besides those of this machine's own loopback that `Host` may have. An IP address is always good: no page can make one
    /// its own.
    pub hosts: Vec<String>,
    /// Origins besides those of this machine's own loopback. `*`: any.
    pub origins: Vec<String>,
}

/// Why a client is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// It came by this name.
    Host(String),
    /// It is a page of this origin.
    Origin(String),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(name) => {
                write!(f, "the name {name:?} is not one of this server's: --allow-host permits it")
            }
            Self::Origin(origin) => {
                write!(f, "pages of {origin:?} may not connect to this server: --allow-origin permits it")
            }
        }
    }
}

impl Guard {
    /// Looks at a request's headers.
    ///
    /// # Errors
    /// Why it is not served.
    pub fn admit(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let texts = |name: &str| -> Vec<String> {
            let values = headers.get_all(name).iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned()).collect()
        };
        for host in texts("host") {
            let name = without_port(&host);
            let known = self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !known && address(name).is_none() && !is_local(name) {
                return Err(Denied::Host(host));
            }
        }
        for origin in texts("origin") {
            let known = self.origins.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(&origin));
            let uri = origin.parse::<Uri>().ok();
            let own = uri.as_ref().and_then(Uri::host).is_some_and(|host| {
                address(host).map_or_else(|| is_local(host), |address| address.is_loopback())
            });
            if !known && !own {
                return Err(Denied::Origin(origin));
            }
        }
        Ok(())
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn address(name: &str) -> Option<IpAddr> {
    name.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Whether every resolver takes it for this machine.
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// An HTTP answer that ends the connection: status, further headers, a line of text.
#[must_use]
pub fn answer(status: &str, headers: &str, text: &str) -> String {
    let length = text.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}\n"
    )
}

/// Says this to a client, and hangs up.
pub async fn reject(mut stream: TcpStream, answer: &str) {
    let said = async {
        stream.write_all(answer.as_bytes()).await.ok()?;
        stream.shutdown().await.ok()?;
        // What it sent and nobody read would turn the end into a reset, to which the answer is lost.
        let mut sink = [0; 1024];
        while stream.read(&mut sink).await.ok()? > 0 {}
        Some(())
    };
    let _ = tokio::time::timeout(PATIENCE, said).await;
}

/// What those are told for whom there is no room.
#[must_use]
pub fn no_room() -> String {
    answer(
        "503 Service Unavailable",
        "Retry-After: 1\r\n",
        "there are as many connections as are allowed: --max-connections allows more",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_may_come_in_and_what_is_allowed() {
        let guard =
            Guard { hosts: vec!["model".to_owned()], origins: vec!["https://app.example".to_owned()] };
        let any = Guard { origins: vec!["*".to_owned()], ..Guard::default() };
        for (header, value, good, with_any) in [
            ("host", "127.0.0.1:80", true, true),
            ("host", "[::1]:80", true, true),
            ("host", "192.0.2.7", true, true),
            ("host", "LOCALHOST.:1", true, true),
            ("host", "a.localhost", true, true),
            ("host", "Model:9", true, false),
            ("host", "evil.example", false, false),
            ("host", "127.0.0.1.evil.example:80", false, false),
            ("host", "localhost.evil.example", false, false),
            ("host", "", false, false),
            ("origin", "http://localhost:3000", true, true),
            ("origin", "http://[::1]:3000", true, true),
            ("origin", "https://app.example", true, true),
            ("origin", "https://app.example:444", false, true),
            ("origin", "http://192.0.2.7", false, true),
            ("origin", "https://127.0.0.1.evil.example", false, true),
            ("origin", "http://localhost@evil.example", false, true),
            ("origin", "null", false, true),
            ("origin", "rubbish \u{e9}", false, true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header, value.parse().expect("a header"));
            assert_eq!(guard.admit(&headers).is_ok(), good, "{header}: {value}");
            assert_eq!(any.admit(&headers).is_ok(), with_any, "{header}: {value}, any origin");
        }
        assert_eq!(guard.admit(&HeaderMap::new()), Ok(()), "no browser");
    }
}
