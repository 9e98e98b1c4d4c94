//! Frames a second, each against the bare library in the same run: parsing alone, and the whole offline check (parse,
//! schema, monitors). Prints a table; interleaved rounds, medians.

use std::sync::Arc;
use std::time::{Duration, Instant};

use frameproof::check::Judge;
use frameproof::frame::{Limits, parse};
use frameproof::protocol::{LoadOptions, Protocol};
use frameproof::trace::{Direction, Event, Payload};
use serde_json::Value;

const FRAMES: usize = 20_000;
const ROUNDS: usize = 9;

/// A logged text event of about 300 bytes, with a growing id.
fn frames(protocol: &Protocol) -> Vec<String> {
    let log = protocol.extension.log.as_ref().expect("the first protocol has a log");
    let key = log.id.as_str().trim_start_matches('/').to_owned();
    let message = protocol.messages.iter().filter(|message| message.dir == Direction::Recv);
    let example = message
        .flat_map(|message| &message.examples)
        .filter(|example| example.get(&key).is_some() && example.get("text").is_some())
        .max_by_key(|example| example.to_string().len())
        .expect("an example");
    (1..=FRAMES)
        .map(|id| {
            let mut frame = example.clone();
            frame[&key] = id.into();
            frame.to_string()
        })
        .collect()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let name = Protocol::embedded_names()[0];
    let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
    let frames = frames(&protocol);
    let events: Vec<Event> = frames
        .iter()
        .map(|frame| Event {
            at: Duration::ZERO,
            case: None,
            client: "c".into(),
            dir: Direction::Recv,
            payload: Payload::Text(Arc::from(frame.as_str())),
        })
        .collect();
    let (mut bare, mut parsed, mut checked) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let clock = Instant::now();
        for frame in &frames {
            std::hint::black_box(serde_json::from_slice::<Value>(frame.as_bytes()).expect("JSON"));
        }
        bare.push(clock.elapsed());
        let clock = Instant::now();
        for frame in &frames {
            std::hint::black_box(parse(frame.as_bytes(), &Limits::default()).expect("a frame"));
        }
        parsed.push(clock.elapsed());
        let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
        let clock = Instant::now();
        for event in &events {
            std::hint::black_box(judge.observe(event));
        }
        checked.push(clock.elapsed());
    }
    let bare = median(bare);
    let bytes: usize = frames.iter().map(String::len).sum();
    println!("{FRAMES} frames of {} bytes, medians of {ROUNDS} rounds", bytes / FRAMES);
    for (label, time) in [
        ("bare serde_json", bare),
        ("frame parser", median(parsed)),
        ("parse + schema + monitors", median(checked)),
    ] {
        println!("{label:<28} {:>10.0} frames/s   {:.2} of bare", FRAMES as f64 / time, bare / time);
    }
}
