//! What happened in a case, in the order of time: frames, and what the server wrote meanwhile.

use crate::results::event::{CaseReport, Failure, LogLine, ShownFrame};

/// The last frames that are drawn, and the most, with those that show the failure.
const LAST: usize = 24;
const MOST: usize = 48;
/// Bytes of JSON on lines of their own; what is shown is cut at less.
const MOST_INDENTED: usize = 1 << 18;
/// Lines of the server's log.
const LINES: usize = 40;

/// One row of a diagram.
pub(super) enum Row<'c> {
    Frame(ShownFrame<'c>),
    /// Lines of the wire log are left out here.
    Gap,
    Log(&'c LogLine),
}

/// The rows of a case.
pub(super) fn rows<'c>(case: &'c CaseReport, failures: &[Failure]) -> Vec<Row<'c>> {
    let mut frames = case.last_frames(LAST, failures);
    if frames.len() > MOST {
        // What broke first, and the end.
        frames.drain(MOST / 2..frames.len() - MOST / 2);
        frames[MOST / 2].gap = true;
    }
    let log = &case.log[case.log.len().saturating_sub(LINES)..];
    let mut lines = log.iter().peekable();
    let mut rows = Vec::with_capacity(frames.len() + log.len());
    if case.wire_omitted > 0 && frames.first().is_some_and(|first| !first.gap) {
        rows.push(Row::Gap);
    }
    for frame in frames {
        while let Some(line) = lines.next_if(|line| line.ms < frame.line.ms) {
            rows.push(Row::Log(line));
        }
        if frame.gap {
            rows.push(Row::Gap);
        }
        rows.push(Row::Frame(frame));
    }
    rows.extend(lines.map(Row::Log));
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
                Row::Frame(frame) => frame.line.index.to_string(),
                Row::Gap => "gap".to_owned(),
                Row::Log(line) => format!("log {}", line.ms),
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
}
