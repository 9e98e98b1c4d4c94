//! From a TCP connection to a WebSocket: every request is answered, whatever it asks for.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse;
use tokio_tungstenite::tungstenite::handshake::server::{Request, create_response, write_response};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::ConnectionHandler;
use crate::wire::READ_BUFFER;
use crate::wire::guard::{Guard, answer, reject};

/// A client that has not finished its request by then never will.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest request, in bytes.
const LONGEST: usize = 16 << 10;

/// Upgrades a connection; and the path that was asked for, with its query. None: the client was answered otherwise, or is gone.
pub(super) async fn upgrade(
    mut stream: TcpStream,
    address: &str,
    guard: Option<&Guard>,
    handler: &dyn ConnectionHandler,
) -> Option<(WebSocketStream<TcpStream>, String)> {
    let read = tokio::time::timeout(PATIENCE, request(&mut stream)).await.ok()?;
    let accepted = read.and_then(|(request, rest)| {
        let origin = request.headers().get("origin").map(|origin| origin.to_str().unwrap_or_default());
        if let Some(status) = handler.instead_of_upgrade(request.uri().path(), origin) {
            return Err(answer(status, "", ""));
        }
        let response = response(&request, address, guard)?;
        Ok((request, rest, response))
    });
    let (request, rest, response) = match accepted {
        Ok(accepted) => accepted,
        Err(refusal) => {
            if !refusal.is_empty() {
                reject(stream, &refusal).await;
            }
            return None;
        }
    };
    stream.write_all(&response).await.ok()?;
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER);
    let socket = WebSocketStream::from_partially_read(stream, rest, Role::Server, Some(config)).await;
    Some((socket, path))
}

/// A request, and what came behind it. An error: the answer to what is none; empty: the client is gone.
async fn request(stream: &mut TcpStream) -> Result<(Request, Vec<u8>), String> {
    let mut bytes = Vec::new();
    loop {
        let read = stream.read_buf(&mut bytes).await.unwrap_or(0);
        if read == 0 {
            return Err(String::new());
        }
        match Request::try_parse(&bytes) {
            Ok(Some((size, request))) => return Ok((request, bytes.split_off(size))),
            Ok(None) if bytes.len() < LONGEST => {}
            Ok(None) => {
                return Err(answer("431 Request Header Fields Too Large", "", "the request is too long"));
            }
            Err(error) => return Err(answer("400 Bad Request", "", &format!("no request: {error}"))),
        }
    }
}

/// The answer that upgrades. An error: that which does not.
fn response(request: &Request, address: &str, guard: Option<&Guard>) -> Result<Vec<u8>, String> {
    if let Some(denied) = guard.and_then(|guard| guard.admit(request.headers()).err()) {
        return Err(answer("403 Forbidden", "", &denied.to_string()));
    }
    if !is_served(address, request.uri().path()) {
        let text = format!("nothing is served here, but at {address}");
        return Err(answer("404 Not Found", "", &text));
    }
    let upgrade = request.headers().get("upgrade").is_some_and(|name| {
        name.to_str()
            .is_ok_and(|name| name.split(',').any(|one| one.trim().eq_ignore_ascii_case("websocket")))
    });
    if !upgrade {
        let text = "this is a WebSocket server: connect to it with a WebSocket client";
        return Err(answer(
            "426 Upgrade Required",
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            text,
        ));
    }
    let mut bytes = Vec::new();
    create_response(request)
        .and_then(|response| write_response(&mut bytes, &response))
        .map_err(|error| answer("400 Bad Request", "Sec-WebSocket-Version: 13\r\n", &format!("{error}")))?;
    Ok(bytes)
}

/// Whether a path is the address's: each `{…}` of that is one part. Whether it may be empty is the dialect's affair. A document
/// whose address is `/` leaves the path open.
fn is_served(address: &str, path: &str) -> bool {
    let fits = |(due, came): (&str, &str)| due.starts_with('{') || due == came;
    let same = address.split('/').count() == path.split('/').count();
    address == "/" || (same && address.split('/').zip(path.split('/')).all(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_served_where_the_document_says_so() {
        for (address, path, served) in [
            ("/ws", "/ws", true),
            ("/ws", "/", false),
            ("/ws", "/ws/", false),
            ("/ws", "/ws/a", false),
            ("/ws/{id}", "/ws/a-1", true),
            ("/ws/{id}", "/ws/", true),
            ("/ws/{id}", "/ws", false),
            ("/ws/{id}", "/ws/a/b", false),
            ("/", "/anything", true),
        ] {
            assert_eq!(is_served(address, path), served, "{address} {path}");
        }
    }

    #[test]
    fn every_request_has_its_answer() {
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        for (lines, status) in [
            (format!("GET /ws HTTP/1.1\r\nHost: localhost:1\r\n{upgrade}"), "101"),
            ("GET /ws HTTP/1.1\r\n".to_owned(), "426"),
            ("GET / HTTP/1.1\r\n".to_owned(), "404"),
            (format!("GET /ws HTTP/1.1\r\nHost: evil.example\r\n{upgrade}"), "403"),
            (format!("GET /ws HTTP/1.1\r\nOrigin: https://evil.example\r\n{upgrade}"), "403"),
            ("GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n".to_owned(), "400"),
        ] {
            let parsed = Request::try_parse(format!("{lines}\r\n").as_bytes()).expect("a request");
            let (_, request) = parsed.expect("a whole one");
            let told = match response(&request, "/ws", Some(&Guard::default())) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(refusal) => refusal,
            };
            assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{lines}: {told}");
        }
    }
}
