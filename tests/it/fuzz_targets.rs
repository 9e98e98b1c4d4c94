//! `frameproof fuzz --target`: servers that frameproof launches, watches and launches again.

use crate::support::fuzz::{finding, folder, fuzz};
use crate::support::{frameproof, text};

#[test]
fn a_correct_launched_server_gives_no_finding() {
    let folder = folder("codey", "", "sessions = 2\n");
    let (code, shown) = fuzz(folder.path(), &["--iterations", "32", "--seed", "5"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("against mine (ws://127.0.0.1:"), "{shown}");
    assert!(shown.contains("0 findings in 32 cases"), "{shown}");
}

#[test]
fn a_server_whose_memory_grows_is_found_out() {
    let folder = folder("codey", ", '--fault', 'fuzz-memory-per-broken-frame'", "");
    let arguments = ["--time", "90s", "--max-findings", "1", "--max-growth", "64"];
    let (code, shown) = fuzz(folder.path(), &arguments);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL memory") && shown.contains("1 step after"), "{shown}");
    let file = finding(folder.path(), "codey");
    let run = frameproof(folder.path(), &["run", "--target", "mine", "--scenario", &file]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stdout));
    let shown = text(&run.stdout);
    // The title has no numbers in it.
    let told = shown.split("the server's memory grew by ").find(|told| told.starts_with(char::is_numeric));
    let (grown, rest) = told.expect("it grew").split_once(" MiB").expect("by so much");
    let (_, bound) = rest.split_once("more than ").expect("a bound");
    let (bound, _) = bound.split_once(" MiB").expect("in MiB");
    let [grown, bound] = [grown, bound].map(|number| number.parse::<u64>().expect("a number"));
    assert!(grown > bound && bound > 0, "{shown}");
    // Nobody else's memory can be watched.
    let foreign = frameproof(folder.path(), &["run", "codey", "--reference", "--scenario", &file]);
    assert!(text(&foreign.stdout).contains("1 not applicable"), "{}", text(&foreign.stdout));
}

#[test]
fn a_server_that_takes_no_more_connections_ends_the_campaign() {
    // It starts once, and never again.
    let folder = folder("minicodex", "", "");
    let binary = env!("CARGO_BIN_EXE_frameproof");
    let script = format!(
        "test -e started && exit 7; touch started; exec '{binary}' serve minicodex --listen \"$1\" --fault fuzz-dies-of-a-list-of-types"
    );
    std::fs::write(folder.path().join("server.sh"), script).expect("written");
    let config = "[target.mine]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
                  command = ['sh', 'server.sh', '127.0.0.1:{{port}}']\ncwd = '.'\n";
    std::fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let (code, shown) = fuzz(folder.path(), &["--time", "120s", "--json", "j.jsonl"]);
    assert_eq!(code, Some(3), "{shown}");
    assert!(
        shown.contains("the target no longer accepts connections: ") && shown.contains("status 7"),
        "{shown}"
    );
    // What was found so far is kept, with the inputs that led there.
    let scenario = std::fs::read_to_string(finding(folder.path(), "minicodex")).expect("a scenario");
    assert!(scenario.contains("exited with status 3") && scenario.contains("steps:"), "{scenario}");
    assert!(std::fs::read_to_string(folder.path().join("j.jsonl")).expect("JSON lines").contains("status 3"));
}

#[test]
fn wrong_targets_are_told() {
    let folder = folder("minicodex", "", "");
    for (arguments, code, hint) in [
        (&["--target", "mien"][..], 2, "did you mean `mine`?"),
        (&["--target", "mine", "--fault", "fuzz-number-for-text"], 2, "cannot be used with"),
        (&["--target", "mine", "--url", "ws://127.0.0.1:1/ws"], 2, "cannot be used with"),
    ] {
        let output = frameproof(folder.path(), &[&["fuzz"], arguments].concat());
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {shown}");
        assert!(shown.contains(hint), "{arguments:?}: {shown}");
    }
}

#[test]
fn the_configuration_says_which_server() {
    let folder = folder("codey", "", "");
    let fuzz = |arguments: &[&str]| {
        let output = frameproof(folder.path(), &[&["fuzz", "--iterations", "4"], arguments].concat());
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    // Its only target, unless the command line says otherwise.
    let (code, shown) = fuzz(&[]);
    assert!(code == Some(0) && shown.contains("against mine (ws://127.0.0.1:"), "{shown}");
    let (code, shown) = fuzz(&["codey", "--reference"]);
    assert!(code == Some(0) && shown.contains("against the reference server"), "{shown}");

    let file = folder.path().join("frameproof.toml");
    std::fs::write(&file, "name = 'codey'\nurl = 'http://127.0.0.1:1/ws'\nseed = 5\n").expect("written");
    let (code, shown) = fuzz(&[]);
    assert!(code == Some(2) && shown.contains("a URL looks like ws://"), "{shown}");
    std::fs::write(&file, "name = 'codey'\nca-file = 'none.pem'\nseed = 5\n").expect("written");
    let (code, shown) = fuzz(&["--reference"]);
    assert!(code == Some(2) && shown.contains("none.pem"), "{shown}");
    std::fs::write(&file, "name = 'codey'\nseed = 5\n").expect("written");
    let (code, shown) = fuzz(&[]);
    assert!(code == Some(0) && shown.contains("(seed 5)"), "{shown}");
}

/// To launch a server takes longer than a case: candidates for a smaller case share one as long as they pass.
#[test]
fn a_server_is_kept_running_while_a_finding_is_minimized() {
    let folder = folder("minicodex", "", "");
    let script = format!(
        "echo launched >> launches\nexec '{}' serve minicodex --listen \"$1\" --fault fuzz-number-for-text\n",
        env!("CARGO_BIN_EXE_frameproof")
    );
    std::fs::write(folder.path().join("server.sh"), script).expect("written");
    let config = "[target.mine]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
                  command = ['sh', 'server.sh', '127.0.0.1:{{port}}']\ncwd = '.'\n";
    std::fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let (code, shown) = fuzz(folder.path(), &["--time", "60s", "--max-findings", "1"]);
    assert_eq!(code, Some(1), "{shown}");
    let replays = shown.split(" replays;").next().and_then(|text| text.rsplit(' ').next());
    let replays: usize = replays.and_then(|count| count.parse().ok()).expect("a number");
    let launches = std::fs::read_to_string(folder.path().join("launches")).expect("launches").lines().count();
    assert!(replays > 20 && launches * 4 < replays * 3, "{launches} launches, {replays} replays: {shown}");
}
