//! Signals as runners of CI send them.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::support::signals::{end_of, let_through, send};
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

#[test]
fn signals_within_a_second_are_one_and_lose_no_report() {
    let_through();
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
        let mut child = started(folder.path(), &arguments);
        let _connection = silent.accept().expect("it connects");
        signals.iter().for_each(|name| send(name, child.id()));
        end_of(&mut child, &format!("{signals:?}"));
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{signals:?}: {}", text(&output.stderr));
        for file in ["j.xml", "e.jsonl"] {
            assert!(folder.path().join(file).is_file(), "{signals:?}: {file}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_hangup_that_whoever_started_frameproof_ignores_does_not_end_a_run() {
    let_through();
    let folder = tempfile::tempdir().expect("a folder");
    // As `nohup` starts it, and as anything else does.
    for (trap, code, said) in [
        ("trap '' HUP;", 3, "the connection broke during the upgrade"),
        ("", 130, "interrupted before the first case"),
    ] {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("ws://{}/", server.local_addr().expect("an address"));
        let run = format!("{trap} exec \"$0\" run minicodex --timeout-scale 1000 --url {url}");
        let mut child = Command::new("sh")
            .args(["-c", &run, env!("CARGO_BIN_EXE_frameproof")])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let connection = server.accept().expect("it connects");
        send("-HUP", child.id());
        if !trap.is_empty() {
            // It goes on, and is told to end by the server alone.
            drop((connection, server));
        }
        end_of(&mut child, &format!("a hang-up, `{trap}`"));
        let output = child.wait_with_output().expect("it has ended");
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(said), "{errors}");
    }
}
