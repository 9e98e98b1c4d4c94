//! The protocols that ship with the binary: every folder of `protocols/`.

use std::path::Path;
use std::sync::Arc;

use include_dir::{Dir, include_dir};

use super::load::{FILES, compile};
use super::{LoadOptions, Protocol};
use crate::source::{Diagnostic, Diagnostics, Document};

static PROTOCOLS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/protocols");

impl Protocol {
    /// The names of the protocols that ship with the binary, in alphabetical order.
    pub fn embedded_names() -> Vec<&'static str> {
        let mut names: Vec<&str> = PROTOCOLS.dirs().filter_map(|folder| folder.path().to_str()).collect();
        names.sort_unstable();
        names
    }

    /// The documents of a protocol that ships with the binary: file names and texts. None for an unknown name.
    pub fn embedded_files(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
        FILES.into_iter().filter_map(move |file| {
            let path = Path::new(name).join(file);
            Some((file, PROTOCOLS.get_file(path)?.contents_utf8()?))
        })
    }

    /// Loads a protocol that ships with the binary.
    ///
    /// # Errors
    /// An unknown name (with the nearest one as a hint) or a bad overlay.
    pub fn embedded(name: &str, options: &LoadOptions) -> Result<Arc<Self>, Diagnostics> {
        let names = Self::embedded_names();
        if !names.contains(&name) {
            return Err(Diagnostic::new(format!("unknown protocol `{name}`")).suggest(name, names).into());
        }
        let read = |file: &str| {
            let text =
                Self::embedded_files(name).find(|(known, _)| *known == file).map_or("", |(_, text)| text);
            Document::parse(&format!("protocols/{name}/{file}"), text)
        };
        compile(name, &read(FILES[0])?, &read(FILES[1])?, options)
    }
}
