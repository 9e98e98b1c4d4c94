//! From a seed and a number to a program.

pub mod frames;
pub mod from_schema;
mod inputs;
pub mod mutate;

use std::sync::Arc;

use crate::synthesis::rng::SeededRng;
use inputs::InputMaker;

use super::input::{Action, Input, Obligation};
use super::program::{ALICE, BOB, Program};
use crate::protocol::Protocol;

/// Inputs of one burst; of those that are refused, which are sent back to back, there may be more.
const BURST: usize = 16;
/// Refused inputs of one burst.
const REFUSED_BURST: usize = 256;
/// Longest program that is grown.
const LONGEST: usize = 24;

/// Makes programs.
#[derive(Debug)]
pub struct Generator {
    inputs: InputMaker,
    /// The states that can be entered; `None` is the one after the opening.
    states: Vec<Option<String>>,
}

/// What the inputs of a burst have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BurstOf {
    /// The server must refuse each.
    Refused,
    /// It need not.
    Accepted,
}

impl From<&Obligation> for BurstOf {
    fn from(obligation: &Obligation) -> Self {
        match obligation {
            Obligation::Refuse { .. } => Self::Refused,
            _ => Self::Accepted,
        }
    }
}

impl Generator {
    /// A generator for the states in `states`.
    pub fn new(protocol: &Arc<Protocol>, states: Vec<Option<String>>) -> Self {
        Self { inputs: InputMaker::new(protocol), states }
    }

    /// Program number `index` of a campaign. `skip` names (command, mutation) pairs of known findings, which would hide
    /// others.
    pub fn program(
        &self,
        seed: u64,
        index: u64,
        corpus: &[Program],
        skip: &dyn Fn(&Input) -> bool,
    ) -> Program {
        let mut rng = SeededRng::new(seed, index);
        let kind = rng.below(20);
        let mut program = match kind {
            0..=6 => self.burst(&mut rng, BurstOf::Refused),
            7..=8 => self.burst(&mut rng, BurstOf::Accepted),
            9..=11 => self.frames(&mut rng),
            _ => self.sequence(&mut rng, corpus),
        };
        program.inputs.retain(|input| !skip(input));
        // Frames that are no good end their connection: it is others that show what they have done.
        program.fresh_connection_after = rng.chance(if (9..=11).contains(&kind) { 70 } else { 35 });
        program.bystander = rng.chance(35) && self.inputs.protocol.lacks_isolation().is_none();
        if program.bystander && rng.chance(50) {
            let waiting = self.inputs.protocol.extension.fuzzing.states.iter();
            let waiting: Vec<&String> = waiting
                .filter(|(name, state)| {
                    !state.leave.is_empty() && self.states.contains(&Some((*name).clone()))
                })
                .map(|(name, _)| name)
                .collect();
            program.bystander_state = rng.pick(&waiting).map(|name| (*name).clone());
        }
        program
    }

    fn empty(&self, rng: &mut SeededRng) -> Program {
        let state = if rng.chance(40) { None } else { rng.pick(&self.states).cloned().flatten() };
        Program {
            state,
            inputs: Vec::new(),
            clean_turn_after: true,
            fresh_connection_after: false,
            bystander: false,
            bystander_state: None,
            repeat: None,
        }
    }

    /// Mutated messages of one client, back to back: those that must be refused, or those that need not.
    fn burst(&self, rng: &mut SeededRng, of: BurstOf) -> Program {
        let mut program = self.empty(rng);
        let most = if of == BurstOf::Refused && rng.chance(50) { REFUSED_BURST } else { BURST };
        let wanted = 1 + rng.below(most);
        for _ in 0..wanted * 4 {
            if program.inputs.len() >= wanted {
                break;
            }
            let input = self.inputs.mutated(ALICE, rng);
            if BurstOf::from(&input.obligation) == of {
                program.inputs.push(input);
            }
        }
        program
    }

    /// Frames below the messages, some between commands.
    fn frames(&self, rng: &mut SeededRng) -> Program {
        let mut program = self.empty(rng);
        for _ in 0..1 + rng.below(4) {
            program.inputs.push(self.inputs.framed(ALICE, rng));
            if rng.chance(25) {
                program.inputs.push(self.inputs.valid(ALICE, rng));
            }
        }
        program.clean_turn_after = rng.chance(50);
        program
    }

    /// Commands in whatever order: from a place that a program before has reached, or from the beginning.
    fn sequence(&self, rng: &mut SeededRng, corpus: &[Program]) -> Program {
        let grown = if rng.chance(75) { rng.pick(corpus) } else { None };
        let grown =
            grown.filter(|program| !program.inputs.iter().any(|input| mutate::is_tolerable(&input.mutation)));
        let start = |program: &Program| Program {
            state: program.state.clone(),
            inputs: program.inputs.iter().take(LONGEST).cloned().collect(),
            bystander_state: program.bystander_state.clone(),
            ..*program
        };
        let mut program = grown.map_or_else(|| self.empty(rng), start);
        let (more, two) = (1 + rng.below(6), rng.chance(35));
        for _ in 0..more {
            let client = if two && rng.chance(45) { BOB } else { ALICE };
            match rng.below(20) {
                0..=9 => program.inputs.push(self.inputs.valid(client, rng)),
                10..=13 => program.inputs.push(self.inputs.turn(client, rng)),
                16 => program.inputs.push(self.inputs.framed(client, rng)),
                14..=15 => {
                    // What may be read in two ways is sent in bursts only: no monitor is judged there.
                    let mutated = self.inputs.mutated(client, rng);
                    program
                        .inputs
                        .extend(Some(mutated).filter(|input| !mutate::is_tolerable(&input.mutation)));
                }
                17 => {
                    // A command that comes twice.
                    let last = program.inputs.last().cloned();
                    program.inputs.extend(
                        last.filter(|input| matches!(input.action, Action::Send(_) | Action::Text(_))),
                    );
                }
                18 => program.inputs.push(self.inputs.race(rng)),
                _ => program.inputs.push(self.inputs.reconnect(client, rng)),
            }
            if rng.chance(60) {
                program.inputs.push(Input::pause(client, &self.inputs.protocol.extension.fuzzing.survives));
            }
        }
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    fn generator(name: &str) -> Generator {
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a protocol");
        let states = protocol.extension.fuzzing.states.keys().cloned().map(Some);
        Generator::new(&protocol, std::iter::once(None).chain(states).collect())
    }

    #[test]
    fn the_same_number_is_the_same_program() {
        for name in Protocol::embedded_names() {
            let (one, other) = (generator(name), generator(name));
            let program = |made: &Generator, index| made.program(9, index, &[], &|_| false);
            for index in 0..50 {
                assert_eq!(program(&one, index), program(&other, index), "{name} {index}");
            }
            assert!((0..20).any(|index| program(&one, index) != program(&one, index + 1)));
        }
    }

    #[test]
    fn a_server_with_one_session_is_fuzzed_without_a_second_one() {
        let name = Protocol::embedded_names()[0];
        let mut protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a protocol");
        let has_witness = |protocol: &Arc<Protocol>| {
            let made = Generator::new(protocol, vec![None]);
            (0..50).any(|index| made.program(9, index, &[], &|_| false).bystander)
        };
        assert!(has_witness(&protocol));
        Arc::get_mut(&mut protocol).expect("nobody else has it").set_single_session();
        assert!(!has_witness(&protocol));
    }

    #[test]
    fn a_lost_connection_is_made_again_in_ways_that_are_defined() {
        for name in Protocol::embedded_names() {
            let generator = generator(name);
            let avoid = &generator.inputs.protocol.extension.fuzzing.avoid;
            for index in 0..60 {
                let input = generator.inputs.reconnect(ALICE, &mut SeededRng::new(2, index));
                let Action::Steps(steps) = &input.action else { panic!("steps") };
                let sent = steps.iter().filter_map(|step| step.get("opening")?.as_str());
                for way in sent {
                    let opening = &generator.inputs.protocol.extension.openings[way];
                    let avoided = opening.iter().filter(|step| {
                        step.send.as_ref().is_some_and(|sent| avoid.iter().any(|name| sent["type"] == **name))
                    });
                    assert!(avoided.count() < 2, "{name}: {way}");
                }
            }
        }
    }

    #[test]
    fn every_program_is_a_scenario_that_the_loader_takes() {
        for name in Protocol::embedded_names() {
            let generator = generator(name);
            let protocol = &generator.inputs.protocol;
            let (mut refused, mut kinds) = (0, std::collections::BTreeSet::new());
            for index in 0..60 {
                let program = generator.program(4, index, &[], &|_| false);
                refused += usize::from(program.all_refused());
                kinds.extend(program.inputs.iter().map(|input| input.mutation.clone()));
                let case = program.render(protocol, "case", "A case", &[]).case;
                let text = crate::scenario::write::file(&[], "fuzz", &[case]);
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("case.yaml");
                std::fs::write(&path, &text).expect("written");
                if let Err(errors) = crate::scenario::load(&path, protocol) {
                    panic!("{name} {index}: {errors}\n{text}");
                }
            }
            assert!(refused > 3, "{name}: {refused}");
            assert!(kinds.len() > 15, "{name}: {kinds:?}");
        }
    }
}
