//! `selftest --target`: the kill matrix of a server of one's own.

use std::fs;
use std::path::Path;

use crate::support::{frameproof, text};

/// A project with the reference server of minicodex as a server of one's own: its defects are mutants.
fn project(mutants: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_frameproof");
    // Only what the mutants are about, and nothing that the rest of the catalogue would miss.
    let config = format!(
        "[target.own]\nprotocol = 'minicodex'\nscenario = ['pings.yaml']\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\n\
         command = ['sh', '-c', 'exec \"$0\" serve minicodex --listen 127.0.0.1:{{{{port}}}} $DEFECT', '{program}']\nenv = {{ DEFECT = '' }}\n{mutants}"
    );
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let case = "family: pings\ncases:\n  - name: text\n    title: A turn of text\n    turn: [{ say: [hi] }]\n    steps:\n      - open: alice\n      \
                - send: { type: send, text: '{{cue}}', req_id: s1 }\n      - expect: turn-end\n";
    fs::write(folder.path().join("pings.yaml"), case).expect("written");
    folder
}

fn selftest(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, &[&["selftest", "--target", "own"], more].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

const MUTANTS: &str = "[[target.own.mutants]]\nname = 'text-after-finish'\nenv = { DEFECT = '--fault text-after-finish' }\nbreaks = ['MC-LIFE-4']\n\
                       [[target.own.mutants]]\nname = 'harmless'\nenv = { HARM = 'none' }\nbreaks = ['MC-LIFE-4']\n\
                       [[target.own.mutants]]\nname = 'blamed-wrongly'\nenv = { DEFECT = '--fault text-after-finish' }\nbreaks = ['MC-LIFE-9']\n\
                       [[target.own.mutants]]\nname = 'another-command'\ncommand = ['sh', '-c', 'exec \"$0\" serve minicodex --listen 127.0.0.1:{{port}} --fault text-after-finish', 'PROGRAM']\nbreaks = ['MC-LIFE-4']\n";

#[test]
fn mutants_of_a_target_are_killed_by_exactly_what_they_break() {
    let folder = project(&MUTANTS.replace("PROGRAM", env!("CARGO_BIN_EXE_frameproof")));
    let (code, shown) = selftest(folder.path(), &[]);
    assert_eq!(code, Some(1), "{shown}");
    let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(line("text-after-finish").starts_with("killed"), "{shown}");
    assert!(line("another-command").starts_with("killed"), "{shown}");
    assert!(line("harmless").starts_with("SURVIVED"), "{shown}");
    assert!(line("blamed-wrongly").starts_with("MISJUDGED"), "{shown}");
    for told in ["missing: MC-LIFE-9", "unrelated: MC-LIFE-4"] {
        assert!(shown.contains(told), "{told}\n{shown}");
    }
    // One case exercises few requirements: the suite is no good, and the matrix says so of the correct server.
    assert!(
        line("(correct server)").starts_with("MISJUDGED") && shown.contains("not exercised: MC-"),
        "{shown}"
    );
    assert!(!shown.contains("(error"), "{shown}");
    let (code, shown) = selftest(folder.path(), &["--fault", "text-after-finish", "-v"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("1 of 1 judged correctly") && shown.contains("MC-LIFE-4: pings/text"), "{shown}");
    let (code, shown) = selftest(folder.path(), &["--fault", "text-after-finnish"]);
    assert!(code == Some(2) && shown.contains("did you mean `text-after-finish`?"), "{shown}");
}

/// Verdicts and their order are those of one server after the other.
#[test]
fn mutants_can_run_at_the_same_time() {
    let folder = project(&MUTANTS.replace("PROGRAM", env!("CARGO_BIN_EXE_frameproof")));
    let (code, shown) = selftest(folder.path(), &["--servers", "3"]);
    assert_eq!((code, &shown), (Some(1), &selftest(folder.path(), &[]).1), "{shown}");
    let config = folder.path().join("frameproof.toml");
    let fixed = fs::read_to_string(&config).expect("read").replace("port = 0", "port = 1234");
    fs::write(config, fixed).expect("written");
    let (code, shown) = selftest(folder.path(), &["--servers", "2"]);
    assert!(code == Some(2) && shown.contains("have one port") && shown.contains("port = 0"), "{shown}");
}

#[test]
fn a_mutant_that_cannot_be_is_refused() {
    for (mutants, error) in [
        ("", "the target `own` has no mutants"),
        ("[[target.own.mutants]]\nname = 'a'\nbreaks = ['MC-LIFE-4']\n", "a mutant differs from the target"),
        (
            "[[target.own.mutants]]\nname = 'a'\nenv = { A = 'b' }\nbreaks = []\n",
            "a mutant breaks requirements",
        ),
        (
            "[[target.own.mutants]]\nname = 'a'\nenv = { A = 'b' }\nbreaks = ['MC-LIFE-444']\n",
            "unknown requirement `MC-LIFE-444`",
        ),
        (
            "[[target.own.mutants]]\nname = ''\nenv = { A = 'b' }\nbreaks = ['MC-LIFE-4']\n",
            "a mutant has a name of its own",
        ),
        ("[[target.own.mutants]]\nname = 'a'\nenv = { A = '{{b}}' }\nbreaks = ['MC-LIFE-4']\n", "`b`"),
        ("[[target.own.mutants]]\nname = 'a'\nenvs = { A = 'b' }\nbreaks = ['MC-LIFE-4']\n", "envs"),
    ] {
        let (code, shown) = selftest(project(mutants).path(), &[]);
        assert_eq!(code, Some(2), "{mutants}\n{shown}");
        assert!(shown.contains(error), "{error}\n{shown}");
    }
}

/// The report of a self-test, one part after the other.
#[test]
fn a_report_holds_each_part_and_becomes_a_table() {
    let folder = project("");
    let selftest = |more: &[&str]| {
        let suite = ["selftest", "minicodex", "--scenario", "pings.yaml"];
        let output = frameproof(folder.path(), &[&suite[..], more].concat());
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let report = || -> serde_json::Value {
        let text = fs::read_to_string(folder.path().join("kills.json")).expect("a report");
        serde_json::from_str(&text).expect("JSON")
    };
    let (code, shown) = selftest(&["--fault", "text-after-finish", "--report", "kills.json"]);
    assert_eq!(code, Some(0), "{shown}");
    // The case awaits no acknowledgement, and nobody comes back.
    let triggers = ["--triggers", "--fault", "text-after-finish", "--fault", "no-acknowledgement"];
    let moments = ["--trigger", "first-turn", "--trigger", "after-reconnect", "--report", "kills.json"];
    let (code, shown) = selftest(&[&triggers[..], &moments].concat());
    assert_eq!(code, Some(1), "{shown}");
    let wire = ["--wire", "--style", "slow", "--mutant", "run_status drop every", "--report", "kills.json"];
    let (code, shown) = selftest(&wire);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = selftest(&["--styles", "--style", "spaced-json", "--report", "kills.json"]);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = selftest(&["--explore", "--sample", "3", "--report", "kills.json"]);
    assert_eq!(code, Some(0), "{shown}");

    let found = report();
    let suite = &found["suites"]["minicodex"];
    assert_eq!(suite["defects"]["faults"]["killed"], 1, "{suite}");
    let kills = &suite["defects"]["triggers"];
    assert_eq!((&kills["mutants"], &kills["killed"], &kills["not-met"]), (&2.into(), &1.into(), &2.into()));
    assert_eq!(kills["survivors"], serde_json::json!(["no-acknowledgement@first-turn"]), "{kills}");
    let of = &suite["defects"]["faults"]["requirements"]["MC-LIFE-4"];
    let expected = serde_json::json!({ "mutants": 1, "killed": 1, "by-itself": 1, "by-another": 0, "found": 0, "kinds": 0 });
    assert_eq!(of, &expected, "{suite}");
    assert_eq!(suite["defects"]["wire under slow"]["killed"], 1, "{suite}");
    assert_eq!(suite["styles"]["alone"], serde_json::json!(["spaced-json"]), "{suite}");
    assert_eq!((&suite["styles"]["failures"], &suite["exploration"]["walks"]), (&0.into(), &3.into()));

    // It is what its schema says.
    let schema = frameproof(folder.path(), &["schema", "selftest"]);
    let schema = serde_json::from_slice(&schema.stdout).expect("a schema");
    let valid = jsonschema::validator_for(&schema).expect("a schema");
    assert!(valid.is_valid(&found), "{found}");

    let (code, table) = selftest(&["--table", "kills.json"]);
    assert_eq!(code, Some(0), "{table}");
    assert!(table.contains("| wire under slow | 1 | 1 (100.0 %) |"), "{table}");
    assert!(table.contains("| triggers | 2 | 1 (50.0 %) |"), "{table}");
    let of = &kills["requirements"].as_object().expect("requirements");
    let survived = of.iter().find(|(_, of)| of["killed"] == 0).map(|(id, _)| id).expect("a requirement");
    assert!(table.contains(&format!("| {survived} | MUST | 1 | 0 | 0 | 0 |")), "{table}");
    assert!(!table.contains("| MC-LIFE-4 |"), "each of its faults is found: {table}");
    assert!(table.contains("1 legal styles alone") && table.contains("Explored by 3 walks"), "{table}");

    let other = frameproof(folder.path(), &["selftest", "tinyvex", "--table", "kills.json"]);
    assert_eq!(other.status.code(), Some(4), "{}", text(&other.stderr));
    fs::write(folder.path().join("other.json"), "{\"suites\":[]}").expect("written");
    let (code, shown) = selftest(&["--fault", "text-after-finish", "--report", "other.json"]);
    assert!(code == Some(2) && shown.contains("no report of a self-test"), "{shown}");
}

#[test]
fn musts_with_few_faults_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["selftest", "codey", "--count"]);
    let shown = text(&output.stdout);
    let last = shown.lines().last().unwrap_or_default();
    assert!(last.starts_with("codey: ") && last.contains("observable MUST requirements"), "{shown}");
    let below: usize =
        last.split_whitespace().rev().nth(2).and_then(|word| word.parse().ok()).expect("a number");
    assert_eq!(shown.lines().count(), below + 1, "{shown}");
    assert_eq!(output.status.code(), Some(i32::from(below > 0)), "{shown}");
    assert!(shown.lines().take(below).all(|line| line.trim_start().starts_with(['0', '1', '2'])), "{shown}");
    let all = frameproof(folder.path(), &["selftest", "codey", "--count", "-v"]);
    assert!(text(&all.stdout).lines().count() > below + 1);
}

#[test]
fn what_was_measured_counts_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let selftest = |args: &[&str]| {
        let output = frameproof(folder.path(), &[&["selftest", "codey"], args].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let of_pings = |shown: &str| -> Option<usize> {
        let line = shown.lines().find(|line| line.contains(" CO-PG-1 "))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let (_, plain, _) = selftest(&["--count", "-v"]);
    let (code, _, problem) =
        selftest(&["--wire", "--mutant", "Pong {absent,drop,duplicate} every", "--report", "measured.json"]);
    assert_eq!(code, Some(0), "{problem}");
    let (_, measured, problem) = selftest(&["--count", "-v", "--measured", "measured.json"]);
    assert!(of_pings(&measured) > of_pings(&plain), "{measured} {problem}");
    assert!(measured.contains("on the wire"), "{measured}");
    let (code, _, problem) = selftest(&["--count", "--measured", "nothing.json"]);
    assert!(code == Some(2) && problem.contains("nothing.json"), "{problem}");
    let (code, _, problem) = selftest(&["--measured", "measured.json"]);
    assert!(code == Some(2) && problem.contains("--count"), "{problem}");
}
