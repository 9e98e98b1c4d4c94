//! Embeddings: not scripted, but a server that remembers by them must get some. The same text always has the same one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::ApiError;
use super::reply::tokens_in;

/// Numbers of an embedding where the request does not say.
const DIMENSIONS: u64 = 256;
/// The most that it may ask for.
const MOST_DIMENSIONS: u64 = 4096;
/// The most texts in a request, as with the provider.
const MOST_TEXTS: usize = 2048;

/// Answers a request for embeddings.
pub(super) fn answer(body: &Value) -> Result<Value, ApiError> {
    let model = body["model"].as_str().ok_or_else(|| ApiError::field("model", "model: field required"))?;
    let inputs: Vec<String> = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        // A list of numbers is one text in tokens.
        Value::Array(items) if items.first().is_some_and(Value::is_number) => vec![body["input"].to_string()],
        Value::Array(items) if (1..=MOST_TEXTS).contains(&items.len()) => {
            items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
        }
        Value::Null => return Err(ApiError::field("input", "input: field required")),
        _ => return Err(ApiError::field("input", "input: must be a text or a list of up to 2048")),
    };
    let dimensions = match &body["dimensions"] {
        Value::Null => DIMENSIONS,
        value => value
            .as_u64()
            .filter(|number| (1..=MOST_DIMENSIONS).contains(number))
            .ok_or_else(|| ApiError::field("dimensions", "dimensions: must be between 1 and 4096"))?,
    };
    let base64 = body["encoding_format"] == "base64";
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let numbers = embed(text, dimensions);
            let embedding = if base64 {
                let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                STANDARD.encode(bytes).into()
            } else {
                json!(numbers)
            };
            json!({ "object": "embedding", "index": index, "embedding": embedding })
        })
        .collect();
    let tokens = tokens_in(&body["input"]);
    Ok(json!({
        "object": "list", "data": data, "model": model,
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    }))
}

/// A vector of length 1 that counts the text's words, hashed (FNV-1a) to places: texts that share words are near.
fn embed(text: &str, dimensions: u64) -> Vec<f32> {
    let mut counts = vec![0.0_f32; usize::try_from(dimensions).unwrap_or(1)];
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // The empty word is in every text, so that no vector is zero.
    for word in words.chain(std::iter::once("")) {
        let hash = word.to_lowercase().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        if let Some(count) = usize::try_from(hash % dimensions).ok().and_then(|at| counts.get_mut(at)) {
            *count += 1.0;
        }
    }
    let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
    counts.iter().map(|count| count / length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_the_same_embedding() {
        let one = answer(&json!({ "model": "m", "input": ["a b", "A, b!", "c"] })).expect("embeddings");
        assert_eq!(one["data"][0]["embedding"], one["data"][1]["embedding"]);
        assert_ne!(one["data"][0]["embedding"], one["data"][2]["embedding"]);
        let two = answer(&json!({ "model": "m", "input": "", "dimensions": 1, "encoding_format": "base64" }));
        assert_eq!(two.expect("one")["data"][0]["embedding"], STANDARD.encode(1.0_f32.to_le_bytes()));
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for body in [
            json!({ "input": "x" }),
            json!({ "model": "m" }),
            json!({ "model": "m", "input": [] }),
            json!({ "model": "m", "input": 1 }),
            json!({ "model": "m", "input": "x", "dimensions": 0 }),
            json!({ "model": "m", "input": "x", "dimensions": 5000 }),
        ] {
            assert_eq!(answer(&body).expect_err("refused").status, 400, "{body}");
        }
    }
}
