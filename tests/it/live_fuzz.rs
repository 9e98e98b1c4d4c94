//! `frameproof fuzz` end to end: against the reference servers, in process and as processes of their own.

use std::path::Path;

use crate::support::{Served, frameproof, text};

fn fuzz(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, &[&["fuzz"], arguments].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn correct_servers_give_no_finding() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["agentloop", "codelab", "codex", "codey", "minicodex", "tinyvex"] {
        let (code, shown) =
            fuzz(folder.path(), &[name, "--iterations", "24", "--seed", "5", "--timeout-scale", "4"]);
        assert_eq!(code, Some(0), "{name}: {shown}");
        assert!(shown.contains("0 findings in 24 cases"), "{name}: {shown}");
        assert!(shown.contains("opened"), "the table of states: {shown}");
        assert!(!shown.contains('\r'), "no progress line in a pipe: {shown:?}");
    }
    assert!(!folder.path().join("reports").exists(), "nothing found, nothing written");
}

#[test]
fn a_fault_is_found_kept_run_and_seen_fixed() {
    let folder = tempfile::tempdir().expect("a folder");
    let fault = ["minicodex", "--fault", "fuzz-number-for-text"];
    let campaign = [
        &fault[..],
        &[
            "--reading",
            "lenient",
            "--time",
            "60s",
            "--max-findings",
            "1",
            "--junit",
            "j.xml",
            "--json",
            "j.jsonl",
        ],
    ]
    .concat();
    let (code, shown) = fuzz(folder.path(), &campaign);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL refused [MC-SND-3]"), "{shown}");
    let found: Vec<_> = std::fs::read_dir(folder.path().join("reports/fuzz-minicodex"))
        .expect("findings")
        .flatten()
        .collect();
    assert_eq!(found.len(), 1);
    let path = found[0].path();
    let scenario = std::fs::read_to_string(&path).expect("a scenario");
    assert_eq!(
        scenario.matches("raw:").count() + scenario.matches("send:").count(),
        1,
        "one step suffices: {scenario}"
    );

    assert!(scenario.contains("# Reading: lenient."), "{scenario}");
    assert!(scenario.contains("# Not judged: acknowledgements, "), "{scenario}");

    // JUnit and JSON lines name it.
    let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("JUnit");
    assert!(junit.contains("MC-SND-3") && roxmltree::Document::parse(&junit).is_ok(), "{junit}");
    let events = std::fs::read_to_string(folder.path().join("j.jsonl")).expect("JSON lines");
    assert!(events.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{events}");

    // It is a scenario that fails in the same way, and holds against the correct server.
    let file = path.display().to_string();
    let faulty = frameproof(
        folder.path(),
        &["run", "minicodex", "--fault", "fuzz-number-for-text", "--scenario", &file],
    );
    assert_eq!(faulty.status.code(), Some(1), "{}", text(&faulty.stdout));
    assert!(text(&faulty.stdout).contains("MC-SND-3"), "{}", text(&faulty.stdout));
    let correct = frameproof(folder.path(), &["run", "minicodex", "--scenario", &file]);
    assert_eq!(correct.status.code(), Some(0), "{}", text(&correct.stdout));

    // The replay says so, too.
    let again = [&fault[..], &["--replay", "reports/fuzz-minicodex"]].concat();
    let (code, shown) = fuzz(folder.path(), &again);
    assert_eq!((code, shown.starts_with("still fails")), (Some(1), true), "{shown}");
    let (code, shown) = fuzz(folder.path(), &["minicodex", "--replay", "reports/fuzz-minicodex"]);
    assert_eq!((code, shown.starts_with("fixed")), (Some(0), true), "{shown}");
}

#[test]
fn a_campaign_against_a_url_resumes_from_its_corpus() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(&["codey"]);
    let campaign =
        ["codey", "--url", &served.url, "--iterations", "8", "--corpus", "corpus", "--timeout-scale", "4"];
    let (code, shown) = fuzz(folder.path(), &campaign);
    assert_eq!(code, Some(0), "{shown}");
    let kept = std::fs::read_dir(folder.path().join("corpus")).expect("a corpus").count();
    assert!(kept > 0);
    // What cannot be read is named and skipped.
    std::fs::write(folder.path().join("corpus/bad\u{1b}.json"), "{oops").expect("written");
    let (code, shown) = fuzz(folder.path(), &campaign);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("warning: skipped corpus/bad\\u{1b}.json"), "{shown}");
}

/// A server that upgrades every connection and says nothing more.
fn mute() -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let key = head.lines().find_map(|line| {
                line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
            });
            let key = key.map(|(_, key)| key.trim().to_owned()).unwrap_or_default();
            let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes());
            open.push(stream);
        }
    });
    format!("ws://{address}/ws")
}

#[test]
fn a_mute_server_is_told_once_and_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = mute();
    let started = std::time::Instant::now();
    let (code, shown) = fuzz(folder.path(), &["minicodex", "--url", &url, "--time", "1s"]);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(shown.matches("note: ").count(), 1, "one note: {shown}");
    assert!(shown.contains("FAIL setup [MC-HS-1]") && shown.contains("1 finding in 0 cases"), "{shown}");
    // A second, ten of slack, and time to start and end on a busy machine.
    assert!(started.elapsed().as_secs() < 16, "{:?}", started.elapsed());
}

#[cfg(unix)]
#[test]
fn an_interrupted_campaign_keeps_what_it_has_found() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_frameproof"))
        .args(["fuzz", "tinyvex", "--fault", "fuzz-closed-door-behind-half-a-frame", "--time", "10m"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let told = lines.find(|line| line.contains("TV-ERR-9")).expect("a finding");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().is_ok_and(|done| done.success()));
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{told} {rest:?}");
    assert!(rest.iter().any(|line| line.ends_with("; interrupted")), "{rest:?}");
    // A fresh server each time: the hang-up is noticed before the next connection is asked for.
    let replay =
        ["tinyvex", "--fault", "fuzz-closed-door-behind-half-a-frame", "--replay", "reports/fuzz-tinyvex"];
    let (code, shown) = fuzz(folder.path(), &replay);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("still fails") && !shown.contains("flaky"), "{shown}");
}

#[test]
fn the_same_seed_does_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = |corpus: &str| {
        let arguments =
            ["minicodex", "--iterations", "16", "--seed", "77", "--corpus", corpus, "--timeout-scale", "4"];
        let (code, shown) = fuzz(folder.path(), &arguments);
        assert_eq!(code, Some(0), "{shown}");
        let totals = shown.lines().find(|line| line.contains("findings in")).unwrap_or_default().to_owned();
        totals.split(',').next().unwrap_or_default().to_owned()
    };
    assert_eq!(table("one"), table("two"));
}

#[test]
fn wrong_usage_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "x").expect("written");
    for (arguments, code, hint) in [
        (&["minicodx"][..], 2, "did you mean `minicodex`?"),
        (&["minicodex", "--fault", "fuzz-number-for-txt"], 2, "did you mean `fuzz-number-for-text`?"),
        (&["minicodex", "--iterations", "0"], 2, "invalid value"),
        (&["minicodex", "--corpus", "file/corpus", "--iterations", "1"], 2, "cannot be written"),
        (&["minicodex", "--findings", "file", "--iterations", "1"], 2, "is not a folder"),
        (&["minicodex", "--time", "soon"], 2, "write `90s`, `10m` or `2h`"),
        (&["minicodex", "--url", "ws://127.0.0.1:1/ws"], 3, "refused the connection"),
        (&["minicodex", "--replay", "nowhere"], 2, "cannot be read"),
        (&["minicodex", "--replay", "."], 4, "holds no findings"),
    ] {
        let (found, shown) = fuzz(folder.path(), arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {shown}");
        assert!(shown.contains(hint), "{arguments:?}: {shown}");
    }
}
