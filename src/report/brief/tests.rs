use super::*;
use crate::cue::{Cue, Step};
use crate::results::Check;
use crate::results::event::Verdict;
use serde_json::json;

fn text_of(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

fn shown<'t>(text: &'t str, kind: &'t str) -> Shown<'t> {
    Shown { kind: Some(kind), text, cut: 0 }
}

/// The parts that stand out.
fn marked(pieces: &[Piece], emphasis: Emphasis) -> Vec<&str> {
    pieces.iter().filter(|piece| piece.emphasis == emphasis).map(|piece| piece.text.as_str()).collect()
}

#[test]
fn what_fits_is_shown_as_it_is() {
    for text in [
        r#"{"a":1,"a":1.50,"b":[],"c":{},"d":[1,{"e":null}]}"#,
        "[1,2]",
        "connected to ws://x",
        "{\"a\":",
        "",
    ] {
        assert_eq!(text_of(&line(Shown { kind: None, text, cut: 0 }, Some(100), &[])), text);
        assert_eq!(text_of(&line(Shown { kind: None, text, cut: 0 }, None, &[])), text);
    }
    assert_eq!(
        text_of(&line(Shown { kind: None, text: "{\"a\":", cut: 3 }, None, &[])),
        "{\"a\":… (+3 bytes)"
    );
}

#[test]
fn type_and_ids_stay_however_narrow_it_is() {
    let text = json!({
        "text": "x".repeat(300), "type": "said", "call_id": "call-1", "nested": { "deep": { "run_id": "r-1", "words": "y".repeat(90) } },
        "list": [1, 2, 3, 4, 5, 6, 7, 8, 9], "at": 12.5,
    })
    .to_string();
    for room in [40, 60, 80, 120, 200, 400] {
        let line = text_of(&line(shown(&text, "said"), Some(room), &[]));
        assert!(line.chars().count() <= room, "{room}: {line}");
        assert!(line.contains(r#""type":"said""#), "{room}: {line}");
        assert!(room < 60 || line.contains(r#""call_id":"call-1""#), "{room}: {line}");
        assert!(
            room < 120 || (line.contains(r#""run_id":"r-1""#) && line.contains(r#""at":12.5"#)),
            "{room}: {line}"
        );
        assert!(line.contains('…'), "{room}: {line}");
    }
    assert_eq!(text_of(&line(shown(&text, "said"), None, &[])), text);
}

#[test]
fn the_fields_that_a_failure_names_stand_out_and_stay() {
    let text = json!({
        "type": "said", "call_id": "call-1", "long": "x".repeat(200), "deep": { "list": [{ "kind": "output_text", "n": 1 }] }, "extra": 1,
        "state": "running",
    })
    .to_string();
    for (message, part) in [
        ("/deep/list/0/kind: \"output_text\" must be \"input_text\"", r#""kind":"output_text""#),
        ("said: /deep/list/0: `id` is missing", r#"{"kind":"output_text","n":1}"#),
        ("`extra` is not declared", r#""extra":1"#),
        ("call-1 goes from \"idle\" to \"running\"", r#""state":"running""#),
        ("an output for call-1 came twice", r#""call_id":"call-1""#),
    ] {
        let failure = Failure::new(Check::Schema, Verdict::Failed, message);
        let pieces = line(shown(&text, "said"), Some(60), &[&failure]);
        assert!(marked(&pieces, Emphasis::Violating).contains(&part), "{message}: {pieces:?}");
        assert!(text_of(&pieces).chars().count() <= 60, "{pieces:?}");
    }
    let failure = Failure::new(Check::Step, Verdict::Failed, "another").with_values(
        Some(json!({ "type": "said", "deep": { "list": [] } })),
        Some(serde_json::from_str(&text).expect("JSON")),
    );
    let pieces = line(shown(&text, "said"), None, &[&failure]);
    assert_eq!(marked(&pieces, Emphasis::Violating), [r#""list":[{"kind":"output_text","n":1}]"#]);
    let other = Failure::new(Check::Step, Verdict::Failed, "nothing of it is here: /gone, `none`, \"never\"");
    assert_eq!(marked(&line(shown(&text, "said"), None, &[&other]), Emphasis::Violating), [""; 0]);
}

#[test]
fn what_has_changed_since_the_last_of_its_type_stands_out() {
    let frame = |index: u64, kind: &str, status: &str| -> FrameRecord {
        let text = json!({ "type": kind, "run": { "status": status, "id": "r" } }).to_string();
        let line = json!({ "index": index, "ms": 1, "client": "a", "dir": "<-", "type": kind, "text": text });
        serde_json::from_value(line).expect("a line")
    };
    let frames = [
        frame(0, "run", "begun"),
        frame(1, "other", "gone"),
        frame(2, "run", "over"),
        frame(3, "run", "over"),
    ];
    let mut before = Before::default();
    let changed: Vec<Vec<String>> = frames
        .iter()
        .map(|frame| {
            let pieces = before.line(frame, None, &[]);
            marked(&pieces, Emphasis::Changed).iter().map(|text| (*text).to_owned()).collect()
        })
        .collect();
    assert_eq!(changed, [vec![], vec![], vec![r#""status":"over""#.to_owned()], vec![]]);
}

#[test]
fn a_cue_is_told_in_words() {
    let cue = Cue::new(vec![Step::Say { say: vec!["Hi".into()], every_ms: None }]).encode();
    let text = json!({ "type": "send", "text": format!("Please. {cue}") }).to_string();
    let line = text_of(&line(shown(&text, "send"), Some(100), &[]));
    assert_eq!(line, r#"{"type":"send","text":"Please. [[the model says “Hi”]]"}"#);
}

#[test]
fn what_is_treacherous_is_spelled_out_and_what_is_huge_is_bounded() {
    let text = "{\"type\":\"\u{202e}\",\"x\u{7}\":1}";
    assert!(!text_of(&line(shown(text, "x"), Some(50), &[])).contains(['\u{202e}', '\u{7}']));
    for text in [
        "[".repeat(2_000),
        format!("{}{}", "[".repeat(500), "]".repeat(500)),
        format!("[{}1]", "1,".repeat(5_000)),
    ] {
        assert!(text_of(&line(shown(&text, "x"), Some(60), &[])).chars().count() <= 60);
    }
}
