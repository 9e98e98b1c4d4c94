//! The bodies of the fuzz targets: what must hold for any input. Called by `fuzz/` and, on committed seeds, by an
//! ordinary test. Each panics when its property is broken.

use serde_json::Value;

use crate::frame::{FrameError, Limits, parse};

/// The frame parser on any bytes: it agrees with `serde_json` about what is JSON, is stricter only where it says so,
/// and gives the same value.
pub fn frame(bytes: &[u8]) {
    let limits = Limits { max_bytes: 1 << 20, max_depth: 64 };
    let plain = serde_json::from_slice::<Value>(bytes);
    match parse(bytes, &limits) {
        Ok(value) => {
            assert!(value.is_object(), "a frame is an object");
            assert_eq!(plain.ok().as_ref(), Some(&value), "the value is what serde_json reads");
            // What was parsed can be written and parsed again.
            let text = value.to_string();
            assert_eq!(parse(text.as_bytes(), &limits).as_ref(), Ok(&value), "a round trip changes nothing");
        }
        Err(FrameError::Syntax { .. } | FrameError::InvalidUtf8 { .. }) => {
            assert!(plain.is_err(), "what serde_json reads is no syntax error");
        }
        Err(FrameError::NotAnObject { .. }) => {
            assert!(plain.is_ok_and(|value| !value.is_object()), "it is JSON, and no object");
        }
        Err(_) => {}
    }
}

/// A JSON object built from the bytes is serialised and parsed to the same object.
#[cfg(feature = "arbitrary")]
pub fn frame_structured(bytes: &[u8]) {
    let mut source = arbitrary::Unstructured::new(bytes);
    let Ok(Value::Object(object)) = object(&mut source, 0) else { return };
    let value = Value::Object(object);
    let parsed = parse(value.to_string().as_bytes(), &Limits::default());
    assert_eq!(parsed, Ok(value), "a round trip changes nothing");
}

#[cfg(feature = "arbitrary")]
fn object(source: &mut arbitrary::Unstructured<'_>, depth: usize) -> arbitrary::Result<Value> {
    let mut map = serde_json::Map::new();
    for _ in 0..source.int_in_range(0..=6)? {
        let key = match source.int_in_range(0..=3)? {
            0 => "type".to_owned(),
            1 => "event_id".to_owned(),
            _ => source.arbitrary::<String>()?,
        };
        map.insert(key, value(source, depth + 1)?);
    }
    Ok(Value::Object(map))
}

#[cfg(feature = "arbitrary")]
fn value(source: &mut arbitrary::Unstructured<'_>, depth: usize) -> arbitrary::Result<Value> {
    let most = if depth > 20 { 4 } else { 6 };
    Ok(match source.int_in_range(0..=most)? {
        0 => Value::Null,
        1 => source.arbitrary::<bool>()?.into(),
        2 => source.arbitrary::<i64>()?.into(),
        3 => source.arbitrary::<u64>()?.into(),
        4 => source.arbitrary::<String>()?.into(),
        5 => {
            let length = source.int_in_range(0..=4)?;
            Value::Array((0..length).map(|_| value(source, depth + 1)).collect::<Result<_, _>>()?)
        }
        _ => object(source, depth)?,
    })
}
