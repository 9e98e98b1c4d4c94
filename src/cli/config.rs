//! `frameproof.toml`: defaults for the options of `run`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Failure, usage};

/// The file that is read from the working folder if it is there.
const NAME: &str = "frameproof.toml";

/// Defaults for `run`. A flag given on the command line wins.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Config {
    /// The server's URL.
    pub url: Option<String>,
    /// Extra headers, `Name: value`.
    #[serde(default)]
    pub header: Vec<String>,
    /// Cases side by side.
    pub jobs: Option<usize>,
    /// Factor on every deadline.
    pub timeout_scale: Option<f64>,
    /// Times that a failed case is run again.
    pub retries: Option<u32>,
    /// Warnings are failures.
    pub strict: Option<bool>,
    /// `strict`, `default` or `lenient`.
    pub reading: Option<String>,
    /// Known failures.
    pub baseline: Option<PathBuf>,
    /// Merge patches on the protocol.
    #[serde(default)]
    pub overlay: Vec<PathBuf>,
    /// Where to write JUnit XML.
    pub junit: Option<PathBuf>,
    /// Where to write JSON lines.
    pub json: Option<PathBuf>,
}

impl Config {
    /// Reads the named file, or the one of the working folder if there is one.
    pub fn read(named: Option<&Path>) -> Result<Self, Failure> {
        let path = match named {
            Some(path) => path.to_owned(),
            None if Path::new(NAME).is_file() => PathBuf::from(NAME),
            None => return Ok(Self::default()),
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| usage(format!("{} cannot be read: {error}", path.display())))?;
        toml::from_str(&text).map_err(|error| usage(format!("{}: {error}", path.display())))
    }
}
