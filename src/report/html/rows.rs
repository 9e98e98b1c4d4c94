//! What happened in a case, in the order of time: frames, and what the server wrote meanwhile.

use std::collections::{HashMap, HashSet};

use crate::results::event::{Call, CaseReport, Failure, LogLine, ShownFrame};

/// The last frames that are drawn, and the most, with those that show the failure.
const LAST: usize = 24;
const MOST: usize = 48;
/// Bytes of JSON on lines of their own; what is shown is cut at less.
const MOST_INDENTED: usize = 1 << 18;
/// Lines of the server's log, and requests to the model.
const LINES: usize = 40;

/// One row of a diagram.
pub(super) enum Row<'c> {
    Frame(ShownFrame<'c>, Busy),
    /// Lines of the wire log are left out here.
    Gap,
    /// So many automatic messages are told in one line, which ends here.
    Folded(ShownFrame<'c>),
    Log(&'c LogLine),
    /// The server asks the model, and has its answer, at this time in milliseconds.
    Asked(&'c Call),
    Answered(&'c Call, f64),
}

/// Whether a turn is under way before a frame and after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Busy {
    pub before: bool,
    pub after: bool,
}

/// Whether a turn is under way at each frame of a case, those that are not shown included.
fn busy(case: &CaseReport) -> HashMap<u64, Busy> {
    let mut lines: Vec<_> = case.wire.iter().collect();
    lines.sort_by(|one, other| one.ms.total_cmp(&other.ms));
    let mut turns: HashSet<&str> = HashSet::new();
    let mut found = HashMap::new();
    for line in lines {
        let before = !turns.is_empty();
        for state in &line.states {
            match state.as_str() {
                "turn begins" => {
                    turns.insert(&line.client);
                }
                "turn ends" => {
                    turns.remove(line.client.as_str());
                }
                _ => {}
            }
        }
        found.insert(line.index, Busy { before, after: !turns.is_empty() });
    }
    found
}

/// What happens beside the frames, in the order of time.
fn beside(case: &CaseReport) -> Vec<(f64, Row<'_>)> {
    let log = &case.log[case.log.len().saturating_sub(LINES)..];
    let mut beside: Vec<(f64, Row<'_>)> = log.iter().map(|line| (line.ms, Row::Log(line))).collect();
    for call in &case.model[case.model.len().saturating_sub(LINES)..] {
        beside.push((call.ms, Row::Asked(call)));
        beside.extend(call.ended.map(|at| (at, Row::Answered(call, at))));
    }
    beside.sort_by(|one, other| one.0.total_cmp(&other.0));
    beside
}

/// The rows of a case.
pub(super) fn rows<'c>(case: &'c CaseReport, failures: &[Failure]) -> Vec<Row<'c>> {
    let mut frames = case.last_frames(LAST, failures);
    if frames.len() > MOST {
        // What broke first, and the end.
        frames.drain(MOST / 2..frames.len() - MOST / 2);
        frames[MOST / 2].gap = true;
    }
    let beside = beside(case);
    let busy = busy(case);
    let mut rows = Vec::with_capacity(frames.len() + beside.len());
    let mut beside = beside.into_iter().peekable();
    if case.wire_omitted > 0 && frames.first().is_some_and(|first| !first.gap) {
        rows.push(Row::Gap);
    }
    for frame in frames {
        while let Some((_, row)) = beside.next_if(|(ms, _)| *ms < frame.line.ms) {
            rows.push(row);
        }
        if frame.gap {
            rows.push(Row::Gap);
        }
        if frame.folded > 0 {
            rows.push(Row::Folded(frame));
            continue;
        }
        let state = busy.get(&frame.line.index).copied().unwrap_or_default();
        rows.push(Row::Frame(frame, state));
    }
    rows.extend(beside.map(|(_, row)| row));
    rows
}

/// JSON on lines of their own, with nothing lost: not a double key, not a digit. None: it is no JSON.
pub(super) fn indented(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut chars = text.chars().filter(|c| !c.is_ascii_whitespace() || *c == ' ').peekable();
    while let Some(c) = chars.next() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        // Deep nesting makes long lines of blanks: what is cut off later need not be made.
        if out.len() > MOST_INDENTED {
            break;
        }
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        };
        match c {
            ' ' => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if_eq(&' ').is_some() {}
                let end = if c == '{' { '}' } else { ']' };
                if chars.next_if_eq(&end).is_some() {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                quoted = c == '"';
                out.push(c);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_laid_out_and_nothing_is_lost() {
        for text in [
            r#"{"a":[1,{"b":[]}],"c":"x, {\"y\": [\\"}"#,
            r#" { "a" : { } , "a" : 100000000000000000000000000001 } "#,
            "[\n1,\r\n2]",
            "\"text\"",
        ] {
            let shown = indented(text).expect("JSON");
            let bare = |text: &str| text.replace([' ', '\n', '\r'], "");
            assert_eq!(bare(&shown), bare(text));
        }
        let value = json!({ "a": [1, { "b": [], "c": {} }], "d": "x, {\"y\"" });
        let pretty = serde_json::to_string_pretty(&value).expect("it serialises");
        assert_eq!(indented(&value.to_string()), Some(pretty));
        assert_eq!(indented("{"), None);
    }

    #[test]
    fn a_diagram_is_bounded_and_the_log_stands_at_its_time() {
        let line =
            |index: u64| json!({ "index": index, "ms": index, "client": "a", "dir": "<-", "text": "{}" });
        let log = |ms: f64| json!({ "ms": ms, "process": "p", "error": false, "text": "t" });
        let case: CaseReport = serde_json::from_value(json!({
            "case": "a/b", "title": "", "file": "", "line": 1, "verdict": "failed", "seconds": 1.0, "started": 0.0,
            "reproduce": "", "failures": [], "earlier": [], "exercised": {}, "wire_omitted": 0,
            "wire": (0..200).map(line).collect::<Vec<_>>(), "log": [log(198.5), log(300.0)],
        }))
        .expect("a report");
        let failure: Failure = serde_json::from_value(json!({
            "verdict": "failed", "check": "c", "requirements": [], "message": "m", "frames": (0..100).collect::<Vec<u64>>(),
        }))
        .expect("a failure");
        let told = |rows: &[Row<'_>]| -> Vec<String> {
            let told = |row: &Row<'_>| match row {
                Row::Frame(frame, _) => frame.line.index.to_string(),
                Row::Gap => "gap".to_owned(),
                Row::Folded(frame) => format!("{} automatic", frame.folded),
                Row::Log(line) => format!("log {}", line.ms),
                Row::Asked(call) => format!("asked {}", call.ms),
                Row::Answered(_, at) => format!("answered {at}"),
            };
            rows.iter().map(told).collect()
        };
        let few = told(&rows(&case, &[]));
        assert_eq!((few[0].as_str(), few[1].as_str(), few.len()), ("gap", "176", 27));
        assert_eq!(few[few.len() - 3..], ["log 198.5", "199", "log 300"]);
        let many = told(&rows(&case, &[failure]));
        assert_eq!(many.len(), MOST + 3);
        assert_eq!((many[0].as_str(), many[MOST / 2].as_str()), ("0", "gap"));
    }

    #[test]
    fn automatic_messages_are_one_row() {
        let line = |index: u64| json!({ "index": index, "ms": index, "client": "a", "dir": "<-", "text": "{}", "automatic": index > 0 });
        let case: CaseReport = serde_json::from_value(json!({
            "case": "a/b", "title": "", "file": "", "line": 1, "verdict": "failed", "seconds": 1.0, "started": 0.0,
            "reproduce": "", "failures": [], "earlier": [], "exercised": {}, "wire_omitted": 0,
            "wire": (0..200).map(line).collect::<Vec<_>>(),
        }))
        .expect("a report");
        let rows = rows(&case, &[]);
        assert!(matches!(&rows[..], [Row::Frame(..), Row::Folded(ShownFrame { folded: 199, .. })]));
    }

    #[test]
    fn turns_and_requests_to_the_model_stand_at_their_time() {
        let line = |index: u64, client: &str, states: &[&str]| json!({ "index": index, "ms": index, "client": client, "dir": "<-", "text": "{}", "states": states });
        let call = |ms: f64, ended: Option<f64>| json!({ "ms": ms, "ended": ended, "request": "r", "played": "p", "status": 200 });
        let case: CaseReport = serde_json::from_value(json!({
            "case": "a/b", "title": "", "file": "", "line": 1, "verdict": "failed", "seconds": 1.0, "started": 0.0,
            "reproduce": "", "failures": [], "earlier": [], "exercised": {}, "wire_omitted": 0,
            "wire": [line(0, "a", &[]), line(1, "a", &["turn begins"]), line(2, "b", &["turn begins", "running"]),
                line(3, "a", &["turn ends"]), line(4, "b", &["turn ends"]), line(5, "b", &[])],
            "model": [call(1.5, Some(3.5)), call(9.0, None)],
        }))
        .expect("a report");
        let told = |row: &Row<'_>| match row {
            Row::Frame(frame, busy) => {
                format!("{} {}{}", frame.line.index, u8::from(busy.before), u8::from(busy.after))
            }
            Row::Asked(call) => format!("asked {}", call.ms),
            Row::Answered(_, at) => format!("answered {at}"),
            Row::Gap | Row::Folded(_) | Row::Log(_) => String::new(),
        };
        let told: Vec<String> = rows(&case, &[]).iter().map(told).collect();
        assert_eq!(
            told,
            ["0 00", "1 01", "asked 1.5", "2 11", "3 11", "answered 3.5", "4 10", "5 00", "asked 9"]
        );
    }
}
