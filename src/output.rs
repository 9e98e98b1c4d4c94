//! A file on its way to its place: there whole or not at all; what is no file is written through.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Symbolic links that are followed one after another.
const LINKS: usize = 40;

/// Something that is being written. A regular file appears under its name once it is finished and stays what it was if this
/// is dropped before; a symbolic link stays a link to it. A device, a pipe or a FIFO is written to as it stands.
#[derive(Debug)]
pub struct Output(To);

#[derive(Debug)]
enum To {
    Rename { file: std::io::BufWriter<tempfile::NamedTempFile>, place: PathBuf },
    Through(std::io::BufWriter<std::fs::File>),
}

/// What a path leads to.
enum Place {
    /// A regular file, or nothing yet: its path without links.
    File(PathBuf),
    /// Something else that can be written to.
    Special,
}

impl Output {
    /// Begins to write; missing folders are made. A FIFO is waited for until somebody reads it.
    ///
    /// # Errors
    /// The file system's; the path is a folder.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        match place(path)? {
            Place::Special => {
                let file = std::fs::OpenOptions::new().append(true).open(path)?;
                Ok(Self(To::Through(std::io::BufWriter::new(file))))
            }
            Place::File(place) => {
                let file = std::io::BufWriter::new(temporary(&place)?);
                Ok(Self(To::Rename { file, place }))
            }
        }
    }

    /// Whether something can be written there, found out beforehand. Missing folders are made.
    ///
    /// # Errors
    /// As [`Output::create`].
    pub fn check(path: &Path) -> std::io::Result<()> {
        match place(path)? {
            // To open one can mean to wait, or to disturb.
            Place::Special => Ok(()),
            Place::File(place) => temporary(&place).map(drop),
        }
    }

    /// Puts what was written in its place.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(self) -> std::io::Result<()> {
        match self.0 {
            To::Rename { file, place } => {
                let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                file.persist(&place).map(drop).map_err(|error| error.error)
            }
            To::Through(mut file) => file.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.0 {
            To::Rename { file, .. } => file.write(bytes),
            To::Through(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.0 {
            To::Rename { file, .. } => file.flush(),
            To::Through(file) => file.flush(),
        }
    }
}

/// A file beside the place, as any other file is made: whoever collects reports may be another user.
fn temporary(place: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = folder(place);
    std::fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".frameproof-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Follows links to what they mean. An open file of a process (`/dev/stdout`) is no file to be replaced: whoever opened it would
/// keep the old one.
fn place(path: &Path) -> std::io::Result<Place> {
    let mut at = path.to_owned();
    for _ in 0..LINKS {
        let Ok(found) = at.symlink_metadata() else { return Ok(Place::File(at)) };
        if found.is_dir() {
            return Err(std::io::Error::other("it is a folder"));
        }
        if !found.is_symlink() {
            return Ok(if found.is_file() { Place::File(at) } else { Place::Special });
        }
        if folder(&at).canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return Ok(Place::Special);
        }
        at = folder(&at).join(std::fs::read_link(&at)?);
    }
    Err(std::io::Error::other("too many symbolic links"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    fn write(path: &Path, text: &str) -> std::io::Result<()> {
        let mut output = Output::create(path)?;
        output.write_all(text.as_bytes())?;
        output.finish()
    }

    #[test]
    fn a_file_is_there_whole_or_stays_what_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/file");
        Output::check(&path).expect("writable");
        assert!(!path.exists());
        write(&path, "one").expect("written");
        let mut left = Output::create(&path).expect("begun");
        left.write_all(b"two").expect("written");
        drop(left);
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "one");
        assert_eq!(std::fs::read_dir(folder.path().join("deep/er")).expect("folder").count(), 1);
        assert!(Output::create(folder.path()).is_err() && Output::check(folder.path()).is_err());
    }

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("there")).expect("made");
        let link = |name: &str, to: &str| {
            let at = folder.path().join(name);
            std::os::unix::fs::symlink(to, &at).expect("linked");
            at
        };
        let (first, loops) = (link("first", "second"), link("loop", "loop"));
        link("second", "there/file");
        // First where the file is not there yet, then where it is.
        for text in ["new", "newer"] {
            write(&first, text).expect("written");
            assert!(first.symlink_metadata().expect("there").is_symlink());
            assert_eq!(std::fs::read_to_string(folder.path().join("there/file")).expect("there"), text);
        }
        assert!(Output::create(&loops).is_err());
        let null = link("null", "/dev/null");
        write(&null, "text").expect("written");
        assert!(null.symlink_metadata().expect("there").is_symlink());
        assert!(Path::new("/dev/null").metadata().expect("there").file_type().is_char_device());
    }

    #[test]
    fn an_open_file_of_a_process_is_written_to() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let mut open = std::fs::File::create(&path).expect("made");
        open.write_all(b"before ").expect("written");
        write(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())), "after").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "before after");
    }
}
