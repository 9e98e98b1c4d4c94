//! Frames a second received over a loopback socket from a server that sends each as soon as it can: a bare
//! tokio-tungstenite loop, against frameproof's connection with every check. Both are tasks of the same runtime, as cases
//! are when they run. Prints a table; interleaved rounds, medians.
//!
//! The bare loop throws the frames away and waits for the server, whose writes are most of what is measured there: it has
//! one core to itself, and the receiving side the other. On a machine that is busy otherwise, the two share what is left,
//! and the quotient falls.

#[path = "support/frames.rs"]
mod frames;

use std::sync::Arc;
use std::time::{Duration, Instant};

use frameproof::check::Judge;
use frameproof::frame::Limits;
use frameproof::trace::{Direction, Event};
use frameproof::wire::{Endpoint, Incoming, Link, LinkMode};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

const CHUNKS: usize = 20_000;
const ROUNDS: usize = 9;

/// Sends all frames to every client, one WebSocket message and one flush each.
async fn serve(listener: TcpListener, frames: Arc<Vec<String>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { continue };
        for frame in frames.iter() {
            if socket.send(Message::text(frame.clone())).await.is_err() {
                break;
            }
        }
    }
}

async fn bare(url: String, count: usize) -> Duration {
    let (mut socket, _) = tokio_tungstenite::connect_async(&url).await.expect("a connection");
    let clock = Instant::now();
    for _ in 0..count {
        std::hint::black_box(socket.next().await.expect("a frame").expect("a frame"));
    }
    clock.elapsed()
}

async fn checked(url: String, turn: Arc<frames::Turn>) -> Duration {
    let mut judge = Judge::new(Arc::clone(&turn.protocol), Limits::default(), &[]).expect("monitors");
    turn.sent.iter().for_each(|text| drop(judge.observe(&frames::event(Direction::Send, text))));
    let endpoint = Endpoint {
        url,
        headers: Vec::new(),
        max_message: 1 << 20,
        deadline: Duration::from_secs(5),
        trust: frameproof::wire::Trust::default(),
        mutation: None,
    };
    let (sender, mut receiver) = mpsc::channel(256);
    let _link = Link::open(&endpoint, 1, sender, LinkMode::Messages).await.expect("a connection");
    let client: Arc<str> = "c".into();
    let clock = Instant::now();
    for _ in 0..turn.received.len() {
        let Incoming { payload, .. } = receiver.recv().await.expect("a frame");
        let event = Event {
            at: clock.elapsed(),
            case: None,
            client: Arc::clone(&client),
            dir: Direction::Recv,
            payload,
            why: None,
        };
        assert!(judge.observe(&event).violations.is_empty(), "the frames are right");
    }
    clock.elapsed()
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let turn = Arc::new(runtime.block_on(frames::turn(CHUNKS)));
    let count = turn.received.len();
    let texts = Arc::new(turn.received.clone());
    // The server has a runtime, and so a core, of its own.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address")).expect("a listener");
            serve(listener, texts).await;
        });
    });
    let url = format!("ws://{}/", told.recv().expect("an address"));
    let (mut plain, mut full) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let bare = runtime.spawn(bare(url.clone(), count));
        plain.push(runtime.block_on(bare).expect("it ends"));
        let checked = runtime.spawn(checked(url.clone(), Arc::clone(&turn)));
        full.push(runtime.block_on(checked).expect("it ends"));
    }
    let plain = frames::median(plain);
    let bytes = turn.received.iter().map(String::len).sum::<usize>() / count;
    println!("{count} frames of {bytes} bytes over loopback, medians of {ROUNDS} rounds");
    for (label, time) in
        [("bare tokio-tungstenite loop", plain), ("connection + all checks", frames::median(full))]
    {
        println!("{label:<28} {:>10.0} frames/s   {:.2} of bare", count as f64 / time, plain / time);
    }
}
