//! What a monitor remembers: bounded, the longest unused forgotten first.

use std::hash::BuildHasher;

use hashlink::LinkedHashMap;
use hashlink::linked_hash_map::RawEntryMut;
use rustc_hash::FxBuildHasher;
use serde_json::Value;

/// Most entries of a map.
pub(crate) const ENTRIES: usize = 65_536;
/// Most bytes of a map's keys and values, counting [`OVERHEAD`] for each entry.
pub(crate) const BYTES: usize = 16 << 20;
/// What an entry takes besides its key and value, about, in bytes.
const OVERHEAD: usize = 64;

/// A map from a place (a connection's or session's number) and a key to what a monitor knows of it.
///
/// Two bounds hold for all places together: [`ENTRIES`] and a number of bytes. Of the place that was not looked at for longest
/// goes first what was not looked at for longest. The numbers of connections and sessions grow with time, so that one number
/// tells of which places something was forgotten: there, that a key is not known means nothing ([`BoundedMap::may_have_forgotten`]).
#[derive(Clone)]
pub(crate) struct BoundedMap<V> {
    places: LinkedHashMap<u32, Place<V>, FxBuildHasher>,
    /// Entries of all places.
    len: usize,
    most_bytes: usize,
    bytes: usize,
    forgotten: u64,
    /// The newest place of which something was forgotten.
    lacking: Option<u32>,
}

/// What is known of a place, by key: never empty.
type Place<V> = LinkedHashMap<Option<Box<str>>, Kept<V>, FxBuildHasher>;
/// A place's key, there or not.
type Entry<'w, V> = RawEntryMut<'w, Option<Box<str>>, Kept<V>, FxBuildHasher>;

#[derive(Clone)]
struct Kept<V> {
    value: V,
    bytes: usize,
}

impl<V> Default for BoundedMap<V> {
    fn default() -> Self {
        Self::of_bytes(BYTES)
    }
}

impl<V> BoundedMap<V> {
    /// An empty map of at most so many bytes.
    pub fn of_bytes(most_bytes: usize) -> Self {
        let places = LinkedHashMap::with_hasher(FxBuildHasher);
        Self { places, len: 0, most_bytes, bytes: 0, forgotten: 0, lacking: None }
    }

    /// What is known; from then on it is the last to be forgotten.
    pub fn get(&mut self, place: u32, text: Option<&str>) -> Option<&mut V> {
        let of_place = match self.places.back() {
            // Most often the one that was looked at last.
            Some((last, _)) if *last == place => self.places.values_mut().next_back()?,
            _ => self.places.to_back(&place)?,
        };
        if of_place.back().is_some_and(|(last, _)| last.as_deref() == text) {
            return of_place.values_mut().next_back().map(|kept| &mut kept.value);
        }
        match entry(of_place, text).1 {
            RawEntryMut::Occupied(mut known) => {
                known.to_back();
                Some(&mut known.into_mut().value)
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
        let of_place = match self.places.raw_entry_mut().from_key(&place) {
            RawEntryMut::Occupied(mut known) => {
                known.to_back();
                known.into_mut()
            }
            RawEntryMut::Vacant(new) => new.insert(place, Place::default()).1,
        };
        let before = match entry(of_place, text) {
            (_, RawEntryMut::Occupied(mut known)) => {
                known.to_back();
                Some(known.replace_value(kept))
            }
            (hash, RawEntryMut::Vacant(new)) => {
                new.insert_hashed_nocheck(hash, text.map(Box::from), kept);
                self.len += 1;
                None
            }
        };
        self.bytes = (self.bytes + bytes).saturating_sub(before.as_ref().map_or(0, |before| before.bytes));
        self.shrink();
        before.map(|before| before.value)
    }

    /// Counts what a value has grown by.
    pub fn grow(&mut self, place: u32, text: Option<&str>, bytes: usize) {
        let Some(of_place) = self.places.get_mut(&place) else { return };
        if let RawEntryMut::Occupied(mut known) = entry(of_place, text).1 {
            known.get_mut().bytes += bytes;
            self.bytes += bytes;
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        while self.len > ENTRIES || self.bytes > self.most_bytes {
            let Some((place, of_place)) = self.places.iter_mut().next() else { return };
            let place = *place;
            if let Some((_, kept)) = of_place.pop_front() {
                self.len -= 1;
                self.bytes = self.bytes.saturating_sub(kept.bytes);
                self.forgotten += 1;
                self.lacking = self.lacking.max(Some(place));
            }
            if of_place.is_empty() {
                self.places.pop_front();
            }
        }
    }

    /// Takes out what is known.
    pub fn remove(&mut self, place: u32, text: Option<&str>) -> Option<V> {
        let of_place = self.places.get_mut(&place)?;
        let RawEntryMut::Occupied(known) = entry(of_place, text).1 else { return None };
        let kept = known.remove();
        if of_place.is_empty() {
            self.places.remove(&place);
        }
        self.len -= 1;
        self.bytes = self.bytes.saturating_sub(kept.bytes);
        Some(kept.value)
    }

    /// Drops all that is known of a place; that is not forgetting.
    pub fn leave(&mut self, place: u32) {
        drop(self.take(place));
    }

    /// Takes out all that is known of a place, in the order in which it was used last.
    pub fn take(&mut self, place: u32) -> impl Iterator<Item = (Option<Box<str>>, V)> + use<V> {
        let left = self.places.remove(&place).unwrap_or_default();
        self.len -= left.len();
        self.bytes = self.bytes.saturating_sub(left.values().map(|kept| kept.bytes).sum());
        left.into_iter().map(|(text, kept)| (text, kept.value))
    }

    /// Whether something may have been known of the place that is forgotten by now.
    pub fn may_have_forgotten(&self, place: u32) -> bool {
        self.lacking.is_some_and(|lacking| place <= lacking)
    }

    /// All that is known of a place, in the order in which it was used last.
    pub fn each(&mut self, place: u32) -> impl Iterator<Item = &mut V> {
        self.places
            .get_mut(&place)
            .into_iter()
            .flat_map(|known| known.values_mut().map(|kept| &mut kept.value))
    }

    /// All that is known, by place, in the order in which it was used last.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Option<&str>, &V)> {
        self.places.iter().flat_map(|(place, known)| {
            known.iter().map(|(text, kept)| (*place, text.as_deref(), &kept.value))
        })
    }

    /// How much is in memory, and how much was forgotten.
    pub fn memory(&self) -> Memory {
        Memory { entries: self.len, forgotten: self.forgotten }
    }
}

/// The entry of a key, and its hash.
fn entry<'w, V>(of_place: &'w mut Place<V>, text: Option<&str>) -> (u64, Entry<'w, V>) {
    // As the key itself, an `Option<Box<str>>`, is hashed.
    let hash = FxBuildHasher.hash_one(text);
    (hash, of_place.raw_entry_mut().from_hash(hash, |key| key.as_deref() == text))
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
        let mut map = BoundedMap::default();
        for number in 0..=ENTRIES as u32 {
            assert_eq!(map.insert(number / 1000, Some(&number.to_string()), number, 4), None);
            assert_eq!(map.get(0, Some("0")), Some(&mut 0), "what is used stays");
        }
        assert_eq!(map.memory(), Memory { entries: ENTRIES, forgotten: 1 });
        // Place 0 was used all the time, so that place 1 is the one that was not looked at for longest.
        assert!(!map.has(1, Some("1000")) && map.has(1, Some("1001")) && !map.has(0, None));
        assert!(map.may_have_forgotten(1) && !map.may_have_forgotten(2));
        assert_eq!(map.insert(0, Some("2"), 7, 4), Some(2));
        assert_eq!(map.remove(0, Some("2")), Some(7));
        let left: Vec<_> = map.take(0).collect();
        assert_eq!(left.len(), 999, "{:?}", &left[..3]);
        assert_eq!(left.last(), Some(&(Some("0".into()), 0)));
        assert!(!map.has(0, Some("0")));
        assert_eq!(map.memory(), Memory { entries: ENTRIES - 1000, forgotten: 1 });
        assert_eq!(map.get(65, Some("65000")), Some(&mut 65_000));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut map = BoundedMap::of_bytes(1000);
        map.insert(1, None, "a", 500);
        map.insert(2, Some(""), "b", 300);
        assert_eq!(map.memory(), Memory { entries: 2, forgotten: 0 });
        map.grow(2, Some(""), 100);
        assert!(map.has(2, Some("")) && !map.has(1, None));
        assert!(map.may_have_forgotten(1) && !map.may_have_forgotten(2));
        map.insert(3, None, "c", 5000);
        assert_eq!(map.memory(), Memory { entries: 0, forgotten: 3 }, "too large by itself");
        assert_eq!((map.bytes, map.places.len()), (0, 0));
    }
}
