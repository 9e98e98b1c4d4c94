//! `frameproof selftest --count`.

use std::io::Write;

use super::Selftest;
use crate::cli::Failure;
use crate::cli::source::Suite;
use crate::exit::Exit;
use crate::selftest::counts::{ENOUGH, of_musts};

impl Selftest {
    /// How many independent mutants each MUST has.
    pub(super) fn count(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_faults(suites)?;
        let mut out = crate::cli::out();
        let mut few = 0;
        for suite in suites {
            let mut counts: Vec<_> = of_musts(&suite.protocol).into_iter().collect();
            counts.sort_by_key(|(_, faults)| faults.len());
            let below = counts.iter().filter(|(_, faults)| faults.len() < ENOUGH).count();
            few += below;
            for (id, faults) in counts.iter().filter(|(_, faults)| self.verbose || faults.len() < ENOUGH) {
                writeln!(out, "{:>3}  {id:<12} {}", faults.len(), faults.join(" "))?;
            }
            writeln!(
                out,
                "{}: {} of {} observable MUST requirements have {ENOUGH} faults or more, {below} have fewer",
                suite.protocol.name,
                counts.len() - below,
                counts.len()
            )?;
        }
        Ok(if few > 0 { Exit::Failed } else { Exit::Passed })
    }
}
