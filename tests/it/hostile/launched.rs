//! What a launched server writes to its own output: shown where it helps, and neither obeyed nor with a secret.

use std::fs;
use std::path::Path;

use super::process::measured;
use super::secrets::{shown, spelt, traces};
use super::text::{HOSTILE, files, treacherous};
use crate::support::target::BINARY;

const SECRET: &str = "s3cr3t/t0ken+with=all";
/// What is kept of a line, in bytes.
const LINE: usize = 4096;

/// Servers that all write what is in `said.txt`: again and again, before they have begun, and as their last words.
const CONFIG: &str = "
[target.talks]
protocol = 'minicodex'
url = 'ws://127.0.0.1:{{port}}/ws'
command = ['sh', 'talks.sh', '{{port}}']
ports = { port = 0 }
cwd = '.'
header = ['Authorization: Bearer SECRET']

[target.never-begins]
protocol = 'minicodex'
url = 'ws://127.0.0.1:{{port}}/ws'
command = ['sh', '-c', 'cat said.txt; cat said.txt >&2; exit 3']
ports = { port = 0 }
cwd = '.'
header = ['Authorization: Bearer SECRET']

[target.dies]
protocol = 'minicodex'
url = 'ws://127.0.0.1:{{port}}/ws'
command = ['sh', 'dies.sh', '{{port}}']
ports = { port = 0 }
cwd = '.'
header = ['Authorization: Bearer SECRET']
";
/// Writes for as long as it serves, at a pace that leaves the other tests their processor.
const TALKS: &str = "(while :; do cat said.txt; cat said.txt >&2; sleep 0.02; done) &\n\
                     exec BIN serve minicodex --listen 127.0.0.1:$1\n";
/// What it is silent about while it talks: long enough that something is written meanwhile on a busy machine, too.
const SILENT: &str = "family: f\ncases:\n  - name: waits\n    title: It waits\n    steps:\n      - open: alice\n      \
                      - expect: error\n        within: 3s\n";
const DIES: &str = "BIN serve minicodex --listen 127.0.0.1:$1 --fault fuzz-dies-of-a-list-of-types\n\
                    cat said.txt; cat said.txt >&2; exit 3\n";
/// What it dies of.
const DEADLY: &str = "family: f\ncases:\n  - name: dies\n    title: It dies\n    steps:\n      - open: alice\n      \
                      - send: { type: [hello] }\n      - expect: error\n";

/// A folder with these servers, and the files that were put there.
fn project() -> (tempfile::TempDir, Vec<std::path::PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile: String = serde_json::from_str(&format!("\"{HOSTILE}\"")).expect("a text");
    let mut said = spelt(SECRET);
    // The console shows the last lines.
    said.extend([
        hostile.clone(),
        format!("::error::{hostile}"),
        format!("##vso[task.complete]{hostile}"),
        format!("panicked at {hostile}{SECRET}"),
        format!("Error: {hostile}{SECRET}"),
        // It is cut in the midst of the secret.
        format!("{}{SECRET}", "x".repeat(LINE - SECRET.len() / 2)),
    ]);
    let write = |name: &str, text: &str| {
        let text = text.replace("BIN", BINARY).replace("SECRET", SECRET);
        fs::write(folder.path().join(name), text).expect("written");
    };
    write("said.txt", &(said.join("\n") + "\n"));
    write("frameproof.toml", CONFIG);
    write("talks.sh", TALKS);
    write("dies.sh", DIES);
    write("deadly.yaml", DEADLY);
    write("silent.yaml", SILENT);
    let given = files(folder.path()).into_iter().collect();
    (folder, given)
}

/// Whether a text shows the hostile one, spelt out.
fn is_told(text: &str) -> bool {
    text.contains("\\u{202e}") || text.contains("\\u202e")
}

fn is_harmless(name: &str, text: &str, traces: &[String]) {
    assert_eq!(treacherous(text), None, "{name}: {text:?}");
    assert_eq!(shown(text, traces), None, "{name}");
}

#[test]
fn the_output_of_a_launched_server_is_shown_and_neither_obeyed_nor_has_it_secrets() {
    let traces = traces(SECRET);
    // Of what is cut, half of it is left.
    let traces: Vec<String> = traces.into_iter().chain([SECRET[..SECRET.len() / 2].to_owned()]).collect();
    let reports = ["--junit", "j.xml", "--json", "e.jsonl", "--html", "p.html", "--summary", "s.md"];
    let told_in = ["j.xml", "e.jsonl", "p.html"];
    let (folder, given) = project();
    let run = |arguments: &[&str], code: i32, told: &[&str]| {
        let ran = measured(folder.path(), arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.shown());
        is_harmless(&format!("{arguments:?}, out"), &ran.out, &traces);
        is_harmless(&format!("{arguments:?}, err"), &ran.err, &traces);
        assert!(is_told(&ran.shown()) || !told.contains(&"console"), "{arguments:?}: {}", ran.shown());
        let mut written = 0;
        for path in files(folder.path()).into_iter().filter(|path| !given.contains(path)) {
            let text = fs::read_to_string(&path).expect("text");
            let name = path.strip_prefix(folder.path()).unwrap_or(Path::new("")).display().to_string();
            is_harmless(&format!("{arguments:?}, {name}"), &text, &traces);
            if told.contains(&&*name) {
                assert!(is_told(&text), "{arguments:?}: {name} does not have it: {text}");
                assert!(text.contains("[redacted]"), "{arguments:?}: {name}: {text}");
                written += 1;
            }
            if name != "e.jsonl" {
                fs::remove_file(path).expect("removed");
            }
        }
        assert_eq!(written, told.iter().filter(|name| **name != "console").count(), "{arguments:?}");
    };
    let told: Vec<&str> = told_in.iter().copied().chain(["console"]).collect();
    let silent = ["run", "--target", "talks", "--scenario", "silent.yaml", "-v"];
    run(&[&silent[..], &reports].concat(), 1, &told);
    run(&["report", "e.jsonl", "-vv", "--junit", "j.xml", "--html", "p.html"], 0, &["j.xml", "p.html"]);
    let deadly = ["run", "--target", "dies", "--scenario", "deadly.yaml", "--annotations", "github"];
    run(&[&deadly[..], &reports].concat(), 3, &told);
    let fuzz =
        ["fuzz", "--target", "dies", "--iterations", "24", "--findings", "found", "--corpus", "corpus"];
    let ran = measured(folder.path(), &[&fuzz[..], &reports].concat());
    is_harmless("fuzz", &ran.shown(), &traces);
    run(&["run", "--target", "never-begins"], 3, &["console"]);
    run(&["doctor", "--target", "never-begins"], 1, &["console"]);
    run(&["doctor", "--target", "talks"], 0, &[]);
    run(&["fuzz", "--target", "never-begins"], 3, &["console"]);
    run(&["explore", "--target", "never-begins"], 3, &["console"]);
}
