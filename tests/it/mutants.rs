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
                - send: { type: send, text: '{{cue}}' }\n      - expect: turn-end\n";
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
