//! `frameproof list`.

use std::io::Write;

use clap::Args;

use super::source::{Filter, Source, covered};
use super::{Failure, nothing};
use crate::scenario::LoadedCase;

/// List cases, or requirements and what decides them.
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    filter: Filter,
    /// List requirements, each with what decides it: schema places, invariants, cases.
    #[arg(long)]
    requirements: bool,
}

impl List {
    pub fn run(mut self) -> Result<u8, Failure> {
        let protocol = self.source.protocol(&mut self.filter)?;
        let all = self.source.cases(&protocol)?;
        if !self.requirements {
            return cases(&self.filter.select(&protocol, all)?);
        }
        let chosen = all;
        let mut out = anstream::stdout().lock();
        let (mut decided, mut total) = (0, 0);
        for requirement in protocol.requirements.0.values() {
            if !self.filter.names(&requirement.id)? {
                continue;
            }
            let deciders = super::explain::deciders(&protocol, &chosen, &requirement.id);
            let status = match (&requirement.unobservable, &requirement.unexercised, deciders.is_empty()) {
                (Some(why), _, _) => format!("not observable: {why}"),
                (_, Some(why), _) => format!("not exercised: {why}"),
                _ if !requirement.is_judged() => "demands something of the client".to_owned(),
                (_, _, true) => "nothing decides it".to_owned(),
                (_, _, false) => deciders.join(", "),
            };
            if requirement.is_judged() {
                total += 1;
                decided += usize::from(!deciders.is_empty());
            }
            writeln!(
                out,
                "{:<12} {:<6} {}\n             {status}",
                requirement.id, requirement.level, requirement.text
            )?;
        }
        if total == 0 {
            return Err(nothing("no requirement matches", "`frameproof list --requirements` lists all"));
        }
        writeln!(out, "\n{decided} of {total} observable server requirements are decided")?;
        Ok(0)
    }
}

/// One line a case.
pub(super) fn cases(cases: &[LoadedCase]) -> Result<u8, Failure> {
    let mut out = anstream::stdout().lock();
    let width = cases.iter().map(|case| case.id.len()).max().unwrap_or(0);
    for case in cases {
        writeln!(out, "{:<width$}  {}  [{}]", case.id, case.case.title, covered(case).join(" "))?;
    }
    writeln!(out, "{} cases", cases.len())?;
    Ok(0)
}
