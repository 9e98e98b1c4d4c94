//! The frame parser on any bytes.

use serde_json::Value;

use crate::frame::{FrameError, Limits, Place, parse};

const LIMITS: Limits = Limits { max_bytes: 1 << 20, max_depth: 64 };

/// The parser alone, as fast as it goes: it does not panic, gives objects only, and its errors point into the text.
pub fn frame(bytes: &[u8]) {
    match parse(bytes, &LIMITS) {
        Ok(value) => assert!(value.is_object(), "a frame is an object"),
        Err(FrameError::InvalidUtf8 { offset }) => {
            assert!(offset < bytes.len(), "the bad byte is in the text")
        }
        Err(
            FrameError::Syntax { place, .. }
            | FrameError::Number { place, .. }
            | FrameError::TooDeep { place, .. }
            | FrameError::DuplicateKey { place, .. },
        ) => is_inside(place, bytes),
        Err(_) => {}
    }
}

fn is_inside(place: Place, bytes: &[u8]) {
    assert!(place.line >= 1 && place.line <= bytes.len() + 1, "{place} is no line of the text");
    assert!(place.column <= bytes.len() + 1, "{place} is no column of the text");
}

/// What `frame` is measured against: bytes to a `serde_json::Value` and nothing else.
pub fn frame_value(bytes: &[u8]) {
    drop(serde_json::from_slice::<Value>(bytes));
}

/// The parser agrees with `serde_json` about what is JSON, is stricter only where it says so, and gives the same value;
/// what it gives can be written and parsed again.
pub fn frame_agrees(bytes: &[u8]) {
    let plain = serde_json::from_slice::<Value>(bytes);
    match parse(bytes, &LIMITS) {
        Ok(value) => {
            assert!(value.is_object(), "a frame is an object");
            assert_eq!(plain.ok().as_ref(), Some(&value), "the value is what serde_json reads");
            let text = value.to_string();
            assert_eq!(parse(text.as_bytes(), &LIMITS).as_ref(), Ok(&value), "a round trip changes nothing");
        }
        Err(FrameError::Syntax { .. } | FrameError::Number { .. } | FrameError::InvalidUtf8 { .. }) => {
            assert!(plain.is_err(), "what serde_json reads is no syntax error");
        }
        Err(FrameError::NotAnObject { .. }) => {
            assert!(plain.is_ok_and(|value| !value.is_object()), "it is JSON, and no object");
        }
        Err(FrameError::DuplicateKey { key, .. }) => {
            let escaped = bytes.contains(&b'\\');
            let named = bytes.windows(key.len().max(1)).any(|window| window == key.as_bytes());
            assert!(escaped || key.is_empty() || named, "the repeated key stands in the text");
        }
        Err(FrameError::TooDeep { limit, .. }) => {
            let opened = bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
            assert!(opened > limit, "{opened} brackets nest no deeper than {limit}");
        }
        Err(FrameError::TooCostly { limit, .. }) => {
            assert!(limit > 8 * bytes.len(), "what costs more than this takes more than its text");
        }
        Err(FrameError::BatchTooLong { .. }) => unreachable!("no batch was asked for"),
        Err(FrameError::TooLarge { bytes: length, limit }) => {
            assert!(length == bytes.len() && length > limit)
        }
    }
}
