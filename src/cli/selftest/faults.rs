//! `frameproof selftest`: the faults.

use std::io::Write;

use super::super::source::Suite;
use super::super::{Failure, did_you_mean, nothing, usage};
use super::driver::{broken, on_each_suite};
use super::{Selftest, Tally};
use crate::exit::Exit;
use crate::reference;
use crate::selftest::faults::{FaultResult, selftest};
use crate::selftest::report::Kills;

impl Selftest {
    pub(super) fn faults(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_faults(suites)?;
        let options = self.options();
        let mut out = crate::cli::out();
        let mut tally = Tally::default();
        let show = |out: &mut _, result: &FaultResult| {
            tally.add(result.is_right());
            show(out, result, self.verbose)
        };
        on_each_suite(suites, &mut out, show, async |suite, sink| {
            let mut kills = Kills::new(None, self.seed);
            let mut count = |result: &FaultResult| {
                kills.add_fault(result);
                sink(result);
            };
            selftest(&suite.protocol, &suite.cases, &options, &self.fault, &mut count)
                .await
                .map_err(broken)?;
            self.enter_kills(suite, "faults", kills)
        })?;
        Ok(tally.close(&mut out, "judged correctly")?)
    }

    pub(super) fn check_faults(&self, suites: &[Suite]) -> Result<(), Failure> {
        let all = || suites.iter().flat_map(|suite| reference::faults(&suite.protocol.name));
        if all().next().is_none() {
            let names = suites.iter().map(|suite| suite.protocol.name.as_str());
            let message =
                format!("there is no reference server for `{}`", names.collect::<Vec<_>>().join(", "));
            let hint = format!("there is one for {}", reference::names().join(", "));
            return Err(nothing(message, &hint));
        }
        let known = || all().map(|fault| fault.name);
        let Some(unknown) = self.fault.iter().find(|name| !known().any(|fault| fault == **name)) else {
            return Ok(());
        };
        let lists = || "`frameproof serve NAME --list-faults` lists them".to_owned();
        let hint = did_you_mean(unknown, known(), lists);
        Err(usage(format!("unknown fault `{unknown}`"), &hint))
    }
}

/// Shows what the suite made of one server.
pub(super) fn show(out: &mut impl Write, result: &FaultResult, verbose: bool) -> std::io::Result<()> {
    let name = result.fault.as_ref().map_or("(correct server)", |fault| fault.name.as_str());
    let found: Vec<&str> = result.by.keys().map(String::as_str).collect();
    let word = match (result.is_right(), result.fault.is_some(), result.by.is_empty()) {
        (true, true, _) => "killed",
        (true, false, _) => "passed",
        (false, true, true) => "SURVIVED",
        (false, _, _) => "MISJUDGED",
    };
    writeln!(out, "{word:<9} {name:<28} {}", found.join(" "))?;
    for (label, ids) in [
        ("missing", &result.missing),
        ("unrelated", &result.unrelated),
        ("not exercised", &result.not_exercised),
    ] {
        if !ids.is_empty() {
            writeln!(out, "          {label}: {}", ids.join(" "))?;
        }
    }
    if verbose {
        for (id, cases) in &result.by {
            writeln!(out, "          {id}: {}", cases.join(", "))?;
        }
    }
    out.flush()
}
