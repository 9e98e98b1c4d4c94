//! Text of files and servers in every output of every command: none of it is obeyed by a terminal, a reader or a runner of CI.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::process::measured;
use super::server::{Behaviour, said};
use crate::watch::Watched;

/// As YAML and JSON spell what must not be shown as it is.
pub(super) const HOSTILE: &str = r"\u001b[2J\u001b]0;owned\u0007\u202e\u061c\u00ad\u2066\u009b\u0090q\u3164\ufdd0 ##[error]x ##vso[task.complete]y ::error::z \ufffe";

/// What must not stand in any output.
pub(super) fn treacherous(text: &str) -> Option<String> {
    let bad = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(
                c,
                '\u{202e}' | '\u{61c}' | '\u{ad}' | '\u{2066}' | '\u{fffe}' | '\u{3164}' | '\u{fdd0}'
            )
    };
    if let Some(found) = text.chars().find(|c| bad(*c)) {
        return Some(format!("{found:?}"));
    }
    if text.contains("##[") || text.to_lowercase().contains("##vso[") {
        return Some("a command of a runner's".to_owned());
    }
    // Those that are meant as such have a place or a title.
    let meant = |line: &str| line.starts_with("::error file=") || line.starts_with("::error title=");
    let begins = |line: &str| line.trim_start().starts_with("::error") && !meant(line);
    text.lines().any(begins).then(|| "a workflow command".to_owned())
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

/// The commands that there are.
fn commands() -> Vec<String> {
    let help = measured(Path::new("."), &["--help"]).out;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// All files below a folder, but for copies of the binary's own reference data.
pub(super) fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { BTreeSet::from([path]) }).collect()
}

#[test]
fn no_output_of_any_command_is_obeyed() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = format!("{{\"type\":\"{HOSTILE}\",\"text\":\"::error::{HOSTILE}\"}}");
    let url = Behaviour::answers(said(&answer)).serve();
    project(folder.path(), &url);
    let odd: String = serde_json::from_str(&format!("\"{HOSTILE}\"")).expect("a text");
    let trace = serde_json::json!({ "t_ms": 1.0, "client": "a\u{1b}[2J", "dir": "recv", "text": answer });
    fs::write(folder.path().join("t.ndjson"), format!("{trace}\n")).expect("written");
    let other =
        serde_json::json!({ "t_ms": 1.0, "client": odd, "dir": "recv", "text": format!("{odd}{answer}") });
    fs::write(folder.path().join("t2.ndjson"), format!("{other}\n")).expect("written");
    fs::write(folder.path().join("bad.yaml"), format!("family: \"{HOSTILE}\"\ncases: \"{HOSTILE}\"\n"))
        .expect("written");
    let excuse = format!("known:\n  - {{ case: \"x{HOSTILE}\", reason: \"{HOSTILE}\" }}\n");
    fs::write(folder.path().join("excuses.yaml"), excuse).expect("written");
    let broken = format!("asyncapi: 3.0.0\n\"{HOSTILE}\": 1\n");
    fs::write(folder.path().join("overlay.yaml"), broken).expect("written");
    let given = files(folder.path());
    let own = ["--protocol", "mychat"];
    let scenarios = ["--protocol", "mychat", "--scenario", "scenarios"];
    let lines: Vec<Vec<&str>> = vec![
        vec!["run", "--junit", "j.xml", "--json", "e.jsonl", "--trace", "frames.ndjson", "-v"],
        vec!["run", "--junit", "j.xml", "-vv", "--color", "never"],
        [
            &["run", "--html", "p.html", "--html-frames", "all", "--summary", "s.md"][..],
            &["--annotations", "github"],
        ]
        .concat(),
        vec!["run", "--annotations", "gitlab", "--report-dir", "reports", "--baseline-write", "known.yaml"],
        vec!["run", "--baseline", "known.yaml"],
        vec!["run", "--baseline", "excuses.yaml", "--junit", "j2.xml"],
        vec!["run", "--overlay", "overlay.yaml"],
        vec!["run", "--shard", "1/1", "--json", "part.jsonl"],
        vec!["run", "--list"],
        vec!["run", &odd],
        vec!["run", "--url", &odd],
        vec!["run", "--target", &odd],
        vec!["merge", "part.jsonl", "--junit", "m.xml", "--html", "m.html", "--summary", "m.md"],
        vec!["diff", "e.jsonl", "part.jsonl"],
        [&["diff", "t.ndjson", "t2.ndjson"][..], &own].concat(),
        vec!["list"],
        [&["list", "--requirements"][..], &own].concat(),
        [&["list", "--markdown"][..], &own].concat(),
        [&["list"][..], &scenarios].concat(),
        vec!["list", "--scenario", "bad.yaml"],
        [&["lint"][..], &scenarios].concat(),
        vec!["lint", "--scenario", "bad.yaml"],
        [&["explain", "CH-3"][..], &own].concat(),
        [&["explain", "CH-1"][..], &own].concat(),
        [&["explain", "first/a-turn"][..], &scenarios].concat(),
        vec!["explain", &odd],
        [&["check", "t.ndjson", "--junit", "c.xml", "--html", "c.html"][..], &own].concat(),
        [&["check", "t2.ndjson", "--json", "c.jsonl"][..], &own].concat(),
        vec!["report", "e.jsonl", "--summary", "r.md", "--html", "r.html", "--annotations", "github"],
        vec!["report", "e.jsonl", "-vv"],
        vec!["report", &odd],
        vec!["doctor"],
        vec!["fuzz", "--time", "2s", "--junit", "f.xml", "--html", "f.html", "--json", "f.jsonl"],
        vec!["explore", "--walks", "2", "--save", "saved", "--junit", "x.xml", "--html", "x.html"],
        vec!["selftest", &odd],
        vec!["init", "another", "--url", &odd],
        vec!["schema", &odd],
        vec!["completions", &odd],
        vec!["man", &odd],
        vec!["serve", &odd],
        vec!["model", "--listen", &odd],
        vec!["watch", "--time", &odd],
        vec!["help", &odd],
    ];
    let used: BTreeSet<&str> = lines.iter().map(|line| line[0]).collect();
    for command in commands() {
        assert!(used.contains(&*command), "{command} is fed nothing");
    }
    let mut shown = 0;
    for arguments in lines {
        let ran = measured(folder.path(), &arguments);
        assert!(ran.code.is_some(), "{arguments:?}");
        assert!(!ran.err.contains("unexpected argument '--"), "{arguments:?} is fed nothing: {}", ran.err);
        shown += usize::from(ran.shown().contains("\\u{202e}"));
        for (stream, text) in [("out", &ran.out), ("err", &ran.err)] {
            assert_eq!(treacherous(text), None, "{arguments:?}, {stream}: {text:?}");
        }
    }
    assert!(shown >= 20, "the hostile text is in {shown} outputs only");
    // All that was written, for whomever: nobody knows who opens it.
    let written: Vec<PathBuf> = files(folder.path()).difference(&given).cloned().collect();
    let mut told = Vec::new();
    for path in &written {
        let name = path.strip_prefix(folder.path()).expect("below it").display().to_string();
        let text = fs::read_to_string(path).expect("text");
        if let Some(found) = treacherous(&text) {
            let at = text.find('\u{3164}').or_else(|| text.find("##[")).unwrap_or(0);
            let near: String =
                text.chars().skip(text[..at].chars().count().saturating_sub(80)).take(200).collect();
            told.push(format!("{name}: {found}: {near:?}"));
        }
        assert_eq!(treacherous(&name), None, "{name:?}");
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
    for suffix in ["xml", "html", "md", "jsonl", "ndjson", "yaml"] {
        let spelt = |path: &&PathBuf| {
            path.extension().is_some_and(|end| end == suffix)
                && fs::read_to_string(path).is_ok_and(|text| text.contains("202e"))
        };
        assert!(written.iter().any(|path| spelt(&path)), "no {suffix} has the hostile text: {written:?}");
    }
}

#[test]
fn a_watch_is_not_obeyed() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = format!("{{\"type\":\"{HOSTILE}\",\"text\":\"::error::{HOSTILE}\"}}");
    project(folder.path(), &Behaviour::answers(said(&answer)).serve());
    let mut watched = Watched::start(folder.path(), &[]);
    let first = watched.until("waiting for a change");
    assert_eq!(treacherous(&first), None, "{first:?}");
    assert!(first.contains("\\u{202e}"), "{first}");
    // A broken file, and the name of what has changed.
    fs::write(folder.path().join("scenarios/a\u{3164}\u{1b}[2J.yaml"), format!("cases: \"{HOSTILE}\"\n"))
        .expect("written");
    let then = watched.until("waiting for a change");
    assert_eq!(treacherous(&then), None, "{then:?}");
    assert!(then.contains("\\u{3164}"), "{then}");
}
