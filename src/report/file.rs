//! Writing a report so that it is there whole or not at all.

use std::io::Write;
use std::path::Path;

use crate::output::Output;
use crate::shortage;

/// Writes to a temporary file in the same folder and renames it into place. Missing folders are made. A symbolic link stays one;
/// a device or FIFO is written to.
///
/// # Errors
/// The path and the reason.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), String> {
    let work = || {
        let mut output = Output::create(path)?;
        output.write_all(text.as_bytes())?;
        output.finish()
    };
    work().map_err(|error| cannot(path, &error))
}

/// As [`write_atomically`], of what is written piece by piece.
///
/// # Errors
/// The path and the reason; or that of `write`.
pub fn write_in_pieces(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), String>,
) -> Result<(), String> {
    let mut output = Output::create(path).map_err(|error| cannot(path, &error))?;
    write(&mut output).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    output.finish().map_err(|error| cannot(path, &error))
}

/// Whether a report could be written there, found out before the run.
///
/// # Errors
/// The path and the reason.
pub fn check_writable(path: &Path) -> Result<(), String> {
    Output::check(path).map_err(|error| cannot(path, &error))
}

/// That no symbolic link on the way to a report leads out of the working folder.
///
/// # Errors
/// The path, and where it leads.
pub fn check_links(path: &Path) -> Result<(), String> {
    Output::check_links(path).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be written: {}", path.display(), shortage::describe(error))
}
