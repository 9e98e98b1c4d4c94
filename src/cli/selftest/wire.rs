//! `frameproof selftest --wire`.

use std::io::Write;

use super::super::Failure;
use super::super::source::Suite;
use super::Selftest;
use super::driver::count_fates;
use crate::exit::Exit;
use crate::selftest::wire::{Fate, Mutant, Plan, selftest};

impl Selftest {
    pub(super) fn wire(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_styles(suites)?;
        let plan = Plan { sample: self.sample, seed: self.seed, styles: self.style.clone() };
        let mut out = crate::cli::out();
        let show = |out: &mut _, mutant: &Mutant| show(out, mutant, self.verbose);
        let options = self.options();
        let fates = count_fates(
            suites,
            &mut out,
            |mutant| mutant.fate,
            show,
            async |suite, sink| selftest(&suite.protocol, &suite.cases, &options, &plan, sink).await,
        )?;
        let count = |fate| fates.get(&fate).copied().unwrap_or_default();
        let (killed, survived) = (count(Fate::Killed), count(Fate::Survived));
        writeln!(
            out,
            "{killed} of {} killed, {survived} survived; {} not applied, because their message never came",
            killed + survived,
            count(Fate::NotReached)
        )?;
        Ok(if survived > 0 { Exit::Failed } else { Exit::Passed })
    }
}

/// Survivors; with `-v` all.
fn show(out: &mut impl Write, mutant: &Mutant, verbose: bool) -> std::io::Result<()> {
    let word = match mutant.fate {
        Fate::Survived => "SURVIVED",
        _ if !verbose => return Ok(()),
        Fate::Killed => "killed",
        Fate::NotReached => "unmet",
    };
    let found: Vec<&str> = mutant.by.iter().map(String::as_str).collect();
    writeln!(out, "{word:<9} {:<56} {:>5} times  {}", mutant.name, mutant.hits, found.join(" "))?;
    out.flush()
}
