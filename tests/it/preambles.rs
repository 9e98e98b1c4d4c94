//! Cases behind preambles: what is done before them, what is selected, where failures are shown.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::process::Output;

use serde_json::Value;

use crate::support::{frameproof, hand, text};

/// Runs the binary in a folder of its own.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), arguments);
    (output.status.code(), text_of(&output))
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// The cases that a run of a protocol would have.
fn listed(protocol: &str, arguments: &[&str]) -> Vec<String> {
    let (code, shown) = run(&[&["run", protocol, "--list"], arguments].concat());
    assert_eq!(code, Some(0), "{shown}");
    let ids = shown.lines().filter_map(|line| line.split_whitespace().find(|word| word.contains('/')));
    ids.map(str::to_owned).collect()
}

/// What passes on the wire in a case of minicodex that passes.
fn trace_of(case: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["run", "minicodex", case, "--trace", "t.ndjson"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    fs::read_to_string(folder.path().join("t.ndjson")).expect("a trace")
}

/// The case finds nothing on a server that is wrong only after a denial; behind a denial it does.
#[test]
fn a_fault_that_strikes_after_a_denial_is_found_behind_one() {
    let server = ["run", "minicodex", "--fault", "skips-running@after-denial", "--case"];
    let (code, shown) = run(&[&server[..], &["streaming/text-turn"]].concat());
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = run(&[&server[..], &["streaming/text-turn@denial"]].concat());
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL MC-LIFE-2"), "{shown}");
    // The step stands in the case's own file, in spite of the steps before it.
    assert!(shown.contains("at scenarios/minicodex/streaming.yaml:"), "{shown}");
    assert!(shown.contains("frameproof explain minicodex streaming/text-turn shows it"), "{shown}");
    assert!(shown.contains("--case 'streaming/text-turn@denial'"), "{shown}");
}

/// A step of the preamble is shown where it stands.
#[test]
fn what_fails_before_the_case_is_shown_in_the_preamble() {
    let (code, shown) =
        run(&["run", "minicodex", "streaming/text-turn@denial", "--fault", "executes-denied"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("scenarios/minicodex/preambles.yaml:"), "{shown}");
}

#[test]
fn every_shipped_suite_passes_behind_its_preambles() {
    // All of them take minutes: here the cases with three first letters.
    for name in ["agentloop", "codelab", "codex", "codey", "minicodex", "tinyvex"] {
        let (code, shown) = run(&["run", name, "*/{a,n,t}*@*", "--strict"]);
        assert_eq!(code, Some(0), "{name}: {shown}");
    }
}

#[test]
fn globs_select_cases_with_and_without_preambles() {
    let listed = |arguments: &[&str]| listed("minicodex", arguments);
    assert_eq!(listed(&["streaming/text-turn"]), ["streaming/text-turn"]);
    assert_eq!(listed(&["streaming/text-turn@abort"]), ["streaming/text-turn@abort"]);
    let both = listed(&["streaming/text-turn", "--preambles"]);
    assert!(both.len() > 5 && both.contains(&"streaming/text-turn".to_owned()), "{both:?}");
    assert!(both.contains(&"streaming/text-turn@long-words".to_owned()), "{both:?}");
    // Preambles are run behind none; nor are cases that begin otherwise, or are repeated.
    assert!(listed(&["*@*"]).iter().all(|id| !id.starts_with("preambles/")));
    // With a number so many behind each case, and others with another seed; what a glob names is there besides.
    let drawn = |more: &[&str]| listed(&[&["streaming/*"], more].concat());
    let alone = drawn(&[]).len();
    let some = drawn(&["--preambles=2"]);
    assert_eq!(some.len(), 3 * alone);
    assert_eq!(some, drawn(&["--preambles=2", "--seed", "1"]));
    assert_ne!(some, drawn(&["--preambles=2", "--seed", "2"]));
    let named = listed(&["streaming/text-turn", "*/text-turn@{denial,abort,reconnect}", "--preambles=1"]);
    assert!([4, 5].contains(&named.len()), "{named:?}");
    let (code, shown) = run(&["run", "minicodex", "--preambles", "2"]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("--preambles=2"), "{shown}");
    let (code, shown) = run(&["run", "minicodex", "streaming/text-turn@denail"]);
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("no case of") && shown.contains("`streaming/text-turn@denail`"), "{shown}");
}

/// A server of one's own gets every case of a whole suite three times, alone and behind what sums up the other preambles; reference
/// servers, which are known to pass, once.
#[test]
fn few_preambles_sum_up_the_others() {
    let behind = |ids: &[String], name: &str| ids.iter().filter(|id| id.ends_with(name)).count();
    let own = ["--url", "ws://127.0.0.1:1/ws"];
    let with = |arguments: &[&'static str]| [&own[..], arguments].concat();
    for protocol in ["agentloop", "codelab", "codey", "minicodex", "tinyvex"] {
        let (alone, all) = (listed(protocol, &[]), listed(protocol, &["--preambles=few"]));
        assert_eq!(listed(protocol, &own), all);
        assert_eq!(listed(protocol, &with(&["--preambles=none"])), alone);
        assert_eq!(listed(protocol, &with(&["preambles/history"])), ["preambles/history"]);
        let (history, variety) = (behind(&all, "@history"), behind(&all, "@variety"));
        assert_eq!(all.len(), alone.len() + history + variety, "{protocol}");
        assert!(
            4 * history.min(variety) > 3 * alone.len(),
            "{protocol}: {history} and {variety} of {}",
            alone.len()
        );
    }
    // A case that is not run behind a preamble is not run behind one that contains it.
    let all = listed("codey", &["--preambles=few"]);
    let has = |id: &str| all.iter().any(|listed| listed == id);
    assert!(has("tools/denied-each-time@history") && !has("tools/denied-each-time@variety"), "{all:?}");
}

/// One more run of a case finds what is only wrong after a denial, a failure or a refusal, with long texts, or beside another session.
#[test]
fn preambles_that_sum_up_others_find_what_those_find() {
    for (protocol, fault, case, preamble, id) in [
        ("minicodex", "skips-running@after-denial", "streaming/text-turn", "history", "MC-LIFE-1"),
        ("minicodex", "skips-running@third-turn", "streaming/text-turn", "history", "MC-LIFE-1"),
        ("minicodex", "ascii-only", "streaming/two-turns", "variety", "MC-TI-11"),
    ] {
        let (code, shown) = run(&["run", protocol, case, "--fault", fault]);
        assert_eq!(code, Some(0), "{shown}");
        let (code, shown) = run(&["run", protocol, &format!("{case}@{preamble}"), "--fault", fault]);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains(&format!("FAIL {id}")), "{shown}");
    }
}

/// An entry of a baseline about a case behind a preamble is known in a run that has no such case.
#[test]
fn a_baseline_may_be_about_cases_behind_preambles() {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = |case: &str| {
        format!(
            "known:\n  - case: \"{case}\"\n    match: MC-LIFE-2\n    message: m\n    count: 1\n    reason: r\n"
        )
    };
    let told = |case: &str| {
        fs::write(folder.path().join("known.yaml"), entry(case)).expect("written");
        let arguments = ["run", "minicodex", "handshake/*", "--baseline", "known.yaml"];
        text_of(&frameproof(folder.path(), &arguments))
    };
    assert!(!told("streaming/text-turn@history").contains("names no case"));
    assert!(told("streaming/text-turn@histroy").contains("names no case"));
    assert!(told("streaming/text-trun@history").contains("did you mean `streaming/text-turn@history`?"));
}

/// What fails in a preamble fails once, and not before each case behind it.
#[test]
fn nothing_is_run_behind_a_preamble_that_fails() {
    let behind = ["run", "minicodex", "streaming/*@denial", "--fault", "executes-denied"];
    let (code, shown) = run(&behind);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL streaming/text-turn@denial"), "{shown}");
    let (code, shown) = run(&[&behind[..], &["preambles/denial"]].concat());
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL preambles/denial") && shown.contains(", 1 failed, "), "{shown}");
    assert!(shown.contains("`preambles/denial` fails, and nothing is judged behind it"), "{shown}");
}

/// What a client sends in a case, as it is written, with the milliseconds since it was sent or received something before.
fn sent_in(protocol: &str, case: &str, more: &[&str]) -> Vec<(String, f64)> {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [&["run", protocol, case, "--trace", "t.ndjson"], more].concat();
    let output = frameproof(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let trace = fs::read_to_string(folder.path().join("t.ndjson")).expect("a trace");
    let mut before = 0.0;
    let mut sent = Vec::new();
    for line in trace.lines() {
        let event: Value = serde_json::from_str(line).expect("an event");
        let at = event["t_ms"].as_f64().expect("a time");
        if let (Some(text), "send") = (event["text"].as_str(), event["dir"].as_str().unwrap_or_default()) {
            sent.push((text.to_owned(), at - before));
        }
        before = at;
    }
    sent
}

/// Further members are sent where the server takes them, and not where it does not: there the case is run as it is.
#[test]
fn members_that_the_document_does_not_know_are_sent_where_the_server_takes_them() {
    let further = |more: &[&str]| {
        let sent = sent_in("codelab", "streaming/text-turn@variety", more);
        let messages: Vec<Value> =
            sent.iter().map(|(text, _)| serde_json::from_str(text).expect("JSON")).collect();
        let last = messages.last().expect("a message");
        assert_eq!(last["type"], "user_message");
        last.get("meta").cloned()
    };
    assert_eq!(further(&[]), Some(serde_json::json!({ "approved": true, "list": [1, null] })));
    assert_eq!(further(&["--style", "further-fields-refused"]), None);
}

/// A client waits before the messages of a case, and not before those of the preamble.
#[test]
fn clients_think_before_messages_of_the_case() {
    let waited = |case: &str| {
        let sent = sent_in("codey", case, &[]);
        sent.iter().filter(|(_, waited)| *waited >= 340.0).count()
    };
    assert_eq!(waited("ping/one"), 0);
    assert_eq!(waited("ping/one@history"), 1);
    assert_eq!(waited("preambles/history"), 0);
    // A case with a time of its own keeps that.
    let sent = sent_in("minicodex", "snapshot/reading-changes-nothing-during-a-run@history", &[]);
    let waited = sent.iter().find(|(text, _)| text.contains("\"q2\"")).map(|(_, waited)| *waited);
    assert!(waited.is_some_and(|waited| waited < 340.0), "{waited:?}");
}

/// The configuration says behind what whole suites are run, and the command line has the last word.
#[test]
fn the_configuration_has_a_default() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed = |configured: &str, arguments: &[&str]| {
        fs::write(folder.path().join("frameproof.toml"), format!("{configured}\n")).expect("written");
        let all = [&["run", "codey", "--list", "--url", "ws://127.0.0.1:1/"], arguments].concat();
        let output = frameproof(folder.path(), &all);
        (output.status.code(), text_of(&output))
    };
    let behind = |(code, shown): (Option<i32>, String)| {
        assert_eq!(code, Some(0), "{shown}");
        shown.lines().filter(|line| line.contains('@')).count()
    };
    assert_eq!(behind(listed("preambles = 'none'", &[])), 0);
    let few = behind(listed("", &[]));
    assert!(few > 100, "{few}");
    assert_eq!(behind(listed("preambles = 'none'", &["--preambles=few"])), few);
    assert_eq!(behind(listed("preambles = 'all'", &["streaming/*"])), 0);
    assert!(behind(listed("preambles = 'all'", &[])) > few);
    let (code, shown) = listed("preambles = 'many'", &[]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("a number from 1, `few`, or `none`") && shown.contains("frameproof.toml"),
        "{shown}"
    );
}

/// What is wrong with preambles is told with its place.
#[test]
fn mistakes_in_preambles_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = |name: &str, rest: &str| {
        format!(
            "family: f\ncases:\n  - name: p\n    title: p\n    preamble: true\n    turns: {{ preamble: [{{ say: [x] }}] }}\n    \
             steps: [{{ open: alice }}, {{ settle: alice }}]\n  - name: {name}\n    title: t\n{rest}\n"
        )
    };
    let loads = |text: &str| {
        fs::write(folder.path().join("f.yaml"), text).expect("written");
        let arguments = ["run", "minicodex", "--scenario", "f.yaml", "--preambles"];
        let output = frameproof(folder.path(), &arguments);
        (output.status.code(), text_of(&output))
    };
    let steps = "    steps: [{ open: alice }, { settle: alice }]";
    let (code, shown) = loads(&case("c", steps));
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("3 cases, 3 passed"), "{shown}");
    let wrong = [
        (
            format!("    preamble: true\n    turn: [{{ say: [x] }}]\n{steps}"),
            "a preamble has no `turn`",
            "f.yaml:11",
        ),
        (format!("    preamble: true\n    repeat: 3\n{steps}"), "a preamble has no `repeat`", "f.yaml:11"),
        (
            "    preamble: true\n    steps: [{ settle: alice }]".to_owned(),
            "a preamble begins with `open`",
            "f.yaml:10",
        ),
        (format!("    not-behind: [pp]\n{steps}"), "unknown preamble `pp`", "f.yaml:10"),
        (format!("    contains: [p]\n{steps}"), "only a preamble has `contains`", "f.yaml:10"),
        (format!("    thoughts: [p]\n{steps}"), "only a preamble has `thoughts`", "f.yaml:10"),
        (format!("    preamble: true\n    contains: [pp]\n{steps}"), "unknown preamble `pp`", "f.yaml:11"),
        (format!("    words: {{ text: x, times: 0 }}\n{steps}"), "between 1 and 10,000", "f.yaml:10"),
        (format!("    linger: 90s\n{steps}"), "`linger` is at most 60s", "f.yaml:10"),
        (format!("    think-time: 11s\n{steps}"), "`think-time` is at most 10s", "f.yaml:10"),
        (
            format!("    further: {{ members: {{}}, at: [''] }}\n{steps}"),
            "without it no message has further members",
            "f.yaml:10",
        ),
        (
            format!(
                "    further: {{ members: {{ a: 1 }}, at: [''], when: {{ equal: ['{{{{b}}}}', 1] }} }}\n{steps}"
            ),
            "undefined variable `b`",
            "f.yaml:10",
        ),
        (
            format!("    pseudolocale: {{ alphabet: long, fields: [text] }}\n{steps}"),
            "a field is a JSON Pointer",
            "f.yaml:10",
        ),
        (
            format!("    turns: {{ preamble: [{{ say: [y] }}] }}\n{steps}"),
            "`preamble` means one thing in f/c",
            "",
        ),
    ];
    for (rest, message, place) in wrong {
        let (code, shown) = loads(&case("c", &rest));
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains(message) && shown.contains(place), "{message}: {shown}");
    }
    // A suite without one.
    let none = format!("family: f\ncases:\n  - name: c\n    title: t\n{steps}\n");
    let (code, shown) = loads(&none);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("there is no preamble"), "{shown}");
}

/// A case that begins in another way begins behind what another client has done: here the session has had a run that was aborted.
#[test]
fn a_case_that_opens_otherwise_is_run_behind_a_client_that_has_left() {
    let case = "resume/delta@abort";
    let trace = trace_of(case);
    let at = |what: &str| trace.find(what).unwrap_or_else(|| panic!("no {what} in {trace}"));
    assert!(at(r#"\"type\":\"abort\""#) < at(r#""how":"dropped""#), "{trace}");
    assert_eq!(trace.matches("\"kind\":\"open\"").count(), 6, "{trace}");
    // What fails in the case is shown in the case's own file.
    let (code, shown) = run(&["run", "minicodex", case, "--fault", "replay-changes-text"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("at scenarios/minicodex/resume.yaml:"), "{shown}");
}

/// The words are said before the cue, and the scripted model still finds it.
#[test]
fn a_long_text_is_said_before_every_cue() {
    let trace = trace_of("streaming/text-turn@long-words");
    let long = trace.lines().filter(|line| line.contains(&"Grüße, 你好 😀. ".repeat(200))).count();
    assert!(long >= 2, "{long} lines with the words");
}

/// Faults that the case alone does not show: its texts are short, with letters at both ends, each message waits for the answer to the one before, and it ends
/// before anything can be late.
#[test]
fn texts_of_other_kinds_and_late_looks_find_what_a_case_alone_does_not() {
    for (protocol, fault, case, preamble, id) in [
        ("minicodex", "long-text-is-cut", "streaming/text-turn", "long-texts", "MC-TI-11"),
        ("minicodex", "ascii-only", "streaming/two-turns", "non-ascii-texts", "MC-TI-11"),
        ("codelab", "trims-tokens", "messages/unknown-role", "blank-texts", "CL-AM-7"),
        ("minicodex", "skips-running@pipelined", "streaming/text-turn", "pipelined", "MC-LIFE-2"),
        ("agentloop", "item-long-after", "input/previous-response", "late-looks", "AL-SEQ-6"),
    ] {
        let (code, shown) = run(&["run", protocol, case, "--fault", fault]);
        assert_eq!(code, Some(0), "{shown}");
        // A busy machine may read apart what was sent at once.
        let behind = format!("{case}@{preamble}");
        let mut tries = (0..10).map(|_| run(&["run", protocol, &behind, "--fault", fault]));
        let (code, shown) = tries.find(|(code, _)| *code != Some(0)).expect("the fault is found");
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains(&format!("FAIL {id}")), "{shown}");
    }
}

/// The server is shown other texts, and what is judged, told and recorded has those of the case.
#[test]
fn texts_are_told_as_the_case_has_them() {
    let trace = trace_of("streaming/text-turn@non-ascii-texts");
    assert!(trace.contains("Please say something. [[cue:"), "{trace}");
    let received: Vec<&str> = trace.lines().filter(|line| line.contains("assistant_text")).collect();
    assert!(
        !received.is_empty()
            && received.iter().all(|line| line.contains(['H', 'l', 'o']) && !line.contains(['Ħ', 'ł', '𝘰'])),
        "{received:?}"
    );
}

/// The frames of the first message that clients send, as a server reads them: their first bytes, and the payloads together.
fn first_message(listener: &TcpListener) -> (Vec<u8>, String) {
    loop {
        let (mut stream, _) = listener.accept().expect("a client");
        hand::upgrade(&mut stream);
        let (mut firsts, mut payload) = (Vec::new(), Vec::new());
        while firsts.last().is_none_or(|first| first & 0x80 == 0) {
            let mut head = [0; 6];
            stream.read_exact(&mut head).expect("a header");
            let length = usize::from(head[1] & 0x7f);
            assert!(length < 126, "a short frame");
            let mut masked = vec![0; length];
            stream.read_exact(&mut masked).expect("a payload");
            payload.extend(masked.iter().zip(head[2..].iter().cycle()).map(|(byte, mask)| byte ^ mask));
            firsts.push(head[0]);
        }
        // The first client only looks whether there is a server, and closes.
        if firsts != [0x88] {
            return (firsts, String::from_utf8(payload).expect("UTF-8"));
        }
    }
}

#[test]
fn messages_are_written_in_other_bytes_that_mean_the_same() {
    let first = |case: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
        // Nobody is there for the next connection: it is refused.
        let server = std::thread::spawn(move || first_message(&listener));
        let (code, shown) = run(&["run", "minicodex", case, "--url", &url]);
        assert!(code != Some(0) && code != Some(2), "{shown}");
        server.join().expect("a message")
    };
    let (frames, text) = first("streaming/text-turn");
    let (more_frames, other) = first("streaming/text-turn@other-spelling");
    assert_eq!((&frames[..], &more_frames[..]), (&[0x81][..], &[1, 0, 0x80][..]));
    assert!(other.contains(r#""\u0074ype" : "\u0068ello""#), "{other}");
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!(read(&text)["type"], read(&other)["type"]);
    // So is what the server is shown in place of it.
    let (more_frames, other) = first("streaming/text-turn@variety");
    assert!(more_frames.len() == 3 && other.contains(r#""\u0074ype" : "\u0068ello""#), "{other}");
    let trace = trace_of("streaming/text-turn@other-spelling");
    assert!(trace.contains(r"u0074ype"), "{trace}");
}
