//! The frames that the benchmarks use: one long turn of a reference server.

use std::sync::Arc;
use std::time::Duration;

use frameproof::cue::{Cue, Step};
use frameproof::frame::Limits;
use frameproof::protocol::{LoadOptions, Protocol};
use frameproof::reference;
use frameproof::trace::{Direction, Event, Payload};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

/// The protocol that is benchmarked: the one with the most monitors.
pub const PROTOCOL: &str = "minicodex";

/// A recorded turn.
pub struct Turn {
    pub protocol: Arc<Protocol>,
    /// What the client sent: all of it before anything came.
    pub sent: Vec<String>,
    /// What the server sent, a frame each.
    pub received: Vec<String>,
}

/// Plays a turn that streams `chunks` pieces of text of about 100 characters.
pub async fn turn(chunks: usize) -> Turn {
    let protocol = Protocol::embedded(PROTOCOL, &LoadOptions::default()).expect("it loads");
    let server = reference::start(PROTOCOL, &reference::Options::default()).await.expect("it starts");
    let (mut socket, _) = tokio_tungstenite::connect_async(server.url()).await.expect("a connection");
    let say = (0..chunks).map(|index| format!("{index:09} {}", "text ".repeat(18))).collect();
    let cue = Cue::new(vec![Step::Say { say, every_ms: None }]).encode();
    let sent = vec![
        r#"{"type":"hello","v":"1.0.0"}"#.to_owned(),
        serde_json::json!({ "type": "send", "text": cue }).to_string(),
    ];
    for text in &sent {
        socket.send(Message::text(text.clone())).await.expect("it takes it");
    }
    let mut received = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        match frameproof::frame::parse(text.as_bytes(), &Limits::default()).expect("a frame") {
            // When heartbeats come is another matter in a replay.
            frame if frame["type"] == "heartbeat" => {}
            // The text with its cue, megabytes that no real user types.
            mut frame if frame["type"] == "user_text" => {
                frame["text"] = "go".into();
                received.push(frame.to_string());
            }
            _ => received.push(text.to_string()),
        }
        if text.contains(r#""turn_done""#) {
            break;
        }
    }
    server.stop().await;
    Turn { protocol, sent, received }
}

/// A frame as an event of a trace.
pub fn event(dir: Direction, text: &str) -> Event {
    Event {
        at: Duration::ZERO,
        case: None,
        client: "c".into(),
        dir,
        payload: Payload::Text(Arc::from(text)),
        why: None,
    }
}

/// The middle of the times, in seconds.
pub fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
