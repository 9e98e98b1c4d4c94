//! The doctor: step by step, in plain words, with the frames.

mod support;

use std::fs;
use std::net::TcpListener;

use support::target::{SERVED, folder, run};
use support::{Served, frameproof, hand};

#[test]
fn the_doctor_says_what_is_missing() {
    let folder = folder(SERVED);
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    for part in [
        "good     does it start?                 launched and ready: mine",
        "good     opening exchange?",
        "good     plain turn?",
        "good     does the cue reach the model?  the model's words came back",
        "good     does the guarded tool ask?     it waits, after a frame about `write_note`",
        "good     are sessions apart?",
        "Nothing is missing",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // The wrong protocol: the opening fails, with the frames.
    let server = Served::start(&["agentloop"]);
    let (code, shown, errors) = run(&folder, &["doctor", "minicodex", "--url", &server.url]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(
        shown.contains("MISSING  opening exchange?") && shown.contains("-> {\"type\":\"hello\""),
        "{shown}"
    );
    // A turn that never ends.
    let (url, _) = hand::chat(hand::Tells::Nobody);
    frameproof(folder.path(), &["init", "chat", "--url", &url]);
    let mute =
        format!("{SERVED}[target.mute]\nprotocol = './chat/mychat'\nurl = '{url}'\ntimeout-scale = 0.1\n");
    fs::write(folder.path().join("frameproof.toml"), mute).expect("written");
    let (code, shown, errors) = run(&folder, &["doctor", "--target", "mute"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(
        shown.contains("good     opening exchange?") && shown.contains("MISSING  plain turn?"),
        "{shown}"
    );
    // A path that is none.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let (code, _, errors) = run(&folder, &["doctor", "minicodex", "--url", &format!("ws://{address}/")]);
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("refused the connection"), "{errors}");
}
