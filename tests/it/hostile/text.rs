//! Text of files and servers in every output of every command: none of it is obeyed by a terminal, a reader or a runner of CI.

use std::fs;
use std::path::Path;

use super::process::measured;
use super::server::{Behaviour, said};

/// As YAML and JSON spell what must not be shown as it is.
const HOSTILE: &str = r"\u001b[2J\u001b]0;owned\u0007\u202e\u061c\u00ad\u2066\u009b ##[error]x ##vso[task.complete]y ::error::z \ufffe";

/// What must not stand in any output.
fn treacherous(text: &str) -> Option<String> {
    let bad = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202e}' | '\u{61c}' | '\u{ad}' | '\u{2066}' | '\u{fffe}')
    };
    if let Some(found) = text.chars().find(|c| bad(*c)) {
        return Some(format!("{found:?}"));
    }
    if text.contains("##[") || text.to_lowercase().contains("##vso[") {
        return Some("a command of a runner's".to_owned());
    }
    text.lines().any(|line| line.trim_start().starts_with("::error")).then(|| "a workflow command".to_owned())
}

/// A project whose every text is hostile.
fn project(folder: &Path, url: &str) {
    let made = measured(folder, &["init", ".", "--url", url]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let quoted = |text: &str| format!("\"{text} {HOSTILE}\"");
    let change = |file: &str, pairs: &[(&str, &str)]| {
        let path = folder.join(file);
        let mut text = fs::read_to_string(&path).expect("the file");
        for (from, to) in pairs {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, &to.replace("HOSTILE", &quoted("said")));
        }
        fs::write(path, text).expect("written");
    };
    change("mychat/asyncapi.yaml", &[("title: My chat", "title: HOSTILE")]);
    change(
        "mychat/requirements.yaml",
        &[
            ("text: A said message has a text.", "text: HOSTILE"),
            ("source: Opening", "source: HOSTILE"),
            ("source: Events", "source: HOSTILE"),
            ("area: handshake", "area: HOSTILE"),
        ],
    );
    change(
        "scenarios/first.yaml",
        &[("title: The server repeats the text, and the turn ends", "title: HOSTILE")],
    );
}

#[test]
fn no_output_of_any_command_is_obeyed() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = format!("{{\"type\":\"{HOSTILE}\",\"text\":\"::error::{HOSTILE}\"}}");
    let url = Behaviour::answers(said(&answer)).serve();
    project(folder.path(), &url);
    let trace = serde_json::json!({ "t_ms": 1.0, "client": "a\u{1b}[2J", "dir": "recv", "text": answer });
    fs::write(folder.path().join("t.ndjson"), format!("{trace}\n")).expect("written");
    fs::write(folder.path().join("bad.yaml"), format!("family: \"{HOSTILE}\"\ncases: \"{HOSTILE}\"\n"))
        .expect("written");
    let own = ["--protocol", "mychat"];
    let scenarios = ["--protocol", "mychat", "--scenario", "scenarios"];
    let commands: Vec<Vec<&str>> = vec![
        vec!["run", "--junit", "j.xml", "--json", "e.jsonl", "-v"],
        vec!["run", "--junit", "j.xml", "-vv", "--color", "never"],
        vec!["run", "--list"],
        vec!["list"],
        [&["list", "--requirements"][..], &own].concat(),
        [&["list", "--markdown"][..], &own].concat(),
        [&["list"][..], &scenarios].concat(),
        [&["explain", "CH-3"][..], &own].concat(),
        [&["explain", "CH-1"][..], &own].concat(),
        [&["explain", "first/a-turn"][..], &scenarios].concat(),
        [&["check", "t.ndjson"][..], &own].concat(),
        vec!["report", "e.jsonl"],
        vec!["report", "e.jsonl", "-vv"],
        vec!["doctor"],
        vec!["fuzz", "--time", "2s"],
        vec!["list", "--scenario", "bad.yaml"],
        vec!["run", "--scenario", "bad.yaml"],
        vec!["run", "nothing-\u{1b}[2J-like-this"],
        vec!["explain", "\u{1b}[2J"],
    ];
    let mut shown = 0;
    for arguments in commands {
        let ran = measured(folder.path(), &arguments);
        assert!(ran.code.is_some(), "{arguments:?}");
        shown += usize::from(ran.shown().contains("\\u{202e}"));
        for (stream, text) in [("out", &ran.out), ("err", &ran.err)] {
            assert_eq!(treacherous(text), None, "{arguments:?}, {stream}: {text:?}");
        }
    }
    assert!(shown >= 10, "the hostile text is in {shown} outputs only");
    let junit = fs::read_to_string(folder.path().join("j.xml")).expect("written");
    assert_eq!(treacherous(&junit), None, "{junit:?}");
    assert!(junit.contains("\\u{202e}"), "{junit}");
}
