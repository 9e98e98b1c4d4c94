//! Servers that are slow to answer, or never do: nobody waits for them in each case, and none is given up on that answers.

use std::time::Duration;

use crate::support::Served;
use crate::support::hand::{self, FallsSilent};
use crate::support::target::{folder, run, told};

/// It greets, and that is all: the rest of the suite is run in a hurry, passes where it can, and is one story.
#[test]
fn a_server_that_greets_and_falls_silent_is_not_waited_for_in_each_case() {
    let server = Served::start(&["minicodex"]);
    let openings = FallsSilent::BehindOpening(&["\"type\":\"hello\"", "\"type\":\"resume\""]);
    let url = hand::falling_silent(&server.url, openings);
    let config = format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.2\n");
    let folder = folder(&config);
    let (code, shown, errors) = run(&folder, &["run", "--target", "x", "--json", "out.jsonl"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("hint: the server answered nothing after the opening: "), "{shown}");
    // What hangs behind other messages is tried for itself.
    let hint = "100.0ms for each step, and one for each kind of silence (";
    let (_, kinds) = shown.split_once(hint).expect(&shown);
    let (kinds, rest) = kinds.split_once(')').expect("closed");
    assert!(kinds.parse::<u32>().is_ok_and(|kinds| (3..=8).contains(&kinds)), "{shown}");
    assert!(rest.starts_with(" again with 1.0s"), "{shown}");
    let (failing, first) = told(&folder);
    assert!(failing > 60 && first <= 6, "{first} of {failing}\n{shown}");
    // What the server does it passes: the opening, and what the library does.
    let passed =
        shown.rsplit_once(" passed, ").and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok());
    assert!(passed.is_some_and(|passed: u32| passed > 5), "{shown}");
    assert!(!shown.contains("not run"), "{shown}");
}

/// It takes a while to warm up, and is not given up on: what was run in a hurry meanwhile is run again.
#[test]
fn a_server_that_warms_up_is_heard_in_the_end() {
    let server = Served::start(&["minicodex"]);
    let url =
        hand::warming_up(&server.url, Duration::from_secs(5), &["\"type\":\"hello\"", "\"type\":\"resume\""]);
    let config = format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.3\n");
    let folder = folder(&config);
    let globs = ["errors/*", "snapshot/*", "heartbeat/*", "tools/*", "streaming/*"];
    let arguments = [&["run", "--target", "x", "--json", "out.jsonl"], &globs[..]].concat();
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(!shown.contains("hint: nothing that was asked"), "{shown}");
    let (failing, _) = told(&folder);
    // Four run at a time at first.
    assert!((4..=24).contains(&failing), "only those that were given their time: {failing}\n{shown}");
}
