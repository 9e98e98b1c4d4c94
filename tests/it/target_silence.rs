//! Servers that fall silent, each in its way: told apart, told once, and over in bounded time.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::Served;
use crate::support::hand::{self, FallsSilent};
use crate::support::target::{folder, run, told};

/// Longest time that a run against a server that says nothing may take, whatever the machine is busy with.
const BOUND: Duration = Duration::from_secs(60);

/// Runs cases against a server that is there already, with short deadlines: it is silent, and waiting longer changes nothing.
fn against(protocol: &str, url: &str, scale: &str, globs: &[&str]) -> (Option<i32>, String, String) {
    let folder =
        folder(&format!("[target.x]\nprotocol = '{protocol}'\nurl = '{url}'\ntimeout-scale = {scale}\n"));
    let begin = Instant::now();
    let mut arguments = vec!["run", "--target", "x", "--jobs", "64", "--junit", "j.xml"];
    arguments.extend(globs);
    let (code, shown, errors) = run(&folder, &arguments);
    assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
    let xml = fs::read_to_string(folder.path().join("j.xml")).unwrap_or_default();
    (code, shown + &errors, xml)
}

/// How many stories a report tells in full.
fn stories(shown: &str) -> usize {
    shown.matches("reproduce:").count()
}

#[test]
fn a_server_that_never_answers() {
    let url = hand::mute(None).trim_end_matches('/').to_owned() + "/ws";
    let (code, shown, xml) =
        against("minicodex", &url, "0.05", &["abort/*", "approval/*", "streaming/*", "resume/*"]);
    assert_eq!(code, Some(1), "{shown}");
    // Which of the cases that run at once is told in full is not determined: one alone says exactly this.
    let (_, alone, _) = against("minicodex", &url, "0.05", &["streaming/text-turn"]);
    let sentence = "welcome did not come within 250.0ms: the server has sent nothing on this connection\n";
    assert!(alone.contains(sentence), "{alone}");
    assert!(shown.contains(" within 250.0ms: the server has sent nothing on this connection"), "{shown}");
    assert!(stories(&shown) <= 3, "one root cause:\n{shown}");
    assert!(shown.contains("same reason as "), "{shown}");
    assert!(xml.contains("it failed for the same reason as "), "{xml}");
}

#[test]
fn a_server_that_hangs_on_the_first_frame() {
    let url = hand::mute(Some(r#"{"type":"Connected","session_id":"s"}"#));
    let (code, shown, _) =
        against("codey", &url, "0.05", &["messages/*", "streaming/*", "state/*", "history/*"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("the server has not answered the last message"), "{shown}");
    assert!(!shown.contains("has sent nothing on this connection"), "{shown}");
    // One for each type of message that is not answered, and one whose frame is too long for the log to show its type.
    assert!(stories(&shown) <= 6, "few root causes:\n{shown}");
    assert!(shown.contains("same reason as "), "{shown}");
}

#[test]
fn a_server_that_never_ends_a_turn() {
    let server = Served::start(&["minicodex"]);
    let url = hand::losing(&server.url, |text| {
        text.contains("\"turn_done\"")
            || text.contains("\"status\":\"finished\"")
            || text.contains("\"status\":\"error\"")
    });
    let (code, shown, _) = against("minicodex", &url, "0.2", &["streaming/*", "tools/*", "errors/no-*"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("the server has started the turn and not ended it; the last frame was `"),
        "{shown}"
    );
    // What needs no end of a turn passes all the same.
    assert!(!shown.contains(" 0 passed"), "{shown}");
    assert!(stories(&shown) <= 7, "few root causes:\n{shown}");
}

#[test]
fn a_server_that_never_completes_the_close_handshake() {
    let url = hand::mute(Some(r#"{"type":"Connected","session_id":"s"}"#));
    let (code, shown, _) = against("codey", &url, "0.05", &["transport/close-returned"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("close did not come within")
            && shown.contains("the server has not ended the connection"),
        "{shown}"
    );
    assert!(shown.contains("CO-CN-1"), "{shown}");
}

/// Whole suites against servers of which the handler hangs: one root cause is told once, wherever it strikes, and everything that
/// waits for it points there, in every report. Which of the cases that run at once fails first is not determined: what the whole
/// sentence is shows in a run of `one` case; in that of all, what does not depend on the case (`cause`) does.
fn hangs(protocol: &str, when: FallsSilent, globs: &[&str], [one, waited, cause]: [&str; 3]) {
    let server = Served::start(&[protocol]);
    let url = hand::falling_silent(&server.url, when);
    let (code, alone, _) = against(protocol, &url, "0.4", &[one]);
    assert_eq!(code, Some(1), "{when:?} {alone}");
    assert!(alone.contains(&format!("  {waited}{cause}\n")), "{when:?}: {waited}{cause} is not in\n{alone}");
    let config = format!("[target.x]\nprotocol = '{protocol}'\nurl = '{url}'\ntimeout-scale = 0.4\n");
    let folder = folder(&config);
    let begin = Instant::now();
    let mut arguments =
        vec!["run", "--target", "x", "--jobs", "64", "--junit", "out.xml", "--json", "out.jsonl"];
    arguments.extend(globs);
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{when:?} {shown}{errors}");
    assert!(begin.elapsed() < BOUND, "{when:?} {:?}", begin.elapsed());
    // The last frame depends on the case.
    let cause = cause.split(" the last frame was").next().unwrap_or_default();
    // It is named, where it has a name.
    let cause = cause.trim_start_matches('`');
    assert!(shown.contains(cause), "{when:?}: {cause} is not in\n{shown}");
    // A few kinds of commands wait in a turn, or behind a refused `send`, each for an answer of its own; and a second client sees
    // that a decision has no effect.
    let most = if let FallsSilent::InTurn(_) = when { 7 } else { 3 };
    assert!(stories(&shown) <= most, "{protocol} {when:?}: {} stories\n{shown}", stories(&shown));
    let (failing, first) = told(&folder);
    assert!(failing > 25 && first <= most, "{protocol} {when:?}: {first} of {failing}\n{shown}");
    let xml = fs::read_to_string(folder.path().join("out.xml")).expect("JUnit");
    let others = xml.matches("it failed for the same reason as ").count();
    assert!(others >= failing - first, "{protocol} {when:?}: {others} of {failing}\n{xml}");
    // A server that has said a single word is heard to the end.
    let hint = "`frameproof doctor --target x` shows which step fails";
    let is_cut = shown.contains("not run: ") && shown.contains(hint);
    assert_eq!(is_cut, when == FallsSilent::AtOnce, "{protocol} {when:?}: {shown}");
    assert!(is_cut || !shown.contains(" 0 passed"), "{protocol} {when:?}: {shown}");
}

#[test]
fn one_hanging_handler_of_minicodex_is_one_story() {
    const FAMILIES: &[&str] = &["abort/*", "approval/*", "errors/*", "fanout/*", "handshake/*", "snapshot/*"];
    const ONE: &str = "streaming/text-turn";
    let cause = " within 2.0s: the server has sent nothing on this connection";
    hangs("minicodex", FallsSilent::AtOnce, &[], [ONE, "welcome did not come", cause]);
    let openings = FallsSilent::BehindOpening(&["\"type\":\"hello\"", "\"type\":\"resume\""]);
    let waited = "run_status did not come within 2.0s: the server has not answered the last message, `send";
    hangs("minicodex", openings, FAMILIES, [ONE, waited, "`, and has sent nothing since the opening"]);
    let waited = "run_status did not come within 2.0s: ";
    let cause = "the server has started the turn and not ended it; the last frame was `accepted`";
    hangs("minicodex", FallsSilent::InTurn("\"type\":\"send\""), FAMILIES, [ONE, waited, cause]);
}

#[test]
fn one_hanging_handler_of_codey_is_one_story() {
    const FAMILIES: &[&str] =
        &["approval/*", "cancel/*", "errors/*", "connection/*", "state/*", "streaming/*"];
    const ONE: &str = "streaming/pieces-add-up";
    let cause = " within 2.0s: the server has sent nothing on this connection";
    hangs("codey", FallsSilent::AtOnce, &[], [ONE, "Connected did not come", cause]);
    let waited =
        "TextDelta did not come within 2.0s: the server has not answered the last message, `SendMessage";
    let cause = "`, and has sent nothing since the opening";
    hangs("codey", FallsSilent::BehindOpening(&[]), FAMILIES, [ONE, waited, cause]);
    let waited = "turn-end did not come within 2.0s: ";
    let cause = "the server has started the turn and not ended it; the last frame was `TextDelta`";
    hangs("codey", FallsSilent::InTurn("\"type\":\"SendMessage\""), FAMILIES, [ONE, waited, cause]);
}

/// It does what it was asked for; only what two cases wait for does not come. These are two findings.
#[test]
fn a_server_that_sends_other_frames() {
    let server = Served::start(&["minicodex"]);
    let case = |name: &str, wanted: &str, id: &str| {
        format!(
            "  - name: {name}\n    title: It comes\n    covers: [{id}]\n    turn: [{{ say: [\"hi\"] }}]\n    steps:\n      - open: alice\n      \
             - send: {{ type: send, text: \"{{{{cue}}}}\", req_id: r1 }}\n      - expect: {wanted}\n        within: 300ms\n        covers: [{id}]\n"
        )
    };
    let two = case("no-error", "error", "MC-ERR-1") + &case("no-approval", "approval_pending", "MC-APR-1");
    let config = format!("[target.x]\nprotocol = 'minicodex'\nurl = '{}'\ntimeout-scale = 4\n", server.url);
    let folder = folder(&config);
    fs::write(folder.path().join("two.yaml"), format!("family: two\nabout: Tests.\ncases:\n{two}"))
        .expect("written");
    let arguments = ["run", "--target", "x", "--scenario", "two.yaml", "--junit", "j.xml"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("the server has sent other frames"), "{shown}");
    assert_eq!(stories(&shown), 2, "{shown}");
    let xml = fs::read_to_string(folder.path().join("j.xml")).expect("JUnit");
    assert!(!xml.contains("same reason"), "{xml}");
    assert!(xml.contains("MC-ERR-1") && xml.contains("MC-APR-1"), "{xml}");
}

/// It is gone in the middle of the run, and was never ours to launch again.
#[test]
fn a_server_that_survives_so_many_connections() {
    let server = Served::start(&["minicodex"]);
    let url = hand::survives(12, &server.url);
    let folder = folder(&format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\nsessions = 1\n"));
    let begin = Instant::now();
    let (code, shown, errors) = run(&folder, &["run", "--target", "x", "errors/*", "tools/*", "streaming/*"]);
    assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
    assert!(matches!(code, Some(1 | 3)), "{code:?} {shown}{errors}");
    assert!(!shown.contains(" 0 passed"), "what ran before counts: {shown}");
    assert!(shown.contains("refused the connection"), "{shown}");
    assert!(stories(&shown) <= 4, "one root cause:\n{shown}");
}

/// It serves a few connections and then takes others without a word: told once, soon, and not case by case.
#[test]
fn a_server_that_stops_answering_upgrades_is_told_at_once() {
    let behind = Served::start(&["minicodex"]);
    let url = hand::freezing(4, &behind.url);
    let folder = folder(&format!(
        "[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.1\nsessions = 1\n"
    ));
    let (code, shown, errors) = run(&folder, &["run"]);
    assert_eq!(code, Some(3), "{shown}{errors}");
    assert!(
        shown.contains("not run: the server has answered the upgrades of 3 connections and none since"),
        "{shown}"
    );
    assert!(shown.contains("it accepts TCP connections, and then sends nothing"), "{shown}");
    // Three cases have waited for the answer, and no more.
    assert_eq!(stories(&shown), 2, "{shown}");
    let url = hand::freezing(2, &behind.url);
    fs::write(
        folder.path().join("frameproof.toml"),
        format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.1\n"),
    )
    .expect("written");
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("good     opening exchange?"), "{shown}");
    assert!(
        shown.contains("MISSING  plain turn?                    the server has answered the upgrade of one connection and none since"),
        "{shown}"
    );
    assert!(shown.contains("→ does a connection, or its end, keep it from serving the next one?"), "{shown}");
}

/// It answers upgrades only while few connections are there: cases beside which others ran are tried again alone, and fewer run at a time.
#[test]
fn an_upgrade_that_is_not_answered_under_load_is_tried_again_alone() {
    let behind = Served::start(&["minicodex"]);
    let (url, unanswered) = hand::crowded(2, &behind.url);
    let folder = folder(&format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.3\n"));
    let arguments = ["run", "--target", "x", "--jobs", "8", "--junit", "j.xml", "streaming/*", "tools/*"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert!(unanswered.load(Ordering::SeqCst) > 0, "they were too many at first");
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(!shown.contains("ERROR") && shown.contains(" flaky"), "{shown}");
    assert!(
        shown.contains("had failed because the server did not answer an upgrade passed when run alone"),
        "{shown}"
    );
    let xml = fs::read_to_string(folder.path().join("j.xml")).expect("the report");
    assert!(xml.contains("sent no HTTP answer to the upgrade within"), "{xml}");
}

/// It answers no upgrade while others are waiting, nor any more: that is a verdict as soon as one case alone has shown it.
#[test]
fn a_server_that_answers_no_upgrade_any_more_is_not_asked_by_each_case() {
    let behind = Served::start(&["minicodex"]);
    let url = hand::freezing(3, &behind.url);
    let folder = folder(&format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.1\n"));
    let begin = Instant::now();
    let (code, shown, errors) = run(&folder, &["run", "--target", "x", "--jobs", "8"]);
    assert_eq!(code, Some(3), "{shown}{errors}");
    assert!(shown.contains("it accepts TCP connections, and then sends nothing"), "{shown}");
    assert!(!shown.contains("flaky"), "{shown}");
    assert!(begin.elapsed() < BOUND / 4, "{:?}", begin.elapsed());
}
