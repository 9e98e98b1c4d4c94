//! Which protocol and which cases a command is about.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use globset::{Glob, GlobMatcher};

use super::{Failure, usage};
use crate::protocol::{LoadOptions, Protocol, ReadingName};
use crate::scenario::{self, LoadedCase};

/// Where protocol and scenarios come from.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Source {
    /// A protocol that ships with frameproof.
    pub name: Option<String>,
    /// A protocol folder of your own.
    #[arg(long, value_name = "PATH", conflicts_with = "name")]
    pub protocol: Option<PathBuf>,
    /// A scenario file or folder of your own, instead of the shipped ones. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub scenario: Vec<PathBuf>,
    /// A JSON Merge Patch on the protocol, for a server that deviates in known ways. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub overlay: Vec<PathBuf>,
    /// Which answer to take where the protocol's document is ambiguous.
    #[arg(long, value_name = "READING", value_parser = ["strict", "default", "lenient"])]
    pub reading: Option<String>,
}

/// Which cases.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Filter {
    /// Only cases whose id matches this glob, such as `abort/*`. May be repeated.
    #[arg(long = "case", value_name = "GLOB")]
    pub cases: Vec<String>,
    /// Only cases that cover a requirement that matches this glob, such as `MC-APR-*`. May be repeated.
    #[arg(long = "requirement", value_name = "GLOB")]
    pub requirement_globs: Vec<String>,
}

impl Source {
    pub fn protocol(&self) -> Result<Arc<Protocol>, Failure> {
        let reading = match self.reading.as_deref() {
            Some("strict") => ReadingName::Strict,
            Some("lenient") => ReadingName::Lenient,
            _ => ReadingName::Default,
        };
        let options = LoadOptions { reading, overlays: self.overlay.clone() };
        match (&self.protocol, &self.name) {
            (Some(path), _) => Ok(Protocol::load(path, &options)?),
            (None, Some(name)) => Ok(Protocol::embedded(name, &options)?),
            (None, None) => match Protocol::embedded_names().as_slice() {
                [only] => Ok(Protocol::embedded(only, &options)?),
                names => Err(usage(format!("name a protocol: {}", names.join(", ")))),
            },
        }
    }

    pub fn cases(&self, protocol: &Protocol) -> Result<Vec<LoadedCase>, Failure> {
        if self.scenario.is_empty() {
            return Ok(scenario::embedded(protocol)?);
        }
        let mut cases = Vec::new();
        for path in &self.scenario {
            cases.extend(scenario::load(path, protocol)?);
        }
        Ok(cases)
    }

    /// The arguments that select the same again, for `reproduce`.
    pub fn arguments(&self) -> String {
        let mut text = String::new();
        if let Some(name) = &self.name {
            text += &format!(" {}", quote(name));
        }
        let paths = self.protocol.iter().map(|path| ("protocol", path));
        let paths = paths.chain(self.scenario.iter().map(|path| ("scenario", path)));
        for (flag, path) in paths.chain(self.overlay.iter().map(|path| ("overlay", path))) {
            text += &format!(" --{flag} {}", quote(&path.display().to_string()));
        }
        if let Some(reading) = &self.reading {
            text += &format!(" --reading {reading}");
        }
        text
    }
}

/// A word as a shell takes it.
pub(super) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn globs(patterns: &[String]) -> Result<Vec<GlobMatcher>, Failure> {
    let compile = |pattern: &String| Glob::new(pattern).map(|glob| glob.compile_matcher());
    patterns
        .iter()
        .map(|pattern| compile(pattern).map_err(|error| usage(format!("no glob: {error}"))))
        .collect()
}

impl Filter {
    /// The selected cases.
    pub fn select(&self, cases: Vec<LoadedCase>) -> Result<Vec<LoadedCase>, Failure> {
        let (by_case, by_requirement) = (globs(&self.cases)?, globs(&self.requirement_globs)?);
        let total = cases.len();
        let chosen: Vec<LoadedCase> = cases
            .into_iter()
            .filter(|case| by_case.is_empty() || by_case.iter().any(|glob| glob.is_match(&case.id)))
            .filter(|case| {
                let ids = covered(case);
                by_requirement.is_empty()
                    || by_requirement.iter().any(|glob| ids.iter().any(|id| glob.is_match(id)))
            })
            .collect();
        if chosen.is_empty() {
            let patterns: Vec<&String> = self.cases.iter().chain(&self.requirement_globs).collect();
            let text = format!("error: nothing selected: none of {total} cases matches {patterns:?}");
            return Err(Failure::Nothing(text + "\nhint: `frameproof list` shows the cases"));
        }
        Ok(chosen)
    }
}

/// Every requirement that a case or one of its steps covers.
pub(super) fn covered(case: &LoadedCase) -> Vec<String> {
    fn collect(steps: &[crate::scenario::model::Step], ids: &mut Vec<String>) {
        for step in steps {
            ids.extend(step.covers.iter().cloned());
            collect(step.unchanged.as_deref().unwrap_or_default(), ids);
            step.parallel.iter().flatten().for_each(|branch| collect(branch, ids));
        }
    }
    let mut ids = case.case.covers.clone();
    collect(&case.case.steps, &mut ids);
    ids.sort();
    ids.dedup();
    ids
}
