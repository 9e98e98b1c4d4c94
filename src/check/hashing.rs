//! Hashes by which contents are compared.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::values::whole_number;
use crate::frame::Pointer;

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
#[derive(Clone, Default)]
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
#[derive(Clone, Default)]
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
