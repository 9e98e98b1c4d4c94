//! What `frameproof.toml` says and what is not so: a path that is not there, a protocol that is none. At its place.

use std::path::Path;

use super::config::Config;
use super::source::{Filter, Source};
use crate::protocol::Protocol;
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token, nearest};

/// Where a target's table stands.
pub(super) fn table(target: &str) -> String {
    format!("/target/{}", escape_token(target))
}

/// Files beside those of protocol and scenarios: none where they are not read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Files<'f> {
    pub baseline: Option<&'f Path>,
    pub ca_file: Option<&'f Path>,
}

/// A configuration, and the target of it that is chosen.
pub(super) struct ConfigCheck<'c> {
    pub config: &'c Config,
    pub document: &'c Document,
    pub target: Option<&'c str>,
}

impl ConfigCheck<'_> {
    /// Where the value of a key comes from: the target's table, or the file's own. `is`: whether it is the value. Lists yield the place
    /// of the entry.
    fn place(&self, key: &str, is: impl Fn(&str) -> bool) -> Option<String> {
        let tables = self.target.map(table).into_iter().chain([String::new()]);
        tables.map(|table| format!("{table}/{key}")).find_map(|at| {
            let value = self.document.value.pointer(&at)?;
            let entry =
                value.as_array().map(|list| list.iter().position(|one| one.as_str().is_some_and(&is)));
            match entry {
                Some(index) => index.map(|index| format!("{at}/{index}")),
                None => value.as_str().is_some_and(&is).then_some(at),
            }
        })
    }

    fn folder(&self) -> &Path {
        self.config.place.as_ref().map_or(Path::new(""), |(folder, _)| folder)
    }

    /// An error where a file that the configuration names is not there. One that the command line names is none of ours.
    fn missing(&self, key: &str, path: &Path) -> Option<Diagnostic> {
        let error = std::fs::metadata(path).err()?;
        let at = self.place(key, |text| self.folder().join(text) == path)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let beside = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let names = std::fs::read_dir(beside).into_iter().flatten().flatten();
        let names: Vec<String> =
            names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let hint = match nearest(&name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{}`?", beside.join(near).display()),
            None => "a path is relative to the folder of this file".to_owned(),
        };
        let message = format!("{key}: {} cannot be read: {error}", path.display());
        Some(Diagnostic::new(message).at(self.document, &at, Part::Value).hint(hint))
    }

    /// An error where the configuration names a protocol that is none.
    fn no_protocol(&self, source: &Source) -> Option<Diagnostic> {
        let known = || Protocol::embedded_names().into_iter();
        let (at, word) = match (&source.protocol, &source.name) {
            (Some(path), _) if !path.exists() => {
                let at = self
                    .place("protocol", |text| self.folder().join(text) == *path || Path::new(text) == path)?;
                (at, path.display().to_string())
            }
            (None, Some(name)) if !Source::is_embedded(name) => {
                (self.place("name", |text| text == name)?, name.clone())
            }
            (None, None) => {
                let target = self.target?;
                let message = format!("the target `{target}` names no protocol");
                let hint = format!(
                    "protocol = \"NAME\": {}, or the path of a protocol folder",
                    known().collect::<Vec<_>>().join(", ")
                );
                return Some(
                    Diagnostic::new(message).at(self.document, &table(target), Part::Key).hint(hint),
                );
            }
            _ => return None,
        };
        let error = Diagnostic::new(format!("there is no protocol `{word}`, and no such folder"));
        Some(error.at(self.document, &at, Part::Value).suggest(word.trim_start_matches("./"), known()))
    }

    /// An error where the configuration names a dialect that the protocol has not.
    fn no_dialect(&self, source: &Source) -> Option<Diagnostic> {
        let dialect = source.dialect.as_deref().filter(|dialect| !["own", "auto"].contains(dialect))?;
        let at = self.place("dialect", |text| text == dialect)?;
        // What else is wrong with the protocol its loading tells.
        let mut plain = Source { dialect: None, ..source.clone() };
        let protocol = plain.protocol(&mut Filter::default()).ok()?;
        let dialects = &protocol.extension.dialects;
        let error = Diagnostic::new(format!("{} has no dialect `{dialect}`", protocol.name));
        let known = dialects.keys().map(String::as_str).chain(["own", "auto"]);
        let error = error.at(self.document, &at, Part::Value).suggest(dialect, known);
        (!dialects.contains_key(dialect)).then_some(error)
    }

    /// Everything of this kind that is wrong. `source`, `files`: what counts, wherever it was said.
    pub fn check(&self, source: &Source, files: Files<'_>) -> Diagnostics {
        let paths = source.scenario.iter().map(|path| ("scenario", path.as_path()));
        let paths = paths.chain(source.overlay.iter().map(|path| ("overlay", path.as_path())));
        let paths = paths.chain(source.schemas.iter().map(|path| ("schemas", path.as_path())));
        let paths = paths.chain(files.baseline.map(|path| ("baseline", path)));
        let paths = paths.chain(files.ca_file.map(|path| ("ca-file", path)));
        let mut errors: Vec<Diagnostic> = paths.filter_map(|(key, path)| self.missing(key, path)).collect();
        errors.extend(self.no_protocol(source));
        if errors.is_empty() {
            errors.extend(self.no_dialect(source));
        }
        Diagnostics(errors)
    }
}
