//! `init --like KIND`: what it writes works at once, by the commands that it prints.
//!
//! The servers need Python's `websockets` and npm's `ws`. Where they are missing, a test says loudly that it is skipped, and fails
//! if `FRAMEPROOF_REQUIRE_SDKS` or `FRAMEPROOF_REQUIRE_WS` is set.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{frameproof, sdks, text};

/// A folder with programs of these names, each a script.
fn programs(all: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, script) in all {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    folder
}

/// Does commands in a shell that finds these programs first; what they print.
fn shell(folder: &Path, programs: &Path, commands: &[&str]) -> (Option<i32>, String) {
    let path = std::env::var("PATH").expect("a PATH");
    let output = Command::new("sh")
        .args(["-e", "-c", &commands.join("\n")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("NO_COLOR", "1")
        // What is there already is not asked for again.
        .envs([("PIP_NO_INDEX", "1"), ("npm_config_offline", "true"), ("npm_config_audit", "false")])
        .output()
        .expect("a shell");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// `init --like KIND` in a folder whose name is to be quoted: the folder, and the commands that are printed.
fn init(kind: &str) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["init", "my chat", "--like", kind]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    let commands = shown.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect();
    (folder, commands)
}

fn own() -> (&'static str, String) {
    ("frameproof", format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_frameproof")))
}

/// The folder with npm's `ws`; none: the test is to be skipped, and has said so.
fn node_modules(what: &str) -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/node/node_modules");
    let node = Command::new("node").arg("--version").output().is_ok();
    if node && modules.join("ws").is_dir() {
        return Some(modules);
    }
    assert!(
        std::env::var_os("FRAMEPROOF_REQUIRE_WS").is_none(),
        "{what}: there is no node, or no package ws"
    );
    let _ = writeln!(std::io::stderr(), "\n!!! SKIPPED: {what}\n!!! npm install --prefix target/node ws@8");
    None
}

/// All is well, three times: a run, a campaign, a kill matrix.
fn is_good(commands: &[&str], code: Option<i32>, shown: &str) {
    assert_eq!(code, Some(0), "{commands:#?}\n{shown}");
    assert!(shown.contains(" 0 failed, 0 warned, 0 not exercised"), "{shown}");
    assert!(shown.contains("0 findings in "), "{shown}");
    assert!(shown.contains("3 of 3 judged correctly"), "{shown}");
}

fn works_as_printed(kind: &str) {
    let (folder, commands) = init(kind);
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let javascript = commands.iter().position(|command| *command == "npm install").expect("it is printed");
    let (python, javascript) = commands.split_at(javascript);
    assert_eq!(python[0], "cd 'my chat'");
    for command in ["run", "fuzz", "selftest"] {
        let begin = format!("frameproof {command} --target python");
        assert!(python.iter().any(|line| line.starts_with(&begin)), "{begin}: {python:#?}");
    }
    if let Some(interpreter) = sdks::python("websockets.asyncio.server, pip", "init --like, in Python") {
        let programs = programs(&[own(), ("python3", format!("exec '{}' \"$@\"", interpreter.display()))]);
        let (code, shown) = shell(folder.path(), programs.path(), python);
        is_good(python, code, &shown);
        // The seed that is the default is not the only one.
        let other = format!("frameproof fuzz --target python --time 5s --seed 4 --protocol ./{kind}");
        let (code, shown) = shell(&folder.path().join("my chat"), programs.path(), &[&other]);
        assert!(code == Some(0) && shown.contains("0 findings in "), "{shown}");
    }
    if let Some(modules) = node_modules("init --like, in JavaScript") {
        let programs = programs(&[own()]);
        let here = folder.path().join("my chat");
        let copied = Command::new("cp").arg("-R").args([&modules, &here]).status().expect("cp");
        assert!(copied.success());
        // The two that are not printed hold as well.
        let more: Vec<String> = ["fuzz", "selftest"]
            .iter()
            .filter_map(|command| python.iter().find(|line| line.contains(command)))
            .map(|line| line.replace("python", "javascript"))
            .collect();
        let commands: Vec<&str> = javascript.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let (code, shown) = shell(&here, programs.path(), &commands);
        is_good(&commands, code, &shown);
    }
}

#[test]
fn the_greeting_works_as_printed() {
    works_as_printed("greeting");
}

#[test]
fn the_rpc_works_as_printed() {
    works_as_printed("rpc");
}

#[test]
fn the_subscriptions_work_as_printed() {
    works_as_printed("subscriptions");
}

/// Mutants of the wire, of a server of one's own and its own protocol.
#[test]
fn the_wire_of_ones_own_server_is_mutated() {
    let what = "init --like, mutants of the wire";
    let Some(interpreter) = sdks::python("websockets.asyncio.server, pip", what) else { return };
    let (folder, _) = init("greeting");
    let here = folder.path().join("my chat");
    let programs = programs(&[own(), ("python3", format!("exec '{}' \"$@\"", interpreter.display()))]);
    let all = "frameproof selftest --target python --wire --sample 30 --seed 1 -v";
    let (code, shown) = shell(&here, programs.path(), &[all]);
    let killed = shown.lines().filter(|line| line.trim_start().starts_with("killed")).count();
    assert!(killed >= 10, "{killed} killed\n{shown}");
    assert_eq!(code, Some(i32::from(shown.contains("SURVIVED"))), "{shown}");
    // Cases that look at nothing find nothing.
    fs::write(
        here.join("blind.yaml"),
        "family: blind\ncases:\n  - name: blind\n    title: Looks at nothing\n    settle: false\n    steps:\n      - open: alice\n",
    )
    .expect("written");
    let blind = format!("{all} --scenario blind.yaml");
    let (code, shown) = shell(&here, programs.path(), &[&blind]);
    assert_eq!((code, shown.contains("SURVIVED")), (Some(1), true), "{shown}");
    let less = shown.lines().filter(|line| line.trim_start().starts_with("killed")).count();
    assert!(less < killed, "{less} of {killed} killed\n{shown}");
}

/// Each mutant is one of the server's, and each server knows each mutant: none is there in name only.
#[test]
fn both_servers_have_the_mutants() {
    for kind in ["greeting", "rpc", "subscriptions"] {
        let (folder, _) = init(kind);
        let here = folder.path().join("my chat");
        let read = |file: &str| fs::read_to_string(here.join(file)).expect(file);
        let config: toml::Table = read("frameproof.toml").parse().expect("TOML");
        for (target, server) in [("python", "server.py"), ("javascript", "server.mjs")] {
            let mutants = config["target"][target]["mutants"].as_array().expect("mutants");
            assert_eq!(mutants.len(), 2, "{kind} {target}");
            for mutant in mutants {
                let defect = mutant["env"]["DEFECT"].as_str().expect("a defect");
                assert!(read(server).contains(defect), "{kind}: {server} does not have {defect}");
            }
        }
    }
}

#[test]
fn a_missing_module_is_named_with_what_installs_it() {
    let (folder, _) = init("greeting");
    let here = folder.path().join("my chat");
    // `-S`: without what is installed. A folder above must not help node either.
    let python = ("python3", "PATH=${PATH#*:} exec python3 -S \"$@\"".to_owned());
    let programs = programs(&[own(), python]);
    for (target, words) in [("python", "python3 -m pip install websockets"), ("javascript", "npm install")] {
        if target == "javascript" && Command::new("node").arg("--version").output().is_err() {
            continue;
        }
        let (code, shown) = shell(&here, programs.path(), &[&format!("frameproof run --target {target}")]);
        assert_eq!(code, Some(3), "{shown}");
        assert!(shown.contains(words), "{shown}");
    }
}

#[test]
fn mistakes_are_told() {
    let (folder, _) = init("rpc");
    let told = |arguments: &[&str], words: &str| {
        let output = frameproof(folder.path(), arguments);
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{shown}");
        assert!(shown.contains(words), "{words}: not in\n{shown}");
    };
    told(&["init", "my chat", "--like", "rpc"], "my chat/frameproof.toml exists, and nothing is overwritten");
    told(&["init", "x", "--like", "rcp"], "[possible values: greeting, rpc, subscriptions]");
    told(&["init", "x", "--like", "rpc", "--from", "codelab"], "cannot be used with");
    told(&["init", "x", "--like", "rpc", "--url", "ws://127.0.0.1:1/"], "cannot be used with");
    told(&["init", "x", "--like", "rpc", "--name", "scenarios"], "`scenarios` cannot be a protocol's name");
    assert!(!folder.path().join("x").exists());
    let output = frameproof(folder.path(), &["init", ".", "--like", "rpc", "--name", "our-rpc"]);
    let shown = text(&output.stdout);
    assert!(output.status.success() && !shown.contains("cd "), "{shown}");
    assert!(folder.path().join("our-rpc/asyncapi.yaml").is_file());
    let config = fs::read_to_string(folder.path().join("frameproof.toml")).expect("the configuration");
    assert!(config.contains("protocol = \"./our-rpc\""), "{config}");
}
