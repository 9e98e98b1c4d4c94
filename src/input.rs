//! Files that are read whole: looked at before they are read, and no further than they may be long.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest scenario, protocol, overlay, baseline or configuration, in bytes.
pub(crate) const DOCUMENT: u64 = 32 << 20;
/// Longest file of certificates.
pub(crate) const CERTIFICATES: u64 = 8 << 20;

/// Opens a file to read it. A FIFO is refused, for nobody may ever write to it: but for one that this process was given open.
///
/// # Errors
/// The file system's, or what it is instead of a file.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let about = std::fs::metadata(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let given = ["/dev/", "/proc/"].iter().any(|place| path.starts_with(place));
        if about.file_type().is_fifo() && !given {
            return Err(std::io::Error::other(
                "it is a FIFO, which may never end: read it into a file first",
            ));
        }
    }
    if about.is_dir() {
        return Err(std::io::Error::other("it is a folder"));
    }
    File::open(path)
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// As [`open`]; and that it is longer.
pub(crate) fn read(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::Error::other(format!(
            "it is longer than {} MiB, the limit of such a file",
            most >> 20
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "12345").expect("written");
        assert_eq!(read(&file, 5).expect("short enough"), b"12345");
        assert!(read(&file, 4).is_err_and(|error| error.to_string().contains("longer than")));
        assert!(read(folder.path(), 5).is_err_and(|error| error.to_string().contains("folder")));
        assert!(
            read(Path::new("/dev/zero"), 1 << 20).is_err_and(|error| error.to_string().contains("1 MiB"))
        );
        assert_eq!(read(Path::new("/dev/null"), 5).expect("empty"), b"");
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        assert!(read(&fifo, 5).is_err_and(|error| error.to_string().contains("FIFO")));
    }
}
