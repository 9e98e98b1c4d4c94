//! The real binary against real servers over real sockets, and against users' mistakes.

use std::fs;

use crate::support::{Served, frameproof, text};

#[test]
fn the_suite_passes_on_the_reference_server_and_writes_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["run", "minicodex", "--strict"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("conformant: "), "{shown}");
    assert!(shown.contains(" 0 failed"), "{shown}");
    for file in ["reports/minicodex.junit.xml", "reports/minicodex.jsonl"] {
        assert!(folder.path().join(file).is_file(), "{file}");
    }
    // The same console text can be made again from the events.
    let again = frameproof(folder.path(), &["report", "reports/minicodex.jsonl"]);
    assert_eq!(text(&again.stdout), shown);
}

#[test]
fn a_server_of_ones_own_is_tested_by_its_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    let output = frameproof(
        folder.path(),
        &[
            "run",
            "minicodex",
            "--url",
            &server.url,
            "--case",
            "approval/*",
            "--junit",
            "out.xml",
            "--trace",
            "t.ndjson",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let xml = fs::read_to_string(folder.path().join("out.xml")).expect("the report");
    assert!(xml.contains("minicodex.approval"), "{xml}");
    // The recording satisfies the same monitors.
    let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "minicodex"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("0 violations"), "{}", text(&output.stdout));
}

#[test]
fn a_defect_is_explained_to_a_stranger() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex", "--fault", "executes-denied"]);
    let output =
        frameproof(folder.path(), &["run", "minicodex", "--url", &server.url, "--case", "approval/deny*"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for part in [
        "FAIL approval/deny-does-not-run-the-tool",
        "MC-APR-8 MUST deny is announced as a denial, and the tool does not run.",
        "on the wire:",
        "reproduce: frameproof run minicodex --url ws://127.0.0.1:",
        "scenarios/minicodex/approval.yaml:",
        "not conformant: 1 case, 0 passed, 1 failed",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // The file is in the program, which shows it.
    let (_, told) = shown.split_once("the scenario is embedded: frameproof ").expect("it is told");
    let command: Vec<&str> = told.lines().next().expect("a line").split(' ').take(3).collect();
    assert_eq!(command, ["explain", "minicodex", "approval/deny-does-not-run-the-tool"]);
    let output = frameproof(folder.path(), &command);
    assert!(text(&output.stdout).contains("- name: deny-does-not-run-the-tool"), "{}", text(&output.stdout));
}

#[test]
fn a_reading_says_what_takes_another_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    for (id, last) in [
        ("MC-AMB-01", "`--reading lenient` takes another answer"),
        ("MC-AMB-06", "`--reading strict` or `--reading lenient` takes another answer"),
        ("MC-AMB-19", "`--reading strict` takes another answer"),
    ] {
        let output = frameproof(folder.path(), &["explain", id]);
        assert_eq!(text(&output.stdout).lines().last().map(str::trim), Some(last), "{id}");
    }
    // Where the answers are one, it is written once.
    let shown = text(&frameproof(folder.path(), &["explain", "MC-AMB-11"]).stdout).to_owned();
    let answers: Vec<&str> = shown.lines().filter(|line| line.starts_with("    ")).collect();
    assert!(matches!(answers[..], [only] if only.starts_with("    every reading: ")), "{shown}");
}

#[test]
fn a_scenario_of_ones_own_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = "
family: mine
cases:
  - name: hello
    title: My server says hello
    turn: [{ say: [hello, you] }]
    steps:
      - open: me
      - send: { type: send, text: '{{cue}}' }
      - expect: assistant_text
        with: { text: you }
      - expect: turn-end
";
    fs::write(folder.path().join("mine.yaml"), scenario).expect("written");
    let output = frameproof(folder.path(), &["run", "minicodex", "--scenario", "mine.yaml", "-v"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("PASS"), "{}", text(&output.stdout));
}

#[test]
fn known_failures_are_excused_until_they_are_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let fault =
        ["run", "minicodex", "--fault", "turn-done-after-tools", "--strict", "--case", "tools/*", "-q"];
    let with = |more: &[&str]| frameproof(folder.path(), &[&fault[..], more].concat());
    assert_eq!(with(&[]).status.code(), Some(1));
    assert_eq!(with(&["--baseline-write", "known.yaml"]).status.code(), Some(1));
    let baseline = fs::read_to_string(folder.path().join("known.yaml")).expect("the baseline");
    assert!(baseline.contains("known:"), "{baseline}");
    fs::write(folder.path().join("b.yaml"), "known:\n  - match: MC-LIFE-9\n    reason: bug 7\n")
        .expect("written");
    assert_eq!(
        with(&["--baseline", "b.yaml"]).status.code(),
        Some(0),
        "{}",
        text(&with(&["--baseline", "b.yaml"]).stdout)
    );
    // On the correct server the entry no longer fails, which fails the run.
    let output =
        frameproof(folder.path(), &["run", "minicodex", "--case", "tools/*", "--baseline", "b.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("stale baseline entry"), "{}", text(&output.stdout));
}

#[test]
fn requirements_are_listed_and_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["explain", "mc-ord-1"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for part in ["MC-ORD-1 MUST", "source: Ordering, line 97", "invariant event-order", "event-ids-repeat"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let output = frameproof(folder.path(), &["list", "minicodex", "--requirements"]);
    let shown = text(&output.stdout);
    let line = shown.lines().last().unwrap_or_default();
    let numbers: Vec<u32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [decided, total] = numbers[..] else { panic!("{shown}\n{}", text(&output.stderr)) };
    assert!(f64::from(decided) >= 0.95 * f64::from(total), "{line}");
}

#[test]
fn tools_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = text(&frameproof(folder.path(), &["list", "codey", "--tools"]).stdout);
    let forbidden = shown.lines().find(|line| line.starts_with("forbidden ")).expect("a class");
    assert!(forbidden.contains("write_note") && forbidden.contains("key: \"forbidden\""), "{shown}");
    let all = text(&frameproof(folder.path(), &["list", "--tools"]).stdout);
    assert!(all.contains(&shown), "{all}");
    let without = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/graphql-transport-ws/protocol");
    let output = frameproof(folder.path(), &["list", "--protocol", without, "--tools"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("x-frameproof.tools"), "{}", text(&output.stderr));
}

#[test]
fn schemas_are_json() {
    let folder = tempfile::tempdir().expect("a folder");
    for of in ["scenario", "protocol", "requirements", "trace", "baseline"] {
        let output = frameproof(folder.path(), &["schema", of]);
        let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect(of);
        assert!(schema.get("properties").is_some(), "{of}");
    }
}

/// Files to write, arguments, exit code, and what standard error must say.
type Mistake =
    (&'static [(&'static str, &'static str)], &'static [&'static str], i32, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    (&[], &["run", "minicodx"], 2, &["unknown protocol `minicodx`", "did you mean `minicodex`?"]),
    (&[], &["run", "minicodex", "--case", "nope/*"], 4, &["nothing selected", "frameproof list"]),
    (&[], &["run", "minicodex", "--url", "http://127.0.0.1:1/"], 2, &["did you mean `ws://`?"]),
    (
        &[],
        &["run", "minicodex", "--url", "ws://127.0.0.1:1/"],
        3,
        &["refused the connection", "is the server running?"],
    ),
    (&[], &["run", "minicodex", "--junit", "/dev/null/x.xml"], 2, &["cannot be written"]),
    (
        &[],
        &["run", "minicodex", "--url", "ws://127.0.0.1:1/", "--header", "nonsense"],
        2,
        &["write `Name: value`"],
    ),
    (
        &[],
        &["run", "minicodex", "--url", "ws://127.0.0.1:1/", "--header", "A: env:FRAMEPROOF_UNSET"],
        2,
        &["FRAMEPROOF_UNSET is not set"],
    ),
    (&[], &["run", "minicodex", "--reading", "loose"], 2, &["loose"]),
    (&[], &["run", "minicodex", "--timeout-scale", "0"], 2, &["a factor from"]),
    (&[], &["run", "minicodex", "--baseline", "none.yaml"], 2, &["none.yaml cannot be read"]),
    (
        &[("b.yaml", "known:\n  - match: 'MC-['\n    reason: x\n    expires: tomorrow\n")],
        &["run", "minicodex", "--baseline", "b.yaml"],
        2,
        &["b.yaml:4:", "`tomorrow` is not a date"],
    ),
    (
        &[("frameproof.toml", "jbos = 3\n")],
        &["run", "minicodex"],
        2,
        &["frameproof.toml", "unknown field `jbos`"],
    ),
    (
        &[(
            "s.yaml",
            "family: f\ncases:\n  - name: a\n    title: t\n    steps:\n      - open: alice\n      - expct: welcome\n      - send: { type: ping }\n        as: bob\n      - expect: welcom\n        covers: [MC-HS-99]\n        within: soon\n      - send: { type: send, text: '{{cu}}' }\n",
        )],
        &["run", "minicodex", "--scenario", "s.yaml"],
        2,
        &["unknown field `expct`", "s.yaml:7:9", "did you mean `expect`?"],
    ),
    (
        &[(
            "s.yaml",
            "family: f\ncases:\n  - name: a\n    title: t\n    steps:\n      - open: alice\n      - send: { type: ping }\n        as: bob\n      - expect: welcom\n        covers: [MC-HS-99]\n        within: soon\n      - send: { type: send, text: '{{cu}}' }\n      - open: bob\n        count: 2\n",
        )],
        &["run", "minicodex", "--scenario", "s.yaml"],
        2,
        &[
            "client `bob` was never opened",
            "did you mean `welcome`?",
            "unknown requirement `MC-HS-99`",
            "`soon` is not a length of time",
            "undefined variable `cu`",
            "did you mean `cue`?",
            "`count` does not go with `open`",
        ],
    ),
    (&[("s.yaml", "family: [\n")], &["run", "minicodex", "--scenario", "s.yaml"], 2, &["s.yaml:"]),
    (&[("o.yaml", "- 1\n")], &["run", "minicodex", "--overlay", "o.yaml"], 2, &["JSON Merge Patch"]),
    (
        &[("o.yaml", "x-frameproof: { discriminatr: /kind }\n")],
        &["run", "minicodex", "--overlay", "o.yaml"],
        2,
        &["unknown field `discriminatr`"],
    ),
    (
        &[("t.ndjson", "{\"t_ms\":1}\n")],
        &["check", "t.ndjson", "--protocol", "minicodex"],
        2,
        &["t.ndjson:1:", "missing field"],
    ),
    (&[("t.ndjson", "")], &["check", "t.ndjson", "--protocol", "minicodex"], 4, &["the trace is empty"]),
    (&[], &["explain", "MC-ORD-11"], 2, &["unknown requirement", "did you mean MC-ORD-"]),
    (
        &[],
        &["explain", "minicodx", "abort/abort-active-run"],
        2,
        &["unknown protocol", "did you mean `minicodex`?"],
    ),
    (&[], &["explain", "minicodex", "abort/abort-active"], 2, &["unknown case", "abort/abort-active-run"]),
    (&[], &["run", "minicodex", "--fail-fast", "5"], 2, &["--fail-fast=5"]),
    (&[], &["run", "--target", "ws://127.0.0.1:1/ws"], 2, &["--url ws://127.0.0.1:1/ws"]),
    (&[], &["serve", "minicodex", "--fault", "no-welcom"], 2, &["did you mean `no-welcome`?"]),
    (&[], &["serve", "nothing"], 2, &["there is no reference server for `nothing`"]),
    (&[], &["run", "--protocol", "nowhere"], 2, &["nowhere is not a folder"]),
];

#[test]
fn mistakes_get_a_place_a_hint_and_the_right_exit_code() {
    for (files, arguments, code, parts) in MISTAKES {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in *files {
            fs::write(folder.path().join(name), content).expect("written");
        }
        let output = frameproof(folder.path(), arguments);
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}\n{shown}");
        for part in *parts {
            assert!(shown.contains(part), "{arguments:?}: {part} is not in\n{shown}");
        }
    }
}

#[test]
fn a_port_in_use_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = frameproof(folder.path(), &["serve", "minicodex", "--listen", &address]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains(&format!("cannot listen on {address}")),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn what_is_wrong_with_a_scenario_is_said_at_its_place_before_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let head = "family: mine\ncases:\n  - name: a\n    title: t\n    steps:\n      - open: me\n";
    for (rest, expected) in [
        ("    repeat: \u{a0}\n", "mine.yaml:7:13"),
        ("      - check: { properties: { a: { pattern: '(a' } } }\n", "mine.yaml:7:16"),
        ("      - check: { $ref: 'http://127.0.0.1:1/x' }\n", "mine.yaml:7:16"),
    ] {
        fs::write(folder.path().join("mine.yaml"), format!("{head}{rest}")).expect("written");
        let output = frameproof(folder.path(), &["run", "minicodex", "--scenario", "mine.yaml"]);
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert!(shown.contains(expected), "{expected} is not in\n{shown}");
    }
}

#[test]
fn a_kind_of_monitor_is_explained_with_what_passes_and_what_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["explain", "--monitor", "increasing"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for part in [
        "increasing: A counter grows in arrival order",
        "  restarts  (optional) ",
        "increasing: { message: said, at: /seq, order: [EX-1], repeat: [EX-2] }",
        "  > <- {\"type\":\"said\",\"seq\":1}\n  EX-1: /seq 1 comes after 4",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    for (name, hint) in
        [("absense", "did you mean `absence`? known are `increasing`, "), ("x", "known are `increasing`, ")]
    {
        let output = frameproof(folder.path(), &["explain", "--monitor", name]);
        let shown = text(&output.stderr);
        assert!(
            output.status.code() == Some(2) && shown.contains(hint) && shown.contains("server-requests"),
            "{shown}"
        );
    }
    assert_eq!(frameproof(folder.path(), &["explain"]).status.code(), Some(2), "nothing to explain");
    assert_eq!(
        frameproof(folder.path(), &["explain", "MC-ORD-1", "--monitor", "echo"]).status.code(),
        Some(2)
    );
}
