//! frameproof is ended at any moment, in any way: nothing that it has started or laid down outlives it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::signals;
use crate::support::target::{BINARY, SERVED, folder, left_over};

/// How often it is ended. `.ci/survivors` does it 200 times.
const TIMES: u64 = 12;
/// What is ended, each with every signal.
const COMMANDS: [&[&str]; 3] =
    [&["run", "--repeat", "1000"], &["fuzz", "--time", "60s"], &["explore", "--time", "60s"]];
/// How long what is left may take to go.
const PATIENCE: Duration = Duration::from_secs(60);

fn scratch_folders(temporary: &Path) -> Vec<String> {
    let found = std::fs::read_dir(temporary).expect("a folder").flatten();
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Files that were on their way to their places.
fn half_written(folder: &Path) -> Vec<String> {
    scratch_folders(folder).into_iter().filter(|name| name.starts_with(".frameproof-")).collect()
}

/// Runs frameproof in a folder, with another one for temporary files.
fn start(folder: &Path, temporary: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder).env("TMPDIR", temporary);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs")
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_left_of_a_reference_server_or_of_a_trace() {
    let times = times();
    let (folder, temporary) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut written = 0;
    for time in 0..times {
        let mut child = start(
            folder.path(),
            temporary.path(),
            &["run", "tinyvex", "--repeat", "1000", "--junit", "j.xml", "--trace", "t.ndjson"],
        );
        std::thread::sleep(Duration::from_millis(20 + time * 389 % 900));
        // What has no name yet is found by who has it open.
        let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).expect("Linux").flatten();
        let open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        written += usize::from(open.filter(|to| to.starts_with(temporary.path())).count() > 0);
        child.kill().expect("killed");
        signals::end_of(&mut child, &format!("SIGKILL, time {time}"));
        assert_eq!(scratch_folders(temporary.path()), [""; 0], "time {time}");
        // The folder of the reports that a run of a reference server has anyway.
        let left: Vec<String> =
            scratch_folders(folder.path()).into_iter().filter(|name| name != "reports").collect();
        assert_eq!(left, [""; 0], "time {time}");
    }
    assert!(written > 0, "it was never ended in the midst of anything");
}

fn times() -> u64 {
    std::env::var("FRAMEPROOF_KILLS").ok().and_then(|times| times.parse().ok()).unwrap_or(TIMES)
}

#[test]
fn nothing_outlives_frameproof_however_it_ends() {
    signals::let_through();
    let times = times();
    let mark = format!("mark-{}-survivors", std::process::id());
    // The shell and its child ignore SIGTERM, and hold no pipe of frameproof's. On Linux another child has a session of its own.
    let stray = if cfg!(target_os = "linux") { "setsid sleep 601 <&- >&- 2>&- &" } else { "" };
    let config = SERVED.replace("MARKED", &mark).replace(
        "command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']",
        &format!(
            "stop-timeout = '200ms'\ncommand = ['sh', '-c', \"trap '' TERM; {stray} sleep 600 <&- >&- 2>&- & BIN serve minicodex \
             --listen 127.0.0.1:{{{{port}}}}; sleep 600\"]"
        ),
    );
    let folder = folder(&config);
    let temporary = tempfile::tempdir().expect("a folder");
    let (mut launched, mut laid_down) = (0, 0);
    for time in 0..times {
        let signal = ["-KILL", "-HUP", "-KILL", "-QUIT", "-KILL", "-TERM"][time as usize % 6];
        let command = &COMMANDS[(time + time / 6) as usize % COMMANDS.len()];
        let mut child = start(
            folder.path(),
            temporary.path(),
            &[command, &["--target", "mine", "--junit", "j.xml"][..]].concat(),
        );
        // From before the launch to the midst of the cases, at another moment each time.
        std::thread::sleep(Duration::from_millis(20 + time * 389 % 900));
        let (is_launched, is_laid_down) =
            (!left_over(&mark).is_empty(), !scratch_folders(temporary.path()).is_empty());
        launched += usize::from(is_launched);
        laid_down += usize::from(is_laid_down);
        signals::send(signal, child.id());
        let status = signals::end_of(&mut child, &format!("{signal}, time {time}"));
        let report = folder.path().join("j.xml");
        // Before anything is laid down it may not have begun to listen to signals.
        if signal != "-KILL" && is_laid_down {
            assert_eq!(status.code(), Some(130), "{command:?}: {signal}, time {time}");
            assert!(report.is_file(), "{command:?}: {signal}, time {time}: no report");
        }
        let _ = std::fs::remove_file(&report);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until
            // In this order: once the folder is gone, all that is left has been killed, and has to go.
            && !(scratch_folders(temporary.path()).is_empty() && left_over(&mark).is_empty())
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(left_over(&mark), [], "{signal}, time {time}");
        assert_eq!(scratch_folders(temporary.path()), [""; 0], "{signal}, time {time}");
        assert_eq!(half_written(folder.path()), [""; 0], "{signal}, time {time}");
    }
    assert!(launched > 0 && laid_down > 0, "it was never ended in the midst of anything");
}
