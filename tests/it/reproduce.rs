//! What a report says to run again runs as printed, in a shell.

use std::fs;
use std::path::Path;

use crate::own_protocol::{Flaw, configure, project, run, serve};
use crate::support::text;

/// Each reproduce line of a failing run, as printed, in a shell: it fails again by its case. Secrets are given by the environment.
fn reproduces(folder: &Path, arguments: &[&str], secrets: &[(&str, &str)]) {
    let (code, shown) = run(folder, &[&["run"], arguments].concat());
    assert_eq!(code, Some(1), "{shown}");
    let lines: Vec<&str> =
        shown.lines().filter_map(|line| line.trim_start().strip_prefix("reproduce: ")).collect();
    fail_again(folder, &lines, secrets, &shown);
}

/// Each of these lines, in a shell, fails again.
fn fail_again(folder: &Path, lines: &[&str], secrets: &[(&str, &str)], shown: &str) {
    assert!(!lines.is_empty(), "{shown}");
    let binary = Path::new(env!("CARGO_BIN_EXE_frameproof")).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    for line in lines {
        assert!(secrets.iter().all(|(_, secret)| !line.contains(secret)), "{line}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", line]).current_dir(folder).env("PATH", &path).env("NO_COLOR", "1");
        let output = shell.envs(secrets.iter().copied()).output().expect("a shell");
        let again = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}\n{again}");
    }
}

#[test]
fn what_reproduces_a_failure_runs_as_printed() {
    let broken = project(Flaw::NumbersStand);
    configure(&broken, "header = ['X-Key: open sesame']\nreading = 'strict'\ntimeout-scale = 2.0");
    reproduces(broken.path(), &[], &[]);
    reproduces(broken.path(), &["--reading", "default", "--strict", "--seed", "18446744073709551615"], &[]);
    // From elsewhere, where another configuration lies.
    let elsewhere = tempfile::tempdir().expect("a folder");
    fs::write(elsewhere.path().join("frameproof.toml"), "url = 'ws://127.0.0.1:1/'\n").expect("written");
    let config = broken.path().join("frameproof.toml");
    let config = config.to_str().expect("a path");
    reproduces(
        elsewhere.path(),
        &["--config", config, "--header", "X-Key: hush-hush"],
        &[("X_KEY", "hush-hush")],
    );
    let url = format!("ws://{}/ws?token=hush-hush", serve(Flaw::NumbersStand));
    reproduces(elsewhere.path(), &["--config", config, "--url", &url], &[("FRAMEPROOF_URL", &url)]);
    // Of the reference server, with a configuration that says another.
    reproduces(elsewhere.path(), &["minicodex", "--fault", "unknown-status", "abort/*"], &[]);
}
