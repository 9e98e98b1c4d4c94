//! Deviations from the protocol that an overlay excuses, each listed once with how often it was seen.

use serde::{Deserialize, Serialize};

use crate::text::same;

/// A deviation that an overlay excuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcusedDeviation<P = String> {
    /// The requirements that the protocol without the overlay finds broken.
    pub requirements: Vec<String>,
    /// One sentence.
    pub message: String,
    /// How often: in one case, or in all.
    pub count: u64,
    /// The case in which it was seen first, or another place.
    #[serde(rename = "case")]
    pub place: P,
}

/// Excused deviations in the order in which they were first seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExcusedList<P = String>(Vec<ExcusedDeviation<P>>);

/// Different deviations that a whole run lists.
const LISTED: usize = 1000;

impl<P> Default for ExcusedList<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> ExcusedList<P> {
    /// Counts a deviation. One that differs from a listed one by ids and numbers only is the same.
    pub fn add(&mut self, one: ExcusedDeviation<P>) {
        self.add_within(usize::MAX, one);
    }

    /// As [`ExcusedList::add`], with at most so many different ones: what is beyond is not listed.
    pub fn add_within(&mut self, most: usize, one: ExcusedDeviation<P>) {
        let alike = |known: &&mut ExcusedDeviation<P>| {
            known.requirements == one.requirements && same(&known.message, &one.message)
        };
        let is_full = self.0.len() >= most;
        match self.0.iter_mut().find(alike) {
            Some(known) => known.count += one.count,
            None if is_full => {}
            None => self.0.push(one),
        }
    }

    /// Counts all deviations of another list, up to a bound.
    pub fn merge(&mut self, others: Self) {
        others.0.into_iter().for_each(|one| self.add_within(LISTED, one));
    }

    /// Whether nothing is excused.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The deviations.
    pub fn iter(&self) -> std::slice::Iter<'_, ExcusedDeviation<P>> {
        self.0.iter()
    }
}

impl<'l, P> IntoIterator for &'l ExcusedList<P> {
    type Item = &'l ExcusedDeviation<P>;
    type IntoIter = std::slice::Iter<'l, ExcusedDeviation<P>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_ids_only_is_counted_together() {
        let one = |message: &str, count| ExcusedDeviation {
            requirements: vec!["A-1".to_owned()],
            message: message.to_owned(),
            count,
            place: "f/c".to_owned(),
        };
        let mut list = ExcusedList::default();
        list.add(one("frame 7 has no id", 1));
        list.add(one("frame 12 has no id", 2));
        list.add_within(1, one("it is late", 1));
        assert_eq!(list.iter().map(|one| one.count).collect::<Vec<_>>(), [3]);
        let mut all = ExcusedList::default();
        all.add(one("it is late", 1));
        all.merge(list);
        assert_eq!(serde_json::to_value(&all).expect("a list")[1]["case"], "f/c");
    }
}
