//! Which messages repeat a value that a client knows (`repeats` of the protocol).

use std::sync::Arc;

use serde_json::Value;

use crate::check::{BoundedMap, content_hash, key_text};
use crate::protocol::RepeatRule;
use crate::trace::Direction;

/// Most bytes of what a client remembers for this. A value that was forgotten is new.
const BYTES: usize = 1 << 20;

/// The values that a client was told on its connection, as hashes: by rule and by what they are of.
pub(crate) struct KnownValues(BoundedMap<u64>);

impl Default for KnownValues {
    fn default() -> Self {
        Self(BoundedMap::of_bytes(BYTES))
    }
}

impl KnownValues {
    /// Takes in a message of either side. The result is the reading that speaks of it, if it repeats a value.
    pub fn note(
        &mut self,
        rules: &[RepeatRule],
        message: Option<usize>,
        dir: Direction,
        body: &Value,
    ) -> Option<Arc<str>> {
        let mut repeated = None;
        for (place, rule) in (0..).zip(rules) {
            let Some(key) = rule.key.get(body).map(key_text) else { continue };
            if rule.renewed_by.iter().any(|on| on.matches(message, dir, body)) {
                self.0.remove(place, Some(&key));
            }
            if rule.on.matches(message, dir, body)
                && let Some(value) = rule.value.get(body)
            {
                let hash = content_hash(value, &[]);
                let before = self.0.insert(place, Some(&key), hash, size_of::<u64>());
                repeated = repeated.or((before == Some(hash)).then(|| Arc::clone(&rule.reading)));
            }
        }
        repeated
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::{LoadOptions, Protocol};

    #[test]
    fn a_value_is_repeated_until_it_is_renewed() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
        let rule = json!({
            "message": { "where": { "required": ["value"] } },
            "key": "/of",
            "value": "/value",
            "renewed-by": [{ "any": [{ "dir": "send" }, { "where": { "required": ["piece"] } }] }],
            "reading": "A-1",
        });
        let rule = serde_json::from_value(rule).expect("a rule");
        let rules = [RepeatRule::new(&rule, &protocol).expect("it compiles")];
        let mut known = KnownValues::default();
        let mut note =
            |dir: Direction, body: Value| known.note(&rules, None, dir, &body).as_deref() == Some("A-1");
        let (recv, send) = (Direction::Recv, Direction::Send);
        assert!(!note(recv, json!({ "of": "a", "value": [] })));
        assert!(!note(recv, json!({ "of": "b", "value": [] })));
        assert!(note(recv, json!({ "of": "a", "value": [] })));
        assert!(!note(recv, json!({ "of": "a", "value": [1] })));
        assert!(!note(recv, json!({ "of": "a", "value": [] })), "another value came between");
        assert!(!note(send, json!({ "of": "a" })));
        assert!(!note(recv, json!({ "of": "a", "value": [] })), "the client has asked anew");
        assert!(note(recv, json!({ "of": "b", "value": [] })), "what it said was about something else");
        assert!(!note(recv, json!({ "of": "b", "piece": "[" })));
        assert!(!note(recv, json!({ "of": "b", "value": [] })), "a value that came in pieces is another one");
    }
}
