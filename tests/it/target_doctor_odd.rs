//! The doctor with servers that are odd and not broken, and with those that break several things at once.

use std::fs;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use crate::support::target::{SERVED, folder, run};
use crate::support::{Served, frameproof, hand};

fn missing(shown: &str) -> usize {
    shown.lines().filter(|line| line.starts_with("MISSING")).count()
}

const LATE: &[&str] =
    &[r#"{"type":"done","seq":1}"#, r#"{"type":"said","seq":2,"text":"frameproof-says was here"}"#];
/// The message which ends the turn has the number of the one before.
const LATE_AND_WRONG: &[&str] = &[
    r#"{"type":"said","seq":1,"text":"I think"}"#,
    r#"{"type":"done","seq":1}"#,
    r#"{"type":"said","seq":2,"text":"frameproof-says was here"}"#,
];

/// A server of the chat protocol that says what it was asked to only after the message which ends the turn there.
fn says_late(answers: &'static [&'static str]) -> String {
    hand::serve(move |stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(Message::Text(text))) = socket.next().await {
            let said: Value = serde_json::from_str(&text).unwrap_or_default();
            let answers = match said["type"].as_str() {
                Some("hello") => &[r#"{"type":"welcome","room":"lobby"}"#],
                _ => answers,
            };
            for answer in answers {
                if socket.send(Message::text(*answer)).await.is_err() {
                    return;
                }
            }
        }
    })
}

/// A folder with the protocol of such a server and a configuration, which is told as well.
fn folder_for(answers: &'static [&'static str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = says_late(answers);
    frameproof(folder.path(), &["init", "chat", "--url", &url]);
    let config = format!("[target.late]\nprotocol = './chat/mychat'\nurl = '{url}'\n");
    fs::write(folder.path().join("frameproof.toml"), &config).expect("written");
    (folder, config)
}

#[test]
fn words_that_come_behind_the_end_of_a_turn_are_not_said_to_be_lost() {
    let (folder, config) = folder_for(LATE);
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    for part in [
        "MISSING  plain turn?                    the model's text came",
        "after `done`, which the protocol takes for the end of the turn",
        "x-frameproof: { turn: { end: \"said\" } }",
        "<- {\"type\":\"said\"",
    ] {
        assert!(joined(&shown).contains(&joined(part)), "{part} is not in\n{shown}");
    }
    assert!(!shown.contains("did not reach the client") && !shown.contains("did not come back"), "{shown}");
    // The line that it proposes is the way out.
    fs::write(folder.path().join("end.yaml"), "x-frameproof: { turn: { end: said } }\n").expect("written");
    fs::write(folder.path().join("frameproof.toml"), config + "overlay = ['end.yaml']\n").expect("written");
    let (_, shown, errors) = run(&folder, &["doctor"]);
    assert!(shown.contains("good     plain turn?"), "{shown}{errors}");
}

#[test]
fn an_end_of_a_turn_that_breaks_a_rule_is_found_to_be_early_too() {
    let (folder, _) = folder_for(LATE_AND_WRONG);
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    let shown = joined(&shown);
    for part in [
        "after `done`, which the protocol takes for the end of the turn",
        "CH-2",
        "x-frameproof: { turn: { end:",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

/// The text without the breaks that the width of the terminal makes.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A server of its own that is as somebody has declared it is what the doctor is content with.
#[test]
fn the_doctor_is_content_with_what_is_declared() {
    let agent = SERVED.replace("minicodex", "agentloop");
    let without =
        "x-frameproof: { capabilities: { isolation: { offered: 'no' }, approvals: { offered: 'no' } } }\n";
    for (config, overlay, parts) in [
        (
            format!("{SERVED}sessions = 1\n"),
            "",
            &[
                "good     are sessions isolated?         not looked at: the target has one session for all clients",
            ][..],
        ),
        (
            format!("{agent}overlay = ['o.yaml']\n"),
            without,
            &[
                "good     are sessions isolated?         not looked at: the capability `isolation` is not offered",
                "good     is approval requested?         not looked at: the overlay says that `approvals` is not offered",
            ],
        ),
        (
            format!("{agent}without-tools = ['guarded']\n"),
            "",
            &[
                "good     is approval requested?         not looked at: the target has no tool of the class `guarded`",
            ],
        ),
        // A plain prompt need not make a model call a tool.
        (
            format!("{SERVED}prompts = {{ '*' = 'Say hello.' }}\n"),
            "",
            &["unknown  is approval requested?         plain prompts are used instead of cues"],
        ),
    ] {
        let folder = folder(&config);
        fs::write(folder.path().join("o.yaml"), overlay).expect("written");
        let (code, shown, errors) = run(&folder, &["doctor"]);
        assert_eq!(code, Some(0), "{shown}{errors}");
        assert_eq!(missing(&shown), 0, "{shown}");
        for part in parts {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }
}

/// The opening lacks its snapshot, which is a SHOULD, in every step.
#[test]
fn a_warning_does_not_make_the_isolation_of_sessions_unknown() {
    let server = Served::start(&["minicodex", "--fault", "no-opening-snapshot"]);
    let folder = folder(&format!("[target.w]\nprotocol = 'minicodex'\nurl = '{}'\n", server.url));
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("good     are sessions isolated?"), "{shown}");
}

/// The pending call of the approval step would disturb the others where all share one session: it comes last.
#[test]
fn the_step_that_leaves_a_call_pending_is_the_last() {
    let (_, shown, errors) = run(&folder(SERVED), &["doctor"]);
    let at = |step| shown.find(step).unwrap_or_else(|| panic!("{step} is not in\n{shown}{errors}"));
    assert!(at("are sessions isolated?") < at("is approval requested?"));
}

/// Two kinds of frames are wrong, and with them the end of the turn: both are told in one round, and the later steps are tried.
#[test]
fn one_round_tells_all_that_it_shows() {
    let behind = Served::start(&["minicodex"]);
    let url = hand::altered(&behind.url, |text| {
        text.replace("\"status\":\"running\"", "\"status\":\"at-work\"")
            .replace("\"type\":\"user_text\",\"text\":\"", "\"type\":\"user_text\",\"text\":7,\"said\":\"")
    });
    let folder = folder(&format!("[target.two]\nprotocol = 'minicodex'\nurl = '{url}'\n"));
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    for part in [
        "MISSING  plain turn?                    run_status: /run_state/status",
        "also: user_text: /text",
        "good     are sessions isolated?",
        "good     is approval requested?         it waits after a frame that names `write_note`",
        "Fix this and run the doctor again.",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert_eq!(missing(&shown), 1, "what was told is not told again\n{shown}");
}

/// A server that is there already, and says words of its own: whether a model was asked nobody can see, and where to start one is told.
/// Once one is started, that nobody asks it shows.
#[test]
fn the_doctor_says_where_a_model_is_started_and_whether_it_was_asked() {
    let (url, _) = hand::chat(hand::Tells::All);
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", ".", "--url", &url]);
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    for (model, parts) in [
        (
            String::new(),
            [
                "unknown  does the cue reach the model?  the model's text did not come back, and no scripted model was started for this target",
                "→ does the running server send its requests to `frameproof model`? `model = \"HOST:PORT\"` in the target's table starts one there",
            ],
        ),
        (
            format!("model = '127.0.0.1:{port}'\n"),
            [
                "MISSING  does the cue reach the model?  the scripted model received no request",
                "→ point the server to it",
            ],
        ),
    ] {
        let config = format!("[target.chat]\nprotocol = './mychat'\nurl = '{url}'\n{model}");
        fs::write(folder.path().join("frameproof.toml"), config).expect("written");
        let (_, shown, errors) = run(&folder, &["doctor"]);
        for part in parts {
            assert!(joined(&shown).contains(&joined(part)), "{part} is not in\n{shown}{errors}");
        }
    }
}
