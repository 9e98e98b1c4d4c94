//! What a report says to run again runs as printed, in a shell.

use std::fs;
use std::path::Path;

use crate::own_protocol::{Flaw, configure, project, run, serve};
use crate::support::text;
use serde_json::Value;

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
    let style = ["--style", "each-alone", "--style", "ids-from-zero"];
    reproduces(
        elsewhere.path(),
        &[&["minicodex", "--fault", "unknown-status", "abort/*"], &style[..]].concat(),
        &[],
    );
    // Of a server that frameproof launches, and that is said to offer more than it announces.
    let launched = crate::support::fuzz::folder("minicodex", ", '--fault', 'unknown-status'", "");
    reproduces(launched.path(), &["--target", "mine", "abort/*"], &[]);
    let launched = crate::support::fuzz::folder("tinyvex", ", '--fault', 'ids-as-text'", "");
    reproduces(launched.path(), &["--target", "mine", "--offer", "threads,counters", "connect/*"], &[]);
}

#[test]
fn whatever_the_options_are_what_reproduces_a_failure_runs_as_printed() {
    let broken = project(Flaw::NumbersStand);
    let folder = broken.path();
    fs::write(folder.join("it's mine.yaml"), "info: { title: It's mine }\n").expect("written");
    fs::create_dir(folder.join("more cases")).expect("a folder");
    let case = "family: mine\ncases:\n  - name: odd\n    title: t\n    steps:\n      - open: a\n      - send: { type: say, text: x }\n      - expect: said\n        with: { text: y }\n        within: 100ms\n        covers: [CH-3]\n";
    fs::write(folder.join("more cases/odd.yaml"), case).expect("written");
    let known = "known:\n  - { case: nothing/here, match: CH-1, message: m, count: 1, reason: r }\n";
    fs::write(folder.join("known.yaml"), known).expect("written");
    let overlay = ["--overlay", "it's mine.yaml"];
    for options in [
        &["--timeout-scale", "1.5", "--quiet-period", "70ms"][..],
        &["--baseline", "known.yaml"],
        &["--header", "X-Plain: $HOME `id` 'quoted'"],
        &["--reading", "lenient", "--jobs", "2", "--retries", "1"],
        &["--scenario", "more cases"],
        &["--scenario", "more cases", "--timeout-scale", "0.5", "--seed", "7"],
    ] {
        reproduces(folder, &[&overlay[..], options].concat(), &[("X_PLAIN", "$HOME `id` 'quoted'")]);
    }
    // The same of another folder, by the configuration's path.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let config = folder.join("frameproof.toml");
    let config = config.to_str().expect("a path");
    reproduces(
        elsewhere.path(),
        &["--config", config, "--timeout-scale", "2", "--quiet-period", "60ms"],
        &[],
    );
    // A dialect of a shipped protocol.
    let url = format!("ws://{}/ws", serve(Flaw::None));
    reproduces(
        elsewhere.path(),
        &["tinyvex", "--url", &url, "--dialect", "own", "connect/*", "--fail-fast=1"],
        &[],
    );
}

#[test]
fn what_reproduces_a_finding_runs_as_printed() {
    let broken = project(Flaw::NumbersStand);
    let folder = broken.path();
    let save = ["--json", "out.jsonl", "--timeout-scale", "0.5", "--quiet-period", "60ms"];
    let fuzz = ["fuzz", "--iterations", "16", "--max-findings", "1", "--findings", "what's found"];
    let explore = ["explore", "--walks", "2", "--max-findings", "1", "--save", "what's seen"];
    for command in [&fuzz[..], &explore[..]] {
        let (code, shown) = run(folder, &[command, &save[..]].concat());
        assert_eq!(code, Some(1), "{shown}");
        let events = fs::read_to_string(folder.join("out.jsonl")).expect("events");
        let cases = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let lines: Vec<String> = cases
            .filter(|event| event["event"] == "case-finished" && event["verdict"] == "failed")
            .filter_map(|event| event["reproduce"].as_str().map(str::to_owned))
            .collect();
        fail_again(folder, &lines.iter().map(String::as_str).collect::<Vec<_>>(), &[], &shown);
    }
}
