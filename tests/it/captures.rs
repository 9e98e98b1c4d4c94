//! What two real servers said, judged: exactly the deviations that are there, worked out by hand from the protocols' documents, and
//! the overlays that excuse them.

use std::path::Path;

use crate::support::{frameproof, text};

/// A deviation: FAIL or WARN, the frame of the trace, the requirement, and a part of what is said.
type Deviation = (&'static str, u32, &'static str, &'static str);

/// - Frame 3: the user's text as an item without an `id`; all items of the document have one (line 181).
/// - Frames 4 and 7: `agent_finished` before `loading_state` false; all three sequences have it after (lines 497 to 532). AL-AMB-07:
///   a warning, since the overview leaves it out.
/// - Frame 6: the answer after `agent_finished`, which "indicates the agent has completed processing" (line 362).
/// - Frame 6: a part of type `output_text`; the document has `input_text` (lines 183 to 188). AL-AMB-05: a warning.
///
/// No deviations are: `status` and `annotations` (items are those of the provider), the unasked `context_info` (nothing says that it
/// is asked for only), an error for `user_input` without payload, and 0.0015 as 3 in percent of 200000.
const AGENTLOOP: &[Deviation] = &[
    ("FAIL", 3, "AL-RI-3", "/payload: `id` is missing"),
    ("WARN", 4, "AL-SEQ-3", "loading_state false comes before agent_finished"),
    ("FAIL", 6, "AL-SEQ-6", "no item comes after agent_finished"),
    ("WARN", 6, "AL-RI-2", "\"output_text\" must be \"input_text\""),
];

/// - Frame 2: `content` and `requires_approval` on an `assistant_message`, which has three fields (lines 47 to 68). CL-AMB-12: a warning.
/// - Frame 4: an error for a `user_message` without `role`, which is optional (line 41). It warns in a recording, which does not show
///   whether the error had another reason.
///
/// No deviations are: one final token for a short answer (the document's own examples do it), errors without a code (CL-AMB-01).
const CODELAB: &[Deviation] = &[
    ("WARN", 2, "CL-TRN-10", "`content`, `requires_approval` are not declared"),
    ("WARN", 4, "CL-UM-4", "a user_message without role is not answered with an error"),
];

const CAPTURES: [(&str, &[Deviation], i32, &str); 2] = [
    ("agentloop", AGENTLOOP, 1, "not conformant: 17 events, 4 violations of 4 requirements"),
    ("codelab", CODELAB, 0, "conformant as far as recorded: 10 events, 2 violations of 2 requirements"),
];

/// Judges a capture; its exit code and what is said.
fn check(name: &str, overlay: Option<&Path>) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let trace = format!("{name}.ndjson");
    let mut arguments = vec!["check", &trace, "--protocol", name];
    let overlay = overlay.map(|path| path.display().to_string());
    if let Some(overlay) = &overlay {
        arguments.extend(["--overlay", overlay]);
    }
    let output = frameproof(&folder, &arguments);
    assert_eq!(text(&output.stderr), "");
    (output.status.code(), text(&output.stdout))
}

#[test]
fn the_deviations_that_are_there_are_found_and_no_others() {
    for (name, deviations, code, closing) in CAPTURES {
        let (found, shown) = check(name, None);
        assert_eq!(found, Some(code), "{shown}");
        assert!(shown.contains(closing), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        let heads: Vec<usize> = (0..lines.len())
            .filter(|&at| lines[at].starts_with("FAIL") || lines[at].starts_with("WARN"))
            .collect();
        assert_eq!(heads.len(), deviations.len(), "{shown}");
        for (&at, (word, frame, id, part)) in heads.iter().zip(deviations) {
            let head = lines[at];
            assert!(head.starts_with(&format!("{word} frame {frame} of the trace")), "{head}");
            assert!(head.contains(part), "{part} is not in {head}");
            // One requirement is broken, and what tolerates it is said where it warns.
            let about = lines[at + 1..].iter().take_while(|line| line.starts_with(' '));
            let about: Vec<&str> = about.map(|line| line.trim_start()).collect();
            let prefix = &id[..3];
            let broken: Vec<&&str> = about.iter().filter(|line| line.starts_with(prefix)).collect();
            assert!(broken.len() == 1 && broken[0].starts_with(&format!("{id} ")), "{about:?}");
            let tolerated = about.contains(&"no failure: the default reading tolerates it");
            assert!(*word == "WARN" || !tolerated, "{shown}");
        }
    }
}

#[test]
fn what_an_overlay_excuses_is_listed() {
    for (name, deviations, _, _) in CAPTURES {
        let overlay =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.overlay.yaml"));
        let (code, shown) = check(name, Some(&overlay));
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains(" 0 violations of 0 requirements"), "{shown}");
        let listed: Vec<&str> =
            shown.lines().skip_while(|line| *line != "excused by the overlay:").skip(1).collect();
        // The closing line comes last.
        assert_eq!(listed.len(), deviations.len() + 1, "{shown}");
        for (line, (_, frame, id, part)) in listed.iter().zip(deviations) {
            assert!(line.starts_with(&format!("  {id} ")) && line.contains(part), "{line}");
            assert!(line.ends_with(&format!("(once, first in frame {frame})")), "{line}");
        }
    }
}

/// An overlay excuses what it names and nothing else.
#[test]
fn what_an_overlay_does_not_name_stays_broken() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = folder.path().join("one.yaml");
    std::fs::write(&overlay, "components: { schemas: { ResponseItem: { required: [type] } } }\n")
        .expect("written");
    let (code, shown) = check("agentloop", Some(&overlay));
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("3 violations of 3 requirements"), "{shown}");
    let listed: Vec<&str> = shown.lines().filter(|line| line.ends_with("first in frame 3)")).collect();
    assert_eq!(listed, ["  AL-RI-3 response_item: /payload: `id` is missing (once, first in frame 3)"]);
    assert!(!shown.contains("FAIL frame 3"), "{shown}");
}

/// Built-in checks and invariants are different things, whatever an overlay calls its invariants: one called `schema` that only
/// warns is no reason to only warn of a frame that breaks its schema.
#[test]
fn an_invariant_with_the_name_of_a_built_in_check_changes_no_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = [
        "step",
        "connection",
        "frame",
        "message",
        "schema",
        "reply",
        "limit",
        "memory",
        "leak",
        "silence",
        // Words of the protocol file, which are no invariants' names elsewhere.
        "where",
        "with",
        "on",
        "decides",
        "readings",
        "dialects",
    ];
    let invariant =
        "{ about: A, warns: true, monitor: { holds: { on: error, schema: {}, decides: [AL-RI-3] } } }";
    let invariants: String = names.iter().map(|name| format!("    {name}: {invariant}\n")).collect();
    let overlay = folder.path().join("names.yaml");
    std::fs::write(&overlay, format!("x-frameproof:\n  invariants:\n{invariants}")).expect("written");
    let (code, shown) = check("agentloop", Some(&overlay));
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(shown.matches("FAIL").count(), 2, "{shown}");
    assert!(shown.contains("/payload: `id` is missing"), "{shown}");

    // A frame that is no message, and one that is no JSON.
    let trace = folder.path().join("t.ndjson");
    let lines = [r#"{"type":"nonsense"}"#, "{"].map(|frame| {
        serde_json::json!({ "t_ms": 0, "client": "a", "dir": "recv", "text": frame }).to_string() + "\n"
    });
    std::fs::write(&trace, lines.concat()).expect("written");
    let arguments = ["check", "t.ndjson", "--protocol", "agentloop", "--overlay", "names.yaml"];
    let output = frameproof(folder.path(), &arguments);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}{}", text(&output.stderr));
    assert_eq!(shown.matches("FAIL").count(), 2, "{shown}");
    // No invariant's subject is told as that of a built-in check.
    assert!(!shown.contains(": A: "), "{shown}");
}

/// A block for each requirement, however often it is broken, with the count; `-v` shows each.
#[test]
fn repeated_violations_are_told_once_with_their_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/agentloop.ndjson");
    let capture = std::fs::read_to_string(capture).expect("a capture");
    let session =
        |number: usize| capture.replace("{\"t_ms\"", &format!("{{\"case\":\"s/{number}\",\"t_ms\""));
    let trace: String = (0..9).map(session).collect();
    std::fs::write(folder.path().join("t.ndjson"), trace).expect("written");
    let check = |more: &[&str]| {
        let output =
            frameproof(folder.path(), &[&["check", "t.ndjson", "--protocol", "agentloop"], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let shown = check(&[]);
    assert!(shown.contains("153 events, 36 violations of 4 requirements"), "{shown}");
    let heads = |shown: &str| {
        shown
            .lines()
            .filter(|line| {
                line.contains("frame ")
                    && line.len() > 4
                    && (line.starts_with("FAIL") || line.starts_with("WARN"))
            })
            .count()
    };
    assert_eq!(heads(&shown), AGENTLOOP.len(), "{shown}");
    let counts: Vec<&str> =
        shown.lines().filter(|line| line.trim_start().starts_with("9 times, also in frames ")).collect();
    assert_eq!(counts.len(), AGENTLOOP.len(), "{shown}");
    assert!(counts[0].contains("20, 37, 54"), "{shown}");
    let all = check(&["-v"]);
    assert_eq!(heads(&all), AGENTLOOP.len(), "{all}");
    assert_eq!(all.lines().filter(|line| line.starts_with("     also frame ")).count(), 32, "{all}");
    // The most blocks that are wanted; what is left out is counted.
    let one = check(&["--show", "1"]);
    assert!(heads(&one) == 1 && one.contains("… and 27 more of other requirements"), "{one}");
    assert_eq!(shown, check(&[]), "the same each time");
}
