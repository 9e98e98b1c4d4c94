//! `frameproof explain`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::config::Config;
use super::config_check::Files;
use super::source::{Filter, Source};
use super::{Failure, usage};
use crate::exit::Exit;
use crate::protocol::{Protocol, Reading};
use crate::reference;
use crate::report::clip;
use crate::scenario::{LoadedCase, Outline};

/// Explain a requirement, an ambiguity and its answers, a case, or a kind of monitor.
#[derive(Debug, Args)]
#[command(
    override_usage = "frameproof explain [OPTIONS] [NAME] <ID>\n       frameproof explain --monitor <NAME>"
)]
pub(super) struct Explain {
    /// The id of a requirement (MC-ORD-1), of an ambiguity (MC-AMB-31) or of a case
    /// (approval/deny-does-not-run-the-tool). The name of a shipped protocol before it chooses among cases of one name.
    #[arg(value_name = "ID", required_unless_present = "monitor", num_args = 1..=2)]
    words: Vec<String>,
    /// Explain a kind of monitor instead: its parameters, a trace that passes, and one that fails.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["words", "protocol", "scenario", "config"])]
    monitor: Option<String>,
    /// A protocol folder of your own, or a shipped protocol's name.
    #[arg(long, value_name = "PATH|NAME")]
    protocol: Option<PathBuf>,
    /// A scenario file or folder of your own, instead of the shipped ones. May be repeated.
    #[arg(long, value_name = "PATH")]
    scenario: Vec<PathBuf>,
    /// Read protocol and scenarios from this configuration instead of frameproof.toml of the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Explain {
    pub fn run(self) -> Result<Exit, Failure> {
        if let Some(monitor) = &self.monitor {
            write!(super::out(), "{}", super::monitors::explain(monitor)?)?;
            return Ok(Exit::Passed);
        }
        let name = match &self.words[..] {
            [name, _] => Some(name.clone()),
            _ => None,
        };
        if let Some(name) = &name {
            Protocol::embedded_files(name)?;
        }
        let one_protocol = self.protocol.is_some() || name.is_some();
        let mut own = Source {
            name,
            protocol: self.protocol.clone(),
            scenario: self.scenario.clone(),
            ..Source::default()
        };
        let config = Config::read(self.config.as_deref())?;
        config.fill(&mut own, &mut Filter::default());
        config.check(&own, Files::default())?;
        let is_own = own.protocol.is_some() || own.name.is_some();
        let named = own.name.clone();
        // The configuration's protocol first; the others, too, unless the command line names one.
        let mut sources = if is_own { vec![own] } else { Vec::new() };
        if !one_protocol {
            let others =
                Protocol::embedded_names().into_iter().filter(|name| named.as_deref() != Some(*name));
            sources.extend(others.map(|name| Source { name: Some(name.to_owned()), ..Source::default() }));
        }
        // Protocols that cannot have it need not be loaded, unless it is nowhere.
        let likely = sources.iter().filter(|source| source.may_have(self.id())).cloned().collect();
        if self.find(likely)?.is_none() {
            return Ok(Exit::Passed);
        }
        let Some(known) = self.find(sources)? else { return Ok(Exit::Passed) };
        let is_case = self.id().contains('/');
        let id = if is_case { self.id().to_owned() } else { self.id().to_uppercase() };
        let near = crate::source::nearest(&id, known.iter().map(String::as_str));
        let hint = match near {
            Some(near) => format!("did you mean {near}?"),
            None if is_case => "`frameproof list NAME` lists a protocol's cases".to_owned(),
            None => "`frameproof list --requirements` lists them".to_owned(),
        };
        let what = if is_case { "case" } else { "requirement" };
        Err(usage(format!("unknown {what} `{}`", self.id()), &hint))
    }

    /// What is to be explained; with `--monitor` nothing.
    fn id(&self) -> &str {
        self.words.last().map(String::as_str).unwrap_or_default()
    }

    /// Shows what has the id: the first requirement or ambiguity, or all cases. None was shown: the ids that there are.
    fn find(&self, sources: Vec<Source>) -> Result<Option<Vec<String>>, Failure> {
        let (mut known, mut shown) = (Vec::new(), false);
        for mut source in sources {
            let protocol = source.protocol(&mut Filter::default())?;
            let id = protocol.requirements.0.keys().find(|id| id.eq_ignore_ascii_case(self.id()));
            if let Some(id) = id {
                show(&protocol, &source.outlines(&protocol)?, id)?;
                return Ok(None);
            }
            let readings = &protocol.extension.readings;
            if let Some(id) = readings.keys().find(|id| id.eq_ignore_ascii_case(self.id())) {
                show_reading(&protocol, id)?;
                return Ok(None);
            }
            let outlines = source.outlines(&protocol)?;
            // Two protocols can have cases of one name.
            if outlines.iter().any(|case| case.id == self.id()) {
                for case in source.cases(&protocol)?.iter().filter(|case| case.id == self.id()) {
                    show_case(&protocol, case, source.scenario.is_empty())?;
                }
                shown = true;
            }
            known.extend(protocol.requirements.0.keys().chain(readings.keys()).cloned());
            known.extend(outlines.into_iter().map(|case| case.id));
        }
        Ok((!shown).then_some(known))
    }
}

/// The answers of an ambiguity, a line each. Where they are one, it is written once.
fn answers(reading: &Reading) -> String {
    let all = [("default", &reading.default), ("strict", &reading.strict), ("lenient", &reading.lenient)];
    if all.iter().all(|(_, answer)| **answer == reading.default) {
        return format!("    every reading: {}", reading.default);
    }
    all.map(|(name, answer)| format!("    {name:<8} {answer}")).join("\n")
}

/// An ambiguity: what it is about, its answers, and the requirements that depend on it.
fn show_reading(protocol: &Protocol, id: &str) -> Result<Exit, Failure> {
    let Some(reading) = protocol.extension.readings.get(id) else { return Ok(Exit::Passed) };
    let mut out = super::out();
    writeln!(out, "{id} ({}, ambiguity)\n  {}", protocol.title, reading.topic)?;
    writeln!(out, "{}", answers(reading))?;
    let depend = protocol.requirements.0.values().filter(|one| one.reading.as_deref() == Some(id));
    let depend: Vec<_> = depend.collect();
    writeln!(out, "  requirements that depend on it:{}", if depend.is_empty() { " none" } else { "" })?;
    for one in depend {
        writeln!(out, "    {} {} {}", one.id, one.level, one.text)?;
    }
    let others = [("strict", &reading.strict), ("lenient", &reading.lenient)];
    let others = others.iter().filter(|(_, answer)| **answer != reading.default);
    let others: Vec<String> = others.map(|(name, _)| format!("`--reading {name}`")).collect();
    if !others.is_empty() {
        writeln!(out, "  {} takes another answer", others.join(" or "))?;
    }
    Ok(Exit::Passed)
}

/// A case: its title, what it covers, and its text.
fn show_case(protocol: &Protocol, case: &LoadedCase, embedded: bool) -> Result<(), Failure> {
    let mut out = super::out();
    writeln!(out, "{} ({}): {}", case.id, protocol.title, case.case.title)?;
    writeln!(out, "  {}:{}{}", case.file, case.line, if embedded { ", embedded in frameproof" } else { "" })?;
    writeln!(out, "  covers: {}\n", case.covered().join(" "))?;
    writeln!(out, "{}", case.source())?;
    Ok(())
}

fn show(protocol: &Protocol, cases: &[Outline], id: &str) -> Result<Exit, Failure> {
    let Some(requirement) = protocol.requirements.get(id) else { return Ok(Exit::Passed) };
    let mut out = super::out();
    writeln!(
        out,
        "{id} {} ({}, {})\n  {}",
        requirement.level, protocol.title, requirement.area, requirement.text
    )?;
    writeln!(out, "  source: {}", requirement.source)?;
    if let Some((id, reading)) =
        requirement.reading.as_ref().and_then(|id| Some((id, protocol.extension.readings.get(id)?)))
    {
        writeln!(out, "  reading {id}: {}", reading.topic)?;
        writeln!(out, "{}", answers(reading))?;
    }
    if let Some(why) = &requirement.unobservable {
        writeln!(out, "  not observable: {why}")?;
    }
    if let Some(why) = &requirement.unexercised {
        writeln!(out, "  not exercised: {why}")?;
    }
    let deciders = Deciders::index(protocol, cases).of(id);
    writeln!(out, "  decided by:{}", if deciders.is_empty() { " nothing" } else { "" })?;
    for decider in deciders {
        writeln!(out, "    {decider}")?;
    }
    let faults: Vec<_> =
        reference::faults(&protocol.name).iter().filter(|fault| fault.violates.contains(&id)).collect();
    if !faults.is_empty() {
        writeln!(out, "  violated by faults of the reference server:")?;
        for fault in faults {
            writeln!(out, "    {}: {}", fault.name, fault.title)?;
        }
    }
    Ok(Exit::Passed)
}

/// What decides each requirement of a protocol: schema places, invariants, exchanges and cases, as text.
pub(super) struct Deciders<'p> {
    protocol: crate::protocol::Deciders<'p>,
    cases: BTreeMap<&'p str, Vec<&'p Outline>>,
}

impl<'p> Deciders<'p> {
    pub fn index(protocol: &'p Protocol, cases: &'p [Outline]) -> Self {
        let mut by_id: BTreeMap<&str, Vec<&Outline>> = BTreeMap::new();
        for case in cases {
            for id in &case.covered {
                by_id.entry(id).or_default().push(case);
            }
        }
        Self { protocol: crate::protocol::Deciders::index(protocol), cases: by_id }
    }

    pub fn is_decided(&self, id: &str) -> bool {
        !self.protocol.of(id).is_empty() || self.cases.contains_key(id)
    }

    pub fn of(&self, id: &str) -> Vec<String> {
        let of_protocol = self.protocol.of(id).iter().map(ToString::to_string);
        let cases = self.cases.get(id).into_iter().flatten();
        let told = |case: &Outline| format!("case {}: {}", case.id, clip::sentence(&case.title));
        of_protocol.chain(cases.map(|case| told(case))).collect()
    }
}
