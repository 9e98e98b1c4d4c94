//! What may still be expected of a server that is given plain prompts in place of cues: not the model's exact words.

use serde_json::{Map, Value};

use crate::protocol::script::TurnStep;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::turn;

impl Interpreter<'_> {
    /// Where prompts stand in place of cues, every turn of the case has one.
    pub(crate) fn has_prompts(&self) -> Result<(), Abort> {
        let (prompts, case) = (&self.cx.run.options.prompts, &self.cx.loaded.case);
        if prompts.is_empty() {
            return Ok(());
        }
        let id = &self.cx.loaded.id;
        let own = case.turn.as_ref().map(|steps| (None, steps));
        for (turn, steps) in
            own.into_iter().chain(case.turns.iter().map(|(name, steps)| (Some(name.as_str()), steps)))
        {
            if prompts.of(id, turn).is_none() {
                return Err(Abort::NotApplicable("the target has no prompt for this case".to_owned()));
            }
            if let Some(act) = beyond_prompts(steps).filter(|_| !prompts.names(id, turn)) {
                let name = turn.map_or_else(|| id.clone(), |turn| format!("{id}.{turn}"));
                return Err(Abort::NotApplicable(format!(
                    "no plain prompt makes a model {act}; `prompts` with \"{name}\" itself says that one does"
                )));
            }
        }
        Ok(())
    }

    /// What the cue's turns would have had the model say.
    fn words(&self) -> Vec<String> {
        let case = &self.cx.loaded.case;
        let turns = case.turn.iter().chain(case.turns.values());
        let texts = turns.flatten().filter_map(|step: &TurnStep| step.say.as_ref().or(step.think.as_ref()));
        let mut words: Vec<String> =
            texts.flat_map(|chunks| chunks.iter().cloned().chain([chunks.concat()])).collect();
        // Nor does a prompt fix with which arguments the model calls a tool.
        for steps in case.turn.iter().chain(case.turns.values()) {
            let calls = turn::calls(steps, &self.cx.protocol, &mut |name| self.vars.known(name));
            let args = calls.unwrap_or_default().into_iter().map(|call| Value::Object(call.args));
            args.for_each(|args| texts_of(&args, &mut words));
        }
        words.retain(|text| !text.is_empty());
        words
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

/// What the steps want of the model that a plain prompt cannot bring about.
fn beyond_prompts(steps: &[TurnStep]) -> Option<&'static str> {
    let calls_together = steps.windows(2).any(|pair| pair.iter().all(|step| step.call.is_some()));
    if steps.iter().any(|step| step.fail.is_some()) {
        Some("fail")
    } else if steps.iter().any(|step| step.hang == Some(true)) {
        Some("hang")
    } else {
        calls_together.then_some("call several tools at once")
    }
}

/// The texts in a value.
fn texts_of(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, texts)),
        Value::Object(map) => map.values().for_each(|item| texts_of(item, texts)),
        _ => {}
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
    fn has_words(value: &Value, words: &[String]) -> bool {
        match value {
            Value::String(text) => is_of(text.trim_start_matches('^').trim_end_matches('$'), words),
            Value::Array(items) => items.iter().any(|item| has_words(item, words)),
            Value::Object(map) => map.values().any(|value| has_words(value, words)),
            _ => false,
        }
    }
    match schema {
        Value::Object(map) => {
            let kept = map
                .into_iter()
                .filter(|(key, value)| !(EXACT.contains(&key.as_str()) && has_words(value, words)));
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
