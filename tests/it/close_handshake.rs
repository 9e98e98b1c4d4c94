//! Connections that a case leaves open end with a closing handshake, and so does the probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{frameproof, hand, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

#[test]
fn every_connection_ends_with_code_1000() {
    let (well, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&well), Arc::clone(&all));
    let url = hand::serve(move |stream| {
        let (well, all) = counts.clone();
        async move {
            let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
            all.fetch_add(1, Ordering::SeqCst);
            while let Some(Ok(message)) = socket.next().await {
                match message {
                    Message::Text(request) if request.contains("hello") => {
                        let welcome = json!({ "type": "welcome", "room": "r1" }).to_string();
                        drop(socket.send(Message::text(welcome)).await);
                    }
                    Message::Close(Some(frame)) if u16::from(frame.code) == 1000 => {
                        well.fetch_add(1, Ordering::SeqCst);
                    }
                    _ => {}
                }
            }
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", ".", "--url", &url]);
    let case = json!({ "name": "open", "title": "Open", "steps": [{ "open": "alice" }, { "open": "bob" }] });
    let file = json!({ "family": "ends", "cases": [case] }).to_string();
    std::fs::write(folder.path().join("ends.yaml"), file).expect("written");
    let output = frameproof(folder.path(), &["run", "--scenario", "ends.yaml", "ends/*"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    // The probe, and two clients. The server has seen the close before it returns it, which the run waits for.
    assert_eq!((all.load(Ordering::SeqCst), well.load(Ordering::SeqCst)), (3, 3));
}

/// A server that was not launched has no scripted model: what needs one is unknown, and nothing is missing.
#[test]
fn the_doctor_misses_no_model_where_there_is_none() {
    let (url, _) = hand::chat(hand::Tells::All);
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", ".", "--url", &url]);
    let output = frameproof(folder.path(), &["doctor", "--protocol", "mychat", "--url", &url]);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("unknown  does the cue reach the model?"), "{shown}");
}

/// A live event between hello and resume has no place in the order of the replay: the sweep leaves hello out.
#[test]
fn the_reference_server_conforms_in_the_lenient_reading_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "minicodex", "resume/*", "--reading", "lenient", "--repeat", "8", "-q"];
    let output = frameproof(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
}
