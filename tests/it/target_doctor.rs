//! The doctor: step by step, in plain words, with the frames.

use std::fs;

use crate::support::target::{SERVED, folder, run};
use crate::support::{Served, frameproof, hand};

#[test]
fn the_doctor_says_what_is_missing() {
    let folder = folder(SERVED);
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    for part in [
        "good     does it start?                 launched and ready: mine",
        "good     opening exchange?",
        "good     plain turn?",
        "good     does the cue reach the model?  the model's text came back",
        "good     is approval requested?         it waits after a frame that names `write_note`",
        "good     are sessions isolated?",
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
    let (url, _) = hand::chat(hand::Tells::Nobody);
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
    let (code, shown, errors) = run(&folder, &["doctor", "minicodex", "--url", "ws://127.0.0.1:1/"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("MISSING  upgrade?") && shown.contains("refused the connection"), "{shown}");
    assert!(shown.contains("→ start the server first, or correct --url"), "{shown}");
}

/// A server that answers every upgrade with this status and body, for as long as the test runs.
fn refusing(answer: &'static str) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = std::io::Read::read(&mut client, &mut request);
            let _ = std::io::Write::write_all(&mut client, answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_server_that_is_not_there_is_a_step_with_advice_and_evidence() {
    let base = "url = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n";
    let server = "command = ['BIN', 'serve', 'minicodex', '--listen', '127.0.0.1:{{port}}']\n";
    let refused = refusing("HTTP/1.1 403 Forbidden\r\ncontent-length: 21\r\n\r\nno entry: hunter2hunter");
    let gone = refusing("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    for (config, parts) in [
        (
            format!("{base}command = ['no-such-program-here']\n"),
            &[
                "MISSING  does it start?                 `no-such-program-here` of process `t` cannot be started",
                "→ the first word of `command` is looked up in PATH",
            ][..],
        ),
        (
            format!("{base}command = ['sh', '-c', 'echo oops >&2; exit 7']\n"),
            &[
                "MISSING  does it start?                 process `t` exited with status 7 before it was ready",
                "→ run the command by hand",
                " t | oops",
            ],
        ),
        (
            format!("{base}command = ['sh', '-c', 'exit 7']\n"),
            &["exited with status 7 before it was ready", "it wrote no output"],
        ),
        (
            format!(
                "{base}command = ['sh', '-c', 'echo waiting; exec sleep 600']\nstart-timeout = '500ms'\n"
            ),
            &[
                "good     does it start?                 launched: t",
                "MISSING  is it ready?                   process `t` was not ready within 500ms: nothing listens on",
                " t | waiting",
            ],
        ),
        (
            format!(
                "{base}{server}setup = [{{ url = 'http://127.0.0.1:{refused}/new', save = {{ id = '/id' }} }}]\n"
            ),
            &[
                "good     does it start?                 launched and ready: t",
                "MISSING  set-up calls?                  the set-up call POST http://127.0.0.1",
                "HTTP 403",
                "→ try the call with curl",
            ],
        ),
        (
            format!("url = 'ws://127.0.0.1:{refused}/ws?token=hunter2hunter'\n"),
            &[
                "good     does it start?                 frameproof does not launch it",
                "MISSING  upgrade?                       the server answers the upgrade with HTTP 403 Forbidden",
                "→ give the server's credentials, in [target.t]: bearer = \"env:TOKEN\"",
                "<- HTTP/1.1 403 Forbidden",
                "<- no entry: [redacted]",
            ],
        ),
        (
            format!("url = 'ws://127.0.0.1:{gone}/ws'\n"),
            &[
                "the server answers the upgrade with HTTP 404 Not Found",
                "→ is the path of `url` of [target.t] right?",
            ],
        ),
    ] {
        let folder = folder(&format!("[target.t]\nprotocol = 'minicodex'\n{config}"));
        let (code, shown, errors) = run(&folder, &["doctor"]);
        assert_eq!(code, Some(1), "{config}\n{shown}{errors}");
        assert_eq!(missing(&shown), 1, "{shown}");
        for part in parts {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        assert!(shown.ends_with("later steps were not tried.\n"), "{shown}");
    }
    // What is wrong in the file is no finding.
    let folder = folder("[target.t]\nprotocol = 'minicodex'\nurl = 'http://127.0.0.1:1/ws'\n");
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(2), "{shown}{errors}");
    assert!(errors.contains("the scheme must be ws or wss"), "{errors}");
}

/// Passes connections on to a reference server, and ends when the seventh has been closed: one to see that it listens, one for the upgrade, and the
/// steps' five.
const LEAVES: &str = r#"
import os, socket, subprocess, sys, threading
server = subprocess.Popen([sys.argv[1], "serve", "minicodex"], stdout=subprocess.PIPE, text=True)
host, port = server.stdout.readline().strip().split("//")[1].split("/")[0].split(":")
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
left, lock = [], threading.Lock()
def pump(a, b, client):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    if client:
        with lock:
            left.append(a)
            if len(left) == 7:
                print("cannot forget a client", file=sys.stderr, flush=True)
                server.kill()
                os._exit(4)
    for one in (a, b):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
while True:
    client, _ = listener.accept()
    onward = socket.create_connection((host, int(port)))
    threading.Thread(target=pump, args=(client, onward, True)).start()
    threading.Thread(target=pump, args=(onward, client, False)).start()
"#;

#[test]
fn a_server_that_ends_when_nobody_looks_is_told() {
    let folder = folder(
        "[target.leaves]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
         command = ['python3', 'leaves.py', 'BIN', '{{port}}']\n",
    );
    fs::write(folder.path().join("leaves.py"), LEAVES).expect("written");
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert_eq!(missing(&shown), 1, "{shown}");
    for part in [
        "good     are sessions isolated?",
        "MISSING  does it stay alive?            the server ended after a client had disconnected: process `leaves` exited with status 4",
        "leaves | cannot forget a client",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

/// A server that greets nobody: it exits when the second client connects, after a last word about it.
const DYING: &str = r#"
[target.dies]
protocol = 'minicodex'
url = 'ws://127.0.0.1:{{port}}/ws'
ports = { port = 0 }
command = ['python3', 'dies.py', '{{port}}']
"#;
const DIES: &str = r#"
import base64, hashlib, os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
served = 0
while True:
    client, _ = listener.accept()
    request = client.recv(65536).decode()
    if "Sec-WebSocket-Key: " not in request and "sec-websocket-key: " not in request.lower():
        continue
    key = [line.split(": ", 1)[1] for line in request.split("\r\n") if line.lower().startswith("sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    client.sendall(("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "
                    + accept + "\r\n\r\n").encode())
    client.recv(65536)
    served += 1
    if served == 2:
        print("cannot find the index of anything", file=sys.stderr, flush=True)
        os._exit(3)
"#;

/// How many things are told to be missing.
fn missing(shown: &str) -> usize {
    shown.lines().filter(|line| line.starts_with("MISSING")).count()
}

#[test]
fn one_thing_is_missing_at_a_time() {
    // The model is never asked, so that the turn does not end: one finding, with the reason.
    let (url, _) = hand::chat(hand::Tells::Nobody);
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", "chat", "--url", &url]);
    let config = format!(
        "[target.mute]\nprotocol = './chat/mychat'\nurl = '{url}?model={{{{model}}}}'\ntimeout-scale = 0.1\n"
    );
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert_eq!(missing(&shown), 1, "{shown}");
    assert!(shown.contains("MISSING  plain turn?"), "{shown}");
    assert!(
        shown.contains(
            "→ the scripted model received no request: its address is set in `url` of [target.mute]"
        ),
        "{shown}"
    );
    assert!(shown.ends_with("Fix this and run the doctor again: later steps were not tried.\n"), "{shown}");
}

#[test]
fn a_server_that_dies_is_said_to_have_died() {
    let folder = folder(DYING);
    fs::write(folder.path().join("dies.py"), DIES).expect("written");
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert_eq!(missing(&shown), 1, "{shown}");
    for part in [
        "MISSING  opening exchange?              the server died while this case ran: process `dies` exited with status 3",
        "→ the process ended during this step: its last lines of output are below",
        "dies | cannot find the index of anything",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert!(!shown.contains("is it this protocol, and this path?"), "{shown}");
    // Of one that says nothing there are no last lines.
    let says = "print(\"cannot find the index of anything\", file=sys.stderr, flush=True)";
    assert!(DIES.contains(says));
    fs::write(folder.path().join("dies.py"), DIES.replace(says, "pass")).expect("written");
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("during this step, without any output"), "{shown}");
    assert!(!shown.contains("are below"), "{shown}");
}

#[test]
fn what_the_baseline_knows_does_not_stop_the_doctor() {
    let bad =
        SERVED.replace("'minicodex', '--listen'", "'minicodex', '--fault', 'unknown-status', '--listen'");
    let folder = folder(&bad);
    let (code, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert_eq!(missing(&shown), 1, "{shown}");
    let known = |text: &str| fs::write(folder.path().join("k.yaml"), text).expect("written");
    known("known: [{ match: 'MC-*', reason: ticket 7 }]\n");
    let (code, shown, errors) = run(&folder, &["doctor", "--baseline", "k.yaml"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("known    plain turn?") && shown.contains("known to fail: ticket 7"), "{shown}");
    // What is known does not end the turn.
    assert!(shown.contains("good     does the cue reach the model?"), "{shown}");
    assert!(shown.contains("known    is approval requested?"), "{shown}");
    // So does the one of the target's table; and it excuses what it says, and no more.
    let config = format!("{bad}baseline = 'k.yaml'\n").replace("BIN", crate::support::target::BINARY);
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    assert_eq!(run(&folder, &["doctor"]).0, Some(0));
    known("known: [{ match: 'MC-*', message: another, reason: ticket 7 }]\n");
    assert_eq!(run(&folder, &["doctor"]).0, Some(1));
}

#[test]
fn approvals_are_not_missed_where_the_protocol_has_none() {
    let served = SERVED.replace("minicodex", "tinyvex");
    let (_, shown, errors) = run(&folder(&served), &["doctor"]);
    assert_eq!(missing(&shown), 0, "{shown}{errors}");
    assert!(
        shown.contains("good     is approval requested?") && shown.contains("the protocol has no approvals"),
        "{shown}"
    );
}

/// A leak stays one where the baseline knows what else is wrong in the same step. It is the last step.
#[test]
fn what_the_baseline_knows_of_a_step_does_not_excuse_a_leak() {
    let (url, _) = hand::chat(hand::Tells::All);
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", "chat", "--url", &url]);
    let config = format!(
        "[target.all]\nprotocol = './chat/mychat'\nurl = '{url}'\ntimeout-scale = 0.1\nbaseline = 'k.yaml'\n\
         overlay = ['apart.yaml']\nprompts = {{ '*' = '[[cue:eyJ2IjoxfQ]] frameproof-says was here' }}\n"
    );
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    fs::write(folder.path().join("apart.yaml"), "x-frameproof: { fuzzing: { isolated: [CH-1] } }\n")
        .expect("written");
    let known = |text: &str| fs::write(folder.path().join("k.yaml"), text).expect("written");
    for (message, code, told) in [
        ("is not allowed here", 1, "MISSING  are sessions isolated?         a message of one session"),
        ("a message of one session", 0, "known    are sessions isolated?         known to fail: ticket 7"),
    ] {
        known(&format!("known: [{{ match: 'target/*', message: {message}, reason: ticket 7 }}]\n"));
        let (got, shown, errors) = run(&folder, &["doctor"]);
        assert_eq!(got, Some(code), "{message}\n{shown}{errors}");
        assert!(shown.contains(told), "{shown}");
        assert!(!shown.contains("later steps were not tried"), "{shown}");
    }
    // What the protocol does not forbid is told, and nothing is missing.
    fs::write(folder.path().join("apart.yaml"), "{}\n").expect("written");
    known("known: [{ match: 'target/*', message: is not allowed here, reason: ticket 7 }]\n");
    let (got, shown, errors) = run(&folder, &["doctor"]);
    assert_eq!(got, Some(0), "{shown}{errors}");
    assert!(
        shown.contains("unknown  are sessions isolated?") && shown.contains("does not forbid it"),
        "{shown}"
    );
}
