//! What frameproof makes up itself, found in texts: no server says it by chance.

use crate::text::after_uuid;

/// How a cue begins and ends.
pub(crate) const CUE: (&str, &str) = ("[[cue:", "]]");

/// The UUIDs and cues in a text.
pub(crate) fn marks(text: &str) -> Vec<&str> {
    /// Digits before the first dash of a UUID.
    const DIGITS: usize = 8;
    let mut found = Vec::new();
    let mut at = 0;
    // The first dash of a UUID leads to it: most texts have few.
    while let Some(dash) = text.get(at..).and_then(|rest| rest.find('-')).map(|dash| at + dash) {
        at = dash + 1;
        let uuid = dash.checked_sub(DIGITS).and_then(|start| text.get(start..));
        if let Some((uuid, after)) = uuid.and_then(|uuid| Some((uuid, after_uuid(uuid)?))) {
            found.push(&uuid[..uuid.len() - after.len()]);
            at = text.len() - after.len();
        }
    }
    let cues = text.split(CUE.0).skip(1).filter_map(|rest| rest.split_once(CUE.1));
    found.extend(cues.map(|(cue, _)| cue).filter(|cue| !cue.is_empty()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0b8c1a52-5c3f-4a52-9a57-3f6c2a1d9e11";

    #[test]
    fn marks_are_uuids_and_cues() {
        for (text, expected) in [
            (String::new(), vec![]),
            ("a-b 2024-01-01 [[cue:]] [[cue:x".to_owned(), vec![]),
            (format!(r#"{{"id":"sess-{UUID}","é":"{UUID}"}}"#), vec![UUID, UUID]),
            (format!("{UUID}[[cue:abc]] [[cue:d-e]]"), vec![UUID, "abc", "d-e"]),
            (UUID[1..].to_owned(), vec![]),
            (format!("é-{}", &UUID[..35]), vec![]),
        ] {
            assert_eq!(marks(&text), expected, "{text}");
        }
    }
}
