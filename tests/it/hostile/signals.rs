//! Signals as runners of CI send them.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::support::text;

fn started(folder: &std::path::Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_frameproof"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

fn send(names: &[&str], process: u32) {
    for name in names {
        let sent =
            Command::new("kill").args([*name, process.to_string().as_str()]).status().expect("kill runs");
        assert!(sent.success());
    }
}

#[test]
fn signals_within_a_second_are_one_and_lose_no_report() {
    for signals in [&["-TERM", "-TERM"][..], &["-INT", "-TERM", "-HUP"], &["-HUP"], &["-QUIT"]] {
        let folder = tempfile::tempdir().expect("a folder");
        // The server is silent: the run is in the midst of its wait.
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("ws://{}/", silent.local_addr().expect("an address"));
        let arguments = [
            "run",
            "minicodex",
            "--timeout-scale",
            "1000",
            "--url",
            &url,
            "--junit",
            "j.xml",
            "--json",
            "e.jsonl",
        ];
        let child = started(folder.path(), &arguments);
        let _connection = silent.accept().expect("it connects");
        send(signals, child.id());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{signals:?}: {}", text(&output.stderr));
        for file in ["j.xml", "e.jsonl"] {
            assert!(folder.path().join(file).is_file(), "{signals:?}: {file}");
        }
    }
}
