//! Sessions that the URL names, turns that silence ends, connections that are refused.

use std::net::TcpListener;

use crate::support::{Served, frameproof, text};
use tokio_tungstenite::tungstenite::accept_hdr;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;

fn run(url: &str, more: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [&["run", "codelab", "--url", url, "--quiet-period", "20ms"], more].concat();
    let output = frameproof(folder.path(), &arguments);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_url_has_or_gets_a_place_for_the_session() {
    let server = Served::start(&["codelab"]);
    assert!(server.url.ends_with("/ws/{session_id}"), "{}", server.url);
    let host = server.url.trim_end_matches("/ws/{session_id}");
    for url in [server.url.as_str(), host, &format!("{host}/ws/")] {
        let (code, shown) = run(url, &["transport/connects"]);
        assert_eq!(code, Some(0), "{url}: {shown}");
    }
    let (code, shown) = run(&format!("{host}/ws/mine"), &["transport/connects"]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("where the session's id goes: `{session_id}`"), "{shown}");
}

#[test]
fn two_runs_share_no_session() {
    let server = Served::start(&["codelab"]);
    let folder = tempfile::tempdir().expect("a folder");
    let urls = ["a.ndjson", "b.ndjson"].map(|name| {
        let trace = folder.path().join(name);
        let path = trace.display().to_string();
        let (code, shown) = run(&server.url, &["reconnect/open-call", "--trace", &path]);
        assert_eq!(code, Some(0), "{shown}");
        let text = std::fs::read_to_string(trace).expect("a trace");
        let opened = text.lines().filter(|line| line.contains("\"open\""));
        let url = |line: &str| line.split("/ws/").nth(1).unwrap_or_default().to_owned();
        opened.map(url).collect::<Vec<_>>()
    });
    assert_eq!(urls[0].len(), 2, "{urls:?}");
    assert_eq!(urls[0][0], urls[0][1], "a client comes back to its own session");
    assert_ne!(urls[0][0], urls[1][0], "the same seed, another run, another session");
}

#[test]
fn a_refused_connection_breaks_what_its_step_covers() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws/{{session_id}}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // The first connection of a run is let in; sessions are not.
                #[allow(clippy::result_large_err, reason = "the library's own callback type")]
                let doorman = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
                    if request.uri().path().ends_with("probe") {
                        return Ok(response);
                    }
                    let mut refusal = ErrorResponse::new(Some("not you".to_owned()));
                    *refusal.status_mut() = StatusCode::FORBIDDEN;
                    Err(refusal)
                };
                let _ = accept_hdr(stream, doorman);
            });
        }
    });
    let (code, shown) = run(&url, &["transport/connects"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("CL-TRN-1") && shown.contains("HTTP 403"), "{shown}");
    // Where the step allows it a refusal is as good as a close.
    let (code, shown) = run(&url, &["transport/no-session-id"]);
    assert_eq!(code, Some(0), "{shown}");
    // A step that blames nobody is the harness's problem.
    let (code, shown) = run(&url, &["errors/no-json"]);
    assert_eq!(code, Some(3), "{shown}");
}
