//! What a self-test has before it: the reference server of a protocol, or a user's own server behind a relay.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::protocol::Protocol;
use crate::reference::{self, Fault, Variant};
use crate::results::event::{CaseReport, Summary};
use crate::run::{RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{run_on, sampled};
use crate::selftest::wire::mutations;
use crate::synthesis::rng::SeededRng;
use crate::wire::relay::Mutation;

/// A server that is taken for correct.
#[derive(Debug, Clone)]
pub enum Subject {
    /// The reference server, with these styles.
    Reference(Vec<String>),
    /// A user's own.
    Own(Target),
}

/// What is wrong with it.
#[derive(Debug, Clone)]
pub enum Defect {
    /// A fault of the reference server.
    Fault(Fault),
    /// Messages that are mutated on their way.
    Mutation(Arc<Mutation>),
}

impl Defect {
    /// How it is called.
    pub fn name(&self) -> String {
        match self {
            Self::Fault(fault) => fault.name.to_owned(),
            Self::Mutation(mutation) => mutation.name(),
        }
    }
}

impl Subject {
    /// Defects that cases may find, `most` of them at most: of the reference server the faults that break what one of them covers, and
    /// then as many mutants of the wire; of a user's own server mutants only.
    pub fn defects(
        &self,
        protocol: &Arc<Protocol>,
        cases: &[LoadedCase],
        most: Option<usize>,
        seed: u64,
    ) -> Vec<Defect> {
        let covered: BTreeSet<String> = cases.iter().flat_map(LoadedCase::covered).collect();
        let mut defects = Vec::new();
        if matches!(self, Self::Reference(_)) {
            let faults = reference::faults(&protocol.name).iter().copied();
            let near = faults.filter(|fault| fault.violates.iter().any(|id| covered.contains(*id)));
            defects = sampled(near.map(Defect::Fault).collect(), most, SeededRng::new(seed, 3));
        }
        let all = mutations(protocol).into_iter().map(|mutation| Defect::Mutation(Arc::new(mutation)));
        defects.extend(sampled(all.collect(), most, SeededRng::new(seed, 4)));
        defects
    }

    /// Runs cases against it, and hands over the report of each.
    ///
    /// # Errors
    /// See [`RunError`].
    pub(super) async fn run(
        &self,
        defect: Option<&Defect>,
        protocol: &Arc<Protocol>,
        cases: Vec<LoadedCase>,
        mut options: RunOptions,
        on_case: &mut (dyn FnMut(&CaseReport) + Send),
    ) -> Result<Summary, RunError> {
        let target = match (self, defect) {
            (Self::Reference(styles), defect) => {
                let mut variant = Variant { styles: styles.clone(), ..Variant::default() };
                match defect {
                    Some(Defect::Fault(fault)) => variant.fault = Some(fault.name.to_owned()),
                    Some(Defect::Mutation(mutation)) => variant.mutation = Some(Arc::clone(mutation)),
                    None => {}
                }
                Target::Reference(variant)
            }
            (Self::Own(target), defect) => {
                if let Some(Defect::Mutation(mutation)) = defect {
                    options.transport.mutation = Some(Arc::clone(mutation));
                }
                target.clone()
            }
        };
        run_on(target, protocol, cases, options, on_case).await
    }
}
