//! NDJSON in.

use std::io::BufRead;

use super::Event;

/// Why a line is no event.
#[derive(Debug, thiserror::Error)]
#[error("{name}, line {line}: {message}")]
pub struct TraceError {
    /// The trace's name.
    pub name: String,
    /// Line from 1.
    pub line: usize,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// Reads a trace line by line, in bounded memory.
pub struct Reader<R> {
    _input: R,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`; `name` is what errors call it.
    pub fn new(_name: &str, input: R) -> Self {
        Self { _input: input }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, TraceError>;
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
