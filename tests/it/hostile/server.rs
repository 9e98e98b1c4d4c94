//! A server of raw sockets that does what a row of a table says.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use crate::support::hand;

/// What a server does with a connection, once it is upgraded.
#[derive(Clone)]
pub struct Behaviour {
    /// Written at once.
    pub first: Vec<u8>,
    /// Written each time something of the client is read.
    pub each: Vec<u8>,
    pub then: Then,
}

/// What comes when `first` is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It reads on, until the client goes.
    Reads,
    /// It closes the connection.
    Goes,
    /// It writes `each` for ever, whatever is read.
    Floods,
}

impl Behaviour {
    /// Answers whatever comes with these bytes.
    pub fn answers(each: Vec<u8>) -> Self {
        Self { first: Vec::new(), each, then: Then::Reads }
    }

    /// Says these bytes at once, and reads on.
    pub fn says(first: Vec<u8>) -> Self {
        Self { first, each: Vec::new(), then: Then::Reads }
    }

    /// Starts a server that does this with every connection. Its URL.
    pub fn serve(self) -> String {
        self.serve_after(0, "")
    }

    /// The same behind so many connections on which it is mute, with lines of its own in the answer to the upgrade.
    pub fn serve_after(self, mute: usize, lines: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
        let this = Arc::new(self);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let (this, lines) = if number < mute {
                    (Arc::new(Self::says(Vec::new())), "")
                } else {
                    (Arc::clone(&this), lines)
                };
                std::thread::spawn(move || this.act(stream, lines));
            }
        });
        url
    }

    fn act(&self, mut stream: TcpStream, lines: &str) -> Option<()> {
        hand::upgrade_with(&mut stream, lines);
        stream.write_all(&self.first).ok()?;
        if self.then == Then::Goes {
            return stream.shutdown(Shutdown::Both).ok();
        }
        if self.then == Then::Floods {
            loop {
                stream.write_all(&self.each).ok()?;
            }
        }
        let mut buffer = [0; 1 << 16];
        while stream.read(&mut buffer).ok()? > 0 {
            stream.write_all(&self.each).ok()?;
        }
        Some(())
    }
}

/// A frame of a server, with its shortest length.
pub fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | opcode];
    match payload.len() {
        length @ 0..126 => bytes.push(u8::try_from(length).expect("short")),
        length @ 126..65536 => {
            bytes.push(126);
            bytes.extend(u16::try_from(length).expect("short").to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// A text frame.
pub fn said(text: &str) -> Vec<u8> {
    frame(1, text.as_bytes())
}
