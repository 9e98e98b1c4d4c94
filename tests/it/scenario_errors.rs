//! What a person gets wrong in files, told with place and hint, all at once, by the real binary.

use std::path::Path;

use crate::support::{frameproof, text};

/// Writes a file and loads it as a scenario of a protocol; gives exit code and what was shown.
fn load(folder: &Path, bytes: &[u8]) -> (Option<i32>, String) {
    std::fs::write(folder.join("s.yaml"), bytes).expect("written");
    let output = frameproof(folder, &["run", "minicodex", "--scenario", "s.yaml", "--list"]);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// A file with one case, whose last lines these are.
fn case(rest: &str) -> String {
    format!("family: f\ncases:\n  - name: a\n    title: t\n{rest}")
}

#[test]
fn mistakes_are_told_with_place_and_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let steps = "    steps:\n      - open: alice\n";
    let table: &[(String, &[&str])] = &[
        (case(&format!("    repeat: 4000000000\n{steps}")), &["s.yaml:5:13", "must be at most 10000"]),
        (case(&format!("    repeat: 1e26\n{steps}")), &["s.yaml:5:13", "must be at most 10000"]),
        (case(&format!("    repeat: 2.0\n{steps}")), &["s.yaml:5:13"]),
        (case(&format!("    repeat: 0\n{steps}")), &["s.yaml:5:13", "must be at least 1"]),
        (
            case(&format!("{steps}      - {{ send: {{}}, count: 4294967295 }}\n")),
            &["s.yaml:7:28", "at most 100000"],
        ),
        (
            case(&format!("    turn: [{{ flood: {{ chunks: 1000000, chars: 16000000 }} }}]\n{steps}")),
            &["64 MiB"],
        ),
        (
            case(&format!("{steps}      - send: {{ type: send, text: \"{{{{cue}}}}\" }}\n")),
            &["s.yaml:7:36", "this case has no `turn`", "add `turn:"],
        ),
        (
            case(&format!("{steps}      - expect: welcome\n        where: {{ propertiez: {{}} }}\n")),
            &["s.yaml:8:18", "no keyword `propertiez`", "did you mean `properties`?"],
        ),
        (
            case(&format!(
                "{steps}      - expect: welcome\n        where: {{ properties: {{ a: {{ format: data-time }} }} }}\n"
            )),
            &["s.yaml:8:", "no format `data-time`", "did you mean `date-time`?"],
        ),
        (
            case("    steps:\n      - open: ''\n      - settle: bob\n"),
            &["s.yaml:6:15", "a client needs a name", "such as alice"],
        ),
        (String::new(), &["s.yaml: the file is empty", "right one?"]),
        ("# nothing\n".to_owned(), &["only comments"]),
        (case(&format!("{steps}      - expect: turn-ned\n")), &["s.yaml:7:17", "did you mean `turn-end`?"]),
        (case(&format!("{steps}      - expect: welcom\n")), &["did you mean `welcome`?"]),
        (
            case(&format!("{steps}      - expect: turn-end\n        within: 500\n")),
            &["s.yaml:8:17", "`500ms` or `3s`"],
        ),
        (
            case(&format!("{steps}      - send: {{ type: send, text: {{{{cue}}}} }}\n")),
            &["needs quotes: \"{{cue}}\""],
        ),
        (case(&format!("{steps}       with: {{}}\n")), &["s.yaml:7:8", "check the indentation"]),
        (
            case(&format!(
                "{steps}      - send: {{ type: send, text: \"nope {{{{cue}}}} {{{{ nope }}}}\" }}\n"
            )),
            &["s.yaml:7:49", "undefined variable `nope`", "^^^^^^^^^^"],
        ),
        (
            case(&format!(
                "{steps}      - send:\n          text: |\n            one\n            {{{{nope}}}}\n"
            )),
            &["s.yaml:10:13", "undefined variable `nope`"],
        ),
        (
            case(&format!(
                "{steps}      - joined: {{ of: {{ type: assistant_text, with: {{ text: '{{{{nope}}}}' }} }}, at: [/text] }}\n        where: {{ const: a }}\n"
            )),
            &["s.yaml:7:62", "undefined variable `nope`"],
        ),
        (
            case(&format!("{steps}      - expect_file: 'x-{{{{nope}}}}'\n")),
            &["s.yaml:7:25", "undefined variable `nope`"],
        ),
        (
            case(&format!("{steps}      - get: '/x-{{{{nope}}}}'\n")),
            &["s.yaml:7:18", "undefined variable `nope`"],
        ),
    ];
    for (file, expected) in table {
        let (code, shown) = load(folder.path(), file.as_bytes());
        assert_eq!(code, Some(2), "{file}\n{shown}");
        for part in *expected {
            assert!(shown.contains(part), "{part} is not in\n{shown}\n{file}");
        }
    }
}

#[test]
fn wrong_shapes_hide_no_wrong_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = case(
        "    covers: [MC-NOPE-1]\n    steps:\n      - open: alice\n      - opne: bob\n      - expect: turn-ned\n        within: 500\n      \
         - { expect: welcom, as: bob }\n  - name: b\n    title: 7\n    needs: [aprovals]\n    steps:\n      - open: alice\n      - send: { text: \"{{nope}}\" }\n",
    );
    let (code, shown) = load(folder.path(), file.as_bytes());
    assert_eq!(code, Some(2), "{shown}");
    for part in [
        "unknown field `opne`",
        "500 must be of type",
        "7 must be of type",
        "unknown requirement `MC-NOPE-1`",
        "did you mean `turn-end`?",
        "did you mean `welcome`?",
        "unknown capability `aprovals`",
        "undefined variable `nope`",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // Nor do they hide variables that nothing sets; what a broken step may have set is let alone.
    let file = case(
        "    steps:\n      - open: alice\n      - { expect: welcome, save: { call: no-pointer } }\n      \
         - send: { text: \"{{call}} {{gone}}\" }\n",
    );
    let (code, told) = load(folder.path(), file.as_bytes());
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("is not a JSON Pointer") && told.contains("undefined variable `gone`"), "{told}");
    assert!(!told.contains("variable `call`"), "{told}");
    // What the broken step opened nobody knows.
    assert!(!shown.contains("never opened"), "{shown}");
}

#[test]
fn marks_and_line_ends_do_not_matter() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = case("    steps:\n      - open: alice\n");
    for bytes in [format!("\u{feff}{file}"), file.replace('\n', "\r"), file.replace('\n', "\r\n")] {
        let (code, shown) = load(folder.path(), bytes.as_bytes());
        assert_eq!(code, Some(0), "{shown}");
    }
    let utf16: Vec<u8> = [0xfeff].into_iter().chain(file.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let (code, shown) = load(folder.path(), &utf16);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("save it as UTF-8"), "{shown}");
    // Traces and configurations, too.
    let trace = "\u{feff}{\"t_ms\":1,\"client\":\"a\",\"dir\":\"recv\",\"text\":\"[]\"}\n";
    std::fs::write(folder.path().join("t.ndjson"), trace).expect("written");
    let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "minicodex"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    std::fs::write(folder.path().join("frameproof.toml"), "\u{feff}name = 'codey'\n").expect("written");
    let output = frameproof(folder.path(), &["list"]);
    assert!(
        text(&output.stdout).contains("113 cases") || text(&output.stdout).contains("[CO-"),
        "{output:?}"
    );
}

#[test]
fn a_message_that_no_client_sends_is_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let sent = |rest: &str| {
        case(&format!("    steps:\n      - open: alice\n      - send: {{ type: abrt }}\n{rest}"))
    };
    let (code, shown) = load(folder.path(), sent("      - expect: turn-end\n").as_bytes());
    assert_eq!(code, Some(0), "{shown}");
    for part in
        ["note: clients of this protocol send no message `abrt`", "s.yaml:7:23", "did you mean `abort`?"]
    {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let (code, shown) = load(folder.path(), sent("      - expect: [error, close]\n").as_bytes());
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("note:"), "{shown}");
}

#[test]
fn a_field_that_the_schema_does_not_declare_is_noted_also_within_a_unit() {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = |field: &str| {
        case(&format!(
            "    steps:\n      - open: alice\n      - steps:\n          - expect: turn_done\n            with: {{ {field}: 1 }}\n"
        ))
    };
    let (code, shown) = load(folder.path(), expected("nope").as_bytes());
    assert_eq!(code, Some(0), "{shown}");
    let told = ["note: the schema of `turn_done` does not declare `nope`", "s.yaml:9:21"];
    assert!(told.iter().all(|part| shown.contains(part)), "{shown}");
    let (code, shown) = load(folder.path(), expected("event_id").as_bytes());
    assert!(code == Some(0) && !shown.contains("note:"), "{shown}");
}

#[test]
fn the_configuration_counts_for_list_and_explain() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = case("    covers: [MC-APR-1]\n    steps:\n      - open: alice\n");
    std::fs::write(folder.path().join("s.yaml"), file).expect("written");
    std::fs::write(folder.path().join("frameproof.toml"), "name = 'minicodex'\nscenario = ['s.yaml']\n")
        .expect("written");
    let shown = |arguments: &[&str]| {
        let output = frameproof(folder.path(), arguments);
        text(&output.stdout) + &text(&output.stderr)
    };
    for arguments in
        [&["list"][..], &["run", "--list"], &["list", "minicodex"], &["run", "minicodex", "--list"]]
    {
        assert!(shown(arguments).contains("\n1 case\n"), "{arguments:?}: {}", shown(arguments));
    }
    let explained = shown(&["explain", "MC-APR-1"]);
    assert!(explained.contains("case f/a: t") && !explained.contains("case approval/"), "{explained}");
    // What the file says of one protocol has nothing to do with another.
    let other = shown(&["run", "codey", "--list"]);
    assert!(other.contains("CO-CN-1") && !other.contains("f/a"), "{other}");
}

#[test]
fn a_glob_that_selects_nothing_gets_near_names() {
    let folder = tempfile::tempdir().expect("a folder");
    for (glob, expected) in [
        ("aproval/*", "`approval/*`"),
        ("aproval/deny*", "`approval/deny*`"),
        ("streaming/text-trun", "`streaming/text-turn`"),
        ("*text-trun", "`streaming/text-turn`"),
        ("MC-APX-1", "MC-APR-1"),
    ] {
        let output = frameproof(folder.path(), &["run", "minicodex", glob]);
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{shown}");
        assert!(shown.contains("did you mean") && shown.contains(expected), "{glob}: {shown}");
    }
}
