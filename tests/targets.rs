//! Servers that frameproof launches: real processes on real sockets, in order and out of it.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use support::{Served, frameproof, text};

const BINARY: &str = env!("CARGO_BIN_EXE_frameproof");

/// A folder with this frameproof.toml; `BIN` stands for the binary.
fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("frameproof.toml"), config.replace("BIN", BINARY)).expect("written");
    folder
}

fn run(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = frameproof(folder.path(), arguments);
    (status.code(), text(&stdout), text(&stderr))
}

/// Processes whose environment or command line bears this mark.
fn left_over(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("Linux").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if pid == std::process::id() {
            continue;
        }
        for file in ["environ", "cmdline"] {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            if text(&bytes).contains(mark) {
                found.push(format!(
                    "{pid}: {}",
                    text(&fs::read(entry.path().join("cmdline")).unwrap_or_default())
                ));
            }
        }
    }
    found
}

/// A reference server as somebody's program, on a port that frameproof chooses.
const SERVED: &str = "
[target.mine]
protocol = 'minicodex'
url = 'ws://127.0.0.1:{{port}}/ws'
command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']
ports = { port = 0 }
env = { MARK = 'MARKED' }
";

#[test]
fn a_launched_server_is_tested_and_stopped() {
    let mark = format!("mark-{}-launched", std::process::id());
    let folder = folder(&SERVED.replace("MARKED", &mark));
    let (code, shown, errors) = run(&folder, &["run", "--target", "mine", "handshake/*", "approval/*"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("against mine (ws://127.0.0.1:"), "{shown}");
    let families = ["handshake/*", "approval/*"]
        .map(|glob| frameproof(folder.path(), &["run", "minicodex", "--list", glob]));
    let count: usize = families
        .iter()
        .map(|list| text(&list.stdout).lines().filter(|line| line.contains('/')).count())
        .sum();
    assert!(shown.contains(&format!("({count} cases")), "{count}: {shown}");
    assert_eq!(left_over(&mark), Vec::<String>::new());
}

#[test]
fn the_port_is_learned_from_the_log_and_families_and_cases_get_servers_of_their_own() {
    for fresh in ["family", "case"] {
        let config = format!(
            "[target.mine]\nprotocol = 'codelab'\nurl = '{{{{url}}}}'\nfresh = '{fresh}'\n\
             command = ['BIN', 'serve', 'codelab']\nready = {{ log = '{{{{url}}}}' }}\n"
        );
        let folder = folder(&config);
        let (code, shown, errors) =
            run(&folder, &["run", "--target", "mine", "streaming/*", "error*/*", "--fail-fast"]);
        assert_eq!(code, Some(0), "{fresh}: {shown}{errors}");
        assert!(!shown.contains("came to a client of another"), "{shown}");
    }
}

#[test]
fn a_launched_server_is_restarted_on_its_data() {
    // Without a store the restarted server knows nothing, so this family's own protocol is taken.
    let folder = folder(
        "[target.db]\nprotocol = 'tinyvex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         command = ['BIN', 'serve', 'tinyvex', '--listen', '127.0.0.1:{{port}}']\n\
         [target.fixed]\nprotocol = 'tinyvex'\nurl = 'ws://127.0.0.1:1/ws'\n",
    );
    fs::write(
        folder.path().join("r.yaml"),
        "family: r\ncases:\n  - name: again\n    title: A restarted server takes connections\n    steps:\n      \
         - open: alice\n      - restart: hard\n      - open: alice\n",
    )
    .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "db", "--scenario", "r.yaml", "-v"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("PASS") && shown.contains("r/again"), "{shown}");
}

#[test]
fn what_does_not_start_is_said_with_a_hint_and_nothing_is_left() {
    let mark = format!("mark-{}-broken", std::process::id());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let base =
        format!("url = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\nenv = {{ M = '{mark}' }}\n");
    for (config, code, parts) in [
        (
            format!("{base}command = ['no-such-program-here']"),
            3,
            &["`no-such-program-here`", "cannot be started", "PATH"][..],
        ),
        (
            format!("{base}command = ['sh', '-c', 'echo oops >&2; exit 7']"),
            3,
            &["exited with status 7 before it was ready", "| oops"],
        ),
        (
            format!(
                "{base}command = ['sh', '-c', 'echo waiting; sleep 600 & sleep 600']\nstart-timeout = '300ms'"
            ),
            3,
            &["was not ready within 300ms", "nothing listens on 127.0.0.1:", "| waiting", "start-timeout"],
        ),
        (
            format!("url = 'ws://127.0.0.1:{port}/ws'\ncommand = ['sleep', '600']"),
            3,
            &["is in use already", "--attach"],
        ),
        (format!("{base}command = ['sleep', '600']\ncwd = 'nowhere'"), 3, &["nowhere does not exist"]),
        (
            format!("{base}comand = ['x']"),
            2,
            &["unknown field `comand`", "did you mean `command`?", "frameproof.toml:6:1"],
        ),
        (
            format!("{base}bearer = 'env:SURELY_UNSET'"),
            2,
            &["SURELY_UNSET is not set", "frameproof.toml:6:11", "export"],
        ),
        (
            format!("{base}command = ['{{{{prt}}}}']"),
            2,
            &["nothing sets the variable `prt`", "did you mean `port`?"],
        ),
        (format!("{base}ready = {{ tcp = 'a', http = 'b' }}"), 2, &["exactly one of tcp, http, log"]),
        (format!("{base}start-timeout = '5'"), 2, &["write `250ms` or `3s`"]),
        (
            format!("{base}command = ['x']\ntools.opn = {{ name = 'y' }}"),
            2,
            &["no class of tools `opn`", "did you mean `open`?"],
        ),
    ] {
        let folder = folder(&format!("[target.t]\nprotocol = 'minicodex'\n{config}\n"));
        let (got, shown, errors) = run(&folder, &["run", "--target", "t"]);
        assert_eq!(got, Some(code), "{config}\n{shown}{errors}");
        for part in parts {
            assert!(errors.contains(part), "{part} is not in\n{errors}");
        }
        assert_eq!(left_over(&mark), Vec::<String>::new(), "{config}");
    }
    let folder = folder(SERVED);
    let (code, _, errors) = run(&folder, &["run", "--target", "min"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("there is no target `min`") && errors.contains("did you mean `mine`?"),
        "{errors}"
    );
}

#[test]
fn an_interrupted_run_leaves_no_process() {
    let mark = format!("mark-{}-interrupted", std::process::id());
    // The shell and its child ignore SIGTERM: only the kill ends them.
    let config = SERVED.replace("MARKED", &mark).replace(
        "command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']",
        "stop-timeout = '200ms'\ncommand = ['sh', '-c', \"trap '' TERM; sleep 600 & BIN serve minicodex --listen 127.0.0.1:{{port}}; sleep 600\"]",
    );
    let folder = folder(&config);
    let mut child = Command::new(BINARY)
        .args(["run", "--target", "mine", "--repeat", "1000", "-v"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    // The first case is done, so the server is there.
    while !line.contains("PASS") {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("text"), 0, "the run ended by itself");
    }
    assert!(!left_over(&mark).is_empty());
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(interrupt.success());
    std::io::copy(&mut out, &mut std::io::sink()).expect("read");
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    assert_eq!(left_over(&mark), Vec::<String>::new());
}

#[test]
fn attach_launches_nothing() {
    let server = Served::start(&["minicodex"]);
    let folder = folder(&format!(
        "[target.mine]\nprotocol = 'minicodex'\nurl = '{}'\ncommand = ['no-such-program']\n",
        server.url
    ));
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "mine", "--attach", "--no-deadline", "handshake/*"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
}

/// An HTTP server that makes sessions: answers each request with this.
fn http(answer: &'static str) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = BufReader::new(stream.try_clone().expect("a clone"));
            let mut line = String::new();
            let mut length = 0;
            while request.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                line.clear();
            }
            let mut body = vec![0; length];
            std::io::Read::read_exact(&mut request, &mut body).expect("the body");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, thread)
}

#[test]
fn set_up_calls_fill_the_url() {
    let server = Served::start(&["codelab"]);
    let ws = server.url.replace("{session_id}", "{{session_id}}");
    for (answer, save, code, part) in [
        (
            "HTTP/1.1 201 Created\r\nContent-Length: 27\r\nConnection: close\r\n\r\n{\"data\":{\"id\":\"from-http\"}}",
            "/data/id",
            0,
            "conformant",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{\"id\": 1}",
            "/data/id",
            3,
            "has nothing at /data/id, for `session_id`, in its answer {\"id\":1}",
        ),
        (
            "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy",
            "/id",
            3,
            "answered with HTTP 500, not a status from 200 to 299: busy",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nokay",
            "/id",
            3,
            "what is no JSON",
        ),
    ] {
        let (port, _thread) = http(answer);
        let folder = folder(&format!(
            "[target.c]\nprotocol = 'codelab'\nurl = '{ws}'\nsessions = 1\n[[target.c.setup]]\n\
             url = 'http://127.0.0.1:{port}/sessions'\nbody = {{ name = 'x' }}\nsave = {{ session_id = '{save}' }}\n"
        ));
        let (got, shown, errors) =
            run(&folder, &["run", "--target", "c", "--case", "streaming/*", "--trace", "t.ndjson"]);
        assert_eq!(got, Some(code), "{shown}{errors}");
        assert!(shown.contains(part) || errors.contains(part), "{part} is not in\n{shown}{errors}");
        if code == 0 {
            let trace = fs::read_to_string(folder.path().join("t.ndjson")).expect("the trace");
            assert!(trace.contains("/ws/from-http"), "{trace}");
        }
    }
}

#[test]
fn several_processes_start_in_order_and_output_belongs_to_the_failing_case() {
    let folder = folder(
        "[target.two]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         [[target.two.process]]\nname = 'first'\ncommand = ['sh', '-c', 'echo I am up; cat > /dev/null']\nready = { log = 'I am {{state}}' }\n\
         [[target.two.process]]\nname = 'second'\nready = { tcp = '127.0.0.1:{{port}}' }\n\
         command = ['sh', '-c', 'echo state {{state}}; (while :; do echo tick; sleep 0.05; done) & exec BIN serve minicodex --fault \
         token-by-token --listen 127.0.0.1:{{port}}']\n",
    );
    let faults = text(&frameproof(folder.path(), &["serve", "minicodex", "--list-faults"]).stdout);
    let fault =
        faults.lines().find(|line| line.contains("MC-HS-") && !line.contains("heartbeat")).expect("a fault");
    let fault = fault.split(' ').next().unwrap_or_default();
    let config = folder.path().join("frameproof.toml");
    let written = fs::read_to_string(&config).expect("the file").replace("token-by-token", fault);
    fs::write(&config, written).expect("written");
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "two", "--json", "out.jsonl", "--junit", "out.xml"]);
    assert_eq!(code, Some(1), "{fault}: {shown}{errors}");
    assert!(shown.contains("the server wrote meanwhile:") && shown.contains("second |"), "{shown}");
    assert!(
        fs::read_to_string(folder.path().join("out.xml"))
            .expect("xml")
            .contains("the server wrote meanwhile:")
    );
    assert!(fs::read_to_string(folder.path().join("out.jsonl")).expect("json").contains("\"tick\""));
}

#[test]
fn a_server_that_dies_ends_with_a_verdict() {
    let mark = format!("mark-{}-dies", std::process::id());
    // It lives until its fifth connection: its proxy counts.
    let folder = folder(&format!(
        "[target.d]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\nsessions = 1\nenv = {{ M = '{mark}' }}\n\
         command = ['python3', '{{{{scratch}}}}/../dies.py', 'BIN', '{{{{port}}}}']\n"
    ));
    let script = folder.path().join("dies.py");
    fs::write(&script, DIES).expect("written");
    let config = folder.path().join("frameproof.toml");
    let written = fs::read_to_string(&config).expect("the file");
    fs::write(&config, written.replace("{{scratch}}/../dies.py", &script.display().to_string()))
        .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "d", "handshake/*", "errors/*"]);
    assert_eq!(code, Some(3), "{shown}{errors}");
    for part in ["the server died while this case ran: process `d` exited with status 9", "no verdict"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert!(shown.contains("passed") && !shown.contains(" 0 passed"), "it was launched again: {shown}");
    assert_eq!(left_over(&mark), Vec::<String>::new());
}

/// Passes connections on to a reference server, and dies on the seventh.
const DIES: &str = r#"
import os, socket, subprocess, sys, threading
server = subprocess.Popen([sys.argv[1], "serve", "minicodex"], stdout=subprocess.PIPE, text=True)
host, port = server.stdout.readline().strip().split("//")[1].split("/")[0].split(":")
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[2])))
listener.listen(64)
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
count = 0
while True:
    client, _ = listener.accept()
    count += 1
    if count > 7:
        os._exit(9)
    other = socket.create_connection((host, int(port)))
    for pair in ((client, other), (other, client)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"#;

#[test]
fn one_root_cause_is_told_once() {
    // It accepts and never says a word.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    let handle = std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // The handshake is done, and then nothing.
                let mut request = BufReader::new(stream.try_clone().expect("a clone"));
                let (mut key, mut line) = (String::new(), String::new());
                while request.read_line(&mut line).is_ok_and(|read| read > 2) {
                    if let Some((name, value)) = line.split_once(':')
                        && name.eq_ignore_ascii_case("sec-websocket-key")
                    {
                        key = value.trim().to_owned();
                    }
                    line.clear();
                }
                let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
                let answer = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                );
                let mut stream = stream;
                let _ = stream.write_all(answer.as_bytes());
                let _ = std::io::copy(&mut request, &mut std::io::sink());
            });
        }
    });
    let folder =
        folder(&format!("[target.mute]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.05\n"));
    let (code, shown, _) = run(&folder, &["run", "--target", "mute", "--jobs", "64", "--junit", "j.xml"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.matches("on the wire:").count() <= 12, "one root cause:\n{shown}");
    assert!(shown.contains("same reason as "), "{shown}");
    let xml = fs::read_to_string(folder.path().join("j.xml")).expect("xml");
    assert!(xml.contains("the opening failed for the same reason as in "));
    drop(handle);
}

#[test]
fn what_the_overlay_excuses_is_listed() {
    let folder = folder(
        "[target.t]\nprotocol = 'agentloop'\nurl = 'ws://127.0.0.1:{{port}}/'\nports = { port = 0 }\noverlay = ['o.yaml']\n\
         command = ['BIN', 'serve', 'agentloop', '--fault', 'usage-as-text', '--listen', '127.0.0.1:{{port}}']\n",
    );
    fs::write(
        folder.path().join("o.yaml"),
        "components:\n  messages:\n    context_info:\n      payload:\n        properties:\n          payload:\n            properties:\n              \
         usagePercent: { type: [number, string] }\n",
    )
    .expect("written");
    let arguments = ["run", "--target", "t", "--requirement", "AL-CTX-2"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("excused by the overlay:") && shown.contains("AL-CTX-2"), "{shown}");
    fs::write(folder.path().join("o.yaml"), "x-frameproof: {}\n").expect("written");
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(!shown.contains("excused by the overlay:"), "{shown}");
}

/// A chat server that tells every client what one was told, or (mute) says nothing after the welcome.
fn chat(mute: bool) -> String {
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::Message;
    let (told, url) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            told.send(format!("ws://{address}/ws")).expect("somebody waits");
            let (all, _) = tokio::sync::broadcast::channel::<String>(1024);
            while let Ok((stream, _)) = listener.accept().await {
                let all = all.clone();
                tokio::spawn(async move {
                    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
                    let mut news = all.subscribe();
                    let mut seq = 0;
                    loop {
                        tokio::select! {
                            frame = socket.next() => match frame {
                                Some(Ok(Message::Text(text))) if text.contains("hello") => {
                                    let welcome = Message::text(r#"{"type":"welcome","room":"lobby"}"#);
                                    if socket.send(welcome).await.is_err() { return }
                                }
                                Some(Ok(Message::Text(text))) if !mute => {
                                    let text = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
                                    let _ = all.send(text["text"].to_string());
                                }
                                Some(Ok(_)) => {}
                                _ => return,
                            },
                            Ok(text) = news.recv() => {
                                for (kind, text) in [("said", text), ("done", "\"\"".to_owned())] {
                                    seq += 1;
                                    let frame = format!(r#"{{"type":"{kind}","seq":{seq},"text":{text}}}"#);
                                    if socket.send(Message::text(frame)).await.is_err() { return }
                                }
                            }
                        }
                    }
                });
            }
        });
    });
    url.recv().expect("it listens")
}

#[test]
fn answers_that_go_to_another_client_are_a_leak() {
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", ".", "--url", &chat(false)]);
    let config = folder.path().join("frameproof.toml");
    let url = chat(false);
    fs::write(
        &config,
        format!("[target.chat]\nprotocol = './mychat'\nscenario = ['scenarios']\nurl = '{url}'\ntimeout-scale = 0.2\n"),
    )
    .expect("written");
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "chat", "first/a-turn", "--json", "out.jsonl"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("came to a client of another") && shown.contains("1 passed, 1 failed"), "{shown}");
    assert!(shown.contains("reproduce: frameproof doctor --target chat"), "{shown}");
    let (code, shown, _) = run(&folder, &["doctor", "--target", "chat"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("MISSING  are sessions apart?") || shown.contains("MISSING  does the cue"),
        "{shown}"
    );
    // One at a time nobody is there to hear.
    let written = fs::read_to_string(&config).expect("the file");
    fs::write(&config, format!("{written}sessions = 1\n")).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "chat", "first/a-turn"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
}

#[test]
fn the_doctor_says_what_is_missing() {
    let folder = folder(SERVED);
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    for part in [
        "good     does it start?                 launched and ready: mine",
        "good     opening exchange?",
        "good     plain turn?",
        "good     does the cue reach the model?  the model's words came back",
        "good     does the guarded tool ask?     it waits, after a frame about `write_note`",
        "good     are sessions apart?",
        "Nothing is missing",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // The wrong protocol: the opening fails, with the frames.
    let server = Served::start(&["agentloop"]);
    let (code, shown, errors) = run(&folder, &["doctor", "minicodex", "--url", &server.url]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(
        shown.contains("MISSING  opening exchange?") && shown.contains("-> {\"type\":\"hello\""),
        "{shown}"
    );
    // A turn that never ends.
    let url = chat(true);
    frameproof(folder.path(), &["init", "chat", "--url", &url]);
    let mute =
        format!("{SERVED}[target.mute]\nprotocol = './chat/mychat'\nurl = '{url}'\ntimeout-scale = 0.1\n");
    fs::write(folder.path().join("frameproof.toml"), mute).expect("written");
    let (code, shown, errors) = run(&folder, &["doctor", "--target", "mute"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(
        shown.contains("good     opening exchange?") && shown.contains("MISSING  plain turn?"),
        "{shown}"
    );
    // A path that is none.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let (code, _, errors) = run(&folder, &["doctor", "minicodex", "--url", &format!("ws://{address}/")]);
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("refused the connection"), "{errors}");
}

#[test]
fn files_of_the_server_are_looked_at() {
    let folder = folder(
        "[target.f]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\ncwd = '{{scratch}}'\n\
         command = ['sh', '-c', 'echo written > note.txt; exec BIN serve minicodex --listen 127.0.0.1:{{port}}']\n",
    );
    fs::write(
        folder.path().join("f.yaml"),
        "family: f\ncases:\n  - name: there\n    title: There\n    steps:\n      - open: a\n      - expect_file: note.txt\n        where: { pattern: '^written' }\n      \
         - expect_file: other.txt\n        where: { type: 'null' }\n  - name: missing\n    title: Missing\n    covers: [MC-TI-11]\n    steps:\n      - open: a\n      \
         - expect_file: other.txt\n        within: 50ms\n",
    )
    .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "f", "--scenario", "f.yaml", "-v"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("there is no file `other.txt` in the scratch folder"), "{shown}");
    assert!(shown.contains("f/there") && shown.contains("PASS"), "{shown}");
    // A server that is not ours has no folder of ours.
    let server = Served::start(&["minicodex"]);
    let (code, shown, _) =
        run(&folder, &["run", "minicodex", "--url", &server.url, "--scenario", "f.yaml", "-v"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("2 not applicable"), "{shown}");
}

#[test]
fn prompts_stand_in_place_of_cues() {
    let folder = folder(
        "[target.p]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']\nprompts = { 'p/says' = 'Say hello.' }\n",
    );
    let case = "    turn: [{ say: [Hel, lo] }]\n    steps:\n      - open: a\n      - send: { type: send, text: '{{cue}}' }\n      \
                - expect: assistant_text\n        with: { text: Hel }\n      - expect: turn-end\n";
    fs::write(
        folder.path().join("p.yaml"),
        format!("family: p\ncases:\n  - name: says\n    title: Says\n{case}  - name: unknown\n    title: No prompt\n{case}"),
    )
    .expect("written");
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "p", "--scenario", "p.yaml", "-v", "--trace", "t.ndjson"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("1 passed") && shown.contains("1 not applicable"), "{shown}");
    assert!(fs::read_to_string(folder.path().join("t.ndjson")).expect("a trace").contains("Say hello."));
}
