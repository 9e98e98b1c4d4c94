//! What every monitor has in common.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::history::{History, Logged};
use super::window::Memory;
use super::{Exercised, Violation};
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::results::Check;
use crate::trace::Direction;

/// A connection of the trace, numbered from 0 in the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Conn(pub u32);

/// A session of the trace. Connections that were told the same session id share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionNo(pub u32);

/// One JSON message as monitors see it.
pub(crate) struct Seen<'a> {
    /// Index of the event in the trace.
    pub event: u64,
    /// Since the start of the trace.
    pub at: Duration,
    /// Times may be off by this much: whoever measured them was kept waiting.
    pub delays: Duration,
    /// Its connection.
    pub conn: Conn,
    /// The session of that connection as far as it is known.
    pub session: SessionNo,
    /// The session may have been known before, and forgotten.
    pub forgotten: bool,
    /// The session went on while none of its connections was open: nobody knows what came then.
    pub unwatched: bool,
    /// Who sent it.
    pub dir: Direction,
    /// Index of its message in the protocol; `None` for one that the protocol does not know (a client may send
    /// such a thing on purpose).
    pub message: Option<usize>,
    /// The whole message.
    pub body: &'a Value,
    /// Its place in the session's log, if it is logged.
    pub logged: Option<Logged>,
    /// The sessions' logs before this message.
    pub history: &'a History,
}

impl Seen<'_> {
    /// Whether the message is one of the pattern's.
    pub fn is(&self, matcher: &Matcher) -> bool {
        matcher.matches(self.message, self.dir, self.body)
    }

    /// Whether it is one of the pattern's, if there is a pattern.
    pub fn is_any(&self, matcher: Option<&Matcher>) -> bool {
        matcher.is_some_and(|matcher| self.is(matcher))
    }
}

/// Requirements, and how often there was an occasion to break them.
type Count = (Box<[String]>, u64);

/// So many lists of requirements are counted without a look into a hash table.
const RECENT: usize = 128;

/// Where monitors report.
pub(crate) struct Findings {
    pub violations: Vec<Violation>,
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

impl Default for Findings {
    fn default() -> Self {
        let recent = Box::new([Recent::default(); RECENT]);
        Self { violations: Vec::new(), lists: FxHashMap::default(), recent }
    }
}

impl Findings {
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

    /// As [`Findings::broken`], for a violation made elsewhere.
    #[cold]
    pub fn push(&mut self, violation: Violation) -> Option<&mut Violation> {
        if violation.requirements.is_empty() {
            return None;
        }
        self.violations.push(violation);
        self.violations.last_mut()
    }
}

impl Violation {
    /// A violation without evidence.
    pub(crate) fn new(check: &Check, ids: &[String], message: String) -> Self {
        Self {
            check: check.clone(),
            requirements: ids.to_vec(),
            warns: false,
            message,
            event: None,
            related: None,
            expected: None,
            actual: None,
        }
    }
}

/// The end of a trace.
pub(crate) struct End<'a> {
    /// Everything that the server had to say has been received, so that duties still open are broken;
    /// otherwise they are not judged.
    pub settled: bool,
    /// The sessions' logs.
    pub history: &'a History,
}

/// A property that is checked event by event.
pub(crate) trait Monitor: Send {
    /// Takes the next message of a type that the monitor asked for.
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings);
    /// A connection is gone: its state can be dropped, unless the session still needs it.
    fn closed(&mut self, _conn: Conn, _findings: &mut Findings) {}
    /// The trace has ended.
    fn finish(&mut self, _end: &End<'_>, _findings: &mut Findings) {}
    /// What it remembers. Of a monitor with a few numbers a connection: nothing.
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

/// A key as text: strings as they are, other values as JSON.
pub(crate) fn key_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The whole number that a number is, however it is written: 1 and 1.0 are one, 2^53 and 2^53 + 1 are two.
fn whole_number(number: &serde_json::Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    let float = || {
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30).map(|float| float as i128)
    };
    exact.or_else(float)
}

/// A counter's value: a whole number, however large or written. `None`: it is none.
pub(crate) fn counter(value: &Value) -> Option<i128> {
    value.as_number().and_then(whole_number)
}

/// A counter as JSON, for a report.
pub(crate) fn counter_json(counter: i128) -> Value {
    i64::try_from(counter)
        .map(Value::from)
        .or_else(|_| u64::try_from(counter).map(Value::from))
        .unwrap_or_else(|_| Value::from(counter.to_string()))
}

/// A hash of a JSON value that does not depend on the order of keys, without the parts named by `volatile` (top-level
/// keys). Equal values have equal hashes; numbers by value.
pub(crate) fn content_hash(value: &Value, volatile: &[String]) -> u64 {
    if let Value::Object(map) = value {
        let kept = map.iter().filter(|(key, _)| !volatile.contains(key));
        return object_hash(kept.map(|(key, value)| field_hash(key, value)));
    }
    let mut hasher = rustc_hash::FxHasher::default();
    feed(value, &mut hasher);
    mixed(hasher.finish())
}

/// Each type begins with a byte of its own: null is not false, nor is [] {}.
fn feed(value: &Value, hasher: &mut rustc_hash::FxHasher) {
    match value {
        Value::Null => 0u8.hash(hasher),
        Value::Bool(value) => (1u8, value).hash(hasher),
        Value::Number(number) => match whole_number(number) {
            Some(whole) => (2u8, whole).hash(hasher),
            None => (3u8, number.as_f64().unwrap_or(0.0).to_bits()).hash(hasher),
        },
        Value::String(text) => (4u8, text).hash(hasher),
        Value::Array(items) => {
            (5u8, items.len()).hash(hasher);
            items.iter().for_each(|item| content_hash(item, &[]).hash(hasher));
        }
        Value::Object(_) => (6u8, content_hash(value, &[])).hash(hasher),
    }
}

/// Spreads a hash over all bits (the finaliser of MurmurHash3). `FxHasher` is linear: without this, sums of its hashes are the
/// same for fields whose values have changed places.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// An object's fields, read once for all who ask about them.
#[derive(Default)]
pub(crate) struct Fields {
    /// Which keys there are, and in which order, as a hash.
    pub layout: u64,
    /// The hashes of the fields, in their order.
    hashes: Vec<u64>,
}

impl Fields {
    /// Reads an object. Other values have no fields.
    pub fn read(&mut self, object: &Value) {
        let mut layout = rustc_hash::FxHasher::default();
        self.hashes.clear();
        for (key, value) in object.as_object().into_iter().flatten() {
            let field = hashed_key(key);
            field.finish().hash(&mut layout);
            self.hashes.push(with_value(field, value));
        }
        self.layout = layout.finish();
    }
}

/// Top-level keys without which contents are compared, each once.
#[derive(Default)]
pub(crate) struct Volatile {
    pub keys: Vec<String>,
    /// The layout that was asked about last: most objects of a stream have the same.
    layout: Option<u64>,
    /// All bits of the fields that are kept in it, in their order, and none of the others.
    kept: Vec<u64>,
}

impl Volatile {
    /// The keys that pointers name.
    pub fn new(pointers: &[Pointer]) -> Self {
        let keys = pointers.iter().map(|at| at.as_str().trim_start_matches('/').to_owned());
        Self { keys: keys.collect::<BTreeSet<_>>().into_iter().collect(), ..Self::default() }
    }

    /// What [`content_hash`] is of an object without these keys, given its fields. Of other values: that of an empty one.
    pub fn hash_without(&mut self, fields: &Fields, object: &Value) -> u64 {
        if self.layout != Some(fields.layout) {
            let keys = object.as_object().into_iter().flatten().map(|(key, _)| key);
            let kept = keys.map(|key| if self.keys.contains(key) { 0 } else { u64::MAX });
            (self.layout, self.kept) = (Some(fields.layout), kept.collect());
        }
        object_hash(fields.hashes.iter().zip(&self.kept).map(|(hash, kept)| hash & kept))
    }
}

fn object_hash(fields: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    (6u8, fields.fold(0, u64::wrapping_add)).hash(&mut hasher);
    mixed(hasher.finish())
}

fn field_hash(key: &str, value: &Value) -> u64 {
    with_value(hashed_key(key), value)
}

fn hashed_key(key: &str) -> rustc_hash::FxHasher {
    let mut field = rustc_hash::FxHasher::default();
    key.hash(&mut field);
    field
}

/// The hash of a field, given its key.
fn with_value(mut field: rustc_hash::FxHasher, value: &Value) -> u64 {
    feed(value, &mut field);
    mixed(field.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_are_exact_however_lists_change_places() {
        let lists: Vec<Vec<String>> =
            (0..5 * RECENT).map(|n| vec![format!("R-{n}"), "R-all".to_owned()]).collect();
        let mut findings = Findings::default();
        let mut expected = Exercised::new();
        for at in (0..20_000usize).map(|n| (n / 3).wrapping_mul(2_654_435_761) % lists.len()) {
            findings.exercise(&lists[at]);
            findings.exercise(&[]);
            *expected.entry(format!("R-{at}")).or_default() += 1;
            *expected.entry("R-all".to_owned()).or_default() += 1;
        }
        findings.exercise_often(&lists[7], 5);
        *expected.entry("R-7".to_owned()).or_default() += 5;
        *expected.entry("R-all".to_owned()).or_default() += 5;
        assert_eq!(findings.exercised(), expected);
    }

    #[test]
    fn fields_read_once_give_the_hash_of_what_is_kept() {
        let mut volatile = Volatile::new(&["/at", "/id", "/at"].map(|at| Pointer::new(at).expect("one")));
        assert_eq!(volatile.keys, ["at", "id"]);
        let mut fields = Fields::default();
        let mut layouts = std::collections::BTreeSet::new();
        let objects = [
            json!({ "a": 1, "at": 5, "b": [2] }),
            json!({ "a": 2, "at": 6, "b": [2] }),
            json!({ "at": 5, "a": 1, "b": [2] }),
            json!({ "a": 1, "at": 5, "b": [2], "id": 1 }),
            json!({ "aa": 1, "t": 5, "b": [2] }),
            json!({ "at": 1 }),
            json!({}),
        ];
        // Twice: as a new layout, and as one that is known.
        for object in objects.iter().flat_map(|object| [object, object]) {
            fields.read(object);
            assert_eq!(
                volatile.hash_without(&fields, object),
                content_hash(object, &volatile.keys),
                "{object}"
            );
            layouts.insert(fields.layout);
        }
        assert_eq!(layouts.len(), objects.len() - 1, "the first two are alike");
    }

    #[test]
    fn contents_are_told_apart() {
        let values = [
            json!(null),
            json!(false),
            json!(true),
            json!(0),
            json!(1),
            json!(0.5),
            json!(""),
            json!("0"),
            json!([]),
            json!({}),
            json!([[]]),
            json!([null]),
            json!({ "a": null }),
            json!({ "a": {} }),
            json!({ "a": [] }),
            json!(9_007_199_254_740_992_u64),
            json!(9_007_199_254_740_993_u64),
            json!([0, 1]),
            json!([1, 0]),
        ];
        for (at, left) in values.iter().enumerate() {
            for right in &values[at + 1..] {
                assert_ne!(content_hash(left, &[]), content_hash(right, &[]), "{left} {right}");
            }
        }
        // Values that change places.
        for n in 0..200 {
            let (left, right) = (format!("v{n}"), json!({ "n": n }));
            let one = json!({ "from": left, "to": right, "args": { "x": n, "y": left } });
            let other = json!({ "from": right, "to": left, "args": { "x": n, "y": left } });
            let third = json!({ "from": left, "to": right, "args": { "x": left, "y": n } });
            let hashes = [&one, &other, &third].map(|value| content_hash(value, &[]));
            assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2] && hashes[1] != hashes[2], "{one}");
        }
        for (left, right) in [
            (json!({ "a": 1, "b": [2.0] }), json!({ "b": [2], "a": 1.0 })),
            (json!(0), json!(-0.0)),
            (json!({ "a": 1, "at": 5 }), json!({ "a": 1 })),
        ] {
            let volatile = ["at".to_owned()];
            assert_eq!(content_hash(&left, &volatile), content_hash(&right, &volatile), "{left} {right}");
        }
    }
}
