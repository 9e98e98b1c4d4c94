//! What the model was told to do, in words.

use std::borrow::Cow;

use super::{Cue, Step};

/// Steps that are told of one cue.
const STEPS: usize = 12;
/// Characters of what is said.
const MAX_TEXT: usize = 80;

/// The cue in a frame's text, in words. None: there is none that can be read.
pub(crate) fn words(text: &str) -> Option<String> {
    Cue::find(text).ok().flatten().map(|cue| describe(&cue.turn))
}

/// Steps in words.
pub(crate) fn describe(turn: &[Step]) -> String {
    let more = turn.len().saturating_sub(STEPS);
    let mut steps: Vec<String> = turn.iter().take(STEPS).map(step).collect();
    if more > 0 {
        steps.push(format!("{more} more"));
    }
    if steps.is_empty() {
        steps.push("says nothing".to_owned());
    }
    steps.join(", then ")
}

/// A text within so many characters: its end is left out.
fn within(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().take(most.saturating_sub(1)).chain(['…']).collect())
}

fn step(step: &Step) -> String {
    let quoted = |parts: &[String], every: Option<u64>| {
        let pace = every.map_or_else(String::new, |ms| format!(" every {ms} ms"));
        let text = parts.concat();
        let pieces =
            if parts.len() > 1 { format!(" in {} pieces{pace}", parts.len()) } else { String::new() };
        format!("“{}”{pieces}", within(&text, MAX_TEXT))
    };
    match step {
        Step::Say { say, every_ms } => format!("says {}", quoted(say, *every_ms)),
        Step::Think { think, every_ms } => format!("thinks {}", quoted(think, *every_ms)),
        Step::Call { call } => {
            let arguments = serde_json::to_string(&call.args).unwrap_or_default();
            format!("calls {} {}", within(&call.name, MAX_TEXT), within(&arguments, MAX_TEXT))
        }
        Step::Pause { pause_ms } => format!("waits {pause_ms} ms"),
        Step::Fail { fail } => {
            format!("fails with HTTP {} “{}”", fail.status, within(&fail.message, MAX_TEXT))
        }
        Step::Hang { .. } => "hangs until it is cancelled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cues_are_told_in_words() {
        let text = r#"{"text":"Please. [[cue:eyJ2IjoxLCJ0dXJuIjpbeyJoYW5nIjp0cnVlfV19]]"}"#;
        assert_eq!(words(text).as_deref(), Some("hangs until it is cancelled"));
        let turn = serde_json::json!([
            { "say": ["a", "b"], "every_ms": 5 }, { "call": { "name": "ls", "args": { "at": "/" } } }, { "pause_ms": 3 },
            { "fail": { "status": 429, "message": "busy" } },
        ]);
        let cue = Cue::new(serde_json::from_value(turn).expect("a turn"));
        assert_eq!(
            words(&cue.encode()).as_deref(),
            Some(
                "says “ab” in 2 pieces every 5 ms, then calls ls {\"at\":\"/\"}, then waits 3 ms, then fails with HTTP 429 “busy”"
            )
        );
        assert_eq!(words("[[cue:no]]"), None);
        assert_eq!(words("hello"), None);
    }
}
