//! Servers made by hand for what they do wrong.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The headers of a request, and its body.
pub fn request(stream: &TcpStream) -> (Vec<String>, Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
    let (mut headers, mut line, mut length) = (Vec::new(), String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        headers.push(line.trim_end().to_owned());
        line.clear();
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    (headers, body)
}

/// Does the WebSocket handshake.
pub fn upgrade(stream: &mut TcpStream) {
    upgrade_with(stream, "");
}

/// The same, with lines of its own in the answer.
pub fn upgrade_with(stream: &mut TcpStream, lines: &str) {
    let (headers, _) = request(stream);
    accept(stream, &headers, lines);
}

/// Takes an upgrade whose headers have been read.
pub fn accept(stream: &mut TcpStream, headers: &[String], lines: &str) {
    let key = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.trim().to_owned())
    });
    let Some(key) = key else { return };
    let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
    let _ = write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n{lines}\r\n"
    );
}

/// Says this at once, if anything, and then nothing for ever: not even a close frame is returned.
pub fn mute(first: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                upgrade(&mut stream);
                if let Some(text) = first {
                    let length = u8::try_from(text.len()).expect("short");
                    assert!(length < 126);
                    let _ = stream.write_all(&[&[0x81, length], text.as_bytes()].concat());
                }
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            });
        }
    });
    url
}

/// Passes bytes on to another server for so many connections, then is gone with all of them.
pub fn survives(connections: usize, behind: &str) -> String {
    let behind = behind.trim_start_matches("ws://").split('/').next().expect("an address").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for _ in 0..connections {
            let Ok((client, _)) = listener.accept() else { return };
            let Ok(other) = TcpStream::connect(&behind) else { return };
            for (from, to) in [(&client, &other), (&other, &client)] {
                let (mut from, mut to) =
                    (from.try_clone().expect("a clone"), to.try_clone().expect("a clone"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
            open.push((client, other));
        }
        drop(listener);
        for (client, other) in open {
            let _ = client.shutdown(std::net::Shutdown::Both);
            let _ = other.shutdown(std::net::Shutdown::Both);
        }
    });
    url
}

/// Runs an accept loop of tokio in a thread; `serve` has each connection. Its URL.
pub fn serve<F, S>(serve: F) -> String
where
    F: Fn(tokio::net::TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let (told, url) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            told.send(format!("ws://{address}/ws")).expect("somebody waits");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
    });
    url.recv().expect("it listens")
}

/// Takes a client's connection, and opens one to another server for it.
async fn between(stream: tokio::net::TcpStream, behind: &str) -> Option<(Near, Far)> {
    let client = tokio_tungstenite::accept_async(stream).await.ok()?;
    let (server, _) = tokio_tungstenite::connect_async(behind).await.ok()?;
    Some((client, server))
}

type Near = tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>;
type Far = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// Passes the messages of another server on, but for those that `lost` picks.
pub fn losing(behind: &str, lost: fn(&str) -> bool) -> String {
    passing(behind, str::to_owned, move |text| (!lost(text)).then(|| text.to_owned()))
}

/// Passes the messages of another server on, each as `alter` makes it.
pub fn altered(behind: &str, alter: fn(&str) -> String) -> String {
    translated(behind, str::to_owned, alter)
}

/// The same, and those of its clients as `up` makes them.
pub fn translated(behind: &str, up: fn(&str) -> String, down: fn(&str) -> String) -> String {
    passing(behind, up, move |text| Some(down(text)))
}

/// Passes the messages of another server on: of its texts what `pass` leaves, of those of its clients what `up` makes of them.
fn passing(
    behind: &str,
    up: fn(&str) -> String,
    pass: impl Fn(&str) -> Option<String> + Copy + Send + Sync + 'static,
) -> String {
    let behind = behind.to_owned();
    serve(move |stream| {
        let behind = behind.clone();
        async move {
            let Some((client, server)) = between(stream, &behind).await else { return };
            let (mut to_client, from_client) = client.split();
            let (to_server, mut from_server) = server.split();
            let down = async {
                while let Some(Ok(message)) = from_server.next().await {
                    let passed = match &message {
                        Message::Text(text) => pass(text).map(Message::text),
                        _ => Some(message),
                    };
                    if let Some(message) = passed
                        && to_client.send(message).await.is_err()
                    {
                        return;
                    }
                }
            };
            let from_client = from_client.map(|message| {
                message.map(|message| match &message {
                    Message::Text(text) => Message::text(up(text)),
                    _ => message,
                })
            });
            tokio::select! { _ = from_client.forward(to_server) => {}, () = down => {} }
        }
    })
}

/// Passes the messages of another server on: those with this text to everybody who is connected.
pub fn shouting(behind: &str, part: &'static str) -> String {
    let behind = behind.to_owned();
    let everybody: Arc<Mutex<Vec<tokio::sync::mpsc::UnboundedSender<Message>>>> = Arc::default();
    serve(move |stream| {
        let (behind, everybody) = (behind.clone(), Arc::clone(&everybody));
        async move {
            let Some((client, server)) = between(stream, &behind).await else { return };
            let (mut to_client, from_client) = client.split();
            let (to_server, mut from_server) = server.split();
            let (own, mut due) = tokio::sync::mpsc::unbounded_channel();
            everybody.lock().expect("nobody panics").push(own.clone());
            let hear = async {
                while let Some(Ok(message)) = from_server.next().await {
                    let to_all = matches!(&message, Message::Text(text) if text.contains(part));
                    match to_all {
                        true => everybody
                            .lock()
                            .expect("nobody panics")
                            .retain(|one| one.send(message.clone()).is_ok()),
                        false => drop(own.send(message)),
                    }
                }
            };
            let say = async {
                while let Some(message) = due.recv().await {
                    if to_client.send(message).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! { _ = from_client.forward(to_server) => {}, () = hear => {}, () = say => {} }
        }
    })
}

/// Passes the messages of another server on, until a client's text bears this part: the connection is closed then, with code 1011.
pub fn closing(behind: &str, part: &'static str) -> String {
    let behind = behind.to_owned();
    serve(move |stream| {
        let behind = behind.clone();
        async move {
            let Some((mut client, mut server)) = between(stream, &behind).await else { return };
            loop {
                tokio::select! {
                    said = client.next() => match said {
                        Some(Ok(Message::Text(text))) if text.contains(part) => {
                            let frame = CloseFrame { code: CloseCode::Error, reason: "gone".into() };
                            let _ = client.close(Some(frame)).await;
                            while let Some(Ok(_)) = client.next().await {}
                            return;
                        }
                        Some(Ok(said)) if server.send(said.clone()).await.is_ok() => {}
                        _ => return,
                    },
                    said = server.next() => match said {
                        Some(Ok(said)) if client.send(said.clone()).await.is_ok() => {}
                        _ => return,
                    },
                }
            }
        }
    })
}

/// From when on a server says nothing more on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallsSilent {
    /// It takes the connection, and that is all.
    AtOnce,
    /// As soon as a client says what none of these texts stands in.
    BehindOpening(&'static [&'static str]),
    /// Behind the first frame that follows a client's frame with this text.
    InTurn(&'static str),
}

/// Passes the messages of another server on until it falls silent. It goes on reading, answers pings and returns close frames,
/// as a server does whose handler hangs.
pub fn falling_silent(behind: &str, when: FallsSilent) -> String {
    let behind = behind.to_owned();
    serve(move |stream| {
        let behind = behind.clone();
        async move {
            let Some((client, server)) = between(stream, &behind).await else { return };
            let (mut to_client, mut from_client) = client.split();
            let (mut to_server, mut from_server) = server.split();
            let mut silent = when == FallsSilent::AtOnce;
            let mut begun = false;
            loop {
                tokio::select! {
                    biased;
                    said = from_client.next() => {
                        let Some(Ok(said)) = said else { return };
                        if let Message::Text(text) = &said {
                            match when {
                                FallsSilent::BehindOpening(texts) => silent |= !texts.iter().any(|part| text.contains(part)),
                                FallsSilent::InTurn(start) => begun |= text.contains(start),
                                FallsSilent::AtOnce => {}
                            }
                        }
                        if !silent && said.is_text() && to_server.send(said).await.is_err() {
                            return;
                        }
                        // Pongs and close frames that are due.
                        if to_client.flush().await.is_err() {
                            return;
                        }
                    }
                    said = from_server.next(), if !silent => {
                        let Some(Ok(said)) = said else { return };
                        silent = begun && said.is_text();
                        if to_client.send(said).await.is_err() {
                            return;
                        }
                    }
                }
            }
        }
    })
}

/// Passes the messages of another server on, and answers nothing but messages with one of these texts for so long.
pub fn warming_up(behind: &str, long: std::time::Duration, openings: &'static [&'static str]) -> String {
    let behind = behind.to_owned();
    let until = std::time::Instant::now() + long;
    serve(move |stream| {
        let behind = behind.clone();
        async move {
            let Some((client, server)) = between(stream, &behind).await else { return };
            let (to_client, mut from_client) = client.split();
            let (mut to_server, from_server) = server.split();
            let up = async {
                while let Some(Ok(said)) = from_client.next().await {
                    let opens =
                        said.to_text().is_ok_and(|text| openings.iter().any(|part| text.contains(part)));
                    if !opens {
                        tokio::time::sleep_until(until.into()).await;
                    }
                    if to_server.send(said).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! { _ = from_server.forward(to_client) => {}, () = up => {} }
        }
    })
}

/// Whom a chat server tells what one client was told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// All clients.
    All,
    /// The one that came last.
    TheLast,
    /// Nobody.
    Nobody,
}

/// A chat server for the protocol that `frameproof init` writes; and how many clients it had at most at a time.
pub fn chat(tells: Tells) -> (String, Arc<AtomicUsize>) {
    let most = Arc::new(AtomicUsize::new(0));
    // Who is there, the last that came behind the others.
    let here: Arc<Mutex<BTreeMap<usize, tokio::sync::mpsc::UnboundedSender<String>>>> = Arc::default();
    let numbers = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&most);
    let url = serve(move |stream| {
        let (here, most, numbers) = (Arc::clone(&here), Arc::clone(&counted), Arc::clone(&numbers));
        async move {
            let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
            let (sender, mut news) = tokio::sync::mpsc::unbounded_channel();
            let number = numbers.fetch_add(1, Ordering::SeqCst);
            let there = || here.lock().expect("nobody panics");
            there().insert(number, sender);
            most.fetch_max(there().len(), Ordering::SeqCst);
            let mut seq = 0;
            loop {
                tokio::select! {
                    frame = socket.next() => match frame {
                        Some(Ok(Message::Text(text))) if text.contains("hello") => {
                            let welcome = Message::text(r#"{"type":"welcome","room":"lobby"}"#);
                            if socket.send(welcome).await.is_err() { break }
                        }
                        Some(Ok(Message::Text(text))) => {
                            let text: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                            let told = |(_, one): (&usize, &tokio::sync::mpsc::UnboundedSender<String>)| {
                                // Whoever goes at this moment hears it no more.
                                let _ = one.send(text["text"].to_string());
                            };
                            match tells {
                                Tells::All => there().iter().for_each(told),
                                Tells::TheLast => there().last_key_value().into_iter().for_each(told),
                                Tells::Nobody => {}
                            }
                        }
                        Some(Ok(_)) => {}
                        _ => break,
                    },
                    Some(text) = news.recv() => {
                        for (kind, text) in [("said", text), ("done", "\"\"".to_owned())] {
                            seq += 1;
                            let frame = format!(r#"{{"type":"{kind}","seq":{seq},"text":{text}}}"#);
                            if socket.send(Message::text(frame)).await.is_err() { break }
                        }
                    }
                }
            }
            there().remove(&number);
        }
    });
    (url, most)
}

/// Passes the first connections on to another server, so many, and takes all others without ever answering their upgrade.
pub fn freezing(connections: usize, behind: &str) -> String {
    let behind = behind.trim_start_matches("ws://").split('/').next().expect("an address").to_owned();
    let taken = Arc::new(AtomicUsize::new(0));
    serve(move |mut client| {
        let (behind, number) = (behind.clone(), taken.fetch_add(1, Ordering::SeqCst));
        async move {
            if number >= connections {
                // It is held open for as long as the test runs.
                return std::future::pending().await;
            }
            let Ok(mut server) = tokio::net::TcpStream::connect(behind).await else { return };
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    })
}

/// Passes connections on to another server while so many are there at most; of the others it never answers the upgrade. How many it has
/// not answered.
pub fn crowded(most: usize, behind: &str) -> (String, Arc<AtomicUsize>) {
    let behind = behind.trim_start_matches("ws://").split('/').next().expect("an address").to_owned();
    let (here, unanswered): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
    let refused = Arc::clone(&unanswered);
    let url = serve(move |mut client| {
        let (behind, here, refused) = (behind.clone(), Arc::clone(&here), Arc::clone(&refused));
        async move {
            if here.fetch_add(1, Ordering::SeqCst) < most {
                let Ok(mut server) = tokio::net::TcpStream::connect(behind).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            } else {
                refused.fetch_add(1, Ordering::SeqCst);
                let _ = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
            }
            here.fetch_sub(1, Ordering::SeqCst);
        }
    });
    (url, unanswered)
}
