//! Writing a report so that it is there whole or not at all.

use std::io::Write;
use std::path::Path;

/// Writes to a temporary file in the same folder and renames it into place. Missing folders are made.
///
/// # Errors
/// The path and the reason.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let work = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".frameproof-");
        // As any other file is made: whoever collects reports may be another user.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    work().map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Whether a report could be written there, found out before the run.
///
/// # Errors
/// The path and the reason.
pub fn check_writable(path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let work = || -> std::io::Result<()> {
        if path.is_dir() {
            return Err(std::io::Error::other("it is a folder"));
        }
        std::fs::create_dir_all(folder)?;
        tempfile::Builder::new().prefix(".frameproof-").tempfile_in(folder).map(drop)
    };
    work().map_err(|error| format!("{} cannot be written: {error}", path.display()))
}
