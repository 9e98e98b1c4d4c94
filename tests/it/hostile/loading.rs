//! A target's program that the system does not get loaded: its file is held under a lease, as a network's file system may hold it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::signals::{end_of, let_through, send};
use crate::support::target::{BINARY, SERVED, folder, left_over};
use crate::support::text;

/// Takes the lease (F_SETLEASE of F_WRLCK), and tells when somebody waits for it. The system takes it away after 45 s.
const HOLDER: &str = "$| = 1; open(F, '<', $ARGV[0]) or die; $SIG{IO} = sub { print \"asked\\n\" }; \
                      fcntl(F, 1024, 1) or die $!; print \"held\\n\"; sleep 600 while 1;";

struct Lease {
    holder: Child,
    told: BufReader<ChildStdout>,
}

impl Lease {
    fn of(file: &Path) -> Self {
        let holder = Command::new("perl").args(["-e", HOLDER]).arg(file).stdout(Stdio::piped()).spawn();
        let mut holder = holder.expect("perl runs");
        let mut lease = Self { told: BufReader::new(holder.stdout.take().expect("piped")), holder };
        lease.wait_for("held\n");
        lease
    }

    fn wait_for(&mut self, wanted: &str) {
        let mut line = String::new();
        self.told.read_line(&mut line).expect("text");
        assert_eq!(line, wanted);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A folder in which `slow` is launched, which would do nothing for ten minutes.
fn with_slow_program(start_timeout: &str) -> tempfile::TempDir {
    let folder = folder(&SERVED.replace(
        "command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']",
        &format!("command = ['./slow', '600']\nstart-timeout = '{start_timeout}'"),
    ));
    let copied = Command::new("cp").arg("/bin/sleep").arg(folder.path().join("slow")).status();
    assert!(copied.expect("cp runs").success());
    folder
}

fn started(folder: &Path, mark: &str) -> Child {
    Command::new(BINARY)
        .args(["run", "--target", "mine", "--junit", "j.xml"])
        .current_dir(folder)
        .env("MARK_OF_ALL", mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

/// What waits for its program bears the mark of who started it.
fn assert_nothing_is_left(mark: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    while !left_over(mark).is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(left_over(mark), []);
}

#[test]
fn a_program_that_is_not_loaded_is_given_up_at_the_start_deadline() {
    let mark = format!("mark-{}-not-loaded", std::process::id());
    let folder = with_slow_program("300ms");
    let mut lease = Lease::of(&folder.path().join("slow"));
    let mut child = started(folder.path(), &mark);
    lease.wait_for("asked\n");
    end_of(&mut child, "a program that is not loaded");
    let output = child.wait_with_output().expect("it has ended");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("the system has not loaded it within 300ms"), "{errors}");
    assert_nothing_is_left(&mark);
}

#[test]
fn a_signal_ends_a_run_whose_target_is_not_loaded() {
    let_through();
    let mark = format!("mark-{}-loading", std::process::id());
    let folder = with_slow_program("600s");
    for signal in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        let mut lease = Lease::of(&folder.path().join("slow"));
        let mut child = started(folder.path(), &mark);
        lease.wait_for("asked\n");
        send(signal, child.id());
        // Long before the lease is taken away.
        assert_eq!(end_of(&mut child, signal).code(), Some(130), "{signal}");
        let output = child.wait_with_output().expect("it has ended");
        assert!(text(&output.stderr).contains("interrupted before the first case"), "{signal}");
        assert!(folder.path().join("j.xml").is_file(), "{signal}: no report");
        assert_nothing_is_left(&mark);
        std::fs::remove_file(folder.path().join("j.xml")).expect("removed");
    }
}
