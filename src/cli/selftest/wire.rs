//! `frameproof selftest --wire`.

use std::collections::BTreeMap;
use std::io::Write;

use super::super::source::Suite;
use super::super::{Failure, harness, runtime};
use super::Selftest;
use crate::exit::Exit;
use crate::selftest::wire::{Fate, Mutant, Plan, selftest};

impl Selftest {
    pub(super) fn wire(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_styles(suites)?;
        let plan = Plan { sample: self.sample, seed: self.seed, styles: self.style.clone() };
        let mut out = anstream::stdout();
        let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
        for Suite { protocol, cases } in suites {
            if suites.len() > 1 {
                writeln!(out, "{}", protocol.title)?;
            }
            let mut written = Ok(());
            let mut sink = |mutant: &Mutant| {
                *fates.entry(mutant.fate).or_default() += 1;
                if written.is_ok() {
                    written = show(&mut out, mutant, self.verbose);
                }
            };
            let options = self.options();
            let result = runtime()?.block_on(selftest(protocol, cases, &options, &plan, &mut sink));
            result.map_err(|error| harness(error, ""))?;
            written?;
        }
        let count = |fate| fates.get(&fate).copied().unwrap_or_default();
        let (killed, survived) = (count(Fate::Killed), count(Fate::Survived));
        writeln!(
            out,
            "{killed} of {} killed, {survived} survived; {} never met a message that they change",
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
