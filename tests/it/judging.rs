//! How a suite is judged: lint, steps that are taken out, mutants before a server of one's own, and what a server is said to offer.

use std::fs;

use crate::support::{Served, frameproof, text};

fn told(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = frameproof(folder.path(), arguments);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn scenario(cases: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("family: own\nabout: Own cases.\ncases:\n{cases}");
    fs::write(folder.path().join("own.yaml"), text).expect("written");
    folder
}

const TURN: &str = r#"  - name: turn
    title: A turn goes from its start to its end
    covers: [MC-LIFE-1]
    turn: [{ say: [done] }]
    steps:
      - open: alice
      - send: { type: send, text: "{{cue}}", req_id: r1 }
      - expect: accepted
        with: { req_id: r1 }
        covers: [MC-ACK-1]
"#;

#[test]
fn lint_shows_what_cannot_fail_where_it_stands() {
    let good = scenario(&format!("{TURN}      - expect: turn-end\n"));
    let (code, shown, errors) = told(&good, &["lint", "minicodex", "--scenario", "own.yaml"]);
    assert_eq!((code, shown.trim(), errors.as_str()), (Some(0), "0 findings in 1 case", ""));

    let bad =
        "      - expect: [turn_done, close]\n      - check: { properties: { type: { const: turn_done } } }\n";
    let bad = scenario(&format!("{TURN}{bad}"));
    let (code, shown, _) = told(&bad, &["lint", "minicodex", "--scenario", "own.yaml"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("[cannot-fail]") && shown.contains("own.yaml:15:"), "{shown}");
    assert!(shown.trim_end().ends_with("1 finding in 1 case"), "{shown}");
    let (code, shown, _) =
        told(&bad, &["lint", "minicodex", "--scenario", "own.yaml", "--rule", "hidden-effect"]);
    assert_eq!((code, shown.trim()), (Some(0), "0 findings in 1 case"));
    let (code, _, errors) = told(&bad, &["lint", "minicodex", "--rule", "cannot-fall"]);
    assert!(code == Some(2) && errors.contains("did you mean `cannot-fail`?"), "{errors}");
}

#[test]
fn lint_shows_pointers_that_lead_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, _, errors) = told(&folder, &["init", "--like", "rpc", "."]);
    assert_eq!(code, Some(0), "{errors}");
    let (code, shown, _) = told(&folder, &["lint", "--rule", "unknown-place"]);
    assert_eq!(code, Some(0), "{shown}");
    let file = folder.path().join("rpc/asyncapi.yaml");
    let api = fs::read_to_string(&file).expect("written");
    for (right, wrong, hint) in [
        (
            "at: /params/at, key: /params/token",
            "at: /params/at, key: /params/tokn",
            "did you mean `/params/token`?",
        ),
        (
            "at: /params/at, key: /params/token",
            "at: /params/at/it, key: /params/token",
            "did you mean `/params/at`?",
        ),
        ("fresh: [/params/token]", "fresh: [/param/token]", "did you mean `/params/token`?"),
    ] {
        assert!(api.contains(right), "{right}");
        fs::write(&file, api.replace(right, wrong)).expect("written");
        let (code, shown, errors) = told(&folder, &["lint", "--rule", "unknown-place"]);
        assert_eq!(code, Some(1), "{wrong}: {shown}{errors}");
        let line = 1 + api[..api.find(right).expect("there")].matches('\n').count();
        for part in ["[unknown-place]", hint, &format!("asyncapi.yaml:{line}:")] {
            assert!(shown.contains(part), "{wrong}: {part}\n{shown}");
        }
    }
}

#[test]
fn a_step_that_finds_nothing_is_dead() {
    // What no server breaks, behind what decides.
    let cases = format!(
        "{TURN}      - expect: turn-end\n      - assert: {{ equal: [\"{{{{uid}}}}\", \"{{{{uid}}}}\"] }}\n"
    );
    let folder = scenario(&cases);
    let arguments =
        ["selftest", "minicodex", "--scenario", "own.yaml", "--steps", "--sample", "12", "--seed", "2", "-v"];
    let (code, shown, errors) = told(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    let of = |step: &str| shown.lines().find(|line| line.contains(step)).unwrap_or_default().to_owned();
    assert!(of("- assert:").starts_with("DEAD"), "{shown}");
    assert!(of("- expect: accepted").starts_with("decides"), "{shown}");
}

#[test]
fn mutants_stand_before_a_server_of_ones_own() {
    let server = Served::start(&["minicodex"]);
    let folder = tempfile::tempdir().expect("a folder");
    let wire =
        ["selftest", "minicodex", "--wire", "--case", "handshake/*", "-v", "--url", &server.url, "--mutant"];
    let (code, shown, errors) = told(&folder, &[&wire[..], &["welcome/session_state null first"]].concat());
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.starts_with("killed    welcome/session_state null first"), "{shown}");
    assert!(shown.contains("1 of 1 killed, 0 survived, 0 declared harmless; 0 not applied"), "{shown}");
    // What comes late in the conversation, no handshake meets.
    let (code, shown, _) = told(&folder, &[&wire[..], &["reasoning drop every"]].concat());
    assert!(code == Some(0) && shown.contains("0 of 0 killed") && shown.contains("1 not applied"), "{shown}");
    let (code, _, errors) = told(&folder, &[&wire[..], &["welcome/session_stat *"]].concat());
    assert!(code == Some(4) && errors.contains("no mutant matches"), "{errors}");
    // Without a mutation the server is what it was.
    let (code, shown, _) = told(&folder, &["run", "minicodex", "handshake/*", "--url", &server.url]);
    assert_eq!(code, Some(0), "{shown}");
    let (code, _, errors) = told(&folder, &["selftest", "minicodex", "--url", &server.url]);
    assert!(code == Some(2) && errors.contains("--url needs --wire or --steps"), "{errors}");
    let (code, _, errors) =
        told(&folder, &["selftest", "minicodex", "--wire", "--url", "wss://127.0.0.1:1/ws"]);
    assert!(code == Some(2) && errors.contains("TLS"), "{errors}");
}

#[test]
fn a_run_can_explore_behind_the_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    // The suite's case is not about denials; after one, runs skip a state.
    let run = ["run", "minicodex", "streaming/text-turn", "--explore=25", "--json", "r.jsonl"];
    let (code, shown, errors) = told(&folder, &run);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("\nexplored: 0 findings in 25 walks"), "{shown}");
    let (code, shown, errors) =
        told(&folder, &[&run[..], &["--fault", "skips-running@after-denial"]].concat());
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("\nconformant: 1 case, 1 passed") && shown.contains("MC-LIFE-1"), "{shown}");
    let kept = fs::read_dir(folder.path().join("reports/explore-minicodex")).expect("findings");
    assert!(kept.count() > 0);
    let events = fs::read_to_string(folder.path().join("r.jsonl")).expect("the events");
    assert_eq!(events.matches("\"run-finished\"").count(), 2, "{events}");
    let (code, _, errors) = told(&folder, &["run", "--explore"]);
    assert!(code == Some(2) && errors.contains("--explore belongs to one"), "{errors}");
}

#[test]
fn what_a_server_is_said_to_offer_is_judged() {
    let server = Served::start(&["tinyvex"]);
    let folder = tempfile::tempdir().expect("a folder");
    let run = |more: &[&str]| {
        told(&folder, &[&["run", "tinyvex", "mutations/*", "--url", &server.url], more].concat())
    };
    let (_, without, _) = run(&[]);
    let last = without.lines().last().unwrap_or_default().to_owned();
    assert!(last.contains("of which some run only with --offer") && last.contains("counters"), "{without}");
    let listed = |text: &str| {
        text.lines().filter(|line| line.starts_with("not applicable:")).map(str::to_owned).collect::<Vec<_>>()
    };
    let (_, one_by_one, _) = run(&["--jobs", "1"]);
    assert!(!listed(&without).is_empty(), "{without}");
    assert_eq!(listed(&one_by_one), listed(&without), "the order in which cases end shows nowhere");
    let (_, with, _) = run(&["--offer", "counters,threads,actions,computations"]);
    let last = with.lines().last().unwrap_or_default().to_owned();
    assert!(!last.contains("counters"), "{with}");
    let count = |text: &str| {
        let (before, _) = text.split_once(" passed").expect("a count");
        before.rsplit(' ').next().and_then(|count| count.parse::<usize>().ok()).expect("a number")
    };
    let closing = |text: &str| text.lines().last().map(count).expect("a last line");
    assert!(closing(&with) > closing(&without), "{without}\n{with}");
    let (code, _, errors) = run(&["--offer", "countres"]);
    assert!(code == Some(2) && errors.contains("did you mean `counters`?"), "{errors}");
}

/// What a case suspends may be what an overlay leaves out.
#[test]
fn an_overlay_may_leave_out_what_a_case_suspends() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = "x-frameproof: { invariants: { heartbeat-keeps-time: null } }\n";
    std::fs::write(folder.path().join("overlay.yaml"), overlay).expect("written");
    let run = ["run", "minicodex", "--reference", "--overlay", "overlay.yaml", "backpressure/stalled-reader"];
    let (code, shown, errors) = told(&folder, &run);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("1 passed"), "{shown}");
}
