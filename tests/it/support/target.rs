//! Targets in a folder of the test's own, and what they leave behind.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use super::{frameproof, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_frameproof");

/// A reference server as somebody's program, on a port that frameproof chooses.
pub const SERVED: &str = "
[target.mine]
protocol = 'minicodex'
url = 'ws://127.0.0.1:{{port}}/ws'
command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']
ports = { port = 0 }
env = { MARK = 'MARKED' }
";

/// A folder with this frameproof.toml; `BIN` stands for the binary.
pub fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("frameproof.toml"), config.replace("BIN", BINARY)).expect("written");
    folder
}

/// Exit code, standard output, standard error.
pub fn run(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = frameproof(folder.path(), arguments);
    (status.code(), text(&stdout), text(&stderr))
}

/// Processes whose environment or command line bears this mark: their ids and command lines.
pub fn left_over(mark: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("Linux").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if pid == std::process::id() {
            continue;
        }
        let read = |file: &str| text(&fs::read(entry.path().join(file)).unwrap_or_default());
        if read("environ").contains(mark) || read("cmdline").contains(mark) {
            found.push((pid, read("cmdline")));
        }
    }
    found
}

/// What a run's JSON lines (`out.jsonl`) tell: failing cases, and those of them that point to no other. A case that ran twice counts
/// once, as in the other reports.
pub fn told(folder: &tempfile::TempDir) -> (usize, usize) {
    let report = fs::read_to_string(folder.path().join("out.jsonl")).expect("the report");
    let lines = report.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let bad = lines.filter(|line| line["verdict"] == "failed" || line["verdict"] == "error");
    let cases: BTreeMap<String, bool> =
        bad.map(|case| (case["case"].to_string(), case["same_as"].is_null())).collect();
    (cases.len(), cases.values().filter(|first| **first).count())
}
