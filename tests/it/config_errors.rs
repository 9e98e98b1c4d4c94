//! Mistakes in `frameproof.toml`: each with file, line, column, source line and a hint, several at once, exit code 2.

use std::fs;

use crate::support::target::{folder, run};

/// Everything of a target that the cases do not say themselves.
const REST: &str = "url = 'ws://127.0.0.1:{{port}}/ws'\nports = { port = 0 }\ncommand = ['sleep', '9']\n";

#[test]
fn each_mistake_is_shown_where_it_is_written() {
    for (config, parts) in [
        (
            "[target.t]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{prot}}/ws'\nports = { port = 0 }\n"
                .to_owned(),
            &[
                "nothing sets the variable `prot`",
                "frameproof.toml:3:23",
                "3 | url =",
                "did you mean `port`?",
            ][..],
        ),
        (
            format!("[target.t]\nprotocol = 'minicodex'\n{REST}overlay = ['oberlay.yaml']\n"),
            &[
                "overlay: oberlay.yaml cannot be read",
                "frameproof.toml:6:12",
                "did you mean `./overlay.yaml`?",
            ],
        ),
        (
            format!("[target.t]\nprotocol = 'minicodex'\n{REST}baseline = 'zzz/none.yaml'\n"),
            &[
                "baseline: zzz/none.yaml cannot be read",
                "frameproof.toml:6:12",
                "relative to the folder of this file",
            ],
        ),
        (
            format!("[target.t]\nprotocol = 'minicodex'\n{REST}scenario = ['overlay.yaml', 'gone']\n"),
            &["scenario: gone cannot be read", "frameproof.toml:6:29"],
        ),
        (
            format!("[target.t]\nprotocol = 'minicodx'\n{REST}"),
            &["there is no protocol `minicodx`", "frameproof.toml:2:12", "did you mean `minicodex`?"],
        ),
        (
            format!("[target.t]\n{REST}"),
            &["the target `t` names no protocol", "frameproof.toml:1:9", "protocol = \"NAME\"", "minicodex"],
        ),
        (
            format!("[target.t]\nprotocol = 'minicodex'\n{REST}cwd = 'nowhere'\n"),
            &["nowhere is not a folder", "frameproof.toml:6:7", "relative to the folder of this file"],
        ),
        (
            format!("[target.t]\nprotocol = 'tinyvex'\n{REST}dialect = 'camel'\n"),
            &["tinyvex has no dialect `camel`", "frameproof.toml:6:11", "= help: "],
        ),
        (
            format!(
                "[target.t]\nprotocol = 'minicodex'\n{REST}tools.opn = {{ name = 'y' }}\ntools.gurded = {{ name = 'y' }}\n"
            ),
            &[
                "no class of tools `opn`",
                "frameproof.toml:6:7",
                "did you mean `open`?",
                "frameproof.toml:7:7",
                "`guarded`?",
            ],
        ),
        (
            format!(
                "[target.t]\nprotocol = 'minicodex'\n{REST}without-tools = ['slwo', 'open']\ntools.open = {{ name = 'y', args = {{ path = '{{{{kye}}}}' }} }}\n"
            ),
            &[
                "no class of tools `slwo`",
                "frameproof.toml:6:18",
                "did you mean `slow`?",
                "the class `open` has a tool in `tools`",
                "the class `open` has no argument `kye`",
                "frameproof.toml:7:44",
                "did you mean `key`?",
            ],
        ),
        (
            format!("[target.t]\nprotocol = 'minicodex'\n{REST}prompts = {{ 'a[' = 'x' }}\n"),
            &["`a[` is not a glob", "frameproof.toml:6:13"],
        ),
        (
            "name = 'minicodx'\n".to_owned(),
            &["no protocol `minicodx`", "frameproof.toml:1:8", "did you mean `minicodex`?"],
        ),
        ("protocol = 'minicodx'\n".to_owned(), &["frameproof.toml:1:12", "did you mean `minicodex`?"]),
        (
            "name = 'minicodex'\nca-file = 'ca.pem'\n".to_owned(),
            &["ca-file: ca.pem cannot be read", "frameproof.toml:2:11"],
        ),
        // Several at once, of the target and of what it is tested with, those of the structure first.
        (
            format!(
                "[target.t]\nprotocol = 'minicodx'\n{REST}overlay = ['o.yaml']\nenv = {{ A = 'env:SURELY_UNSET' }}\nbearer = '{{{{tok}}}}'\ncwd = 'x'\n"
            ),
            &[
                "frameproof.toml:2:12",
                "frameproof.toml:6:12",
                "frameproof.toml:7:14",
                "SURELY_UNSET is not set",
                "frameproof.toml:8:11",
                "variable `tok`",
                "frameproof.toml:9:7",
            ],
        ),
        (
            format!("[target.t]\nprotocl = 'minicodex'\n{REST}bearr = 'x'\nfresh = 'cse'\nsessions = 'x'\n"),
            &[
                "frameproof.toml:2:1",
                "did you mean `protocol`?",
                "frameproof.toml:6:1",
                "did you mean `bearer`?",
                "frameproof.toml:7:9",
                "did you mean `case`?",
                "frameproof.toml:8:12",
            ],
        ),
    ] {
        let folder = folder(&config);
        fs::write(folder.path().join("overlay.yaml"), "{}\n").expect("written");
        for command in ["run", "doctor"] {
            let (code, shown, errors) = run(&folder, &[command]);
            assert_eq!(code, Some(2), "{command} {config}\n{shown}{errors}");
            for part in parts {
                assert!(errors.contains(part), "{command}: {part} is not in\n{errors}");
            }
        }
    }
}

#[test]
fn what_the_command_line_says_itself_is_not_looked_for_in_the_file() {
    let folder = folder("name = 'minicodex'\noverlay = ['gone.yaml']\nbaseline = 'gone.yaml'\n");
    fs::write(folder.path().join("o.yaml"), "info: { title: other }\n").expect("written");
    fs::write(folder.path().join("b.yaml"), "known: []\n").expect("written");
    let given = ["run", "--overlay", "o.yaml", "--baseline", "b.yaml", "abort/idle"];
    let (code, shown, errors) = run(&folder, &given);
    assert_eq!(code, Some(0), "{shown}{errors}");
    // A certificate is looked for where it counts.
    fs::write(folder.path().join("frameproof.toml"), "ca-file = 'gone.pem'\n").expect("written");
    let pem = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate").cert.pem();
    fs::write(folder.path().join("ca.pem"), pem).expect("written");
    for (arguments, expected) in [
        (&["run", "minicodex", "--reference", "abort/idle"][..], 2),
        (&["run", "minicodex", "--reference", "--ca-file", "ca.pem", "abort/idle"], 0),
        (&["list", "minicodex"], 0),
        (&["explain", "MC-ORD-1"], 0),
    ] {
        let (code, shown, errors) = run(&folder, arguments);
        assert_eq!(code, Some(expected), "{arguments:?} {shown}{errors}");
    }
    // Another protocol than the file's has nothing to do with the file's patches.
    fs::write(folder.path().join("frameproof.toml"), "name = 'minicodex'\noverlay = ['gone.yaml']\n")
        .expect("written");
    let (code, shown, errors) = run(&folder, &["run", "codey", "--list"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
}

/// The shipped scenarios need not fit what an overlay makes of the protocol.
#[test]
fn a_baseline_and_scenarios_of_ones_own_do_not_need_the_shipped_ones() {
    let folder = folder("");
    for (name, text) in [
        ("o.yaml", "x-frameproof: { tools: { denied: null } }\n"),
        ("b.yaml", "known: [{ match: 'f/hears', reason: none }]\n"),
        (
            "s.yaml",
            "family: f\ncases:\n  - name: hears\n    title: It hears\n    covers: [MC-HS-1]\n    steps: [{ open: a }]\n",
        ),
    ] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let arguments = ["run", "minicodex", "--reference", "--overlay", "o.yaml", "--scenario", "s.yaml"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(0), "{shown}{errors}");
    let (_, shown, errors) = run(&folder, &[&arguments[..], &["--baseline", "b.yaml"]].concat());
    assert!(shown.contains("1 case") && !errors.contains("error:"), "{shown}{errors}");
}

#[test]
fn a_server_that_does_not_start_is_told_with_the_line_that_says_how() {
    for (line, parts) in [
        ("command = ['no-such-program-here']\n", &["cannot be started", "frameproof.toml:5:11", "PATH"][..]),
        ("command = ['sh', '-c', 'exit 7']\n", &["exited with status 7", "frameproof.toml:5:11"]),
        (
            "command = ['sleep', '9']\nstart-timeout = '200ms'\n",
            &["was not ready within 200ms", "frameproof.toml:3:7"],
        ),
        (
            "command = ['sleep', '9']\nstart-timeout = '200ms'\nready = { log = 'never' }\n",
            &["no line of its output has `never`", "frameproof.toml:7:9"],
        ),
    ] {
        let folder = folder(&format!(
            "[target.t]\nprotocol = 'minicodex'\nurl = 'ws://127.0.0.1:{{{{port}}}}/ws'\nports = {{ port = 0 }}\n{line}"
        ));
        let (code, shown, errors) = run(&folder, &["run"]);
        assert_eq!(code, Some(3), "{line}\n{shown}{errors}");
        for part in parts {
            assert!(errors.contains(part), "{part} is not in\n{errors}");
        }
    }
}
