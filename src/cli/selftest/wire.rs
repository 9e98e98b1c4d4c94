//! `frameproof selftest --wire`.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use globset::Glob;

use super::super::source::Suite;
use super::super::{Failure, nothing, usage};
use super::driver::count_outcomes;
use super::{Selftest, Tried};
use crate::exit::Exit;
use crate::selftest::report::Kills;
use crate::selftest::wire::{Mutant, MutantOutcome, Plan, selftest};

impl Selftest {
    pub(super) fn wire(&self, suites: &[Suite], own: Option<Tried>) -> Result<Exit, Failure> {
        let only = self.mutant.iter().map(|text| match Glob::new(text) {
            Ok(glob) => Ok(glob.compile_matcher()),
            Err(error) => {
                Err(usage(format!("`{text}` is not a glob: {}", error.kind()), "quote it for the shell"))
            }
        });
        let plan = Plan { only: only.collect::<Result<_, _>>()?, sample: self.sample, seed: self.seed };
        if !suites.iter().any(|suite| plan.chooses_any(&suite.protocol)) {
            return Err(nothing(
                "no mutant matches",
                "a name is MESSAGE/FIELD OPERATOR OCCURRENCE: `error/code null first`",
            ));
        }
        if own.is_none() {
            self.check_styles(suites)?;
        }
        let mut out = crate::cli::out();
        let show = |out: &mut _, mutant: &Mutant| show(out, mutant, self.verbose);
        let tried = own.unwrap_or_else(|| self.reference());
        let skipped = AtomicUsize::new(0);
        let outcomes = count_outcomes(
            suites,
            &mut out,
            |mutant| mutant.outcome,
            show,
            async |suite, sink| {
                let mut skip = |_: &str| _ = skipped.fetch_add(1, Ordering::Relaxed);
                let mut kills = Kills::new(self.sample, self.seed);
                let mut count = |mutant: &Mutant| {
                    kills.add_wire(mutant);
                    sink(mutant);
                };
                selftest(
                    &suite.protocol,
                    &suite.cases,
                    &tried.subject,
                    &tried.options,
                    &plan,
                    &mut skip,
                    &mut count,
                )
                .await
                .map_err(|error| tried.cannot(&error))?;
                self.enter_kills(suite, "wire", kills)
            },
        )?;
        let count = |outcome| outcomes.get(&outcome).copied().unwrap_or_default();
        let (killed, survived, harmless) =
            (count(MutantOutcome::Killed), count(MutantOutcome::Survived), count(MutantOutcome::Harmless));
        writeln!(
            out,
            "{killed} of {} killed, {survived} survived, {harmless} declared harmless; {} not applied, because their message never came",
            killed + survived + harmless,
            count(MutantOutcome::NotReached)
        )?;
        let skipped = skipped.into_inner();
        if skipped > 0 {
            writeln!(out, "{skipped} cases were left out: they do not pass without a mutation")?;
        }
        Ok(if survived > 0 { Exit::Failed } else { Exit::Passed })
    }
}

/// Survivors; with `-v` all.
fn show(out: &mut impl Write, mutant: &Mutant, verbose: bool) -> std::io::Result<()> {
    let word = match mutant.outcome {
        MutantOutcome::Survived => "SURVIVED",
        // Nobody would ever look at it again.
        MutantOutcome::Killed if mutant.declared.is_some() => "killed, though declared harmless:",
        _ if !verbose => return Ok(()),
        MutantOutcome::Killed => "killed",
        MutantOutcome::Harmless => "harmless",
        MutantOutcome::NotReached => "unmet",
    };
    let found: Vec<&str> = mutant.by.iter().map(String::as_str).collect();
    writeln!(out, "{word:<9} {:<56} {:>5} times  {}", mutant.name, mutant.hits, found.join(" "))?;
    out.flush()
}
