//! What the end-to-end tests share: the real binary, and reference servers as processes of their own.

pub mod fuzz;
pub mod hand;
pub mod model;
pub mod own;
pub mod sdks;
pub mod signals;
pub mod target;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use proptest::test_runner::RngSeed;

/// The binary under test, in a folder of its own so that it finds no configuration.
pub fn frameproof(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frameproof"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary runs")
}

/// Standard output, or standard error, as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A reference server in a process of its own; ended when dropped.
pub struct Served {
    child: Child,
    /// Where it listens.
    pub url: String,
}

impl Served {
    /// Starts `frameproof serve` with these arguments and waits for its URL.
    pub fn start(arguments: &[&str]) -> Self {
        Self::command("serve", arguments)
    }

    /// Starts a subcommand that prints where it listens.
    pub fn command(subcommand: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_frameproof"))
            .arg(subcommand)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut url = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut url).expect("the server prints its URL");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same inputs in every run, so that a run fails for what was changed; `PROPTEST_RNG_SEED` takes others.
pub fn the_same_each_time() -> proptest::test_runner::Config {
    let config = proptest::test_runner::Config::default();
    let rng_seed = match config.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        chosen => chosen,
    };
    proptest::test_runner::Config { rng_seed, ..config }
}
