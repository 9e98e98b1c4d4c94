//! `frameproof fuzz --target` against servers that die: what is one finding, and what is told of it.

use crate::support::fuzz::{finding, folder, fuzz};
use crate::support::{frameproof, text};

#[test]
fn a_server_that_dies_is_launched_again_and_its_death_is_a_finding() {
    let folder = folder("minicodex", ", '--fault', 'fuzz-dies-of-a-list-of-types'", "");
    let (code, shown) = fuzz(folder.path(), &["--time", "60s", "--max-findings", "1", "--junit", "j.xml"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL target") && shown.contains("exited with status 3"), "{shown}");
    let file = finding(folder.path(), "minicodex");
    let scenario = std::fs::read_to_string(&file).expect("a scenario");
    assert_eq!(scenario.matches("raw:").count() + scenario.matches("send:").count(), 1, "{scenario}");
    let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("JUnit");
    assert!(junit.contains("exited with status 3"), "{junit}");

    // It fails in the same way as a scenario, and as a replay.
    let run = frameproof(folder.path(), &["run", "--target", "mine", "--scenario", &file]);
    assert_eq!(run.status.code(), Some(3), "{}", text(&run.stdout));
    assert!(text(&run.stdout).contains("exited with status 3"), "{}", text(&run.stdout));
    let (code, shown) = fuzz(folder.path(), &["--replay", "reports/fuzz-minicodex"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.starts_with("still fails"), "{shown}");
}

#[test]
fn deaths_in_two_places_are_two_findings() {
    // Both exit with the same status, and each names another message every time.
    let folder = folder("minicodex", ", '--fault', 'fuzz-dies-in-two-places'", "");
    let (code, shown) = fuzz(folder.path(), &["--time", "90s", "--max-findings", "2"]);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(shown.matches("FAIL target").count(), 2, "{shown}");
    for place in ["panicked at src/router.rs:41:9: no name", "panicked at src/frames.rs:7:13: message"] {
        assert_eq!(shown.matches(place).count(), 1, "{place}: {shown}");
    }
    assert_eq!(shown.matches("; confirmed").count(), 2, "{shown}");
}

#[test]
fn a_death_that_quotes_ids_is_one_finding() {
    let folder = folder("minicodex", ", '--fault', 'fuzz-dies-of-a-list-of-types'", "");
    let (code, shown) = fuzz(folder.path(), &["--iterations", "48", "--json", "j.jsonl"]);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(shown.matches("FAIL ").count(), 1, "{shown}");
    assert!(
        shown.contains("exited with status 3; the last error in its output: fatal: message ")
            && shown.contains("1 finding in "),
        "{shown}"
    );
    assert!(
        std::fs::read_to_string(folder.path().join("j.jsonl")).expect("JSON lines").contains("has no route")
    );
}

#[test]
fn what_a_server_logs_all_the_time_is_no_part_of_its_death() {
    // Whenever it dies, it has just logged another error.
    let folder = folder("minicodex", "", "");
    let script = format!(
        "while kill -0 $$ 2>/dev/null; do\n\
         w=x$w; echo \"ERROR rejected frame: $w\" >&2; sleep 0.1\ndone &\n\
         exec '{}' serve minicodex --listen \"$1\" --fault fuzz-dies-of-a-list-of-types 2>/dev/null\n",
        env!("CARGO_BIN_EXE_frameproof")
    );
    std::fs::write(folder.path().join("server.sh"), script).expect("written");
    let config = "[target.mine]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
                  command = ['sh', 'server.sh', '127.0.0.1:{{port}}']\ncwd = '.'\n";
    std::fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let (code, shown) = fuzz(folder.path(), &["--iterations", "16"]);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(shown.matches("FAIL ").count(), 1, "{shown}");
    assert!(shown.contains("1 finding in ") && shown.contains("; confirmed"), "{shown}");
    assert!(
        shown.contains("exited with status 3; the last error in its output: ERROR rejected frame: "),
        "{shown}"
    );
    let scenario = std::fs::read_to_string(finding(folder.path(), "minicodex")).expect("a scenario");
    assert_eq!(scenario.matches("raw:").count() + scenario.matches("send:").count(), 1, "{scenario}");
}

#[test]
fn a_server_that_dies_of_age_is_told_shortly() {
    let folder = folder("minicodex", ", '--fault', 'fuzz-dies-of-age'", "");
    let (code, shown) = fuzz(folder.path(), &["--time", "60s", "--max-findings", "1"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("FAIL target") && shown.contains("a harmless case, repeated, kills it after"),
        "{shown}"
    );
    assert!(shown.contains(" messages: process `mine` exited with status 3"), "{shown}");
    let told = shown.split("\n\n").next().expect("a finding");
    assert!(told.lines().count() < 8 && told.contains("; confirmed"), "{shown}");
    // It fails as a scenario, too.
    let run = frameproof(
        folder.path(),
        &["run", "--target", "mine", "--scenario", &finding(folder.path(), "minicodex")],
    );
    assert_eq!(run.status.code(), Some(3), "{}", text(&run.stdout));
    assert!(text(&run.stdout).contains("exited with status 3"), "{}", text(&run.stdout));
}

#[test]
fn a_death_that_comes_by_itself_is_a_finding_with_what_ran() {
    // It lives for so long, whatever is sent.
    let folder = folder("minicodex", "", "");
    let binary = env!("CARGO_BIN_EXE_frameproof");
    let script = format!(
        "test -e started && exec '{binary}' serve minicodex --listen \"$1\"\n\
         touch started; '{binary}' serve minicodex --listen \"$1\" & server=$!\n\
         while test ! -e now; do sleep 0.1; done; kill -9 $server; exit 9"
    );
    std::fs::write(folder.path().join("server.sh"), script).expect("written");
    let config = "[target.mine]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\n\
                  command = ['sh', 'server.sh', '127.0.0.1:{{port}}']\ncwd = '.'\n";
    std::fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let now = folder.path().join("now");
    let corpus = folder.path().join("corpus");
    // The campaign has learnt something: it is under way.
    let killer = std::thread::spawn(move || {
        let learnt = || std::fs::read_dir(&corpus).is_ok_and(|mut files| files.next().is_some());
        while !learnt() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        std::fs::write(now, "").expect("written");
    });
    let (code, shown) = fuzz(folder.path(), &["--time", "12s", "--corpus", "corpus", "--junit", "j.xml"]);
    killer.join().expect("told");
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL target") && shown.contains("exited with status 9"), "{shown}");
    assert!(
        shown.contains("no single case reproduces it") && shown.contains("not confirmed by a replay"),
        "{shown}"
    );
    let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("JUnit");
    assert!(junit.contains("exited with status 9"), "{junit}");
}

#[test]
fn a_death_hides_no_other_defect() {
    let folder = folder("minicodex", ", '--fault', 'fuzz-dies-of-a-list-of-types'", "overlay = ['o.yaml']\n");
    // Under this overlay every refusal breaks its schema.
    let overlay = "components:\n  messages:\n    error:\n      payload: { properties: { message: { const: sorry } } }\n      \
                   examples: [{ payload: { type: error, code: BUSY, message: sorry } }]\n";
    std::fs::write(folder.path().join("o.yaml"), overlay).expect("written");
    let (code, shown) = fuzz(folder.path(), &["--time", "60s", "--max-findings", "2"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL schema [MC-ERR-1]"), "{shown}");
    assert!(shown.contains("FAIL target") && shown.contains("exited with status 3"), "{shown}");
}

/// A relay in front of the server that takes 14 connections and dies: an opened session takes three or four of them.
const RELAY: &str = "
import os, socket, sys, threading
front = socket.create_server(('127.0.0.1', int(sys.argv[1])))
def pump(source, sink):
    try:
        while (data := source.recv(65536)):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
for taken in range(14):
    near = front.accept()[0]
    far = socket.create_connection(('127.0.0.1', int(sys.argv[2])))
    threading.Thread(target=pump, args=(near, far), daemon=True).start()
    threading.Thread(target=pump, args=(far, near), daemon=True).start()
print('fatal: no more connections', file=sys.stderr, flush=True)
os._exit(9)
";

#[test]
fn a_death_before_anything_was_fuzzed_is_a_finding() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = env!("CARGO_BIN_EXE_frameproof");
    let config = format!(
        "[target.mine]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0, own = 0 }}\n\
         [[target.mine.process]]\nname = 'server'\n\
         command = ['{binary}', 'serve', 'minicodex', '--listen', '127.0.0.1:{{{{own}}}}']\n\
         ready = {{ log = 'ws://' }}\n\
         [[target.mine.process]]\nname = 'relay'\ncommand = ['python3', 'relay.py', '{{{{port}}}}', '{{{{own}}}}']\n"
    );
    std::fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    std::fs::write(folder.path().join("relay.py"), RELAY).expect("written");
    let (code, shown) = fuzz(folder.path(), &["--iterations", "1"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL target") && shown.contains("exited with status 9"), "{shown}");
}
