//! Servers that spell a protocol otherwise than its document: found out, or said, and then tested like any other.

use crate::support::{Served, frameproof, text};

const DIALECT: &str = "snake-case";

fn served(more: &[&str]) -> Served {
    Served::start(&[&["tinyvex"], more].concat())
}

#[test]
fn the_dialect_is_found_out_and_the_suite_passes_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = served(&["--dialect", DIALECT]);
    let trace = folder.path().join("trace.ndjson");
    let output = frameproof(
        folder.path(),
        &["run", "tinyvex", "--url", &server.url, "--strict", "--trace", "trace.ndjson"],
    );
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("dialect snake-case, default reading"), "{told}");

    // The trace has what was on the wire, and is judged in the dialect alone.
    let wire = std::fs::read_to_string(&trace).expect("a trace");
    for spelt in [r#"\"protocol_version\":\"0.7.0\""#, r#"\"mcp_servers\":[]"#, r#"\"call_id\":"#] {
        assert!(wire.contains(spelt), "{spelt}");
    }
    let check = |file: &str, more: &[&str]| {
        let output = frameproof(
            folder.path(),
            &[&["check", file, "--protocol", "tinyvex", "--show", "500"], more].concat(),
        );
        (output.status.code(), text(&output.stdout))
    };
    let (code, told) = check("trace.ndjson", &["--dialect", DIALECT]);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = check("trace.ndjson", &[]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("TV-ACP-1") && told.contains("TV-ACP-5"), "{told}");

    // One connection has one spelling: sessionId from a server that says session_id elsewhere is none of the session's id.
    let mixed: Vec<String> = wire
        .lines()
        .map(|line| match line.contains(r#"\"result\""#) && line.contains(r#"\"current_mode_id\""#) {
            true => line.replace(r#"\"session_id\""#, r#"\"sessionId\""#),
            false => line.to_owned(),
        })
        .collect();
    assert_ne!(mixed.join("\n"), wire.trim_end());
    std::fs::write(folder.path().join("mixed.ndjson"), mixed.join("\n")).expect("written");
    let (code, told) = check("mixed.ndjson", &["--dialect", DIALECT]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("TV-ACP-5") && !told.contains("TV-ACP-1 "), "{told}");
}

#[test]
fn another_dialect_than_is_spoken_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, own) = (served(&["--dialect", DIALECT]), served(&[]));
    for (url, arguments, broken) in [
        (&port.url, &["--dialect", "own"][..], true),
        // The strict reading knows the published spelling alone, unless told.
        (&port.url, &["--reading", "strict"], true),
        (&port.url, &["--reading", "strict", "--dialect", DIALECT], false),
        (&port.url, &["--reading", "lenient"], false),
        (&own.url, &["--dialect", DIALECT], true),
        (&own.url, &["--dialect", "auto"], false),
        (&own.url, &[], false),
    ] {
        let run = ["run", "tinyvex", "--url", url, "connect/*"];
        let output = frameproof(folder.path(), &[&run[..], arguments].concat());
        let told = text(&output.stdout);
        assert_eq!(output.status.code(), Some(i32::from(broken)), "{arguments:?}: {told}");
        assert_eq!(told.contains("TV-ACP-1 "), broken, "{arguments:?}: {told}");
    }
}

#[test]
fn faults_are_found_in_a_dialect_too() {
    let folder = tempfile::tempdir().expect("a folder");
    for (fault, id) in [
        ("tool-status-done", "TV-ACP-18"),
        ("session-ids-repeat", "TV-ACP-6"),
        ("content-as-text", "TV-ACP-16"),
    ] {
        let server = served(&["--dialect", DIALECT, "--fault", fault]);
        let output = frameproof(folder.path(), &["run", "tinyvex", "--url", &server.url, "sessions/*"]);
        let told = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{fault}: {told}");
        let broken =
            told.split_whitespace().filter(|word| word.starts_with("TV-") && !word.starts_with("TV-AMB"));
        let others: Vec<&str> = broken.filter(|word| *word != id).collect();
        assert!(told.contains(id) && others.is_empty(), "{fault}: {others:?} {told}");
    }
}

#[test]
fn a_dialect_may_be_an_overlays_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = served(&[]);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    // What no message of theirs has is spelt differently: each server speaks it.
    let spelling = "{ message: initialize, ours: /params/nobody, theirs: /params/none }";
    write(
        "overlay.yaml",
        &format!(
            "x-frameproof: {{ dialects: {{ mine: {{ about: a, refused: {{ error: {{}} }}, spelling: [{spelling}] }} }} }}\n"
        ),
    );
    let target = "[target.mine]\nprotocol = \"tinyvex\"\noverlay = [\"overlay.yaml\"]\ndialect = \"mine\"\n";
    write("frameproof.toml", &format!("{target}url = \"{}\"\n", server.url));
    for command in [&["doctor", "--target", "mine"][..], &["run", "--target", "mine", "sessions/new"]] {
        let output = frameproof(folder.path(), command);
        let told = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(command[0] == "doctor" || told.contains("dialect mine"), "{told}");
    }
}

#[test]
fn doctor_and_configuration_know_dialects() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = served(&["--dialect", DIALECT]);
    let output = frameproof(folder.path(), &["doctor", "tinyvex", "--url", &server.url]);
    let told = text(&output.stdout);
    assert!(told.contains("a turn begins and ends as the protocol says"), "{told}{}", text(&output.stderr));

    let config = |dialect: &str| {
        let text = format!(
            "[target.port]\nprotocol = \"tinyvex\"\nurl = \"{}\"\ndialect = \"{dialect}\"\n",
            server.url
        );
        std::fs::write(folder.path().join("frameproof.toml"), text).expect("written");
        frameproof(folder.path(), &["run", "--target", "port", "sessions/new"])
    };
    for (dialect, code) in [(DIALECT, 0), ("auto", 0), ("own", 1)] {
        let output = config(dialect);
        assert_eq!(output.status.code(), Some(code), "{dialect}: {}", text(&output.stdout));
    }
    let output = config("snake_case");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `snake-case`?"), "{}", text(&output.stderr));
    let output = frameproof(folder.path(), &["serve", "codey", "--dialect", DIALECT]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("speaks no dialect `snake-case`"), "{}", text(&output.stderr));
}
