//! How often each requirement was exercised in one case: small, for there may be very many cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// Counts by the ids of requirements, in the order of the ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<Arc<str>, u64>")]
pub struct Counts(Box<[(Arc<str>, u64)]>);

impl Counts {
    /// The ids with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.0.iter().map(|(id, count)| (id, *count))
    }

    /// Adds them to the totals of several cases.
    pub fn add_to(&self, totals: &mut BTreeMap<String, u64>) {
        for (id, count) in self.iter() {
            *totals.entry(id.to_string()).or_default() += count;
        }
    }

    /// Replaces each id by the text that stands for it in all cases.
    pub(super) fn share(&mut self, mut shared: impl FnMut(&mut Arc<str>)) {
        self.0.iter_mut().for_each(|(id, _)| shared(id));
    }
}

impl<K: Into<Arc<str>>> From<BTreeMap<K, u64>> for Counts {
    fn from(counts: BTreeMap<K, u64>) -> Self {
        Self(counts.into_iter().map(|(id, count)| (id.into(), count)).collect())
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_written_as_a_map() {
        let text = r#"{"A-1":3,"B-2":1}"#;
        let counts: Counts = serde_json::from_str(text).expect("counts");
        assert_eq!(
            counts.iter().map(|(id, count)| (&**id, count)).collect::<Vec<_>>(),
            [("A-1", 3), ("B-2", 1)]
        );
        assert_eq!(serde_json::to_string(&counts).expect("JSON"), text);
    }
}
