//! A mutator on the JSON tree: what it changes stays JSON, so that most inputs get past the parser and to the schema.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Map, Number, Value};

/// Values near the edges of types and limits.
const EDGES: [&str; 22] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "5.0",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "\"\"",
    "\"yes\"",
    "\"\\u0000\"",
    "\"\\u001b[31m\"",
    "\"\\u202e\"",
    "[]",
    "{}",
    "[[[[]]]]",
];

/// Changes one to four places of a JSON text: drops, copies, retypes, renames, nests, swaps. `words` are names and values
/// that mean something to what is fuzzed. `None`: `text` is no JSON, or the result is longer than `max_bytes`; the caller
/// then mutates bytes. The same seed gives the same result.
pub fn mutate_json(text: &[u8], words: &[String], seed: u32, max_bytes: usize) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(text).ok()?;
    let mut random = Random(ChaCha8Rng::seed_from_u64(u64::from(seed)));
    for _ in 0..=random.below(4) {
        let whole = value.clone();
        let places = count(&value);
        let at = random.below(places);
        change(&mut value, &mut { at }, &whole, words, &mut random);
    }
    let text = serde_json::to_vec(&value).ok()?;
    (text.len() <= max_bytes).then_some(text)
}

struct Random(ChaCha8Rng);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit.max(1) as u64) as usize
    }

    fn of<'l, T>(&mut self, list: &'l [T]) -> Option<&'l T> {
        let at = self.below(list.len());
        list.get(at)
    }

    fn edge(&mut self) -> Value {
        self.of(&EDGES).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    fn word(&mut self, words: &[String]) -> String {
        self.of(words).cloned().unwrap_or_else(|| "type".to_owned())
    }
}

/// How many values there are in a tree.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The `at`th value of a tree, in the order of the text.
fn pick<'v>(value: &'v Value, at: &mut usize) -> Option<&'v Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter().find_map(|item| pick(item, at)),
        Value::Object(map) => map.values().find_map(|item| pick(item, at)),
        _ => None,
    }
}

/// Changes the `at`th value; whether it has been reached.
fn change(value: &mut Value, at: &mut usize, whole: &Value, words: &[String], random: &mut Random) -> bool {
    if *at == 0 {
        match value {
            Value::Object(map) if random.below(4) > 0 => change_object(map, whole, words, random),
            Value::Array(items) if random.below(4) > 0 => change_array(items, whole, random),
            _ => change_value(value, whole, words, random),
        }
        return true;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change(item, at, whole, words, random)),
        Value::Object(map) => map.values_mut().any(|item| change(item, at, whole, words, random)),
        _ => false,
    }
}

fn elsewhere(whole: &Value, random: &mut Random) -> Value {
    let mut at = random.below(count(whole));
    pick(whole, &mut at).cloned().unwrap_or_default()
}

fn change_object(map: &mut Map<String, Value>, whole: &Value, words: &[String], random: &mut Random) {
    let names: Vec<String> = map.keys().cloned().collect();
    let name = random.of(&names).cloned();
    match (random.below(5), name) {
        (0, Some(name)) => drop(map.remove(&name)),
        (1, Some(name)) => {
            let value = map.remove(&name).unwrap_or_default();
            map.insert(random.word(words), value);
        }
        (2, Some(name)) => drop(map.insert(name, random.edge())),
        (3, _) => drop(map.insert(random.word(words), elsewhere(whole, random))),
        _ => drop(map.insert(random.word(words), random.edge())),
    }
}

fn change_array(items: &mut Vec<Value>, whole: &Value, random: &mut Random) {
    let at = random.below(items.len());
    match random.below(4) {
        0 if !items.is_empty() => drop(items.remove(at)),
        1 if !items.is_empty() => items.push(items[at].clone()),
        2 if !items.is_empty() => items.swap(0, at),
        _ => items.push(if random.below(2) == 0 { random.edge() } else { elsewhere(whole, random) }),
    }
}

fn change_value(value: &mut Value, whole: &Value, words: &[String], random: &mut Random) {
    *value = match (random.below(6), std::mem::take(value)) {
        (0, _) => random.edge(),
        (1, _) => random.word(words).into(),
        (2, _) => elsewhere(whole, random),
        (3, old) => Value::Array(vec![old]),
        (4, Value::Number(number)) => {
            let near = number.as_i64().unwrap_or_default().wrapping_add(random.below(5) as i64 - 2);
            Value::Number(Number::from(near))
        }
        (_, Value::String(mut text)) => {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            match (random.below(3), random.of(&places)) {
                (0, Some(at)) => text.truncate(*at),
                (1, Some(at)) => text.insert_str(*at, &random.0.next_u32().to_string()),
                _ => text = text.repeat(2),
            }
            text.into()
        }
        (_, Value::Bool(bit)) => (!bit).into(),
        (_, old) => old.to_string().into(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mutated_stays_json_and_changes() {
        let text = br#"{"type":"a","list":[1,2,{"x":null}],"n":5,"deep":{"s":"text"}}"#;
        let words = ["type".to_owned(), "seq".to_owned()];
        let mut results = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let mutated = mutate_json(text, &words, seed, 4096).expect("JSON");
            assert_eq!(mutate_json(text, &words, seed, 4096).as_ref(), Some(&mutated), "the same seed");
            serde_json::from_slice::<Value>(&mutated).expect("still JSON");
            results.insert(mutated);
        }
        assert!(results.len() > 250, "only {} different results", results.len());
        assert_eq!(mutate_json(b"{oops", &words, 1, 4096), None);
        assert_eq!(mutate_json(text, &words, 1, 3), None, "too long");
    }
}
