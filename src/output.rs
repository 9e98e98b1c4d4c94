//! A file on its way to its place: there whole or not at all; what is no file is written through.
//!
//! On Linux a file has no name until it is finished, so that nothing of it is left however this process ends.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};

/// Symbolic links that are followed one after another.
const LINKS: usize = 40;

/// Something that is being written. A regular file appears under its name once it is finished and stays what it was if this
/// is dropped before; a symbolic link stays a link to it. A device, a pipe or a FIFO is written to as it stands.
#[derive(Debug)]
pub struct Output(To);

#[derive(Debug)]
enum To {
    Place { file: Unfinished, place: PathBuf },
    Through(BufWriter<File>),
}

/// A regular file beside its place.
#[derive(Debug)]
enum Unfinished {
    /// The system forgets it when it is closed.
    #[cfg(target_os = "linux")]
    Nameless(BufWriter<File>),
    /// Where the file system knows no such files.
    Named(BufWriter<tempfile::NamedTempFile>),
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
                Ok(Self(To::Through(BufWriter::new(file))))
            }
            Place::File(place) => Ok(Self(To::Place { file: Unfinished::beside(&place)?, place })),
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
            Place::File(place) => Unfinished::beside(&place).map(drop),
        }
    }

    /// That no symbolic link on the way leads out of the working folder. Whoever names a path elsewhere knows where it is; a link in a
    /// folder of files that somebody else has written may lead anywhere.
    ///
    /// # Errors
    /// It does; or the file system's.
    pub fn check_links(path: &Path) -> std::io::Result<()> {
        match leads_out(path, &std::env::current_dir()?)? {
            Some(there) => Err(std::io::Error::other(format!(
                "a symbolic link leads out of this folder, to {}; --follow-links permits it",
                there.display()
            ))),
            None => Ok(()),
        }
    }

    /// Puts what was written in its place.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(self) -> std::io::Result<()> {
        match self.0 {
            To::Place { file, place } => file.finish(&place),
            To::Through(mut file) => file.flush(),
        }
    }
}

/// Writes a file that is there whole or not at all, in the place of whatever stands there: a symbolic link is replaced. Missing folders
/// are made.
///
/// # Errors
/// The file system's.
pub fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = Unfinished::beside(path)?;
    file.writer().write_all(text.as_bytes())?;
    file.finish(path)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.0 {
            To::Place { file, .. } => file.writer().write(bytes),
            To::Through(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.0 {
            To::Place { file, .. } => file.writer().flush(),
            To::Through(file) => file.flush(),
        }
    }
}

impl Unfinished {
    /// Made as any other file is made: whoever collects reports may be another user.
    fn beside(place: &Path) -> std::io::Result<Self> {
        let folder = folder(place);
        std::fs::create_dir_all(folder)?;
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless(folder) {
            return Ok(Self::Nameless(BufWriter::new(file)));
        }
        Ok(Self::Named(BufWriter::new(names().tempfile_in(folder)?)))
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => file,
            Self::Named(file) => file,
        }
    }

    fn finish(self, place: &Path) -> std::io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => {
                let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                match link(&file, place) {
                    // What stands there is replaced at once: by way of a name, which only a rename takes away.
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                        let named = names().make_in(folder(place), |name| link(&file, name))?;
                        named.persist(place).map(drop).map_err(|error| error.error)
                    }
                    other => other,
                }
            }
            Self::Named(file) => {
                let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                file.persist(place).map(drop).map_err(|error| error.error)
            }
        }
    }
}

fn names() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".frameproof-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// A file without a name. None: the file system has none, or it could not be given one later.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?;
    let file = File::from(file);
    own_name(&file).exists().then_some(file)
}

/// Under which this process finds an open file of its own.
#[cfg(target_os = "linux")]
fn own_name(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> std::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, own_name(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
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

/// Where a path leads that by its words lies below a folder, and does not. `here`: the folder, without links in it. A path that begins
/// with `..` is looked at from where these end; an absolute one elsewhere is taken by its word.
fn leads_out(path: &Path, here: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut base = here.to_owned();
    for word in path.components() {
        match word {
            Component::CurDir => {}
            Component::ParentDir => drop(base.pop()),
            _ => break,
        }
    }
    let written = here.join(path);
    if !by_words(&written).starts_with(&base) {
        return Ok(None);
    }
    let there = match (written.canonicalize(), place(&written)) {
        (Ok(there), _) => there,
        (Err(_), Ok(Place::File(place))) => {
            let real = |above: &Path| Some(above.canonicalize().ok()?.join(place.strip_prefix(above).ok()?));
            by_words(&place.ancestors().find_map(real).unwrap_or(place.clone()))
        }
        // A pipe, by the name that a process has for it.
        (Err(_), Ok(Place::Special)) => PathBuf::from("an open file of a process"),
        (Err(_), Err(error)) => return Err(error),
    };
    Ok((!there.starts_with(&base)).then_some(there))
}

/// An absolute path without `.` and `..`.
fn by_words(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for word in path.components() {
        match word {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
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
    fn a_link_that_leads_out_of_the_folder_is_known() {
        let base = tempfile::tempdir().expect("a folder");
        let base = base.path().canonicalize().expect("there");
        let here = base.join("here");
        std::fs::create_dir_all(here.join("sub")).expect("made");
        let link = |name: &str, to: &str| std::os::unix::fs::symlink(to, here.join(name)).expect("linked");
        for (name, to) in [
            ("out", "../elsewhere"),
            ("folder", ".."),
            ("chain", "sub/second"),
            ("sub/second", "/dev/null"),
            ("inside", "sub/file"),
            ("around", "../here/sub/file"),
        ] {
            link(name, to);
        }
        let told = |path: &str| leads_out(Path::new(path), &here).expect("looked at");
        assert_eq!(told("out"), Some(base.join("elsewhere")));
        assert_eq!(told("./sub/../out"), Some(base.join("elsewhere")));
        assert_eq!(told("folder/x/y"), Some(base.join("x/y")));
        assert_eq!(told("folder"), Some(base.clone()), "a folder that is there");
        assert_eq!(told("chain"), Some(PathBuf::from("/dev/null")));
        assert_eq!(told(&here.join("out").display().to_string()), Some(base.join("elsewhere")));
        for inside in ["inside", "around", "new", "new/er", "sub/new", "sub", "."] {
            assert_eq!(told(inside), None, "{inside}");
        }
        // Named by who writes the command.
        for elsewhere in ["../x", "/dev/null", "/dev/stdout", "sub/../../x"] {
            assert_eq!(told(elsewhere), None, "{elsewhere}");
        }
        std::os::unix::fs::symlink("/dev/null", base.join("beside")).expect("linked");
        assert_eq!(told("../beside"), Some(PathBuf::from("/dev/null")));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_not_finished_has_no_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        if nameless(folder.path()).is_none() {
            return;
        }
        for text in ["one", "two"] {
            let mut output = Output::create(&path).expect("begun");
            output.write_all(text.as_bytes()).expect("written");
            let there = std::fs::read_dir(folder.path()).expect("folder").count();
            assert_eq!(there, usize::from(text == "two"), "only what was finished before");
            output.finish().expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("there"), text);
            assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
        }
    }

    #[test]
    fn a_link_is_replaced_where_nothing_is_to_be_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        std::fs::write(&other, "kept").expect("written");
        std::os::unix::fs::symlink(&other, &path).expect("linked");
        replace(&path, "new").expect("written");
        assert!(!path.symlink_metadata().expect("there").is_symlink());
        assert_eq!(
            [&path, &other].map(|path| std::fs::read_to_string(path).expect("there")),
            ["new", "kept"]
        );
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
