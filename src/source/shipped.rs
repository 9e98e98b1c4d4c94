//! Files that ship with the binary: `build.rs` has read their YAML, and tests see to it that nothing is wrong with them.

use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde_json::Value;

use super::{Diagnostics, Document};
use crate::shortage;

static SHIPPED: Dir<'_> = include_dir!("$OUT_DIR/shipped");

/// What `build.rs` writes of a file.
#[derive(Deserialize)]
struct Known {
    value: Value,
    lines: Vec<usize>,
}

/// A file that ships with the binary.
pub(crate) struct Shipped {
    /// The file.
    pub document: Document,
    /// Of a scenario file, the line of each case, from 1.
    pub lines: Vec<usize>,
}

impl Shipped {
    /// The file at a path in the repository, with this text.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn new(path: &str, text: &'static str) -> Result<Self, Diagnostics> {
        shortage::look_at_once();
        let known =
            SHIPPED.get_file(Path::new(path)).map(|file| serde_json::from_slice::<Known>(file.contents()));
        Ok(match known {
            Some(Ok(Known { value, lines })) => {
                Self { document: Document::shipped(path, text, value), lines }
            }
            _ => Self { document: Document::parse(path, text)?, lines: Vec::new() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Part;

    fn each(folder: &Dir<'_>, found: &mut Vec<String>) {
        folder.dirs().for_each(|folder| each(folder, found));
        found.extend(folder.files().map(|file| file.path().display().to_string()));
    }

    #[test]
    fn what_was_read_when_the_binary_was_built_is_what_stands_in_the_files() {
        let mut files = Vec::new();
        each(&SHIPPED, &mut files);
        assert!(files.len() > 50, "{files:?}");
        for path in files {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(root.join(&path)).expect("the file").leak();
            let shipped = Shipped::new(&path, text).expect("it is read");
            assert!(shipped.document.is_shipped(), "{path} was not read by build.rs");
            let parsed = Document::parse(&path, text).expect("YAML");
            assert!(shipped.document.value == parsed.value, "{path}");
            let cases = parsed.value["cases"].as_array().map_or(0, Vec::len);
            let line = |index| {
                let name = parsed.span(&format!("/cases/{index}/name"), Part::Key);
                parsed.place(name.start).0
            };
            assert_eq!(shipped.lines, (0..cases).map(line).collect::<Vec<_>>(), "{path}");
        }
    }
}
