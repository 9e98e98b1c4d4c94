//! Frames a second, each against the bare library in the same run: parsing alone, with schema validation, and the whole
//! offline check (parse, schema, monitors). Prints a table; interleaved rounds, medians.

#[path = "support/frames.rs"]
mod frames;

use std::sync::Arc;
use std::time::{Duration, Instant};

use frameproof::check::Judge;
use frameproof::frame::{Limits, parse};
use frameproof::trace::{Direction, Event};
use serde_json::Value;

const CHUNKS: usize = 20_000;
const ROUNDS: usize = 9;

fn timed(work: impl FnOnce()) -> Duration {
    let clock = Instant::now();
    work();
    clock.elapsed()
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let turn = runtime.block_on(frames::turn(CHUNKS));
    let sent = turn.sent.iter().map(|text| frames::event(Direction::Send, text));
    let sent: Vec<Event> = sent.collect();
    let received: Vec<Event> =
        turn.received.iter().map(|text| frames::event(Direction::Recv, text)).collect();
    let (mut bare, mut parsed, mut valid, mut checked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(timed(|| {
            for text in &turn.received {
                std::hint::black_box(serde_json::from_slice::<Value>(text.as_bytes()).expect("JSON"));
            }
        }));
        parsed.push(timed(|| {
            for text in &turn.received {
                std::hint::black_box(parse(text.as_bytes(), &Limits::default()).expect("a frame"));
            }
        }));
        valid.push(timed(|| {
            for text in &turn.received {
                let frame = parse(text.as_bytes(), &Limits::default()).expect("a frame");
                let message = turn.protocol.message_of(&frame, Direction::Recv).expect("a message");
                assert!(turn.protocol.messages[message].validate(&frame).is_empty(), "it is valid");
            }
        }));
        let mut judge = Judge::new(Arc::clone(&turn.protocol), Limits::default(), &[]).expect("monitors");
        sent.iter().for_each(|event| drop(judge.observe(event)));
        checked.push(timed(|| {
            for event in &received {
                assert!(judge.observe(event).violations.is_empty(), "the frames are right");
            }
        }));
    }
    let bare = frames::median(bare);
    let (count, bytes) = (turn.received.len(), turn.received.iter().map(String::len).sum::<usize>());
    println!("{count} frames of {} bytes, medians of {ROUNDS} rounds", bytes / count);
    for (label, time) in [
        ("bare serde_json", bare),
        ("frame parser", frames::median(parsed)),
        ("parse + schema", frames::median(valid)),
        ("parse + schema + monitors", frames::median(checked)),
    ] {
        println!("{label:<28} {:>10.0} frames/s   {:.2} of bare", count as f64 / time, bare / time);
    }
}
