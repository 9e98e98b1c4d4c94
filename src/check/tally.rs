//! Where monitors report: violations, and how often requirements were exercised.

use rustc_hash::FxHashMap;

use super::{Exercised, Violation};
use crate::results::Check;

/// Requirements, and how often there was an occasion to break them.
type Count = (Box<[String]>, u64);

/// So many lists of requirements are counted without a look into a hash table.
const RECENT: usize = 128;

/// So many violations of one check and the same requirements are listed of one event; of the others, how many there are.
pub(crate) const LISTED: usize = 20;

/// Where monitors report.
pub(crate) struct Tally {
    violations: Vec<Violation>,
    /// The violation that was last found to be the last that is listed of its kind.
    full: Option<usize>,
    /// Lists of ids are counted by where they are, which costs no look at their text. They belong to the protocol or to a
    /// monitor, and so stay where they are as long as the judge does.
    lists: FxHashMap<(usize, usize), Count>,
    /// The hot path: the list that was counted last at each place, and what `lists` does not know of it yet.
    recent: Box<[Recent; RECENT]>,
}

/// A list of ids by its address and length, and how often it was counted.
#[derive(Clone, Copy, Default)]
struct Recent {
    list: (usize, usize),
    times: u64,
}

/// Where a list with this address is counted. Lists of a protocol lie close together, at multiples of 16.
#[inline]
fn place_of(address: usize) -> usize {
    ((address >> 4).wrapping_mul(0x9E37_79B9) >> 16) % RECENT
}

impl Default for Tally {
    fn default() -> Self {
        let recent = Box::new([Recent::default(); RECENT]);
        Self { violations: Vec::new(), full: None, lists: FxHashMap::default(), recent }
    }
}

impl Tally {
    /// Counts an occasion to break these requirements.
    #[inline]
    pub fn exercise(&mut self, ids: &[String]) {
        let list = (ids.as_ptr().addr(), ids.len());
        let recent = &mut self.recent[place_of(list.0)];
        if recent.list == list {
            recent.times += 1;
        } else {
            self.exercise_often(ids, 1);
        }
    }

    /// Counts so many occasions to break these requirements.
    pub fn exercise_often(&mut self, ids: &[String], times: u64) {
        if ids.is_empty() {
            return;
        }
        let list = (ids.as_ptr().addr(), ids.len());
        let recent = &mut self.recent[place_of(list.0)];
        if let Some((_, count)) = self.lists.get_mut(&recent.list) {
            *count += recent.times;
        }
        *recent = Recent { list, times: 0 };
        let (known, count) = self.lists.entry(list).or_insert_with(|| (ids.into(), 0));
        debug_assert_eq!(**known, *ids, "a list of ids that does not stay");
        *count += times;
    }

    /// The counts, by id.
    pub fn exercised(&self) -> Exercised {
        let mut exercised = Exercised::new();
        let recent =
            self.recent.iter().filter_map(|recent| Some((&self.lists.get(&recent.list)?.0, recent.times)));
        let counted = self.lists.values().map(|(ids, count)| (ids, *count)).chain(recent);
        for (ids, count) in counted {
            for id in ids {
                *exercised.entry(id.clone()).or_default() += count;
            }
        }
        exercised
    }

    /// Records a violation, unless it breaks nothing (a protocol may leave a rule undecided).
    #[cold]
    pub fn broken(
        &mut self,
        check: &Check,
        ids: &[String],
        event: u64,
        message: String,
    ) -> Option<&mut Violation> {
        self.push(Violation { event: Some(event), ..Violation::new(check, ids, message) })
    }

    /// As [`Tally::broken`], for a violation made elsewhere. `None`, too: it is only counted, for many like it are listed.
    #[cold]
    pub fn push(&mut self, violation: Violation) -> Option<&mut Violation> {
        if violation.requirements.is_empty() { None } else { self.list(violation) }
    }

    /// As [`Tally::push`], whether or not it breaks a requirement.
    #[cold]
    pub fn list(&mut self, violation: Violation) -> Option<&mut Violation> {
        let alike = |other: &Violation| {
            other.requirements == violation.requirements && other.check == violation.check
        };
        if let Some(full) =
            self.full.and_then(|full| self.violations.get_mut(full)).filter(|full| alike(full))
        {
            full.more += 1;
            return None;
        }
        let mut listed = (0..self.violations.len()).filter(|at| alike(&self.violations[*at]));
        if let Some(last) = listed.nth(LISTED - 1) {
            self.full = Some(last);
            self.violations[last].more += 1;
            return None;
        }
        self.violations.push(violation);
        self.violations.last_mut()
    }

    /// What was reported since this was last asked.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        self.full = None;
        std::mem::take(&mut self.violations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_however_lists_change_places() {
        let lists: Vec<Vec<String>> =
            (0..5 * RECENT).map(|n| vec![format!("R-{n}"), "R-all".to_owned()]).collect();
        let mut tally = Tally::default();
        let mut expected = Exercised::new();
        for at in (0..20_000usize).map(|n| (n / 3).wrapping_mul(2_654_435_761) % lists.len()) {
            tally.exercise(&lists[at]);
            tally.exercise(&[]);
            *expected.entry(format!("R-{at}")).or_default() += 1;
            *expected.entry("R-all".to_owned()).or_default() += 1;
        }
        tally.exercise_often(&lists[7], 5);
        *expected.entry("R-7".to_owned()).or_default() += 5;
        *expected.entry("R-all".to_owned()).or_default() += 5;
        assert_eq!(tally.exercised(), expected);
    }
}
