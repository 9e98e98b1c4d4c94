//! The loop of somebody who mends a server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::target::left_over;

const BINARY: &str = env!("CARGO_BIN_EXE_frameproof");

/// The server under test: one with a fault, or without.
fn server(fault: &str) -> String {
    format!("#!/bin/sh\nexec {BINARY} serve minicodex {fault} --listen 127.0.0.1:$1\n")
}

/// A watch that ends with the test.
pub struct Watched {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watched {
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::marked(folder, arguments, "")
    }

    /// With a mark by which everything that it starts can be found.
    fn marked(folder: &Path, arguments: &[&str], mark: &str) -> Self {
        let mut child = Command::new(BINARY)
            .arg("watch")
            .args(arguments)
            .env("MARK", mark)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("frameproof");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, lines }
    }

    /// What is shown up to a line that has this, and with it.
    pub fn until(&mut self, part: &str) -> String {
        let mut shown = String::new();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("text") > 0, "no line has {part:?}:\n{shown}");
            shown += &line;
            if line.contains(part) {
                return shown;
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let target = "[target.mine]\nprotocol = \"minicodex\"\nurl = \"ws://127.0.0.1:{{port}}/ws\"\nports = { port = 0 }\n\
                  command = [\"sh\", \"server.sh\", \"{{port}}\"]\ncwd = \".\"\n";
    fs::write(folder.path().join("frameproof.toml"), target).expect("written");
    fs::write(folder.path().join("server.sh"), server("--fault executes-denied")).expect("written");
    folder
}

#[test]
fn a_change_runs_what_failed_and_then_everything() {
    let folder = folder();
    let mut watched = Watched::start(folder.path(), &["--target", "mine"]);
    let first = watched.until("waiting for a change");
    assert!(first.starts_with("watching ") && first.contains("MC-APR-8"), "{first}");
    let (_, verdict) = first.split_once("not conformant: ").expect(&first);
    let every = verdict.split(',').next().expect("so many cases");
    assert!(every.len() >= "100 cases".len(), "{every}: {first}");
    // What is made is no change; what is written is.
    fs::create_dir(folder.path().join("target")).expect("made");
    fs::write(folder.path().join("target/made"), "").expect("written");
    fs::write(folder.path().join("server.sh"), server("")).expect("written");
    let second = watched.until("waiting for a change");
    assert!(second.contains("server.sh changed; ") && !second.contains("target/made"), "{second}");
    let (failed, all) = second.split_once("What failed passes now; all cases:").expect(&second);
    assert!(failed.contains("\nconformant: ") && !failed.contains(every), "{second}");
    assert!(all.contains(&format!("\nconformant: {every}")), "{second}");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&watched.child),
        rustix::process::Signal::TERM,
    )
    .expect("a signal");
    assert_eq!(watched.child.wait().expect("its end").code(), Some(130));
}

#[test]
fn a_server_that_writes_beside_itself_is_run_to_the_end() {
    let folder = folder();
    let writes = format!("echo $$ > state.txt\n{}", server("").trim_start_matches("#!/bin/sh\n"));
    fs::write(folder.path().join("server.sh"), writes).expect("written");
    let mut watched = Watched::start(folder.path(), &["--target", "mine", "handshake/*"]);
    let shown = watched.until("waiting for a change");
    assert!(shown.contains("state.txt changes in each run"), "{shown}");
    assert!(shown.contains("conformant: "), "{shown}");
}

/// The run that it has begun ends with it, and the server that the run has launched.
#[test]
#[cfg(target_os = "linux")]
fn nothing_outlives_a_watch_that_is_killed() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let folder = folder();
    // It is never ready: the run waits for it.
    fs::write(folder.path().join("server.sh"), "trap '' TERM\ntouch began\nsleep 600\n").expect("written");
    let mark = format!("mark-{}-watch", std::process::id());
    let mut watched = Watched::marked(folder.path(), &["--target", "mine"], &mark);
    let wait = |done: &dyn Fn() -> bool| {
        let until = Instant::now() + PATIENCE;
        while !done() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        done()
    };
    assert!(wait(&|| folder.path().join("began").exists()), "no server was launched");
    assert!(left_over(&mark).len() >= 3, "{:?}", left_over(&mark));
    watched.child.kill().expect("killed");
    watched.child.wait().expect("ended");
    assert!(wait(&|| left_over(&mark).is_empty()), "{:?}", left_over(&mark));
}

#[test]
fn mistakes_are_told_at_once() {
    let folder = folder();
    for (arguments, told) in [
        (&["--target", "mine", "--path", "nowhere"][..], "nowhere"),
        (&["--target", "mine", "--list"], "--list does not go with watch"),
        (&["--target", "mine", "--ignore", "[", "x"], "--ignore"),
    ] {
        let output = Command::new(BINARY).arg("watch").args(arguments).current_dir(folder.path()).output();
        let output = output.expect("frameproof");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(told), "{arguments:?}: {errors}");
    }
}
