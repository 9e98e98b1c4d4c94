//! frameproof is ended at any moment, in any way: nothing that it has started or laid down outlives it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::target::{BINARY, SERVED, folder, left_over};

/// How often it is ended. `.ci/survivors` does it 200 times.
const TIMES: u64 = 12;
/// How long what is left may take to go.
const PATIENCE: Duration = Duration::from_secs(20);

fn scratch_folders(temporary: &Path) -> Vec<String> {
    let found = std::fs::read_dir(temporary).expect("a folder").flatten();
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn nothing_outlives_frameproof_however_it_ends() {
    let times = std::env::var("FRAMEPROOF_KILLS").ok().and_then(|times| times.parse().ok()).unwrap_or(TIMES);
    let mark = format!("mark-{}-survivors", std::process::id());
    // The shell and its child ignore SIGTERM, and hold no pipe of frameproof's.
    let config = SERVED.replace("MARKED", &mark).replace(
        "command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']",
        "stop-timeout = '200ms'\ncommand = ['sh', '-c', \"trap '' TERM; sleep 600 <&- >&- 2>&- & BIN serve minicodex --listen \
         127.0.0.1:{{port}}; sleep 600\"]",
    );
    let folder = folder(&config);
    let temporary = tempfile::tempdir().expect("a folder");
    let (mut launched, mut laid_down) = (0, 0);
    for time in 0..times {
        let signal = ["-KILL", "-HUP", "-KILL", "-QUIT", "-KILL", "-TERM"][time as usize % 6];
        let mut child = Command::new(BINARY)
            .args(["run", "--target", "mine", "--repeat", "1000", "--junit", "j.xml"])
            .current_dir(folder.path())
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        // From before the launch to the midst of the cases, at another moment each time.
        std::thread::sleep(Duration::from_millis(20 + time * 389 % 900));
        launched += usize::from(!left_over(&mark).is_empty());
        laid_down += usize::from(!scratch_folders(temporary.path()).is_empty());
        Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        child.wait().expect("it ends");
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until
            && !(left_over(&mark).is_empty() && scratch_folders(temporary.path()).is_empty())
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(left_over(&mark), [], "{signal}, time {time}");
        assert_eq!(scratch_folders(temporary.path()), [""; 0], "{signal}, time {time}");
    }
    assert!(launched > 0 && laid_down > 0, "it was never ended in the midst of anything");
}
