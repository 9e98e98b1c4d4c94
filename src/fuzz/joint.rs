//! What several cases have caused, and none of them alone: crashes, and growing memory.

use super::fingerprint::Fingerprint;
use super::memory::MemoryWatch;
use super::oracle::Oracle;
use super::program::{OPENED, Program};
use crate::results::death::Death;
use crate::results::event::Verdict;

/// Where the campaign ends before all cases that may have done it were replayed.
const CUT: &str = "the search for the case was interrupted";

/// What several cases have caused, and none of them alone.
#[derive(Debug, Clone)]
pub(super) struct JointFinding {
    /// What it is.
    pub print: Fingerprint,
    /// How bad it is.
    pub verdict: Verdict,
    /// One sentence, which says that no case alone does it.
    pub message: String,
    /// The same where the search for one was cut short.
    cut: String,
    /// The cases, with their numbers.
    pub programs: Vec<(u64, Program)>,
}

impl JointFinding {
    /// A crash that no case alone reproduces, after these.
    pub fn crash(how: &Death, programs: &[(u64, Program)]) -> Self {
        let ran = cases(programs);
        Self {
            print: Fingerprint::of_crash(how),
            verdict: Verdict::Error,
            message: format!("the server died: {how}; no single case reproduces it; {ran} were running"),
            cut: format!("the server died: {how}; {CUT}, {ran} ran"),
            programs: programs.to_vec(),
        }
    }

    /// Growth that no case alone reproduces, with the cases before the measurements that grew most.
    pub fn growth(memory: MemoryWatch) -> Self {
        let grown = memory.growth_in_mib();
        let programs = memory.into_programs();
        let (grew, most) = (
            format!("the target's memory grew by {grown} MiB"),
            format!("it grew most while {} ran", cases(&programs)),
        );
        Self {
            print: Fingerprint {
                oracle: Oracle::Memory,
                requirements: Vec::new(),
                state: OPENED.to_owned(),
                signature: "the target's memory grew; no case alone makes it grow".to_owned(),
                mutations: None,
                crash: None,
            },
            verdict: Verdict::Failed,
            message: format!("{grew}; no single case, repeated, makes it grow, and {most}"),
            cut: format!("{grew}; {CUT}, and {most}"),
            programs,
        }
    }

    /// The finding where the search for a case ended before its time.
    pub fn cut_short(self) -> Self {
        Self { message: self.cut.clone(), ..self }
    }

    /// The finding where the search ended before its time, unless a case of the same oracle was `confirmed` and explains it.
    pub fn unless_explained(self, confirmed: Option<Oracle>) -> Option<Self> {
        (confirmed != Some(self.print.oracle)).then(|| self.cut_short())
    }
}

/// Cases in a few words: how many, and from which to which.
pub(super) fn cases(programs: &[(u64, Program)]) -> String {
    let indices = programs.iter().map(|(index, _)| index);
    match (indices.clone().min(), indices.max()) {
        (Some(first), Some(last)) if first != last => {
            format!("{} cases from {first} to {last}", programs.len())
        }
        (Some(only), _) => format!("case {only}"),
        _ => "no case".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_short_says_so_unless_a_case_explains_it() {
        let joint = || {
            let end = "exited with status 3".to_owned();
            JointFinding::crash(&Death { process: "a".to_owned(), end, words: None }, &[])
        };
        let cut = || joint().cut_short().message;
        assert!(cut().contains(CUT) && !joint().message.contains(CUT));
        for (confirmed, expected) in
            [(None, Some(cut())), (Some(Oracle::Memory), Some(cut())), (Some(Oracle::Target), None)]
        {
            assert_eq!(
                joint().unless_explained(confirmed).map(|rest| rest.message),
                expected,
                "{confirmed:?}"
            );
        }
    }

    #[test]
    fn cases_are_named_by_their_numbers() {
        let named = |indices: &[u64]| {
            cases(&indices.iter().map(|index| (*index, Program::default())).collect::<Vec<_>>())
        };
        assert_eq!(named(&[]), "no case");
        assert_eq!(named(&[7]), "case 7");
        assert_eq!(named(&[9, 7]), "2 cases from 7 to 9");
    }
}
