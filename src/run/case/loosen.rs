//! What may still be expected of a server that is given plain prompts in place of cues: not the model's exact words.

use serde_json::{Map, Value};

use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::case::TurnStep;

impl Interpreter<'_> {
    /// Where prompts stand in place of cues, every turn of the case has one.
    pub(crate) fn has_prompts(&self) -> Result<(), Abort> {
        let (prompts, case) = (&self.cx.run.options.prompts, &self.cx.loaded.case);
        let turns = case
            .turn
            .as_ref()
            .map(|_| None)
            .into_iter()
            .chain(case.turns.keys().map(|name| Some(name.as_str())));
        if prompts.is_empty() || turns.into_iter().all(|turn| prompts.of(&self.cx.loaded.id, turn).is_some())
        {
            return Ok(());
        }
        Err(Abort::NotApplicable("the target has no prompt for this case".to_owned()))
    }

    /// What the cue's turns would have had the model say.
    fn words(&self) -> Vec<String> {
        let case = &self.cx.loaded.case;
        let turns = case.turn.iter().chain(case.turns.values());
        let texts = turns.flatten().filter_map(|step: &TurnStep| step.say.as_ref().or(step.think.as_ref()));
        texts
            .flat_map(|chunks| chunks.iter().cloned().chain([chunks.concat()]))
            .filter(|text| !text.is_empty())
            .collect()
    }

    /// A subset match without what depends on the model's exact words, where a prompt stands in place of the cue.
    pub(crate) fn without_model_words(&self, with: Value) -> Value {
        if self.cx.run.options.prompts.is_empty() {
            with
        } else {
            without(with, &self.words()).unwrap_or_default()
        }
    }

    /// A JSON Schema without it.
    pub(crate) fn schema_without_model_words(&self, schema: Value) -> Value {
        if self.cx.run.options.prompts.is_empty() { schema } else { schema_without(schema, &self.words()) }
    }
}

fn is_of(text: &str, words: &[String]) -> bool {
    words.iter().any(|word| text == word || (word.chars().count() > 2 && text.contains(word.as_str())))
}

/// The value without its texts that are the model's; none, if nothing is left.
fn without(value: Value, words: &[String]) -> Option<Value> {
    match value {
        Value::String(text) if is_of(&text, words) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, without(value, words)?)));
            Some(Value::Object(kept.collect::<Map<_, _>>()))
        }
        // Elements stand at places: one that may be anything takes the list's place along.
        Value::Array(items) => {
            let kept: Vec<Value> = items.iter().filter_map(|item| without(item.clone(), words)).collect();
            (kept.len() == items.len()).then_some(Value::Array(kept))
        }
        other => Some(other),
    }
}

/// The schema without the keywords that hold a text to the model's.
fn schema_without(schema: Value, words: &[String]) -> Value {
    const EXACT: [&str; 4] = ["const", "enum", "pattern", "not"];
    fn tells(value: &Value, words: &[String]) -> bool {
        match value {
            Value::String(text) => is_of(text.trim_start_matches('^').trim_end_matches('$'), words),
            Value::Array(items) => items.iter().any(|item| tells(item, words)),
            Value::Object(map) => map.values().any(|value| tells(value, words)),
            _ => false,
        }
    }
    match schema {
        Value::Object(map) => {
            let kept = map
                .into_iter()
                .filter(|(key, value)| !(EXACT.contains(&key.as_str()) && tells(value, words)));
            kept.map(|(key, value)| (key, schema_without(value, words))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| schema_without(item, words)).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exact_words_are_let_go_and_shape_stays() {
        let words = ["Hel".to_owned(), "lo".to_owned(), "Hello".to_owned()];
        assert_eq!(
            without(json!({ "type": "x", "text": "Hello", "n": 1 }), &words),
            Some(json!({ "type": "x", "n": 1 }))
        );
        assert_eq!(without(json!({ "list": ["a", "Hel"] }), &words), Some(json!({})));
        let schema = json!({ "properties": { "text": { "type": "string", "const": "Hello" }, "k": { "enum": ["a"] } } });
        let loose = json!({ "properties": { "text": { "type": "string" }, "k": { "enum": ["a"] } } });
        assert_eq!(schema_without(schema, &words), loose);
    }
}
