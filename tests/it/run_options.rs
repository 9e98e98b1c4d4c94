//! What surrounds a verdict: which cases run, configuration, signals, secrets, and readers that go away.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Served, frameproof, text};

fn stdout(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, arguments);
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    (output.status.code(), text(&output.stdout))
}

#[test]
fn filters_select() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = |arguments: &[&str]| {
        let (code, shown) = stdout(folder.path(), &[&["run", "minicodex", "--list"], arguments].concat());
        assert_eq!(code, Some(0));
        let ids = shown.lines().filter_map(|line| line.split(' ').next());
        ids.filter(|id| id.contains('/')).map(str::to_owned).collect::<Vec<_>>()
    };
    let all = list(&[]);
    let approvals = list(&["approval/*"]);
    assert!(!approvals.is_empty() && approvals.iter().all(|id| id.starts_with("approval/")));
    assert_eq!(list(&["--case", "approval/*"]), approvals);
    let both = list(&["approval/*", "abort/*"]);
    assert!(both.len() > approvals.len() && both.len() < all.len());
    let narrowed = list(&["approval/*", "--requirement", "MC-APR-1?"]);
    assert!(!narrowed.is_empty() && narrowed.len() < approvals.len());
    assert_eq!(list(&["MC-APR-1?", "--case", "approval/*"]), narrowed);
    // Nothing was run, so nothing was written.
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn requirements_are_filtered_by_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, shown) = stdout(folder.path(), &["list", "minicodex", "--requirements", "MC-HB-*"]);
    let ids: Vec<&str> = shown.lines().filter(|line| line.starts_with("MC-")).collect();
    assert!(!ids.is_empty() && ids.iter().all(|line| line.starts_with("MC-HB-")), "{shown}");
}

#[test]
fn the_configuration_gives_defaults_and_the_command_line_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    fs::create_dir(folder.path().join("conf")).expect("a folder");
    let config = format!("name = 'minicodex'\nurl = '{}'\nseed = 7\njunit = 'out.xml'\n", server.url);
    fs::write(folder.path().join("conf/mine.toml"), config).expect("written");
    let (code, shown) =
        stdout(folder.path(), &["run", "--config", "conf/mine.toml", "handshake/*", "--jobs", "2"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains(&format!("against {} ", server.url)), "{shown}");
    assert!(shown.contains("2 at a time, seed 7"), "{shown}");
    assert!(folder.path().join("conf/out.xml").is_file());
    let (_, shown) =
        stdout(folder.path(), &["run", "--config", "conf/mine.toml", "handshake/*", "--seed", "8"]);
    assert!(shown.contains("seed 8"), "{shown}");
}

#[test]
fn a_baseline_is_stale_only_where_the_run_went() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("b.yaml"), "known:\n  - { match: 'abort/*', reason: bug 1 }\n")
        .expect("written");
    let run = |filter: &str| {
        frameproof(folder.path(), &["run", "minicodex", "--baseline", "b.yaml", filter]).status
    };
    assert_eq!(run("heartbeat/*").code(), Some(0));
    assert_eq!(run("abort/*").code(), Some(1));
}

#[test]
fn a_written_baseline_excuses_its_own_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let fault = ["run", "minicodex", "--fault", "no-turn-done", "-q"];
    let run = |more: &[&str]| frameproof(folder.path(), &[&fault[..], more].concat()).status.code();
    assert_eq!(run(&["--baseline-write", "known.yaml"]), Some(1));
    assert_eq!(run(&["--baseline", "known.yaml"]), Some(0));
}

#[test]
fn reports_go_through_fifos_and_links() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    std::os::unix::fs::symlink("real.xml", folder.path().join("link.xml")).expect("linked");
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::read_to_string(fifo).expect("the report"))
    };
    let arguments = [
        "run",
        "minicodex",
        "heartbeat/*",
        "-q",
        "--json",
        "fifo",
        "--junit",
        "link.xml",
        "--trace",
        "/dev/null",
    ];
    let (code, _) = stdout(folder.path(), &arguments);
    assert_eq!(code, Some(0));
    let kind = |path: &Path| path.symlink_metadata().expect("there").file_type();
    assert!(kind(&fifo).is_fifo() && kind(Path::new("/dev/null")).is_char_device());
    assert!(kind(&folder.path().join("link.xml")).is_symlink());
    assert!(fs::read_to_string(folder.path().join("real.xml")).expect("written").contains("<testsuites"));
    assert!(reader.join().expect("read").contains("run-finished"));
}

/// Ends a running process as Ctrl-C or a supervisor does.
fn signal(name: &str, process: u32) {
    let status = Command::new("kill").args([name, &process.to_string()]).status().expect("kill runs");
    assert!(status.success());
}

#[test]
fn a_signal_ends_the_run_and_the_reports_are_written() {
    for name in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_frameproof"))
            .args(["run", "minicodex", "-v", "--repeat", "1000", "--trace", "t.ndjson", "--junit", "j.xml"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("PASS") {
            line.clear();
            assert_ne!(output.read_line(&mut line).expect("text"), 0, "it ended by itself");
        }
        assert!(!folder.path().join("t.ndjson").exists(), "the trace shows up when it is whole");
        signal(name, child.id());
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");
        assert!(rest.contains("interrupted"), "{rest}");
        for file in ["t.ndjson", "j.xml", "reports/minicodex.jsonl"] {
            assert!(folder.path().join(file).is_file(), "{file}");
        }
        let left = fs::read_dir(folder.path()).expect("the folder").flatten();
        assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with('.')));
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_silent_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/", silent.local_addr().expect("an address"));
    let child = Command::new(env!("CARGO_BIN_EXE_frameproof"))
        .args(["run", "minicodex", "--timeout-scale", "1000", "--url", &url])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let _connection = silent.accept().expect("it connects");
    signal("-INT", child.id());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stderr).contains("interrupted"), "{}", text(&output.stderr));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, code) in [
        (&["list", "minicodex", "--requirements"][..], 0),
        (&["schema", "scenario"], 0),
        // The verdict stands.
        (&["run", "minicodex", "--fault", "no-welcome", "handshake/*"], 1),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_frameproof"))
            .args(arguments)
            .current_dir(folder.path())
            .stdout(writer)
            .stderr(Stdio::null())
            .status()
            .expect("the binary runs");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

/// A server that refuses every upgrade and repeats the request in its answer.
fn echoing_refusal() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).is_ok_and(|read| read > 0)
            {
            }
            let head = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n\r\n", request.len());
            let _ = stream.write_all(format!("{head}{request}").as_bytes());
        }
    });
    format!("ws://{address}/ws?token=query-secret")
}

#[test]
fn secrets_are_shown_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(
        folder.path(),
        &["run", "minicodex", "--url", &echoing_refusal(), "--header", "Authorization: Bearer header-secret"],
    );
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(shown.contains("HTTP 403"), "{shown}");
    assert!(!shown.contains("-secret"), "{shown}");

    // A server that is reached, and a case that fails: console, reports and the command to reproduce it.
    let server = Served::start(&["minicodex", "--fault", "no-turn-done"]);
    let url = format!("{}?token=query-secret", server.url);
    let arguments = ["run", "minicodex", "streaming/*", "--url", &url, "--header", "X-Key: header-secret"];
    let files = ["--junit", "j.xml", "--json", "e.jsonl", "--trace", "t.ndjson"];
    let output = frameproof(folder.path(), &[&arguments[..], &files].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let mut shown = text(&output.stdout);
    for file in ["j.xml", "e.jsonl", "t.ndjson"] {
        shown += &fs::read_to_string(folder.path().join(file)).expect(file);
    }
    assert!(shown.contains("--url env:FRAMEPROOF_URL --header 'X-Key: env:X_KEY'"), "{shown}");
    assert!(!shown.contains("-secret"));
}

#[test]
fn a_tolerated_failure_weighs_what_the_reading_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["codey", "--fault", "silent-on-unknown-call"]);
    for (reading, code, summary) in [
        ("strict", 1, "1 failed, 0 warned"),
        ("default", 0, "0 failed, 1 warned"),
        ("lenient", 0, "0 failed, 0 warned"),
    ] {
        let case = ["run", "codey", "approval/nothing-pending", "--url", &server.url, "--reading", reading];
        let arguments = [&case[..], &["--timeout-scale", "0.04"]].concat();
        let (found, shown) = stdout(folder.path(), &arguments);
        assert_eq!(found, Some(code), "{reading}: {shown}");
        let line = shown.lines().find(|line| line.starts_with("requirements ")).unwrap_or_default();
        assert!(line.contains(summary), "{reading}: {shown}");
    }
}

#[test]
fn the_configurations_only_target_is_tested() {
    let folder = tempfile::tempdir().expect("a folder");
    let protocols = frameproof::protocol::Protocol::embedded_names();
    let (one, two) = (protocols[0], protocols[1]);
    let run = |config: &str, arguments: &[&str]| {
        fs::write(folder.path().join("frameproof.toml"), config).expect("written");
        let output = frameproof(folder.path(), arguments);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    // Nobody listens there: whoever tests it gets 3, and the reference server would be green.
    let mine = format!("[target.mine]\nurl = 'ws://127.0.0.1:1/'\nprotocol = '{one}'\n");
    let list = frameproof(folder.path(), &["list", one]);
    let case = text(&list.stdout).split(' ').next().expect("a case").to_owned();
    for arguments in [&["run"][..], &["run", one], &["run", &case], &["run", "--protocol", one]] {
        let (code, shown) = run(&mine, &[arguments, &["-q"]].concat());
        assert_eq!(code, Some(3), "{arguments:?}: {shown}");
    }
    let (code, shown) = run(&mine, &["run", one, &case, "-q", "--reference"]);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = run(&mine, &["run", two, "-q"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("`mine` is not tested"), "{shown}");
    let both = format!("{mine}[target.other]\nurl = 'ws://127.0.0.1:1/'\n");
    for command in ["run", "doctor"] {
        let (code, shown) = run(&both, &[command]);
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains("which target?") && shown.contains("mine, other"), "{shown}");
    }
}

#[test]
fn a_protocol_is_a_name_or_a_folder_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = frameproof::protocol::Protocol::embedded_names()[0];
    for command in [&["list"][..], &["list", "--requirements"], &["run", "--list"]] {
        let by_flag = stdout(folder.path(), &[command, &["--protocol", name]].concat());
        let (first, rest) = command.split_at(1);
        assert_eq!(by_flag, stdout(folder.path(), &[first, &[name], rest].concat()));
    }
    let by_name = stdout(folder.path(), &["list", name]);
    fs::write(folder.path().join("frameproof.toml"), format!("protocol = '{name}'\n")).expect("written");
    assert_eq!(stdout(folder.path(), &["list"]), by_name);
}

#[test]
fn ambiguities_and_cases_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, shown) = stdout(folder.path(), &["explain", "mc-amb-31"]);
    assert_eq!(code, Some(0));
    assert!(shown.contains("every reading: ") && shown.contains("MC-APR-8"), "{shown}");
    let (code, shown) = stdout(folder.path(), &["explain", "resume/sweep"]);
    assert_eq!(code, Some(0));
    assert!(
        shown.contains("\n- name: sweep\n") && shown.contains("sweep: k") && !shown.contains("\n- name: a")
    );
    let output = frameproof(folder.path(), &["explain", "resume/swep"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean resume/sweep?"));
}

/// Cases that do not apply are told with the reason, and a run of nothing else has judged nothing.
#[test]
fn a_run_that_judges_nothing_says_so() {
    let server = Served::start(&["tinyvex"]);
    let folder = tempfile::tempdir().expect("a folder");
    let run = |globs: &[&str]| {
        let mut arguments = vec!["run", "tinyvex", "--url", &server.url];
        arguments.extend(globs);
        let output = frameproof(folder.path(), &arguments);
        (output.status.code(), text(&output.stdout))
    };
    let (code, shown) = run(&["durability/*kill*"]);
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("no case was judged: ") && !shown.contains("conformant"), "{shown}");
    assert!(shown.contains("not applicable: durability/"), "{shown}");
    assert!(
        shown.contains("it restarts the server, which needs a server that frameproof starts itself"),
        "{shown}"
    );
    let (code, shown) = run(&["durability/*kill*", "errors/number", "-v"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("conformant: "), "{shown}");
    let line = shown.lines().find(|line| line.contains("N/A") && line.contains("durability/"));
    assert!(
        line.is_some_and(|line| line
            .contains("(it restarts the server, which needs a server that frameproof starts itself)")),
        "{shown}"
    );
}

/// A reference server is where the document says; where that leaves the path open (`/`), anywhere.
#[test]
fn another_path_is_answered_with_404() {
    let folder = tempfile::tempdir().expect("a folder");
    for (protocol, path, served) in
        [("minicodex", "/other", false), ("codelab", "/other/{session_id}", false), ("codey", "/any", true)]
    {
        let server = Served::start(&[protocol]);
        let address = server.url.split('/').nth(2).expect("an address");
        let url = format!("ws://{address}{path}");
        let output = frameproof(folder.path(), &["run", protocol, "--url", &url]);
        let (shown, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(if served { 0 } else { 3 }), "{protocol} {shown}{errors}");
        if !served {
            assert!(errors.contains("HTTP 404: nothing is served here, but at /ws"), "{errors}");
            assert!(errors.contains("is the path of --url (`url` in frameproof.toml) right?"), "{errors}");
        }
    }
}
