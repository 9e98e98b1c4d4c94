//! Whether what one session is told reaches another: a case made for it, run before all others where several sessions
//! are to run side by side.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;

use crate::protocol::{Protocol, clip};
use crate::results::Check;
use crate::results::event::{Failure, FrameRecord, Verdict, Way};
use crate::run::case::outcome::{CaseEnd, CaseOutcome};
use crate::scenario::LoadedCase;
use crate::scenario::synthetic::Builder;
use crate::trace::{Direction, Payload};

/// What the model is told to say: unlikely enough that nobody else says it.
pub(crate) const WORDS: [&str; 3] = ["frameproof-says ", "was ", "here"];

/// The client whose turn it is.
const SPEAKER: &str = "alice";
/// The client of the other session.
const LISTENER: &str = "bob";
/// Frames of a leak that its message shows, and that a report lists.
const SHOWN: usize = 4;
const LISTED: usize = 100;

/// The case.
///
/// # Errors
/// The protocol cannot express it, and why.
pub(crate) fn case(protocol: &Protocol) -> Result<LoadedCase, String> {
    let types: Vec<&str> = protocol
        .messages
        .iter()
        .filter(|message| message.dir == Direction::Recv)
        .map(|message| message.name.as_str())
        .collect();
    // A text anywhere in the message that bears the words, or the user's own.
    let told = json!({
        "$ref": "#/$defs/told",
        "$defs": { "told": { "anyOf": [
            { "type": "string", "pattern": format!(r"{}|\[\[cue:", WORDS[0].trim_end()) },
            { "type": "array", "contains": { "$ref": "#/$defs/told" } },
            { "type": "object", "not": { "additionalProperties": { "not": { "$ref": "#/$defs/told" } } } },
        ] } },
    });
    Builder::new(protocol, "sessions-apart", "Messages of one session do not reach another")
        .turn(json!([{ "say": WORDS }]))
        .open(SPEAKER)
        .open_in(LISTENER, "other")
        .start_turn(SPEAKER)
        .expect(SPEAKER, "turn-end")
        .never(LISTENER, &types, &told)
        .build()
}

/// Marks a case that found a leak; false: it found none. Whatever became of the case's steps, its frames tell: an answer that
/// only another client got is a turn that did not end for its own. `ids`: the requirements that a leak breaks; where there are none,
/// sessions need not be apart, and it is a warning.
pub(crate) fn leaks(outcome: &mut CaseOutcome, ids: &[String]) -> bool {
    let leaked: Vec<&FrameRecord> = leaked(outcome);
    if leaked.is_empty() {
        return false;
    }
    let shown = leaked.iter().take(SHOWN).map(|line| format!("frame {}, {}", line.index, clip(&line.text)));
    let shown: Vec<String> = shown.collect();
    let more = leaked.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let message = format!(
        "a message of one session reached a client of another: `{LISTENER}` of session `other` received {} frames of the turn that \
         `{SPEAKER}` began in session `main`: {}{more}. `sessions = 1` in the target's table runs cases one after the other, as this \
         run now does",
        leaked.len(),
        shown.join("; "),
    );
    let told = leaked.iter().take(LISTED).map(|line| {
        json!({ "frame": line.index, "ms": line.ms, "came_to": LISTENER, "belongs_to": SPEAKER, "text": clip(&line.text) })
    });
    let verdict = if ids.is_empty() { Verdict::Warned } else { Verdict::Failed };
    let failure = Failure::new(Check::Leak, verdict, message)
        .breaking(ids)
        .with_values(None, Some(told.collect()))
        .shown_by(leaked.iter().take(LISTED).map(|line| line.index));
    outcome.failures = vec![failure];
    if outcome.end.death().is_none() {
        outcome.end = CaseEnd::Ran;
    }
    true
}

/// The frames of the teller's turn that came to the hearer: those with the words, and copies of what the teller got.
fn leaked(outcome: &CaseOutcome) -> Vec<&FrameRecord> {
    // The wire log shows the beginning of a long frame only; the trace, if it was kept, has it whole.
    let whole = |line: &FrameRecord| match outcome
        .record
        .trace
        .get(line.index as usize)
        .map(|event| &event.payload)
    {
        Some(Payload::Text(text)) => Arc::clone(text),
        _ => line.text.as_str().into(),
    };
    let began = outcome.record.wire.iter().position(|line| {
        line.client == SPEAKER && line.way == Way::ToServer && whole(line).contains("[[cue:")
    });
    let Some(began) = began else { return Vec::new() };
    let turn = &outcome.record.wire[began..];
    let received = |client: &'static str| {
        turn.iter().filter(move |line| line.client == client && line.way == Way::ToClient && !line.ambient)
    };
    if !received(LISTENER).any(|line| has_cue(&whole(line))) {
        return Vec::new();
    }
    let own: HashSet<Arc<str>> = received(SPEAKER).map(whole).collect();
    received(LISTENER).filter(|line| has_cue(&whole(line)) || own.contains(&whole(line))).collect()
}

/// Whether a text bears the words, or the user's own.
fn has_cue(text: &str) -> bool {
    text.contains(WORDS[0].trim_end()) || text.contains("[[cue:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaks_are_found_frame_by_frame() {
        let line = |index, client: &str, way: Way, text: &str| FrameRecord {
            index,
            ms: 0.0,
            client: client.to_owned(),
            way,
            kind: None,
            text: text.to_owned(),
            ambient: text == "beat",
            automatic: false,
            cut: 0,
            states: Vec::new(),
        };
        let own = [
            line(0, LISTENER, Way::ToClient, "welcome"),
            line(1, SPEAKER, Way::ToServer, "do it [[cue:abc]]"),
            line(2, SPEAKER, Way::ToClient, "frameproof-says "),
            line(3, SPEAKER, Way::ToClient, "over"),
        ];
        for (received, expected) in [
            (vec![], vec![]),
            // A heartbeat, and what has nothing to do with the turn.
            (
                vec![line(4, LISTENER, Way::ToClient, "beat"), line(5, LISTENER, Way::ToClient, "over")],
                vec![],
            ),
            (
                vec![
                    line(4, LISTENER, Way::ToClient, "frameproof-says "),
                    line(5, LISTENER, Way::ToClient, "over"),
                ],
                vec![4, 5],
            ),
            (
                vec![
                    line(4, LISTENER, Way::ToClient, "you said [[cue:abc]]"),
                    line(5, LISTENER, Way::ToClient, "pong"),
                ],
                vec![4],
            ),
            // What it says itself is no leak.
            (vec![line(4, LISTENER, Way::ToServer, "frameproof-says ")], vec![]),
        ] {
            let mut outcome = CaseOutcome::default();
            outcome.record.wire = [own.to_vec(), received].concat();
            assert_eq!(leaks(&mut outcome, &[]), !expected.is_empty());
            let frames = outcome.failures.first().map(|failure| failure.frames.clone()).unwrap_or_default();
            assert_eq!(frames, expected);
            if let Some(failure) = outcome.failures.first() {
                assert_eq!(failure.verdict, Verdict::Warned, "no requirement forbids it");
                assert!(failure.message.contains("`bob`") && failure.message.contains("`alice`"));
            }
        }
    }

    #[test]
    fn long_frames_are_compared_whole() {
        let long = |end: &str| "x".repeat(4096) + end;
        let spoken = [
            (SPEAKER, Direction::Send, "do it [[cue:abc]]".to_owned()),
            (SPEAKER, Direction::Recv, long("mine")),
            (LISTENER, Direction::Recv, long("yours")),
            (LISTENER, Direction::Recv, long(WORDS[0])),
        ];
        let mut outcome = CaseOutcome::default();
        for (index, (client, dir, text)) in spoken.into_iter().enumerate() {
            outcome.record.wire.push(FrameRecord {
                index: index as u64,
                ms: 0.0,
                client: client.to_owned(),
                way: if dir == Direction::Send { Way::ToServer } else { Way::ToClient },
                kind: None,
                text: text.chars().take(2048).collect(),
                ambient: false,
                automatic: false,
                cut: text.len().saturating_sub(2048),
                states: Vec::new(),
            });
            outcome.record.trace.push(crate::trace::Event {
                at: std::time::Duration::ZERO,
                case: None,
                client: client.into(),
                dir,
                payload: Payload::Text(text.into()),
                why: None,
            });
        }
        assert!(leaks(&mut outcome, &["A-1".to_owned()]));
        assert_eq!(outcome.failures[0].verdict, Verdict::Failed);
        // Not the one that only begins as the teller's does; the one whose words come late.
        assert_eq!(outcome.failures[0].frames, [3]);
    }

    #[test]
    fn every_shipped_protocol_can_express_it() {
        for name in Protocol::embedded_names() {
            let protocol =
                Protocol::embedded(name, &crate::protocol::LoadOptions::default()).expect("it loads");
            let case = case(&protocol).expect(name);
            assert!(case.case.steps.len() >= 5, "{name}");
        }
    }
}
