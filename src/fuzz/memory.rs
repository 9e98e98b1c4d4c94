//! The memory of a launched target: whether it grows, and which case makes it grow.

use std::collections::{BTreeSet, VecDeque};

use super::executor::{Execution, Executor};
use super::fingerprint::Fingerprint;
use super::input::Input;
use super::oracle::Oracle;
use super::program::Program;

/// How often a case is repeated that may make the target's memory grow.
const REPEAT: u32 = 24;
/// How often at least.
const LEAST: u32 = 3;
/// Inputs of a case that are tried by themselves.
const ALONE: usize = 32;
/// Inputs in all its repetitions that are enough, where a case has many.
const INPUTS: usize = 256;
/// Measurements that are kept, the greatest growth first: the cases before each.
const HEAVIEST: usize = 4;
/// Replays side by side.
const JOBS: usize = 4;

/// Measures the memory of a launched target.
#[derive(Default)]
pub(super) struct MemoryWatch {
    /// The first measurement, in bytes.
    base: Option<u64>,
    /// The last measurement.
    last: u64,
    /// The cases before each of the measurements that grew most, and by how much; the greatest growth first.
    heaviest: Vec<(u64, Vec<(u64, Program)>)>,
}

impl MemoryWatch {
    /// Adds a measurement, after these programs have run. Returns by how much the memory has grown in all.
    pub fn measured(&mut self, now: u64, programs: Vec<(u64, Program)>) -> u64 {
        let base = *self.base.get_or_insert(now);
        let grown = now.saturating_sub(self.last.max(base));
        self.last = now;
        if grown > 0 {
            let at = self.heaviest.partition_point(|(most, _)| *most >= grown);
            self.heaviest.insert(at, (grown, programs));
            self.heaviest.truncate(HEAVIEST);
        }
        now.saturating_sub(base)
    }

    /// By how much the memory has grown, in MiB.
    pub fn growth_in_mib(&self) -> u64 {
        self.last.saturating_sub(self.base.unwrap_or(self.last)) >> 20
    }

    /// The cases before the measurement that grew most.
    pub fn suspects(&self) -> Vec<(u64, Program)> {
        self.heaviest.first().map(|(_, programs)| programs.clone()).unwrap_or_default()
    }

    /// The cases before all measurements that grew most, in order.
    pub fn into_programs(self) -> Vec<(u64, Program)> {
        let mut programs: Vec<(u64, Program)> =
            self.heaviest.into_iter().flat_map(|(_, programs)| programs).collect();
        programs.sort_by_key(|(index, _)| *index);
        programs.dedup_by_key(|(index, _)| *index);
        programs
    }
}

/// A look for cases that alone, repeated, make the memory of a server grow.
pub(super) struct GrowthSearch {
    /// The numbers of cases, and each as it is repeated.
    batches: VecDeque<Vec<(u64, Program)>>,
    /// Replays that are not looked at yet.
    replayed: VecDeque<(u64, Execution)>,
}

impl GrowthSearch {
    pub fn new(mut suspects: Vec<(u64, Program)>) -> Self {
        // Those with most inputs first, and as often as it takes to see what one input in eight would leave.
        suspects.sort_by_key(|(_, program)| std::cmp::Reverse(program.inputs.len()));
        let mut batches = VecDeque::new();
        for times in [times_of_long_case, |_: &Program| REPEAT] {
            for batch in suspects.chunks(JOBS) {
                let repeated = |(index, program): &(u64, Program)| (*index, program.repeated(times(program)));
                batches.push_back(batch.iter().map(repeated).collect());
            }
        }
        Self { batches, replayed: VecDeque::new() }
    }

    /// The next case that makes the memory grow, and what its replay shows; `is_new` says what is worth a look.
    pub async fn next(
        &mut self,
        executor: &Executor,
        is_new: &dyn Fn(&Fingerprint) -> bool,
    ) -> Option<(u64, Execution, Fingerprint)> {
        loop {
            while let Some((index, execution)) = self.replayed.pop_front() {
                if let Some(print) = growth_of(&execution, is_new) {
                    return Some((index, lightest(executor, execution, is_new).await, print));
                }
            }
            let (indices, programs): (Vec<u64>, Vec<Program>) = self.batches.pop_front()?.into_iter().unzip();
            let all = executor.replay_all(programs, executor.seed(), executor.replay_deadline(), JOBS).await;
            let replayed = indices.into_iter().zip(all);
            self.replayed.extend(replayed.filter_map(|(index, execution)| Some((index, execution?))));
        }
    }
}

/// How often a case is repeated for its inputs to show in the memory, where few repetitions of many inputs do.
fn times_of_long_case(program: &Program) -> u32 {
    let enough = INPUTS.div_ceil(program.inputs.len().max(1)) as u32;
    enough.clamp(LEAST, REPEAT)
}

/// What says that the memory of a server has grown, if it is worth a look.
fn growth_of(execution: &Execution, is_new: &dyn Fn(&Fingerprint) -> bool) -> Option<Fingerprint> {
    let print = execution.fingerprints().into_iter().find(|print| print.oracle == Oracle::Memory)?;
    is_new(&print).then_some(print)
}

/// One input of a case that makes the memory grow, if one of each kind alone does: many inputs take long each time.
async fn lightest(
    executor: &Executor,
    execution: Execution,
    is_new: &dyn Fn(&Fingerprint) -> bool,
) -> Execution {
    let mut kinds = BTreeSet::new();
    let inputs = execution.program.inputs.iter();
    let inputs: Vec<_> =
        inputs.filter(|input| kinds.insert((&input.command, &input.mutation))).take(ALONE).collect();
    for batch in inputs.chunks(JOBS) {
        let alone = |input: &&Input| Program {
            inputs: vec![(*input).clone()],
            repeat: Some(REPEAT),
            ..execution.program.clone()
        };
        let programs = batch.iter().map(alone).collect();
        let all = executor.replay_all(programs, executor.seed(), executor.replay_deadline(), JOBS).await;
        if let Some(found) = all.into_iter().flatten().find(|one| growth_of(one, is_new).is_some()) {
            return found;
        }
    }
    // What is left of it when it is shrunk is repeated as often.
    Execution { program: Program { repeat: Some(REPEAT), ..execution.program.clone() }, ..execution }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_counted_from_the_first_measurement() {
        let mut memory = MemoryWatch::default();
        let case = |index: u64| vec![(index, Program::default())];
        let measured: Vec<u64> = [(8, 1), (10, 2), (9, 3), (19, 4)]
            .map(|(mib, index)| memory.measured(mib << 20, case(index)))
            .into();
        assert_eq!(measured, [0, 2 << 20, 1 << 20, 11 << 20]);
        assert_eq!((memory.growth_in_mib(), memory.suspects()), (11, case(4)));
        let programs: Vec<u64> = memory.into_programs().into_iter().map(|(index, _)| index).collect();
        assert_eq!(programs, [2, 4], "those that did not grow are not kept");
    }
}
