//! `serve` and `model` as processes that end with the test, whatever becomes of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::target::BINARY;

/// A server that is ended with the test.
pub struct Served {
    pub child: Child,
    pub address: String,
}

impl Served {
    pub fn start(arguments: &[&str]) -> Self {
        Self::of(Command::new(BINARY).args(arguments))
    }

    /// The same of a command that becomes the binary.
    pub fn of(command: &mut Command) -> Self {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("its URL");
        let address = line.split("//").nth(1).expect("a URL").trim().split('/').next().expect("an address");
        Self { child, address: address.to_owned() }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("taken");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        stream
    }

    /// All that is answered to this.
    pub fn answer(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        // An upgraded connection stays open.
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(length) => answer.extend_from_slice(&piece[..length]),
            }
        }
        if !answer.starts_with(b"HTTP/1.1 101") {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut answer);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
