//! Servers with one session for all clients, and servers that are slow to let go of a connection.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use crate::support::target::{SERVED, folder, run};
use crate::support::{Served, frameproof, hand};

#[test]
fn cases_with_several_sessions_do_not_apply_to_a_server_with_one() {
    let folder = folder(&format!("{SERVED}sessions = 1\n"));
    let case = |name: &str, session: &str| {
        format!(
            "  - name: {name}\n    title: Two clients\n    steps:\n      - open: a\n      - open: b\n        session: {session}\n"
        )
    };
    let cases = format!("family: s\ncases:\n{}{}", case("same", "main"), case("other", "other"));
    fs::write(folder.path().join("s.yaml"), cases).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--scenario", "s.yaml", "-v"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("1 passed") && shown.contains("1 not applicable"), "{shown}");
    assert!(shown.contains("it needs two sessions: the target has one session for all clients"), "{shown}");
}

/// A chat server that notices the end of a connection at leisure: how many were open at most when another one came.
fn lingering() -> (String, Arc<AtomicUsize>) {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&most);
    let url = hand::serve(move |stream| {
        let (open, most) = (Arc::clone(&open), Arc::clone(&counted));
        async move {
            most.fetch_max(open.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            if let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await {
                while let Some(Ok(said)) = socket.next().await {
                    if said.is_text() {
                        let welcome = Message::text(r#"{"type":"welcome","room":"lobby"}"#);
                        let _ = socket.send(welcome).await;
                    }
                }
                // The closing handshake is done; what the connection held is tidied up.
                tokio::time::sleep(Duration::from_millis(40)).await;
                open.fetch_sub(1, Ordering::SeqCst);
                drop(socket);
            }
        }
    });
    (url, most)
}

#[test]
fn the_next_case_begins_behind_the_end_of_the_tcp_connection_where_there_is_one_session() {
    let (url, most) = lingering();
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", ".", "--url", &url]);
    let config =
        format!("[target.x]\nprotocol = './mychat'\nscenario = ['s.yaml']\nurl = '{url}'\nsessions = 1\n");
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let case = "    title: Opens\n    settle: false\n    steps:\n      - open: a\n";
    let cases: String = (0..4).map(|number| format!("  - name: c{number}\n{case}")).collect();
    fs::write(folder.path().join("s.yaml"), format!("family: s\ncases:\n{cases}")).expect("written");
    let (_, shown, errors) = run(&folder, &["run", "--target", "x", "--quiet-period", "20ms"]);
    assert!(shown.contains("4 passed"), "{shown}{errors}");
    assert_eq!(most.load(Ordering::SeqCst), 0, "a connection came while another was open");
}

/// A chat server that asks the model while it holds a lock that all sessions share, as one with a database may.
const LOCKS: &str = r#"
import base64, hashlib, json, socket, struct, sys, threading, urllib.request
lock = threading.Lock()
def frame(text):
    data = text.encode()
    head = bytes([0x81, len(data)]) if len(data) < 126 else bytes([0x81, 126]) + struct.pack(">H", len(data))
    return head + data
def read(stream):
    head = stream.read(2)
    if len(head) < 2 or head[0] & 15 == 8:
        return None
    size = head[1] & 127
    if size == 126:
        size = struct.unpack(">H", stream.read(2))[0]
    mask = stream.read(4)
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(stream.read(size))).decode()
def serve(client):
    stream = client.makefile("rb")
    key = None
    while (line := stream.readline().decode().strip()):
        if line.lower().startswith("sec-websocket-key:"):
            key = line.split(":", 1)[1].strip()
    if key is None:
        return
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    client.sendall(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    while (text := read(stream)) is not None:
        said = json.loads(text)
        if said["type"] == "hello":
            client.sendall(frame('{"type":"welcome","room":"lobby"}'))
            continue
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": said["text"]}]}).encode()
        request = urllib.request.Request(sys.argv[2] + "/v1/chat/completions", body, {"content-type": "application/json"})
        with lock:
            answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
        client.sendall(frame(json.dumps({"type": "said", "seq": 1, "text": answer or ""})) + frame('{"type":"done","seq":2}'))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

#[test]
fn a_hang_of_the_model_ends_with_the_case_that_left_it() {
    let folder = tempfile::tempdir().expect("a folder");
    frameproof(folder.path(), &["init", ".", "--url", "ws://x/"]);
    fs::write(folder.path().join("locks.py"), LOCKS).expect("written");
    let config = "[target.x]\nprotocol = './mychat'\nscenario = ['s.yaml']\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
                  command = ['python3', 'locks.py', '{{port}}', '{{model}}']\nsessions = 1\n";
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let cases = "family: s\ncases:\n\
                 \x20 - name: leaves-it-hanging\n    title: Says nothing\n    turn: [{ hang: true }]\n    settle: false\n    steps:\n\
                 \x20     - open: a\n      - send: { type: say, text: '{{cue}}' }\n\
                 \x20 - name: says\n    title: Says\n    turn: [{ say: [hello] }]\n    settle: false\n    steps:\n\
                 \x20     - open: a\n      - send: { type: say, text: '{{cue}}' }\n      - expect: said\n        with: { text: hello }\n";
    fs::write(folder.path().join("s.yaml"), cases).expect("written");
    let (code, shown, errors) = run(&folder, &["run", "--target", "x", "--quiet-period", "100ms"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains("2 passed"), "{shown}");
}

/// Passes messages on to another server, and serves connections one after the other: each takes so long before its first frame.
fn queueing(behind: &str, long: Duration) -> String {
    let behind = behind.trim_start_matches("ws://").split('/').next().expect("an address").to_owned();
    let turn = Arc::new(tokio::sync::Mutex::new(()));
    hand::serve(move |mut client| {
        let (behind, turn) = (behind.clone(), Arc::clone(&turn));
        async move {
            let own = turn.lock().await;
            tokio::time::sleep(long).await;
            drop(own);
            let Ok(mut server) = tokio::net::TcpStream::connect(behind).await else { return };
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    })
}

/// Where more cases at a time only make each wait longer, fewer run, and none of them fails by that.
#[test]
fn a_server_that_opens_sessions_one_by_one_is_not_said_to_be_silent() {
    let behind = Served::start(&["minicodex"]);
    let url = queueing(&behind.url, Duration::from_millis(300));
    // With sixteen at a time the last would wait for almost five seconds, and a step for no more than half of that.
    let folder = folder(&format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 0.5\n"));
    let (code, shown, errors) = run(&folder, &["run", "--jobs", "16", "handshake/*", "snapshot/*"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(!shown.contains("FAIL"), "{shown}");
}

#[test]
fn what_an_overlay_switches_off_is_not_said_to_need_one() {
    let folder = folder(&format!("{}overlay = ['o.yaml']\n", SERVED.replace("minicodex", "agentloop")));
    let without = "x-frameproof: { capabilities: { approvals: { offered: 'no' } } }\n";
    fs::write(folder.path().join("o.yaml"), without).expect("written");
    let (_, shown, errors) = run(&folder, &["run", "approval/*", "-v"]);
    assert!(shown.contains("`approvals` is not offered, as the overlay says"), "{shown}{errors}");
    assert!(!shown.contains("is offered only if an overlay says so"), "{shown}");
    // Without one, it is the way to say that the server has it.
    let folder = folder_of_codelab();
    let (_, shown, errors) = run(&folder, &["run", "results/result-of-a-wrong-type", "-v"]);
    assert!(shown.contains("`object-results` is offered only if an overlay says so"), "{shown}{errors}");
}

fn folder_of_codelab() -> tempfile::TempDir {
    folder(&SERVED.replace("minicodex", "codelab").replace("/ws'", "/ws/{session_id}'"))
}

/// With several clients in the session, and with one.
#[test]
fn a_server_with_one_session_is_explored() {
    for protocol in ["minicodex", "agentloop"] {
        let folder = folder(&format!("{SERVED}sessions = 1\n").replace("minicodex", protocol));
        let arguments =
            ["explore", "--target", "mine", "--walks", "4", "--seed", "5", "--timeout-scale", "4"];
        let (code, shown, errors) = run(&folder, &arguments);
        assert_eq!(code, Some(0), "{shown}{errors}");
        assert!(shown.contains("0 findings in 4 walks"), "{shown}{errors}");
        assert!(!shown.contains("nothing is explored") && !shown.contains("left out"), "{shown}");
    }
}
