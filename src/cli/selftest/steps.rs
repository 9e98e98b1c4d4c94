//! `frameproof selftest --steps`.

use std::collections::BTreeMap;
use std::io::Write;

use super::driver::count_outcomes;
use super::{Selftest, Tried};
use crate::cli::Failure;
use crate::cli::source::Suite;
use crate::exit::Exit;
use crate::report::escape;
use crate::selftest::steps::{Plan, StepResult, Use, selftest};

impl Selftest {
    pub(super) fn steps(&self, suites: &[Suite], own: Option<Tried>) -> Result<Exit, Failure> {
        let plan = Plan { cases: self.cases, defects: self.sample, seed: self.seed };
        if own.is_none() {
            self.check_styles(suites)?;
        }
        let tried = own.unwrap_or_else(|| self.reference());
        let mut out = crate::cli::out();
        let show = |out: &mut _, step: &StepResult| show(out, step, self.verbose);
        let uses = count_outcomes(
            suites,
            &mut out,
            |step| step.is,
            show,
            async |suite, sink| {
                selftest(&suite.protocol, &suite.cases, &tried.subject, &tried.options, &plan, sink)
                    .await
                    .map_err(|error| tried.cannot(&error))
            },
        )?;
        summary(&mut out, &uses)?;
        Ok(if uses.contains_key(&Use::Dead) { Exit::Failed } else { Exit::Passed })
    }
}

/// Dead steps; with `-v` all.
fn show(out: &mut impl Write, step: &StepResult, verbose: bool) -> std::io::Result<()> {
    if step.is != Use::Dead && !verbose {
        return Ok(());
    }
    let (case, source) = (escape::terminal(&step.case), escape::terminal(&step.source));
    writeln!(out, "{:<8} {case}  {}  {source}", step.is.word(), escape::terminal(&step.place))?;
    match &step.by {
        Ok(defect) => writeln!(out, "           by {}", escape::terminal(defect))?,
        Err(0) => {}
        Err(1) => writeln!(out, "           1 defect is found with and without it")?,
        Err(many) => writeln!(out, "           {many} defects are found with and without it")?,
    }
    out.flush()
}

fn summary(out: &mut impl Write, uses: &BTreeMap<Use, usize>) -> std::io::Result<()> {
    let count = |is| uses.get(&is).copied().unwrap_or_default();
    let total: usize = uses.values().sum();
    writeln!(
        out,
        "{total} steps: {} decide, {} only change the blame, {} are needed by what follows, {} are dead, {} in cases that no defect fails",
        count(Use::Decides),
        count(Use::Blames),
        count(Use::Needed),
        count(Use::Dead),
        count(Use::Unknown)
    )
}
