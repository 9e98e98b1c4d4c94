//! Templates: `{{expression}}` in the strings of a scenario.
//!
//! A string that is exactly one template yields the value itself; otherwise the value's text is put in. An expression is a
//! variable (`call`, `tools.guarded.name`, `run.id`), a sum of integers (`total - 1`, `base + total - 1`), or a variable with a fallback after `|`:
//! another variable, or JSON (`{{v|"1.0.0"}}`).

use serde_json::Value;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// The value of a variable.
pub type Lookup<'l> = &'l mut dyn FnMut(&str) -> Option<Value>;

/// Why a template cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `{{` without `}}`.
    #[error("`{{{{` without `}}}}`")]
    Unclosed,
    /// A variable that nothing has set.
    #[error("`{0}` is not set")]
    Unset(String),
    /// Arithmetic on something that is no integer.
    #[error("`{0}` is not an integer, so nothing can be added to it")]
    NotAnInteger(String),
}

/// Fills in every template of a value, keys excepted.
///
/// # Errors
/// See [`TemplateError`].
pub fn expand(value: &Value, lookup: &mut dyn FnMut(&str) -> Option<Value>) -> Result<Value, TemplateError> {
    expand_or(value, lookup, &mut |_| None)
}

/// The same; `unset`: what a variable that has no value and no fallback stands for.
///
/// # Errors
/// See [`TemplateError`].
pub fn expand_or(value: &Value, lookup: Lookup<'_>, unset: Lookup<'_>) -> Result<Value, TemplateError> {
    Ok(match value {
        Value::String(text) => expand_text(text, lookup, unset)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| expand_or(item, lookup, unset)).collect::<Result<_, _>>()?)
        }
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| Ok((key.clone(), expand_or(value, lookup, unset)?)))
                .collect::<Result<_, TemplateError>>()?,
        ),
        other => other.clone(),
    })
}

fn expand_text(text: &str, lookup: Lookup<'_>, unset: Lookup<'_>) -> Result<Value, TemplateError> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (expression, after) = after.split_once(CLOSE).ok_or(TemplateError::Unclosed)?;
        let value = evaluate(expression.trim(), lookup, unset)?;
        if before.is_empty() && after.is_empty() && out.is_empty() {
            return Ok(value);
        }
        out.push_str(before);
        match value {
            Value::String(text) => out.push_str(&text),
            other => out.push_str(&other.to_string()),
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(Value::String(out))
}

/// The integer that a number is: 1024.0 is one, as in JSON Schema.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64()?.to_string().parse().ok())
}

fn evaluate(expression: &str, lookup: Lookup<'_>, unset: Lookup<'_>) -> Result<Value, TemplateError> {
    if let Some((name, fallback)) = expression.split_once('|') {
        if let Some(value) = lookup(name.trim()) {
            return Ok(value);
        }
        let fallback = fallback.trim();
        return match serde_json::from_str(fallback) {
            Ok(value) => Ok(value),
            Err(_) => evaluate(fallback, lookup, unset),
        };
    }
    let mut terms = terms(expression);
    if let [(_, name)] = terms[..] {
        return lookup(name).or_else(|| unset(name)).ok_or_else(|| TemplateError::Unset(name.to_owned()));
    }
    let mut integer = |name: &str| {
        if let Ok(number) = name.parse::<i64>() {
            return Ok(number);
        }
        let value = lookup(name).ok_or_else(|| TemplateError::Unset(name.to_owned()))?;
        whole(&value).ok_or_else(|| TemplateError::NotAnInteger(name.to_owned()))
    };
    terms
        .drain(..)
        .try_fold(0_i64, |sum, (adds, name)| {
            let value = integer(name)?;
            Ok(if adds { sum.saturating_add(value) } else { sum.saturating_sub(value) })
        })
        .map(Value::from)
}

/// The terms of a sum, and whether each is added: `a + b - 1`. What is no sum is one term.
fn terms(expression: &str) -> Vec<(bool, &str)> {
    let words: Vec<&str> = expression.split_whitespace().collect();
    let is_sum =
        words.len() % 2 == 1 && words.iter().skip(1).step_by(2).all(|word| matches!(*word, "+" | "-"));
    if !is_sum {
        return vec![(true, expression)];
    }
    words
        .chunks(2)
        .zip(std::iter::once("+").chain(words.iter().copied().skip(1).step_by(2)))
        .map(|(pair, sign)| (sign == "+", pair[0]))
        .collect()
}

/// Whether there is no template in a value.
pub fn is_constant(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains(OPEN),
        Value::Array(items) => items.iter().all(is_constant),
        Value::Object(map) => map.values().all(is_constant),
        _ => true,
    }
}

/// The variables that a value's templates name, without those that have a fallback.
pub fn names(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some((_, after)) = rest.split_once(OPEN) {
                let Some((expression, after)) = after.split_once(CLOSE) else { return };
                rest = after;
                if expression.contains('|') {
                    continue;
                }
                let terms = terms(expression.trim()).into_iter().map(|(_, name)| name);
                found.extend(terms.filter(|name| name.parse::<i64>().is_err()).map(str::to_owned));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => map.values().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// The variables that a value's templates name, each with whether it is needed: it has no fallback.
pub fn mentions(value: &Value) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = names(value).into_iter().map(|name| (name, true)).collect();
    fallible(value, &mut found);
    found
}

/// The variables that have a fallback.
fn fallible(value: &Value, found: &mut Vec<(String, bool)>) {
    match value {
        Value::String(text) => {
            let inner = text.split(OPEN).skip(1).filter_map(|after| after.split_once(CLOSE));
            let named = inner.filter_map(|(expression, _)| expression.split_once('|'));
            found.extend(named.map(|(name, _)| (name.trim().to_owned(), false)));
        }
        Value::Array(items) => items.iter().for_each(|item| fallible(item, found)),
        Value::Object(map) => map.values().for_each(|value| fallible(value, found)),
        _ => {}
    }
}

/// Where in a source text the first template that names a variable stands, braces included.
pub fn find(text: &str, name: &str) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    while let Some(at) = text[from..].find(OPEN).map(|at| from + at) {
        let inner = at + OPEN.len();
        let end = text[inner..].find(CLOSE).map(|end| inner + end)?;
        if terms(text[inner..end].trim()).iter().any(|(_, term)| *term == name) {
            return Some(at..end + CLOSE.len());
        }
        from = inner;
    }
    None
}

/// Follows dots into a value: `a.b` of `a`.
pub fn dig(value: &Value, path: &str) -> Option<Value> {
    path.split('.')
        .try_fold(value, |value, key| match value {
            Value::Object(map) => map.get(key),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        })
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fills_in_by_type_and_by_text() {
        let vars = json!({ "n": 7, "name": "x", "o": { "id": "i" }, "size": 1024.0 });
        let mut lookup = |name: &str| dig(&vars, name);
        for (template, expected) in [
            (json!("{{n}}"), json!(7)),
            (json!("{{ n + 1 }}"), json!(8)),
            (json!("{{n - 10}}"), json!(-3)),
            (json!("{{n + n - 1}}"), json!(13)),
            (json!("{{size + 1}}"), json!(1025)),
            (json!("a{{name}}b{{n}}"), json!("axb7")),
            (json!({ "k": ["{{o}}", "{{o.id}}"] }), json!({ "k": [{ "id": "i" }, "i"] })),
            (json!("{{v|\"1\"}}"), json!("1")),
            (json!("{{v|n}}"), json!(7)),
            (json!("plain"), json!("plain")),
        ] {
            assert_eq!(expand(&template, &mut lookup), Ok(expected), "{template}");
        }
        assert_eq!(expand(&json!("{{nope}}"), &mut lookup), Err(TemplateError::Unset("nope".into())));
        assert_eq!(expand(&json!("{{n"), &mut lookup), Err(TemplateError::Unclosed));
        assert_eq!(
            expand(&json!("{{name + 1}}"), &mut lookup),
            Err(TemplateError::NotAnInteger("name".into()))
        );
        // What stands for a variable without a value is used only where there is no fallback.
        let mut null = |name: &str| (name == "none").then_some(Value::Null);
        for (template, expected) in
            [("{{none}}", json!(null)), ("{{none|7}}", json!(7)), ("{{nope|none}}", json!(null))]
        {
            assert_eq!(expand_or(&json!(template), &mut lookup, &mut null), Ok(expected), "{template}");
        }
        let text = "nope: 'a nope {{no}} {{ nope }}'";
        assert_eq!(find(text, "nope").map(|found| &text[found]), Some("{{ nope }}"));
        assert_eq!(find(text, "a"), None);
        assert_eq!(names(&json!(["{{a + 1}}", "x{{ b.c }}y", "{{d|1}}"])), ["a", "b.c"]);
        let mentioned = mentions(&json!({ "x": "{{a}}", "y": ["{{ b.c | 1 }}"] }));
        assert_eq!(mentioned, [("a".to_owned(), true), ("b.c".to_owned(), false)]);
    }
}
