//! `frameproof list`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::config::Config;
use super::config_check::Files;
use super::explain::Deciders;
use super::source::{Filter, Source, Suite};
use super::{Failure, nothing};
use crate::exit::Exit;
use crate::protocol::Requirement;
use crate::reference;
use crate::report::clip;
use crate::report::table::Table;
use crate::scenario::Outline;
use crate::shortage::Reads;

/// List protocols, cases, requirements and what decides them, or the tools that cases call.
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    filter: Filter,
    /// List requirements, each with what decides it: schema places, invariants, cases.
    #[arg(long)]
    requirements: bool,
    /// List the tools that cases have the model call: their classes, names and arguments.
    #[arg(long, conflicts_with = "requirements")]
    tools: bool,
    /// Read protocol and scenarios from this configuration instead of frameproof.toml of the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show the table of protocols, or that of tools, as Markdown.
    #[arg(long, conflicts_with = "requirements")]
    markdown: bool,
}

impl List {
    /// What this may have to read.
    pub fn reads(&self) -> Reads {
        if self.source.is_shipped() && self.config.is_none() && !Config::is_here() {
            Reads::Embedded
        } else {
            Reads::Documents(crate::input::DOCUMENT)
        }
    }

    pub fn run(mut self) -> Result<Exit, Failure> {
        let config = Config::read(self.config.as_deref())?;
        config.fill(&mut self.source, &mut self.filter);
        config.check(&self.source, Files::default())?;
        let suites = self.source.outlined(&mut self.filter)?;
        let is_table = self.markdown || (suites.len() > 1 && self.filter.is_empty());
        let suites =
            if self.requirements || self.tools || is_table { suites } else { self.filter.select(suites)? };
        // The process ends: what was loaded need not be freed piece by piece.
        let suites = suites.leak();
        if self.requirements {
            return self.requirements(suites);
        }
        if self.tools {
            return tools(suites, self.markdown);
        }
        if is_table { protocols(suites, self.markdown) } else { cases(suites) }
    }

    fn requirements(&self, suites: &[Suite<Outline>]) -> Result<Exit, Failure> {
        let mut out = super::out();
        let (mut decided, mut total) = (0, 0);
        for Suite { protocol, cases } in suites {
            let index = Deciders::index(protocol, cases);
            for requirement in protocol.requirements.0.values() {
                if !self.filter.names(&requirement.id)? {
                    continue;
                }
                let deciders = index.of(&requirement.id);
                let status = match (&requirement.unobservable, &requirement.unexercised, deciders.is_empty())
                {
                    (Some(why), _, _) => format!("not observable: {}", clip::sentence(why)),
                    (_, Some(why), _) => format!("not exercised: {}", clip::sentence(why)),
                    _ if !requirement.is_judged() => "a requirement for clients".to_owned(),
                    (_, _, true) => "nothing decides it".to_owned(),
                    (_, _, false) => deciders.join(", "),
                };
                if requirement.is_judged() {
                    total += 1;
                    decided += usize::from(!deciders.is_empty() && requirement.unexercised.is_none());
                }
                writeln!(
                    out,
                    "{:<12} {:<6} {}\n             {status}",
                    requirement.id,
                    requirement.level,
                    clip::sentence(&requirement.text)
                )?;
            }
        }
        if total == 0 {
            return Err(nothing("no requirement matches", "`frameproof list --requirements` lists all"));
        }
        writeln!(out, "\n{decided} of {total} observable server requirements are decided")?;
        Ok(Exit::Passed)
    }
}

/// One line a protocol.
fn protocols(suites: &[Suite<Outline>], markdown: bool) -> Result<Exit, Failure> {
    let mut table =
        Table::new(["protocol", "title", "server requirements", "exercised", "readings", "cases", "faults"]);
    for Suite { protocol, cases } in suites {
        let judged: Vec<_> = protocol.requirements.0.values().filter(|one| one.is_judged()).collect();
        let deciders = Deciders::index(protocol, cases);
        let is_exercised = |requirement: &&&Requirement| {
            requirement.unexercised.is_none() && deciders.is_decided(&requirement.id)
        };
        let exercised = judged.iter().filter(is_exercised);
        table.row([
            protocol.name.clone(),
            clip::sentence(&protocol.title).into_owned(),
            judged.len().to_string(),
            exercised.count().to_string(),
            protocol.extension.readings.len().to_string(),
            cases.len().to_string(),
            reference::faults(&protocol.name).len().to_string(),
        ]);
    }
    let mut out = super::out();
    if markdown {
        write!(out, "{}", table.markdown())?;
        return Ok(Exit::Passed);
    }
    write!(out, "{}", table.text())?;
    writeln!(
        out,
        "\n`frameproof list NAME` lists the cases, `--requirements` what decides each requirement"
    )?;
    Ok(Exit::Passed)
}

/// One line a tool.
fn tools(suites: &[Suite<Outline>], markdown: bool) -> Result<Exit, Failure> {
    let mut out = super::out();
    let mut shown = 0;
    for Suite { protocol, .. } in suites.iter().filter(|suite| !suite.protocol.extension.tools.is_empty()) {
        let mut table = Table::new(["class", "name", "arguments", "needs"]);
        for (class, tool) in &protocol.extension.tools {
            let args: Vec<_> = tool.args.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            let cells = [class.clone(), tool.name.clone(), args.join(", "), tool.needs.join(", ")];
            table.row(cells.map(|cell| clip::sentence(&cell).into_owned()));
        }
        if suites.len() > 1 {
            writeln!(out, "{}{}", if shown > 0 { "\n" } else { "" }, clip::sentence(&protocol.title))?;
        }
        write!(out, "{}", if markdown { table.markdown() } else { table.text() })?;
        shown += 1;
    }
    if shown == 0 {
        return Err(nothing("no tools are called", "a protocol lists them in `x-frameproof.tools`"));
    }
    Ok(Exit::Passed)
}

/// One line a case.
pub(super) fn cases(suites: &[Suite<Outline>]) -> Result<Exit, Failure> {
    let mut out = super::out();
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let width = all().map(|case| case.id.len()).max().unwrap_or(0);
    for Suite { protocol, cases } in suites {
        if suites.len() > 1 {
            writeln!(out, "{}", clip::sentence(&protocol.title))?;
        }
        for case in cases {
            let (title, covered) = (clip::sentence(&case.title), case.covered.join(" "));
            writeln!(out, "{:<width$}  {title}  [{}]", case.id, clip::sentence(&covered))?;
        }
    }
    match all().count() {
        1 => writeln!(out, "1 case")?,
        many => writeln!(out, "{many} cases")?,
    }
    Ok(Exit::Passed)
}
