//! The binary, with what it takes: memory at its most, and time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::text;

/// Longest time that any of these runs may take before it is ended. The bounds of the tests are far below.
const GIVEN_UP: Duration = Duration::from_secs(180);

/// What a run of the binary came to.
#[derive(Debug)]
pub struct Measured {
    pub code: Option<i32>,
    /// Most memory that it had at a time, in MiB. None: this system does not tell.
    pub peak: Option<u64>,
    pub took: Duration,
    pub out: String,
    pub err: String,
}

impl Measured {
    /// Most memory, where it is known.
    pub fn peak(&self) -> u64 {
        self.peak.unwrap_or(0)
    }

    /// Both streams.
    pub fn shown(&self) -> String {
        format!("{}\n{}", self.out, self.err)
    }
}

/// Runs the binary in a folder and watches it.
pub fn measured(folder: &Path, arguments: &[&str]) -> Measured {
    measured_within(folder, Command::new(env!("CARGO_BIN_EXE_frameproof")).args(arguments))
}

/// Runs a command that becomes the binary in a folder, and watches it.
pub fn measured_within(folder: &Path, command: &mut Command) -> Measured {
    let began = Instant::now();
    let streams =
        ["out", "err"].map(|name| tempfile::Builder::new().prefix(name).tempfile().expect("a file"));
    let [out, err] = streams.each_ref().map(|file| Stdio::from(file.reopen().expect("a file")));
    let mut child = command
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .expect("the binary runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    let code = loop {
        peak = high_water(&status).or(peak);
        if let Some(ended) = child.try_wait().expect("it can be waited for") {
            break ended.code();
        }
        if began.elapsed() > GIVEN_UP {
            child.kill().expect("it can be ended");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let [out, err] = streams.map(|file| text(&std::fs::read(file.path()).expect("written")));
    Measured { code, peak, took: began.elapsed(), out, err }
}

fn high_water(status: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes >> 10)
}
