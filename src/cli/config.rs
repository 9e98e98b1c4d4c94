//! `frameproof.toml`: defaults for the options of `run`.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::config_check::{ConfigCheck, Files};
use super::preambles::Extent;
use super::source::{Filter, Reading, Source};
use super::{Failure, unreadable};
use crate::input;
use crate::source::{Document, decode};
use crate::target::TargetConfig;

/// The file that is read from the working folder if it is there.
const NAME: &str = "frameproof.toml";

/// `frameproof.toml`: defaults for `run`. An option given on the command line wins. Paths are relative to the file.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Config {
    /// A protocol that ships with frameproof.
    pub name: Option<String>,
    /// A protocol folder of your own, or a shipped protocol's name, instead of `name`.
    pub protocol: Option<PathBuf>,
    /// Scenario files or folders of your own, instead of the shipped ones.
    #[serde(default)]
    pub scenario: Vec<PathBuf>,
    /// Merge patches on the protocol.
    #[serde(default)]
    pub overlay: Vec<PathBuf>,
    /// Which answer applies where the protocol's document is ambiguous.
    pub reading: Option<Reading>,
    /// How the server spells the protocol's messages: `own`, a dialect of the protocol, or `auto` (the default).
    pub dialect: Option<String>,
    /// The server's URL.
    pub url: Option<String>,
    /// Headers of the upgrade request: `Name: value`, or `Name: env:VARIABLE`.
    #[serde(default)]
    pub header: Vec<String>,
    /// A PEM file with certificate authorities to trust in addition to the usual ones, for `wss://`.
    pub ca_file: Option<PathBuf>,
    /// Cases that run at the same time, from 1 to 1024.
    pub jobs: Option<Jobs>,
    /// Multiplies every deadline, and the time in which late effects are looked for, from 0.001 to 1000.
    pub timeout_scale: Option<Scale>,
    /// The silence that ends a turn in protocols without a final message: `500ms`, `2s`.
    pub quiet_period: Option<Quiet>,
    /// Stop after this many failed cases.
    pub fail_fast: Option<std::num::NonZeroUsize>,
    /// How often a failed case is repeated; one that then passes is flaky.
    pub retries: Option<u32>,
    /// Behind how many preambles whole suites are run: `few` (the default for servers of your own), `none`, `all`, or a number.
    pub preambles: Option<Extent>,
    /// How often everything is run.
    pub repeat: Option<std::num::NonZeroU32>,
    /// Seed of the random generator.
    pub seed: Option<u64>,
    /// Treat warnings as failures.
    pub strict: Option<bool>,
    /// A baseline: known failures that do not fail the run.
    pub baseline: Option<PathBuf>,
    /// Where to write every frame as NDJSON.
    pub trace: Option<PathBuf>,
    /// Where to write JUnit XML.
    pub junit: Option<PathBuf>,
    /// Where to write the run's events as JSON lines.
    pub json: Option<PathBuf>,
    /// Where to write the run as one page of HTML.
    pub html: Option<PathBuf>,
    /// Servers under test by name, for `--target`.
    #[serde(default)]
    pub target: IndexMap<String, TargetConfig>,
    /// The file's folder and text.
    #[serde(skip)]
    pub place: Option<(PathBuf, Document)>,
}

/// Cases side by side.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "u64")]
pub(super) struct Jobs(#[schemars(range(min = 1, max = 1024))] pub u16);

impl TryFrom<u64> for Jobs {
    type Error = String;

    fn try_from(jobs: u64) -> Result<Self, String> {
        let fits = u16::try_from(jobs).ok().filter(|jobs| (1..=1024).contains(jobs));
        fits.map(Self).ok_or_else(|| format!("{jobs} is not from 1 to 1024"))
    }
}

impl std::str::FromStr for Jobs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<u64>().map_err(|error| error.to_string())?.try_into()
    }
}

/// A factor on every deadline.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
pub(super) struct Scale(#[schemars(range(min = 0.001, max = 1000.0))] pub f64);

impl TryFrom<f64> for Scale {
    type Error = String;

    fn try_from(scale: f64) -> Result<Self, String> {
        let fits = (0.001..=1000.0).contains(&scale);
        fits.then_some(Self(scale))
            .ok_or_else(|| format!("a factor from 0.001 to 1000 is expected, not {scale}"))
    }
}

impl std::str::FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<f64>().map_err(|error| error.to_string())?.try_into()
    }
}

/// The silence that ends a turn.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub(super) struct Quiet(#[schemars(with = "String")] pub std::time::Duration);

impl TryFrom<String> for Quiet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Quiet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        crate::scenario::duration(text).map(Self)
    }
}

impl Config {
    /// Whether the working folder has one.
    pub fn is_here() -> bool {
        Path::new(NAME).symlink_metadata().is_ok()
    }

    /// Reads the named file, or the one of the working folder if there is one.
    pub fn read(named: Option<&Path>) -> Result<Self, Failure> {
        let path = match named {
            Some(path) => path,
            None if Path::new(NAME).is_file() => Path::new(NAME),
            None => return Ok(Self::default()),
        };
        let bytes = input::read(path, input::DOCUMENT).map_err(|error| unreadable(path, &error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            unreadable(path, &std::io::Error::new(std::io::ErrorKind::InvalidData, error))
        })?;
        let document = Document::toml(&path.display().to_string(), &text)?;
        let config: Self = decode(&document, "")?;
        let mut config = config;
        let shipped =
            config.protocol.as_deref().and_then(Path::to_str).filter(|word| Source::is_embedded(word));
        if let Some(name) = shipped.map(str::to_owned).filter(|_| config.name.is_none()) {
            (config.name, config.protocol) = (Some(name), None);
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut config = config.relative_to(folder);
        config.place = Some((folder.to_owned(), document));
        Ok(config)
    }

    /// Fills in what the command line leaves open of protocol and scenarios. `false`: the command line names another protocol
    /// than the file, whose server, scenarios and patches have nothing to do with it.
    pub fn fill(&self, source: &mut Source, filter: &mut Filter) -> bool {
        source.settle(filter);
        let own = self.name.is_some() || self.protocol.is_some();
        if own && source.protocol.is_none() && !source.name.as_deref().is_some_and(Source::is_embedded) {
            let folder = self.protocol.as_deref().and_then(Path::file_name).and_then(std::ffi::OsStr::to_str);
            // The file says which protocol: a bare word that is not its name is a filter.
            let word = source.name.take().filter(|word| folder != Some(word.as_str()));
            filter.globs.splice(0..0, word);
            source.name.clone_from(&self.name);
            source.protocol.clone_from(&self.protocol);
        }
        source.reading = source.reading.or(self.reading);
        source.dialect = source.dialect.take().or_else(|| self.dialect.clone());
        let same = match &self.protocol {
            Some(_) => source.protocol == self.protocol,
            None => self.name.is_none() || (source.protocol.is_none() && source.name == self.name),
        };
        if same {
            for (given, own) in [(&mut source.scenario, &self.scenario), (&mut source.overlay, &self.overlay)]
            {
                if given.is_empty() {
                    given.clone_from(own);
                }
            }
        }
        same
    }

    /// Checks what the file says and the command line leaves open, where that is not the target's matter; see [`ConfigCheck::check`].
    ///
    /// # Errors
    /// All that is wrong.
    pub fn check(&self, source: &Source, files: Files<'_>) -> Result<(), Failure> {
        let Some((_, document)) = &self.place else { return Ok(()) };
        let said = ConfigCheck { config: self, document, target: None };
        Ok(said.check(source, files).or(())?)
    }

    fn relative_to(mut self, folder: &Path) -> Self {
        let single = [
            &mut self.protocol,
            &mut self.ca_file,
            &mut self.baseline,
            &mut self.trace,
            &mut self.junit,
            &mut self.json,
            &mut self.html,
        ];
        let paths = single.into_iter().flatten().chain(&mut self.scenario).chain(&mut self.overlay);
        paths.for_each(|path| *path = folder.join(&*path));
        let targets = std::mem::take(&mut self.target).into_iter();
        self.target = targets.map(|(name, target)| (name, target.relative_to(folder))).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_place_and_hint() {
        for (text, parts) in [
            (
                "url = 'ws://x'\njbos = 3\n",
                &["unknown field `jbos`", "c.toml:2:1", "did you mean `jobs`?"][..],
            ),
            ("jobs = 0\n", &["0 is not from 1 to 1024", "c.toml:1:8"]),
            ("jobs = 'x'\n", &["c.toml:1:8"]),
            ("timeout-scale = 0.0\n", &["a factor from 0.001 to 1000", "c.toml:1:17"]),
            ("quiet-period = '2'\n", &["write `250ms` or `3s`", "c.toml:1:16"]),
            (
                "reading = 'stric'\n",
                &["\"stric\" is not one of the allowed values", "did you mean `strict`?", "c.toml:1:11"],
            ),
            ("url = \n", &["c.toml:1:"]),
            ("seed = -1\n", &["c.toml:1:8"]),
            // All at once.
            (
                "jbos = 1\nsede = 2\nstrict = 'yes'\n",
                &["c.toml:1:1", "c.toml:2:1", "did you mean `seed`?", "c.toml:3:10"],
            ),
        ] {
            let read = Document::toml("c.toml", text).and_then(|document| decode::<Config>(&document, ""));
            let shown = read.expect_err(text).to_string();
            for part in parts {
                assert!(shown.contains(part), "{part} is not in\n{shown}");
            }
        }
    }

    #[test]
    fn what_the_file_says_of_one_protocol_counts_for_no_other() {
        let own = "protocol = 'chat'\nscenario = ['s.yaml']\n";
        let names = crate::protocol::Protocol::embedded_names();
        let (one, two) = (names[0], names[1]);
        let named = &format!("name = '{one}'\nscenario = ['s.yaml']\n");
        let open = "scenario = ['s.yaml']\n";
        // The file, the word, and then: is it about the file's protocol, name, folder, filters.
        for (text, word, expected) in [
            (own, None, (true, None, Some("chat"), 0)),
            (own, Some("chat"), (true, None, Some("chat"), 0)),
            (own, Some("a/*"), (true, None, Some("chat"), 1)),
            (own, Some(one), (false, Some(one), None, 0)),
            (named, None, (true, Some(one), None, 0)),
            (named, Some(one), (true, Some(one), None, 0)),
            (named, Some(two), (false, Some(two), None, 0)),
            (open, Some(two), (true, Some(two), None, 0)),
        ] {
            let config: Config = toml::from_str(text).expect("valid");
            let mut source = Source { name: word.map(str::to_owned), ..Source::default() };
            let mut filter = Filter::default();
            let same = config.fill(&mut source, &mut filter);
            let folder = source.protocol.as_deref().and_then(Path::to_str);
            assert_eq!(
                (same, source.name.as_deref(), folder, filter.globs.len()),
                expected,
                "{text} {word:?}"
            );
            assert_eq!(!source.scenario.is_empty(), same, "{text} {word:?}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let config: Config =
            toml::from_str("baseline = 'b.yaml'\noverlay = ['/abs/o.yaml', 'o.yaml']\n").expect("valid");
        let config = config.relative_to(Path::new("conf"));
        assert_eq!(config.baseline.as_deref(), Some(Path::new("conf/b.yaml")));
        assert_eq!(config.overlay, [Path::new("/abs/o.yaml"), Path::new("conf/o.yaml")]);
    }
}
