//! A trace on its way into a file.

use std::path::Path;

use super::{Event, write_line};
use crate::output::Output;

/// A trace that is being written. It appears under its name whole, once it is finished; dropped before, it leaves
/// nothing behind. Only a device or a FIFO gets it as it comes.
#[derive(Debug)]
pub struct TraceFile {
    output: Output,
}

impl TraceFile {
    /// Begins a trace that will stand at `path`. A FIFO is waited for until somebody reads it.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self { output: Output::create(path)? })
    }

    /// Appends an event.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&mut self, event: &Event) -> std::io::Result<()> {
        write_line(event, &mut self.output)
    }

    /// Puts the trace in its place.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(self) -> std::io::Result<()> {
        self.output.finish()
    }
}
