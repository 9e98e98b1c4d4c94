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
    let ran = servers.map(|act| {
        let url = served(act);
        let place = folder.path().to_owned();
        std::thread::spawn(move || {
            let report = format!("{}.xml", url.rsplit([':', '/']).nth(1).expect("a port"));
            let ran = measured(&place, &["run", "minicodex", "--url", &url, "--junit", &report]);
            (ran, place.join(report).is_file())
        })
    });
    for ran in ran {
        let (ran, written) = ran.join().expect("it ran");
        assert_eq!(ran.code, Some(1), "{}", ran.shown());
        assert!(ran.took < BOUND, "{:?}", ran.took);
        assert!(written && ran.out.contains("not conformant"), "{}", ran.out);
    }
}
