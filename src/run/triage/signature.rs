//! What makes two failures one: the requirement, the kind of failure, the place and what was due there; without the values that
//! differ from case to case.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::protocol::is_subset;
use crate::results::cause::Cause;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::source::schema::{Problem, Schema};
use crate::text::normalize;

/// Places of a difference that count; more say no more.
const PLACES: usize = 16;
/// Characters of a message that count; more say no more.
const SIGNIFICANT: usize = 2048;
/// Longest text that can be a word of the protocol rather than somebody's text, in bytes.
const WORD: usize = 40;

/// The keys of what is wrong with a case: its verdict with its cause, as far as that is known, and with what broke first. Cases that share
/// one tell the same story.
pub(crate) fn of_case(case: &CaseReport) -> Vec<String> {
    let causes: Vec<&Cause> = [&case.cause, &case.precise_cause].into_iter().flatten().collect();
    let mut keys: Vec<String> = causes.iter().map(|cause| of_cause(cause)).collect();
    // Whatever failed while the server died failed by that.
    if !causes.iter().any(|cause| cause.death().is_some()) {
        // The end of a connection makes another story than a silence of the server behind the same message.
        let is_end = causes.iter().any(|cause| matches!(cause, Cause::ConnectionEnded(..)));
        let first = first_broken(case).map(of_failure);
        let first = first.or_else(|| case.reason.as_deref().map(plain));
        keys.extend(first.map(|first| format!("{is_end}|{first}")));
    }
    keys.iter().map(|key| format!("{:?}|{key}", case.verdict)).collect()
}

/// Of the gravest failures of a case the one that the earliest frame shows.
fn first_broken(case: &CaseReport) -> Option<&Failure> {
    let failures: Vec<&Failure> = match case.verdict {
        Verdict::Flaky => case.earlier.iter().flatten().collect(),
        _ => case.failures.iter().collect(),
    };
    let worst = failures.iter().map(|failure| failure.verdict).max()?;
    let worst = failures.into_iter().filter(|failure| failure.verdict == worst);
    worst.min_by_key(|failure| failure.frames.iter().min().copied().unwrap_or(u64::MAX))
}

/// The key of a failure.
pub(crate) fn of_failure(failure: &Failure) -> String {
    let told = plain(failure.core());
    let mut key =
        format!("{:?}|{}|{}|{told}", failure.verdict, failure.check, failure.requirements.join(","));
    if let (Some(expected), Some(actual)) = (&failure.expected, &failure.actual) {
        let mut places = BTreeSet::new();
        differences(expected, actual, String::new(), &mut places);
        for place in places.iter().take(PLACES) {
            key = key + "|" + place;
        }
    }
    key
}

/// The key of a cause that cases share: its kind, and what it is about.
pub(crate) fn of_cause(cause: &Cause) -> String {
    match cause {
        Cause::ServerDied(death) => format!("died|{}", death.kind(normalize)),
        // A sentence may quote what differs from case to case.
        other => format!("{:?}|{}", std::mem::discriminant(other), essential(&other.to_string())),
    }
}

/// A message without ids, numbers and quoted values, whole frames among them: also one that is cut.
fn plain(message: &str) -> String {
    let mut out = String::new();
    let end = message.char_indices().nth(SIGNIFICANT).map_or(message.len(), |(at, _)| at);
    let mut rest = &message[..end];
    while let Some(at) = rest.find(['{', '[', '"']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        out.push('_');
        rest = &from[value(from)..];
    }
    out.push_str(rest);
    essential(&out)
}

/// A text without what differs from case to case: ids and numbers, but for the codes of close frames.
fn essential(text: &str) -> String {
    const CODE: &str = " code ";
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(CODE) {
        let (before, from) = rest.split_at(at + CODE.len());
        let digits = from.len() - from.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let code = if digits == 4 { &from[..digits] } else { "" };
        out = out + &normalize(before) + code;
        rest = &from[code.len()..];
    }
    out + &normalize(rest)
}

/// Bytes of the JSON value that a text begins with: up to its end, or to the mark where it is cut; else its first character.
fn value(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth = depth.saturating_sub(1),
            // Frames are cut with this mark.
            '…' => return at + c.len_utf8(),
            _ => {}
        }
        if !quoted && depth == 0 {
            return at + c.len_utf8();
        }
    }
    // Not closed: no value.
    text.chars().next().map_or(0, char::len_utf8)
}

/// Where what came is not what was asked for, and what was due there.
fn differences(expected: &Value, actual: &Value, at: String, places: &mut BTreeSet<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(map)) => {
            for (key, due) in expected {
                match (key.as_str(), map.get(key)) {
                    ("where", None) if due.is_object() => conditions(due, actual, &at, places),
                    (_, Some(came)) if is_subset(due, came) => {}
                    (_, Some(came)) => differences(due, came, format!("{at}/{key}"), places),
                    (_, None) => drop(places.insert(format!("{at}/{key} missing"))),
                }
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (due, came) in expected.iter().zip(actual).filter(|(due, came)| due != came) {
                differences(due, came, format!("{at}/*"), places);
            }
        }
        (due, came) if due != came => drop(places.insert(format!("{at} {}", word(due)))),
        _ => {}
    }
}

/// Which of a step's conditions do not hold.
fn conditions(schema: &Value, actual: &Value, at: &str, places: &mut BTreeSet<String>) {
    let Ok(schema) = Schema::new(schema) else { return };
    for violation in schema.violations_within(actual).into_iter().take(PLACES) {
        let due = match &violation.problem {
            Problem::NotOneOf(values) => values.iter().map(word).collect::<Vec<_>>().join(" "),
            problem => plain(&problem.to_string()),
        };
        places.insert(format!("{at}{} {due}", normalize(&violation.at)));
    }
}

/// A value as far as it is one of the protocol's own and not a case's.
fn word(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Null => value.to_string(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) if text.len() <= WORD && !text.contains(' ') => normalize(text),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;
    use crate::results::cause::{ConnectionEnd, LastRequest, Statement, WaitFailure};
    use crate::results::death::{Death, LastWords};
    use serde_json::json;

    fn failure(message: &str, expected: Value, actual: Value) -> Failure {
        let value = |value: Value| (!value.is_null()).then_some(value);
        Failure::new(Check::Step, Verdict::Failed, message)
            .breaking(&["A-1".to_owned()])
            .with_values(value(expected), value(actual))
    }

    #[test]
    fn quoted_frames_and_ids_make_no_other_failure() {
        let id = "0b8c1a52-5c3f-4a52-9a57-3f6c2a1d9e11";
        for (one, other, expected) in [
            (r#"{"type":"a","id":"x"}: /n is missing"#, r#"{"type":"a","id":"yy}"}: /n is missing"#, true),
            (r#"{"type":"a","text":"long \" tex…: /n is missing"#, r#"{"type":"b"}: /n is missing"#, true),
            (r#"{"a":[1]}: /n is missing"#, r#"{"a":[1]}: /m is missing"#, false),
            ("run 12: `x` is missing", "run 345: `x` is missing", true),
            ("`x` is missing", "`y` is missing", false),
            (&format!("the answer to {id}"), "the answer to 00000000-0000-0000-0000-000000000000", true),
            ("no { value", "no [ value", true),
            ("welcome did not come (k = 2)", "welcome did not come (k = 31)", true),
            ("a did not come", "b did not come", false),
            ("it closed the connection with code 1000", "it closed the connection with code 1008", false),
            (
                "it closed the connection with code 1008 (x 1)",
                "it closed the connection with code 1008 (x 2)",
                true,
            ),
            ("an error with code 17", "an error with code 18", true),
        ] {
            let of = |message| of_failure(&failure(message, Value::Null, Value::Null));
            assert_eq!(of(one) == of(other), expected, "{one}\n{other}\n{}\n{}", of(one), of(other));
        }
    }

    /// A server may make its frames as long and as odd as it likes.
    #[test]
    fn an_endless_frame_is_looked_at_for_a_bounded_time() {
        for odd in ["{", "[\"", "\\\"", "é["] {
            assert!(plain(&odd.repeat(1 << 20)).len() <= 4 * SIGNIFICANT);
        }
    }

    /// What the server did meanwhile, and the round, are known as data: no words are looked for.
    #[test]
    fn the_explanation_makes_no_other_failure() {
        let silent = |what: &str, kind: &str| {
            let silence = WaitFailure::OtherFrames(Some(kind.to_owned()));
            Failure::new(Check::Step, Verdict::Failed, Statement::in_silence(what, silence))
        };
        let in_round = |round| {
            let mut failure = failure("welcome did not come", Value::Null, Value::Null);
            failure.in_round("k", round);
            failure
        };
        assert_eq!(of_failure(&silent("a did not come", "b")), of_failure(&silent("a did not come", "c")));
        assert_ne!(of_failure(&silent("a did not come", "b")), of_failure(&silent("z did not come", "b")));
        assert_eq!(of_failure(&in_round(2)), of_failure(&in_round(31)));
        let same_words = failure(&silent("a did not come", "b").message, Value::Null, Value::Null);
        assert_ne!(of_failure(&same_words), of_failure(&silent("a did not come", "b")));
    }

    #[test]
    fn deaths_are_told_apart_by_their_end_and_by_what_is_certain() {
        let said = |status: u8, words: Option<(&str, bool)>| {
            let words = words.map(|(text, certain)| LastWords { text: text.to_owned(), certain });
            of_cause(&Cause::ServerDied(Death {
                process: "a".to_owned(),
                end: format!("exited with status {status}"),
                words,
            }))
        };
        let died = |text| said(3, Some((text, true)));
        let logged = |text| said(3, Some((text, false)));
        assert_eq!(logged("ERROR rejected \"x\""), logged("ERROR no name for y"));
        assert_ne!(said(3, None), said(4, None));
        assert_eq!(died("panicked at src/a.rs:1:2: no 1a"), died("panicked at a.rs:1:9: some"));
        assert_ne!(died("panicked at src/a.rs:1:2: no"), died("panicked at src/a.rs:2:2: no"));
        assert_eq!(died("panic: no 1a"), died("panic: no 2b"));
        assert_ne!(died("panic: no name"), died("panic: no memory"));
    }

    #[test]
    fn what_differs_elsewhere_is_another_failure() {
        let of = |expected, actual| of_failure(&failure("a came, but did not match", expected, actual));
        let base =
            of(json!({ "type": "a", "state": "idle" }), json!({ "type": "a", "state": "busy", "id": 1 }));
        for (expected, actual, same) in [
            (json!({ "state": "idle" }), json!({ "state": "gone" }), true),
            (json!({ "state": "idle", "n": 4 }), json!({ "state": "gone", "n": 4 }), true),
            (json!({ "state": "over" }), json!({ "state": "gone" }), false),
            (json!({ "state": "idle" }), json!({ "type": "a" }), false),
            (json!({ "n": 4 }), json!({ "n": 5 }), false),
            (json!({ "state": "idle", "n": 4 }), json!({ "state": "busy", "n": 5 }), false),
        ] {
            assert_eq!(of(expected.clone(), actual.clone()) == base, same, "{expected} {actual}");
        }
        // Values of a case's own do not count, wherever they stand.
        let text = |text: &str| of(json!({ "at": [{ "text": text }] }), json!({ "at": [{ "text": "" }] }));
        assert_eq!(text("hello there, you"), text("something else"));
        let due = |schema: Value| of(json!({ "where": schema }), json!({ "state": "busy", "n": 5 }));
        let limit = |most: u64| json!({ "properties": { "n": { "maximum": most } } });
        assert_eq!(due(limit(3)), due(limit(4)));
        assert_ne!(due(limit(3)), due(json!({ "properties": { "state": { "const": "idle" } } })));
        assert_ne!(due(limit(3)), due(json!({ "required": ["m"] })));
    }

    #[test]
    fn a_case_is_what_broke_first_and_its_verdict() {
        let case = |failures: &[(&str, Verdict, u64)]| {
            let failures = failures.iter().map(|(text, verdict, frame)| {
                let failure = failure(text, Value::Null, Value::Null);
                Failure { verdict: *verdict, frames: vec![*frame], ..failure }
            });
            let failures: Vec<Failure> = failures.collect();
            let verdict = failures.iter().map(|failure| failure.verdict).max().expect("one");
            CaseReport { verdict, failures, ..CaseReport::default() }
        };
        let (bad, odd) = (Verdict::Failed, Verdict::Warned);
        let one = of_case(&case(&[("a 1", bad, 1), ("b", bad, 7)]));
        assert_eq!(one, of_case(&case(&[("c", bad, 9), ("a 3", bad, 4)])), "what broke first");
        assert_eq!(one, of_case(&case(&[("w", odd, 0), ("a 3", bad, 4)])), "the gravest");
        assert_ne!(one, of_case(&case(&[("b", bad, 1)])));
        assert_ne!(one, of_case(&case(&[("a 1", odd, 1)])), "a warning is no failure");
    }

    #[test]
    fn a_death_an_end_and_a_silence_are_three_stories_behind_the_same_message() {
        let case = |cause: Cause| {
            let failures = vec![failure("a did not come", Value::Null, Value::Null)];
            CaseReport { verdict: Verdict::Failed, failures, cause: Some(cause), ..CaseReport::default() }
        };
        let death = Death { process: "a".to_owned(), end: "exited".to_owned(), words: None };
        let end = ConnectionEnd { code: None, how: Some(crate::trace::End::Reset) };
        let (died, silent) = (Cause::ServerDied(death), |kind: &str| Cause::Unanswered(kind.to_owned()));
        let ended = |kind: &str| Cause::ConnectionEnded(end, LastRequest::Of(kind.to_owned()));
        let of = |one: &Cause| BTreeSet::from_iter(of_case(&case(one.clone())));
        let same = |one: &Cause, other: &Cause| !of(one).is_disjoint(&of(other));
        assert!(same(&silent("x"), &silent("y")) && same(&ended("x"), &ended("y")));
        for (one, other) in [(&died, &silent("x")), (&died, &ended("x")), (&ended("x"), &silent("x"))] {
            assert!(!same(one, other), "{one} {other}");
        }
    }
}
