//! A trace on its way into a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Event, write_line};

/// A trace that is being written. It appears under its name whole, once it is finished; dropped before, it leaves
/// nothing behind.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    file: std::io::BufWriter<tempfile::NamedTempFile>,
    buffer: Vec<u8>,
}

impl TraceFile {
    /// Begins a trace that will stand at `path`; its folder must exist.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".frameproof-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = std::io::BufWriter::new(builder.tempfile_in(folder)?);
        Ok(Self { path: path.to_owned(), file, buffer: Vec::new() })
    }

    /// Appends an event.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&mut self, event: &Event) -> std::io::Result<()> {
        self.buffer.clear();
        write_line(event, &mut self.buffer);
        self.file.write_all(&self.buffer)
    }

    /// Puts the trace in its place.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(self) -> std::io::Result<()> {
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}
