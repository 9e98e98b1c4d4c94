//! `frameproof selftest --triggers`.

use std::collections::BTreeMap;
use std::io::Write;

use super::super::source::Suite;
use super::super::{Failure, usage};
use super::Selftest;
use super::driver::{broken, count_outcomes};
use crate::exit::Exit;
use crate::reference::Trigger;
use crate::selftest::report::Kills;
use crate::selftest::triggers::{Mutant, MutantOutcome, Plan, selftest};

impl Selftest {
    pub(super) fn triggers(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_faults(suites)?;
        self.check_styles(suites)?;
        let triggers = self.trigger.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
        let plan = Plan {
            faults: self.fault.clone(),
            triggers,
            sample: self.sample,
            seed: self.seed,
            styles: self.style.clone(),
        };
        let mut out = crate::cli::out();
        let show = |out: &mut _, mutant: &Mutant| show(out, mutant, self.verbose);
        let options = self.options();
        let outcomes = count_outcomes(
            suites,
            &mut out,
            |mutant| mutant.outcome,
            show,
            async |suite, sink| {
                let mut kills = Kills::new(self.sample, self.seed);
                let mut count = |mutant: &Mutant| {
                    kills.add_triggered(mutant);
                    sink(mutant);
                };
                selftest(&suite.protocol, &suite.cases, &options, &plan, &mut count).await.map_err(broken)?;
                self.enter_kills(suite, "triggers", kills)
            },
        )?;
        summary(&mut out, &outcomes)?;
        let alive =
            outcomes.keys().any(|outcome| matches!(outcome, MutantOutcome::Survived | MutantOutcome::Warned));
        Ok(if alive { Exit::Failed } else { Exit::Passed })
    }
}

fn named(name: &str) -> Result<Trigger, Failure> {
    Trigger::named(name).ok_or_else(|| {
        let names: Vec<&str> = Trigger::ALL.iter().map(|(_, name, _)| *name).collect();
        usage(format!("unknown trigger `{name}`"), &format!("there are {}", names.join(", ")))
    })
}

fn show(out: &mut impl Write, mutant: &Mutant, verbose: bool) -> std::io::Result<()> {
    // Like the message of the wire that never came: nothing was tried.
    if matches!(mutant.outcome, MutantOutcome::Unmet | MutantOutcome::Harmless) && !verbose {
        return Ok(());
    }
    let found: Vec<&str> = mutant.by.keys().map(String::as_str).collect();
    let declared = match (&mutant.declared, mutant.outcome) {
        // Nobody would ever look at it again.
        (Some(_), MutantOutcome::Killed) => "  (though declared harmless)",
        _ => "",
    };
    writeln!(out, "{:<10} {:<44} {}{declared}", mutant.outcome.word(), mutant.name(), found.join(" "))?;
    if verbose && mutant.outcome != MutantOutcome::Killed {
        writeln!(out, "           {} [{}]", mutant.fault.title, mutant.fault.violates.join(" "))?;
    }
    out.flush()
}

fn summary(out: &mut impl Write, outcomes: &BTreeMap<MutantOutcome, usize>) -> std::io::Result<()> {
    let count = |outcome| outcomes.get(&outcome).copied().unwrap_or_default();
    let killed = count(MutantOutcome::Killed) + count(MutantOutcome::KilledByAnother);
    let total = killed + count(MutantOutcome::Warned) + count(MutantOutcome::Survived);
    writeln!(
        out,
        "{killed} of {total} killed, {} of them by another requirement; {} warned of only, {} survived; {} declared harmless; {} not met, because they would have changed nothing at such a moment",
        count(MutantOutcome::KilledByAnother),
        count(MutantOutcome::Warned),
        count(MutantOutcome::Survived),
        count(MutantOutcome::Harmless),
        count(MutantOutcome::Unmet)
    )
}
