//! What all self-tests have in common: one suite after the other, each result shown as it comes.

use std::collections::BTreeMap;
use std::io::Write;

use super::super::source::Suite;
use super::super::{Failure, harness, runtime};
use crate::run::RunError;

/// Where the results of a self-test go.
pub(super) type Sink<'s, R> = &'s mut (dyn FnMut(&R) + Send);

/// A self-test that broke off.
pub(super) fn broken(error: RunError) -> Failure {
    harness(error, "")
}

/// Has `selftest` try each suite, and `show` what it tells. Below the protocol's name where there are several.
pub(super) fn on_each_suite<W: Write + Send, R, T>(
    suites: &[Suite],
    out: &mut W,
    mut show: impl FnMut(&mut W, &R) -> std::io::Result<()> + Send,
    selftest: impl AsyncFn(&Suite, Sink<'_, R>) -> Result<T, Failure>,
) -> Result<(), Failure> {
    for suite in suites {
        if suites.len() > 1 {
            writeln!(out, "{}", suite.protocol.title)?;
        }
        let mut written = Ok(());
        let mut sink = |result: &R| {
            if written.is_ok() {
                written = show(out, result);
            }
        };
        runtime()?.block_on(selftest(suite, &mut sink))?;
        written?;
    }
    Ok(())
}

/// The same for a self-test of mutants: how many came to each outcome.
pub(super) fn count_outcomes<W: Write + Send, M, F: Ord + Send, T>(
    suites: &[Suite],
    out: &mut W,
    outcome: impl Fn(&M) -> F + Send + Sync,
    show: impl Fn(&mut W, &M) -> std::io::Result<()> + Send + Sync,
    selftest: impl AsyncFn(&Suite, Sink<'_, M>) -> Result<T, Failure>,
) -> Result<BTreeMap<F, usize>, Failure> {
    let mut outcomes = BTreeMap::new();
    let count = |out: &mut W, mutant: &M| {
        *outcomes.entry(outcome(mutant)).or_default() += 1;
        show(out, mutant)
    };
    on_each_suite(suites, out, count, selftest)?;
    Ok(outcomes)
}
