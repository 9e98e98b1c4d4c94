//! `frameproof selftest --count`.

use std::io::Write;

use super::Selftest;
use super::reporting::read;
use crate::cli::Failure;
use crate::cli::source::Suite;
use crate::exit::Exit;
use crate::selftest::counts::{ENOUGH, Mutants, of_musts};

impl Selftest {
    /// How many independent mutants each MUST has.
    pub(super) fn count(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_faults(suites)?;
        let mut out = crate::cli::out();
        let mut few = 0;
        let measured = self.measured.as_deref().map(read).transpose()?;
        for suite in suites {
            let of = measured.as_ref().and_then(|report| report.suites.get(&suite.protocol.name));
            let mut counts: Vec<_> = of_musts(&suite.protocol, of).into_iter().collect();
            counts.sort_by_key(|(_, mutants)| mutants.independent());
            let is_low = |mutants: &Mutants| mutants.independent() < ENOUGH;
            let below = counts.iter().filter(|(_, mutants)| is_low(mutants)).count();
            few += below;
            for (id, mutants) in counts.iter().filter(|(_, mutants)| self.verbose || is_low(mutants)) {
                write!(out, "{:>3}  {id:<12} {}", mutants.independent(), mutants.faults.join(" "))?;
                let parts = [(mutants.wire, "on the wire"), (mutants.triggered, "with triggers")];
                for (count, part) in parts.iter().filter(|(count, _)| *count > 0) {
                    write!(out, " +{count} {part}")?;
                }
                writeln!(out)?;
            }
            let what = if of.is_some() { "faults and mutants of the wire" } else { "faults" };
            writeln!(
                out,
                "{}: {} of {} observable MUST requirements have {ENOUGH} {what} or more, {below} have fewer",
                suite.protocol.name,
                counts.len() - below,
                counts.len()
            )?;
        }
        Ok(if few > 0 { Exit::Failed } else { Exit::Passed })
    }
}
