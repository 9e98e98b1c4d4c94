//! The scripted model as a process of its own, and a plain HTTP client for it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};

use super::Served;

/// The key of every request.
pub const KEY: &str = "sk-this-must-stay-secret";

/// `frameproof model` in a process of its own, with its log.
pub struct Model {
    pub served: Served,
    pub log: PathBuf,
    _folder: tempfile::TempDir,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Model {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log.jsonl");
        let served = Served::command("model", &["--log", log.to_str().expect("UTF-8")]);
        Self { served, log, _folder: folder }
    }

    pub fn open(&self) -> TcpStream {
        let address = self.served.url.strip_prefix("http://").expect("its base URL");
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        stream
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.open();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {KEY}\r\nx-api-key: {KEY}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .expect("sent");
        stream
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut bytes = Vec::new();
        self.send(method, path, headers, body).read_to_end(&mut bytes).expect("an answer");
        parse(&bytes)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, "", &body.to_string())
    }

    /// Lines of the log, once there are as many as this.
    pub fn log(&self, lines: usize) -> Vec<Value> {
        let begin = Instant::now();
        loop {
            let text = fs::read_to_string(&self.log).expect("a log");
            let whole: Vec<Value> = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
                .map(|line| serde_json::from_str(line).expect("JSON"))
                .collect();
            if whole.len() >= lines {
                return whole;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{lines} lines awaited:\n{text}");
            std::thread::yield_now();
        }
    }
}

pub fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("the end of the head");
    let head = String::from_utf8(bytes[..end].to_vec()).expect("UTF-8").to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let rest = &bytes[end + 4..];
    let body = if head.contains("transfer-encoding: chunked") { unchunk(rest) } else { rest.to_vec() };
    Answer { status, head, body: String::from_utf8(body).expect("UTF-8") }
}

/// The content of a chunked body, as far as it came.
pub fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let length =
            usize::from_str_radix(std::str::from_utf8(&bytes[..end]).expect("hex"), 16).expect("hex");
        if length == 0 {
            break;
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 4 + length..];
    }
    body
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The events of a stream: name and data.
    pub fn events(&self) -> Vec<(String, Value)> {
        assert_eq!(self.header("content-type"), Some("text/event-stream; charset=utf-8"), "{}", self.body);
        assert!(self.body.ends_with("\n\n"), "{}", self.body);
        let event = |block: &str| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            let data = field("data: ").unwrap_or_else(|| panic!("no data: {block}"));
            let data =
                if data == "[DONE]" { json!("[DONE]") } else { serde_json::from_str(data).expect("JSON") };
            (field("event: ").unwrap_or_default().to_owned(), data)
        };
        self.body.trim_end().split("\n\n").map(event).collect()
    }

    /// The names of a stream's events, each of which must be its data's type as well.
    pub fn names(&self) -> Vec<String> {
        let named = |(name, data): (String, Value)| {
            assert_eq!(data["type"], name.as_str());
            name
        };
        self.events().into_iter().map(named).collect()
    }
}

pub fn cue(steps: Value) -> String {
    let json = json!({ "v": 1, "turn": steps }).to_string();
    format!("please [[cue:{}]] now", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json))
}

/// A request of each API for this text; the two that can hold a conversation in messages first.
pub fn requests(text: &str, stream: bool) -> [(&'static str, Value); 3] {
    let messages = json!([{ "role": "user", "content": text }]);
    [
        ("/v1/chat/completions", json!({ "model": "any/name:1", "stream": stream, "messages": messages })),
        (
            "/v1/messages",
            json!({ "model": "any/name:1", "stream": stream, "max_tokens": 10, "messages": messages }),
        ),
        ("/v1/responses", json!({ "model": "any/name:1", "stream": stream, "input": text })),
    ]
}

/// Reasoning, text, two calls; then more text.
pub fn rich() -> String {
    cue(json!([
        { "think": ["h", "m"] }, { "say": ["Hel", "", "lo"] },
        { "call": { "name": "write_note", "args": { "key": "k", "text": "ünïcode" } } },
        { "call": { "name": "read_note", "args": {} } }, { "say": ["done"] },
    ]))
}
