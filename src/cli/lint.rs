//! `frameproof lint`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::config::Config;
use super::config_check::Files;
use super::source::{Filter, Source};
use super::{Failure, did_you_mean, usage};
use crate::exit::Exit;
use crate::report::escape::styled;
use crate::scenario::lint::{Finding, Rule, lint};
use crate::source::Diagnostics;

/// Look for cases that prove less than they seem to: steps that cannot fail, ids written as literals, requirements that no step decides; and for
/// pointers of the protocol that lead nowhere.
#[derive(Debug, Args)]
#[command(after_long_help = "`selftest --steps` finds out by mutants which steps are of use.")]
pub(super) struct Lint {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    filter: Filter,
    /// Apply only this rule. May be repeated.
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// List the rules.
    #[arg(long)]
    rules: bool,
    /// Read protocol and scenarios from this configuration instead of frameproof.toml of the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Lint {
    pub fn run(mut self) -> Result<Exit, Failure> {
        let mut out = super::out();
        if self.rules {
            for (_, name, about) in Rule::ALL {
                writeln!(out, "{name:<16} {about}")?;
            }
            return Ok(Exit::Passed);
        }
        let rules = self.rule.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
        let config = Config::read(self.config.as_deref())?;
        config.fill(&mut self.source, &mut self.filter);
        config.check(&self.source, Files::default())?;
        let suites = self.source.suites(&mut self.filter)?;
        let suites = self.filter.select(suites)?;
        let cases: usize = suites.iter().map(|suite| suite.cases.len()).sum();
        let found: Vec<Finding> = suites
            .iter()
            .flat_map(|suite| lint(&suite.protocol, &suite.cases))
            .filter(|finding| rules.is_empty() || rules.contains(&finding.rule))
            .collect();
        let findings = found.len();
        if findings > 0 {
            let color = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
            // One by one: of very many at once only the first would be shown.
            for finding in found {
                let told = Diagnostics(vec![finding.diagnostic]).render(color);
                writeln!(anstream::stdout(), "{}\n", styled(&told))?;
            }
        }
        let count = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            many => format!("{many} {one}s"),
        };
        writeln!(out, "{} in {}", count(findings, "finding"), count(cases, "case"))?;
        Ok(if findings == 0 { Exit::Passed } else { Exit::Failed })
    }
}

fn named(name: &str) -> Result<Rule, Failure> {
    Rule::named(name).ok_or_else(|| {
        let known = Rule::ALL.iter().map(|(_, name, _)| *name);
        let lists = || "`frameproof lint --rules` lists them".to_owned();
        usage(format!("unknown rule `{name}`"), &did_you_mean(name, known, lists))
    })
}
