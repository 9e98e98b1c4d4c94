//! Exchanges a second of the live fuzzer against those of bare tokio-tungstenite ping-pong loops with the same server: the
//! built-in one, in a process of its own. Prints a table; interleaved rounds, medians.
//!
//! `cargo bench --bench fuzz`; `benches/peers/pingpong.py` does the same loops in Python.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use frameproof::fuzz::Testbed;
use frameproof::fuzz::campaign::{CampaignOptions, campaign};
use frameproof::protocol::{LoadOptions, Protocol};
use frameproof::run::{RunOptions, Target};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

const PROTOCOL: &str = "minicodex";
const HELLO: &str =
    r#"{"type":"hello","v":"1.0.0","client_capabilities":["approvals","replay","reasoning"]}"#;
const PING: &str = r#"{"type":"ping","nonce":1}"#;
const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_secs(3);

struct Served(Child, String);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve() -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_frameproof"))
        .args(["serve", PROTOCOL])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut url).expect("its URL");
    Served(child, url.trim().to_owned())
}

/// One connection that sends a wrong ping when the one before is answered: with an error, as most inputs of a campaign are.
async fn one(url: String, until: Instant) -> u64 {
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("a connection");
    socket.send(Message::text(HELLO)).await.expect("sent");
    let mut count = 0;
    while Instant::now() < until {
        socket.send(Message::text(PING)).await.expect("sent");
        loop {
            let message = socket.next().await.expect("open").expect("a frame");
            if message.to_text().is_ok_and(|text| text.contains("\"error\"")) {
                break;
            }
        }
        count += 1;
    }
    count
}

async fn bare(url: &str, connections: usize) -> f64 {
    let clock = Instant::now();
    let until = clock + TIME;
    let tasks: Vec<_> = (0..connections).map(|_| tokio::spawn(one(url.to_owned(), until))).collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("a count");
    }
    count as f64 / clock.elapsed().as_secs_f64()
}

async fn fuzzed(protocol: &Arc<Protocol>, url: &str, jobs: usize) -> f64 {
    let target = Target::Url { url: url.to_owned(), headers: Vec::new() };
    let testbed = Testbed::open(Arc::clone(protocol), target, RunOptions::default()).await;
    let testbed = testbed.unwrap_or_else(|error| panic!("{error}"));
    let options = CampaignOptions {
        seed: 1,
        iterations: None,
        time: Some(TIME),
        slack: Duration::from_secs(1),
        jobs,
        deadline: Duration::from_secs(5),
        corpus: Vec::new(),
        max_findings: 50,
        max_growth: u64::MAX,
        reproduce: String::new(),
    };
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let report = campaign(testbed, options, &mut |_| {}, stopped).await;
    report.progress.sent as f64 / report.progress.time.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let protocol = Protocol::embedded(PROTOCOL, &LoadOptions::default());
    let protocol = protocol.unwrap_or_else(|error| panic!("{error}"));
    let served = serve();
    for connections in [1, 4, 16] {
        let (mut loops, mut campaigns) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            loops.push(runtime.block_on(bare(&served.1, connections)));
            campaigns.push(runtime.block_on(fuzzed(&protocol, &served.1, connections)));
        }
        let (bare, fuzzed) = (median(loops), median(campaigns));
        println!(
            "{connections:>2} side by side: bare loops {bare:>7.0}/s  the live fuzzer {fuzzed:>7.0}/s  quotient {:.2}",
            fuzzed / bare
        );
    }
}
