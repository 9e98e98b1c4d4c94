//! `frameproof selftest --triggers`.

use std::collections::BTreeMap;
use std::io::Write;

use super::super::source::Suite;
use super::super::{Failure, usage};
use super::Selftest;
use super::driver::{broken, count_fates};
use crate::exit::Exit;
use crate::reference::Trigger;
use crate::selftest::triggers::{Fate, Mutant, Plan, selftest};

impl Selftest {
    pub(super) fn triggers(&self, suites: &[Suite]) -> Result<Exit, Failure> {
        self.check_faults(suites)?;
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
        let fates = count_fates(
            suites,
            &mut out,
            |mutant| mutant.fate,
            show,
            async |suite, sink| {
                selftest(&suite.protocol, &suite.cases, &options, &plan, sink).await.map_err(broken)
            },
        )?;
        summary(&mut out, &fates)?;
        let alive = fates.keys().any(|fate| matches!(fate, Fate::Survived | Fate::Warned));
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
    let found: Vec<&str> = mutant.by.keys().map(String::as_str).collect();
    writeln!(out, "{:<10} {:<44} {}", mutant.fate.word(), mutant.name(), found.join(" "))?;
    if verbose && mutant.fate != Fate::Killed {
        writeln!(out, "           {} [{}]", mutant.fault.title, mutant.fault.violates.join(" "))?;
    }
    out.flush()
}

fn summary(out: &mut impl Write, fates: &BTreeMap<Fate, usize>) -> std::io::Result<()> {
    let count = |fate| fates.get(&fate).copied().unwrap_or_default();
    let total: usize = fates.values().sum();
    let killed = count(Fate::Killed) + count(Fate::KilledByAnother);
    writeln!(
        out,
        "{killed} of {total} killed, {} of them by another requirement; {} warned of only, {} survived",
        count(Fate::KilledByAnother),
        count(Fate::Warned),
        count(Fate::Survived)
    )
}
