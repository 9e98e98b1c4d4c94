//! The protocols that ship with the binary: every folder of `protocols/`.

use std::path::Path;
use std::sync::Arc;

use include_dir::{Dir, include_dir};

use super::load::{FILES, compile};
use super::{LoadOptions, Protocol};
use crate::source::{Diagnostic, Diagnostics, Shipped};

static PROTOCOLS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/protocols");

impl Protocol {
    /// The names of the protocols that ship with the binary, in alphabetical order.
    pub fn embedded_names() -> Vec<&'static str> {
        let mut names: Vec<&str> = PROTOCOLS.dirs().filter_map(|folder| folder.path().to_str()).collect();
        names.sort_unstable();
        names
    }

    /// The documents of a protocol that ships with the binary: file names and texts.
    ///
    /// # Errors
    /// An unknown name, with the nearest one as a hint.
    pub fn embedded_files(name: &str) -> Result<[(&'static str, &'static str); 2], Diagnostics> {
        let names = Self::embedded_names();
        if !names.contains(&name) {
            return Err(Diagnostic::new(format!("unknown protocol `{name}`")).suggest(name, names).into());
        }
        Ok(FILES.map(|file| {
            let text = PROTOCOLS.get_file(Path::new(name).join(file)).and_then(|file| file.contents_utf8());
            (file, text.unwrap_or_default())
        }))
    }

    /// Loads a protocol that ships with the binary.
    ///
    /// # Errors
    /// An unknown name (with the nearest one as a hint) or a bad overlay.
    pub fn embedded(name: &str, options: &LoadOptions) -> Result<Arc<Self>, Diagnostics> {
        let [api, catalogue] = Self::embedded_files(name)?
            .map(|(file, text)| Shipped::new(&format!("protocols/{name}/{file}"), text));
        compile(name, &api?.document, &catalogue?.document, options)
    }
}
