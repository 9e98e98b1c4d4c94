//! Frames in which very much is wrong: what is found of them is bounded, whatever there is.

use std::time::Duration;

use super::process::{Measured, measured};
use super::server::{Behaviour, Then, said};

/// Memory that any run may take, in MiB, whatever a server sends.
const MEMORY: u64 = 300;
/// Time that a frame may take. The tests run unoptimised code on busy machines; released code takes a twentieth.
const TIME: Duration = Duration::from_secs(80);

/// Frames that cost much more than their length where every mistake in them is told, each with the text that some output shows.
fn frames() -> Vec<(&'static str, String)> {
    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{\"type\":\"heartbeat\",\"interval_ms\":15000,{}}}", keys.join(","))
    };
    let items = |item: &str, count: usize| {
        let items = vec![item; count].join(",");
        format!("{{\"type\":\"snapshot\",\"run_state\":{{}},\"events\":[{items}],\"messages\":[{items}]}}")
    };
    let long = "k".repeat(1 << 20);
    vec![
        ("4,000 keys too many", keys(4000)),
        ("400,000 keys too many", keys(400_000)),
        ("16,000 empty items", items("{}", 8000)),
        ("2,000,000 empty items", items("{}", 1_000_000)),
        ("7,000,000 numbers", items("0", 3_500_000)),
        ("1,000,000 small objects", items("{\"a\":0}", 500_000)),
        (
            "items below a key of 1 MiB",
            format!("{{\"type\":\"heartbeat\",\"{long}\":[{}]}}", vec!["{}"; 4000].join(",")),
        ),
        ("a key of 15 MiB, twice", {
            let key = "k".repeat(7 << 20);
            format!("{{\"{key}\":1,\"{key}\":2}}")
        }),
        ("a type of 15 MiB", format!("{{\"type\":\"{}\"}}", "t".repeat(15 << 20))),
        // Not refused for what it costs, which is about the most that is taken.
        (
            "140,000 messages in one",
            items(
                &format!("{{\"type\":\"assistant.delta\",\"text\":\"{}\",\"id\":17}}", "x".repeat(60)),
                70_000,
            ),
        ),
    ]
}

fn within(name: &str, measured: &Measured) {
    let Measured { code, took, .. } = measured;
    eprintln!("{name}: {code:?} {took:?} {:?} MiB, {} bytes shown", measured.peak, measured.out.len());
    assert_eq!(*code, Some(1), "{name}: {}", measured.err);
    assert!(measured.peak() <= MEMORY, "{name}: {:?} MiB", measured.peak);
    assert!(*took <= TIME, "{name}: {took:?}");
    assert!(measured.out.len() <= 2 << 20, "{name}: {} bytes are shown", measured.out.len());
}

#[test]
fn a_recorded_frame_costs_what_its_length_lets_expect() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in frames() {
        let line = serde_json::json!({ "t_ms": 1.0, "client": "a", "dir": "recv", "text": text });
        std::fs::write(folder.path().join("trace.ndjson"), format!("{line}\n")).expect("written");
        let checked = measured(folder.path(), &["check", "trace.ndjson", "--protocol", "minicodex"]);
        within(name, &checked);
        if name.contains("keys too many") {
            // All of them are in one frame.
            assert!(checked.out.contains(" times\n"), "{name}: {}", checked.out);
        }
    }
}

#[test]
fn a_run_costs_no_more_than_its_bound_whatever_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in frames() {
        let url = Behaviour::answers(said(&text)).serve();
        let ran = measured(
            folder.path(),
            &[
                "run",
                "minicodex",
                "--url",
                &url,
                "-j",
                "8",
                "--junit",
                "j.xml",
                "--json",
                "e.json",
                "--fail-fast=4",
            ],
        );
        within(name, &ran);
        for report in ["j.xml", "e.json"] {
            let length = std::fs::metadata(folder.path().join(report)).expect("written").len();
            assert!(length <= 8 << 20, "{name}: {report} has {length} bytes");
        }
    }
}

/// A valid message of so many bytes and a few more: most of it is white space.
fn padded(bytes: usize) -> Vec<u8> {
    said(&format!("{{\"type\":\"heartbeat\",\"interval_ms\":15000{}}}", " ".repeat(bytes)))
}

/// Each message is valid: what is kept of them is bounded in all, however many cases run at the same time.
#[test]
fn a_flood_costs_no_more_than_its_bound_at_any_number_of_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, each) in [
        ("heartbeats", padded(0).repeat(99)),
        ("heartbeats of 15 KiB", padded(15 << 10)),
        ("heartbeats of 900 KiB", padded(900 << 10)),
    ] {
        let url = Behaviour { first: Vec::new(), each, then: Then::Floods }.serve();
        for (jobs, trace) in [("8", &[][..]), ("64", &[]), ("8", &["--trace", "t.ndjson"])] {
            let arguments =
                ["run", "minicodex", "--url", &url, "-j", jobs, "--junit", "j.xml", "--json", "e.json"];
            let ran = measured(folder.path(), &[&arguments[..], trace, &["--fail-fast=20"]].concat());
            within(&format!("{name}, {jobs} at a time {trace:?}"), &ran);
        }
    }
}

/// What comes behind the frame with which a case has too much is not kept, whole or otherwise.
#[test]
fn a_trace_ends_where_a_case_has_too_much() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = Behaviour { first: Vec::new(), each: padded(900 << 10), then: Then::Floods }.serve();
    let arguments =
        ["run", "minicodex", "handshake/hello-*", "--url", &url, "-j", "1", "--trace", "t.ndjson"];
    let ran = measured(folder.path(), &[&arguments[..], &["--fail-fast"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.shown());
    assert!(ran.out.contains("than is kept of it: 48 MiB"), "{}", ran.shown());
    let kept = std::fs::metadata(folder.path().join("t.ndjson")).expect("written").len();
    assert!((44 << 20..49 << 20).contains(&kept), "{kept} bytes");
}

/// A server that is right is not failed because many long cases run together: what was given up for want of room is run again.
#[test]
fn long_cases_of_a_right_server_pass_at_any_number_of_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scenario = "family: long\nabout: Long turns.\ncases:\n".to_owned();
    for number in 0..6 {
        scenario += &format!(
            "  - name: turn-{number}\n    title: a long turn\n    covers: [MC-ORD-1]\n    turn: [{{ flood: {{ chunks: 4, chars: 900000 }} }}]\n    \
             steps:\n      - open: alice\n      - send: {{ type: send, text: \"{{{{cue}}}}\" }}\n      - expect: turn-end\n"
        );
    }
    std::fs::write(folder.path().join("long.yaml"), scenario).expect("written");
    let command = ["run", "minicodex", "--scenario", "long.yaml", "--reference", "-j", "6"];
    let command = [&command[..], &["--timeout-scale", "20", "--trace", "t.ndjson"]].concat();
    let ran = measured(folder.path(), &command);
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    assert!(ran.out.contains("given up, to be made again"), "{}", ran.shown());
}
