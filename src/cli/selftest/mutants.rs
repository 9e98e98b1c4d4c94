//! `frameproof selftest --target`: a server of the user's, and its mutants.

use super::driver::on_each_suite;
use super::faults::show;
use super::{Selftest, Tally, Tried};
use crate::cli::signals::stop_on_signal;
use crate::cli::source::Suite;
use crate::cli::target::Chosen;
use crate::cli::{Failure, did_you_mean, runtime, usage};
use crate::exit::Exit;
use crate::run::Target;
use crate::selftest::faults::{FaultResult, SeededDefect, selftest_own};
use crate::selftest::report::Kills;

impl Selftest {
    /// The kill matrix of a target.
    pub(super) fn mutants(&self, suites: &[Suite], tried: &Tried, chosen: &Chosen) -> Result<Exit, Failure> {
        let servers = self.servers(chosen)?;
        let at_once = self.at_once(chosen)?;
        let signals = runtime()?;
        let stopped = stop_on_signal(&signals, Some(chosen));
        let mut out = crate::cli::out();
        let mut tally = Tally::default();
        let count = |out: &mut _, result: &FaultResult| {
            tally.add(result.is_right());
            show(out, result, self.verbose)
        };
        on_each_suite(suites, &mut out, count, async |suite, sink| {
            let mut kills = Kills::new(None, self.seed);
            let mut count = |result: &FaultResult| {
                kills.add_fault(result);
                sink(result);
            };
            let (options, servers) = (&tried.options, (servers.clone(), at_once));
            selftest_own(&suite.protocol, &suite.cases, options, servers, &stopped, &mut count)
                .await
                .map_err(|error| tried.cannot(&error))?;
            self.enter_kills(suite, "faults", kills)
        })?;
        if *stopped.borrow() {
            return Ok(Exit::Interrupted);
        }
        Ok(tally.close(&mut out, "judged correctly")?)
    }

    /// How many servers run at the same time.
    fn at_once(&self, chosen: &Chosen) -> Result<usize, Failure> {
        let at_once = self.own.servers.map_or(1, |servers| usize::from(servers.0));
        let is_chosen = chosen.spec.ports.iter().any(|(_, port)| *port == 0);
        if at_once > 1 && !is_chosen {
            let hint =
                "`ports = { port = 0 }` and `{{port}}` in url and command have one chosen at each start";
            return Err(usage(
                format!("the servers of `{}` have one port: only one can run", chosen.spec.name),
                hint,
            ));
        }
        Ok(at_once)
    }

    /// The servers that are tried: the target itself, unless mutants are named, and its mutants.
    fn servers(&self, chosen: &Chosen) -> Result<Vec<(Option<SeededDefect>, Target)>, Failure> {
        let (mutants, name) = (&chosen.config.mutants, &chosen.spec.name);
        if mutants.is_empty() {
            let hint = format!(
                "--wire or --steps, or [[target.{name}.mutants]] with `name`, `env` or `command`, and the requirements that it `breaks`; see docs/selftest.md"
            );
            return Err(usage(format!("the target `{name}` has no mutants"), &hint));
        }
        let known = || mutants.iter().map(|mutant| mutant.name.as_str());
        if let Some(unknown) = self.fault.iter().find(|fault| !known().any(|name| name == fault.as_str())) {
            let there = || format!("there are {}", known().collect::<Vec<_>>().join(", "));
            return Err(usage(format!("unknown mutant `{unknown}`"), &did_you_mean(unknown, known(), there)));
        }
        let correct = self.fault.is_empty().then(|| (None, Target::Configured(chosen.spec.clone())));
        let mutants = mutants.iter().zip(&chosen.mutants);
        let mutants =
            mutants.filter(|(mutant, _)| self.fault.is_empty() || self.fault.contains(&mutant.name));
        let mutants = mutants.map(|(mutant, spec)| {
            let defect =
                SeededDefect { name: mutant.name.clone(), violates: mutant.breaks.clone(), also: Vec::new() };
            (Some(defect), Target::Configured(spec.clone()))
        });
        Ok(correct.into_iter().chain(mutants).collect())
    }
}
