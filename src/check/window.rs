//! What a monitor remembers: bounded, the longest unused forgotten first.

use std::hash::BuildHasher;

use hashlink::LinkedHashMap;
use hashlink::linked_hash_map::RawEntryMut;
use rustc_hash::FxBuildHasher;
use serde_json::Value;

/// Most entries of a window.
pub(crate) const ENTRIES: usize = 65_536;
/// Most bytes of a window's keys and values, counting [`OVERHEAD`] for each entry.
pub(crate) const BYTES: usize = 16 << 20;
/// What an entry takes besides its key and value, about, in bytes.
const OVERHEAD: usize = 64;

/// A map from a place (a connection's or session's number) and a key to what a monitor knows of it.
///
/// Two bounds hold for all places together: [`ENTRIES`] and a number of bytes. What was not looked at for longest goes
/// first. The numbers of connections and sessions grow with time, so that one number tells of which places something was
/// forgotten: there, that a key is not known means nothing ([`Window::may_lack`]).
pub(crate) struct Window<V> {
    entries: LinkedHashMap<Key, Kept<V>, FxBuildHasher>,
    most_bytes: usize,
    bytes: usize,
    forgotten: u64,
    /// The newest place of which something was forgotten.
    lacking: Option<u32>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    place: u32,
    /// Hashed as `Option<&str>` is.
    text: Option<Box<str>>,
}

struct Kept<V> {
    value: V,
    bytes: usize,
}

impl<V> Default for Window<V> {
    fn default() -> Self {
        Self::of_bytes(BYTES)
    }
}

impl<V> Window<V> {
    /// An empty window of at most so many bytes.
    pub fn of_bytes(most_bytes: usize) -> Self {
        let entries = LinkedHashMap::with_hasher(FxBuildHasher);
        Self { entries, most_bytes, bytes: 0, forgotten: 0, lacking: None }
    }

    fn entry(
        &mut self,
        place: u32,
        text: Option<&str>,
    ) -> (u64, RawEntryMut<'_, Key, Kept<V>, FxBuildHasher>) {
        let hash = FxBuildHasher.hash_one((place, text));
        let is = |key: &Key| key.place == place && key.text.as_deref() == text;
        (hash, self.entries.raw_entry_mut().from_hash(hash, is))
    }

    /// What is known; from then on it is the last to be forgotten.
    pub fn get(&mut self, place: u32, text: Option<&str>) -> Option<&mut V> {
        match self.entry(place, text).1 {
            RawEntryMut::Occupied(mut entry) => {
                entry.to_back();
                Some(&mut entry.into_mut().value)
            }
            RawEntryMut::Vacant(_) => None,
        }
    }

    /// Whether a key is known.
    pub fn has(&mut self, place: u32, text: Option<&str>) -> bool {
        self.get(place, text).is_some()
    }

    /// Remembers a value of about so many bytes, and returns what was known before.
    pub fn insert(&mut self, place: u32, text: Option<&str>, value: V, bytes: usize) -> Option<V> {
        let bytes = bytes.saturating_add(text.map_or(0, str::len) + OVERHEAD);
        let kept = Kept { value, bytes };
        let (hash, entry) = self.entry(place, text);
        let before = match entry {
            RawEntryMut::Occupied(mut entry) => {
                entry.to_back();
                Some(entry.replace_value(kept))
            }
            RawEntryMut::Vacant(entry) => {
                let key = Key { place, text: text.map(Box::from) };
                entry.insert_hashed_nocheck(hash, key, kept);
                None
            }
        };
        self.bytes = (self.bytes + bytes).saturating_sub(before.as_ref().map_or(0, |before| before.bytes));
        self.shrink();
        before.map(|before| before.value)
    }

    /// Counts what a value has grown by.
    pub fn grow(&mut self, place: u32, text: Option<&str>, bytes: usize) {
        if let RawEntryMut::Occupied(mut entry) = self.entry(place, text).1 {
            entry.get_mut().bytes += bytes;
            self.bytes += bytes;
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        while self.entries.len() > ENTRIES || self.bytes > self.most_bytes {
            let Some((key, kept)) = self.entries.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(kept.bytes);
            self.forgotten += 1;
            self.lacking = self.lacking.max(Some(key.place));
        }
    }

    /// Takes out what is known.
    pub fn remove(&mut self, place: u32, text: Option<&str>) -> Option<V> {
        match self.entry(place, text).1 {
            RawEntryMut::Occupied(entry) => {
                let kept = entry.remove();
                self.bytes = self.bytes.saturating_sub(kept.bytes);
                Some(kept.value)
            }
            RawEntryMut::Vacant(_) => None,
        }
    }

    /// Drops what is not to be kept; that is not forgetting.
    pub fn retain(&mut self, mut keep: impl FnMut(u32, Option<&str>, &mut V) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|key, kept| {
            let stays = keep(key.place, key.text.as_deref(), &mut kept.value);
            *bytes = bytes.saturating_sub(if stays { 0 } else { kept.bytes });
            stays
        });
    }

    /// Drops all that is known of a place.
    pub fn leave(&mut self, place: u32) {
        self.retain(|known, _, _| known != place);
    }

    /// Takes out all that is known of a place, in the order in which it was used last.
    pub fn take(&mut self, place: u32) -> Vec<(Option<Box<str>>, V)> {
        if !self.entries.iter().any(|(key, _)| key.place == place) {
            return Vec::new();
        }
        let (left, rest) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition::<Vec<_>, _>(|(key, _)| key.place == place);
        self.entries = rest.into_iter().collect();
        left.into_iter()
            .map(|(key, kept)| {
                self.bytes = self.bytes.saturating_sub(kept.bytes);
                (key.text, kept.value)
            })
            .collect()
    }

    /// Whether something may have been known of the place that is forgotten by now.
    pub fn may_lack(&self, place: u32) -> bool {
        self.lacking.is_some_and(|lacking| place <= lacking)
    }

    /// All that is known, in the order in which it was used last.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Option<&str>, &V)> {
        self.entries.iter().map(|(key, kept)| (key.place, key.text.as_deref(), &kept.value))
    }

    /// How much is in memory, and how much was forgotten.
    pub fn memory(&self) -> Memory {
        Memory { entries: self.entries.len(), forgotten: self.forgotten }
    }
}

/// What is in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Entries that are kept.
    pub entries: usize,
    /// Entries that a bound made it forget.
    pub forgotten: u64,
}

impl std::ops::Add for Memory {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { entries: self.entries + other.entries, forgotten: self.forgotten + other.forgotten }
    }
}

/// About how many bytes a value takes.
pub(crate) fn bytes_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(bytes_of).sum(),
            Value::Object(map) => map.iter().map(|(key, value)| OVERHEAD + key.len() + bytes_of(value)).sum(),
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first() {
        let mut window = Window::default();
        for number in 0..=ENTRIES as u32 {
            assert_eq!(window.insert(number / 1000, Some(&number.to_string()), number, 4), None);
            assert_eq!(window.get(0, Some("0")), Some(&mut 0), "what is used stays");
        }
        assert_eq!(window.memory(), Memory { entries: ENTRIES, forgotten: 1 });
        assert!(!window.has(0, Some("1")) && window.has(0, Some("2")) && !window.has(0, None));
        assert!(window.may_lack(0) && !window.may_lack(1));
        assert_eq!(window.insert(0, Some("2"), 7, 4), Some(2));
        assert_eq!(window.remove(0, Some("2")), Some(7));
        let left = window.take(0);
        assert_eq!(left.len(), 998, "{:?}", &left[..3]);
        assert_eq!(left.last(), Some(&(Some("0".into()), 0)));
        assert_eq!(window.get(65, Some("65000")), Some(&mut 65_000));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut window = Window::of_bytes(1000);
        window.insert(1, None, "a", 500);
        window.insert(2, Some(""), "b", 300);
        assert_eq!(window.memory(), Memory { entries: 2, forgotten: 0 });
        window.grow(2, Some(""), 100);
        assert!(window.has(2, Some("")) && !window.has(1, None));
        assert!(window.may_lack(1) && !window.may_lack(2));
        window.insert(3, None, "c", 5000);
        assert_eq!(window.memory(), Memory { entries: 0, forgotten: 3 }, "too large by itself");
        assert_eq!(window.bytes, 0);
    }
}
