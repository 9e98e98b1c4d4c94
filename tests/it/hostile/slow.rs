//! Servers that keep a client waiting: the whole suite ends all the same, with a verdict.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::process::measured;
use super::server::said;
use crate::support::hand;

/// What is promised is three minutes; each of these takes some ten seconds.
const BOUND: Duration = Duration::from_secs(120);

fn served(act: fn(&mut TcpStream) -> std::io::Result<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                hand::upgrade(&mut stream);
                act(&mut stream)
            });
        }
    });
    url
}

fn greets_and_is_mute(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&said(r#"{"type":"welcome","v":"1.0.0"}"#))?;
    while stream.read(&mut [0; 4096])? > 0 {}
    Ok(())
}

fn takes_its_time_for_each_frame(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        std::thread::sleep(Duration::from_millis(4500));
        stream.write_all(&said(r#"{"type":"heartbeat","interval_ms":15000}"#))?;
    }
}

fn sends_fragments_for_ever(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&[0x01, 1, b'{'])?;
    loop {
        std::thread::sleep(Duration::from_millis(10));
        stream.write_all(&[0x00, 1, b' '])?;
    }
}

#[test]
fn a_whole_suite_ends_with_its_verdict_however_slow_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers: [fn(&mut TcpStream) -> std::io::Result<()>; 3] =
        [greets_and_is_mute, takes_its_time_for_each_frame, sends_fragments_for_ever];
    let ran = servers.into_iter().flat_map(|act| ["8", "1"].map(|jobs| (act, jobs))).map(|(act, jobs)| {
        let url = served(act);
        let place = folder.path().to_owned();
        std::thread::spawn(move || {
            let report = format!("{}.xml", url.rsplit([':', '/']).nth(1).expect("a port"));
            let ran = measured(&place, &["run", "minicodex", "--url", &url, "-j", jobs, "--junit", &report]);
            (ran, place.join(report).is_file())
        })
    });
    for ran in ran.collect::<Vec<_>>() {
        let (ran, written) = ran.join().expect("it ran");
        assert_eq!(ran.code, Some(1), "{}", ran.shown());
        assert!(ran.took < BOUND, "{:?}", ran.took);
        assert!(written && ran.out.contains("not conformant"), "{}", ran.out);
        assert!(!ran.out.contains("time limit"), "each case has come to its end: {}", ran.out);
    }
}

/// When it is over at the latest is said at the beginning, and named where it is reached.
#[test]
fn the_end_of_a_run_is_announced() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = served(takes_its_time_for_each_frame);
    let run = ["run", "minicodex", "--url", &url, "-j", "2", "--json", "e.jsonl"];
    let begins = |further: &[&str]| {
        let ran = measured(folder.path(), &[&run[..], further].concat());
        let events = std::fs::read_to_string(folder.path().join("e.jsonl")).expect("written");
        let started = events.lines().next().expect("it has started");
        let started: serde_json::Value = serde_json::from_str(started).expect("an event");
        (ran, started["ends_within"].as_f64())
    };
    let (ran, within) = begins(&["--time", "3s"]);
    assert_eq!(within, Some(3.0));
    assert!(ran.out.contains(" reading, at most 3.0s)"), "{}", ran.out);
    assert!(ran.out.contains("the time limit of the run, 3.0s, was reached"), "{}", ran.out);

    // A minute, and for each case four seconds: two run at a time.
    let (ran, within) = begins(&["handshake/hello-w*", "--fail-fast"]);
    let header = ran.out.lines().next().expect("a header");
    let cases = header.split('(').nth(1).and_then(|rest| rest.split(' ').next()).expect("a number");
    let expected = 60.0 + 2.0 * cases.parse::<f64>().expect("a number of cases");
    assert_eq!(within, Some(expected), "{header}");
    let said = format!("at most {}m{:02}s)", expected as u64 / 60, expected as u64 % 60);
    assert!(header.ends_with(&said), "{said}: {header}");

    let (ran, within) = begins(&["handshake/hello-w*", "--fail-fast", "--no-deadline", "--time", "2s"]);
    assert_eq!(within, Some(2.0), "{}", ran.out);
    let reference = measured(folder.path(), &["run", "minicodex", "handshake/hello-w*", "--reference"]);
    assert!(!reference.out.contains("at most"), "the reference server is prompt: {}", reference.out);
}
