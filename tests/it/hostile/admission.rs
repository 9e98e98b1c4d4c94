//! Who is served by `serve` and `model`, what the others are told, and how many there may be.

use std::net::TcpStream;

use super::served::Served;

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";

#[test]
fn a_reference_server_answers_whatever_is_asked() {
    let served = Served::start(&["serve", "minicodex"]);
    for (lines, status, told) in [
        (format!("GET /ws HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}"), "101", ""),
        ("GET /ws HTTP/1.1\r\nHost: localhost\r\n".to_owned(), "426", "Upgrade: websocket"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n".to_owned(), "404", "at /ws"),
        ("POST /ws HTTP/1.1\r\nHost: localhost\r\n".to_owned(), "400", ""),
        ("hello\r\n".to_owned(), "400", ""),
        (format!("GET /ws HTTP/1.1\r\nX: {}\r\n", "x".repeat(20 << 10)), "431", ""),
        (format!("GET /ws HTTP/1.1\r\nHost: evil.example\r\n{UPGRADE}"), "403", "--allow-host"),
        (
            format!("GET /ws HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n{UPGRADE}"),
            "403",
            "--allow-origin",
        ),
    ] {
        let answer = served.answer(&format!("{lines}\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{lines}: {answer}");
        assert!(answer.contains(told), "{lines}: {answer}");
    }
}

#[test]
fn names_and_origins_can_be_allowed() {
    let request = "GET /v1/models HTTP/1.1\r\nHost: model:8766\r\nOrigin: https://app.example\r\nConnection: close\r\n\r\n";
    let host = ["model", "--allow-host", "model"];
    let origin = ["--allow-origin", "https://app.example"];
    for (arguments, status) in
        [(&["model"][..], "403"), (&host, "403"), (&[&host[..], &origin].concat(), "200")]
    {
        let answer = Served::start(arguments).answer(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{arguments:?}: {answer}");
    }
}

#[test]
fn connections_beyond_the_bound_are_told_so_and_the_others_are_served() {
    for command in [&["serve", "minicodex"][..], &["model"]] {
        let served = Served::start(&[command, &["--max-connections", "3"]].concat());
        let held: Vec<TcpStream> = (0..3).map(|_| served.connect()).collect();
        let refused = served.answer("GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(refused.starts_with("HTTP/1.1 503 "), "{command:?}: {refused}");
        assert!(refused.contains("--max-connections"), "{command:?}: {refused}");
        drop(held);
        // Those that have gone make room, as soon as it is noticed.
        let served_again = (0..1000).any(|_| {
            let answer =
                served.answer("GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            answer.starts_with("HTTP/1.1 404 ")
        });
        assert!(served_again, "{command:?}");
    }
}
