//! The schemas that a server generates of itself, for the shipped protocol that says how they are read. The bundle is made here, in
//! the layout of `codex app-server generate-json-schema`, and open to everything but for what a test closes: the vendor's own is not ours to commit.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::target::{BINARY, left_over, run};
use crate::support::{frameproof, text};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A bundle with each message of the protocol, but for those of `without`; the answers to `thread/start` are of `started`.
fn bundle(folder: &Path, without: &[&str], started: &Value) {
    let api = fs::read_to_string(root().join("protocols/codex/asyncapi.yaml")).expect("the protocol");
    let api: Value = serde_saphyr::from_str(&api).expect("YAML");
    let messages = api["components"]["messages"].as_object().expect("messages");
    let methods = messages
        .values()
        .filter_map(|message| message.pointer("/payload/properties/method/const").and_then(Value::as_str));
    let branch = |method: &str| match method {
        "thread/start" => {
            json!({ "properties": { "method": { "enum": [method] }, "params": { "$ref": "#/definitions/ThreadStartParams" } } })
        }
        _ => json!({ "properties": { "method": { "enum": [method] } } }),
    };
    let all: Vec<Value> = methods.filter(|method| !without.contains(method)).map(branch).collect();
    assert!(all.len() > 60, "the methods of both sides: {}", all.len());
    let union = json!({ "definitions": { "ThreadStartParams": { "type": "object" } }, "oneOf": all });
    let at = folder.join("b");
    fs::create_dir_all(at.join("v2")).expect("a folder");
    for name in ["ServerNotification", "ServerRequest", "ClientRequest", "ClientNotification"] {
        fs::write(at.join(format!("{name}.json")), union.to_string()).expect("written");
    }
    fs::write(at.join("v2/ThreadStartResponse.json"), started.to_string()).expect("written");
    fs::write(at.join("JSONRPCError.json"), json!({ "required": ["error"] }).to_string()).expect("written");
}

/// What no answer of the reference server has.
fn closed() -> Value {
    json!({ "properties": { "thread": { "required": ["neverThere"] } } })
}

const TOLD: &str =
    "the server's own schema v2/ThreadStartResponse.json refuses this: /thread `neverThere` is missing";

#[test]
fn a_bundle_that_fits_changes_no_verdict_and_one_that_does_not_is_named_in_every_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let given = ["run", "codex", "threads/start*", "--schemas", "b", "--trace", "t.ndjson"];
        let output = frameproof(folder.path(), &[&given, arguments].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    bundle(folder.path(), &[], &json!({}));
    let (code, shown, told) = run(&[]);
    assert!(code == Some(0) && shown.contains("conformant") && told.is_empty(), "{shown}\n{told}");
    bundle(folder.path(), &[], &closed());
    let (code, shown, _) =
        run(&["--junit", "j.xml", "--html", "h.html", "--json", "r.jsonl", "--summary", "s.md"]);
    assert!(code == Some(1) && shown.contains(TOLD), "{shown}");
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).expect(file);
    let junit = read("j.xml").replace("&apos;", "'");
    let failures = junit.matches("<failure").count();
    assert!(failures > 0 && junit.contains(TOLD), "{junit}");
    assert!(junit.contains("vendor-schema"), "the check is the type of the failure: {junit}");
    let html = read("h.html");
    assert!(
        html.contains("ThreadStartResponse.json refuses this: /thread `neverThere` is missing"),
        "{html}"
    );
    assert!(read("s.md").contains("ThreadStartResponse.json"), "{}", read("s.md"));
    assert!(read("r.jsonl").contains(r#""check":"vendor-schema""#));
    // The recording is judged alike.
    let check = ["check", "t.ndjson", "--protocol", "codex", "--schemas", "b"];
    let output = frameproof(folder.path(), &check);
    assert!(output.status.code() == Some(1) && text(&output.stdout).contains(TOLD), "{output:?}");
    // What is known does not fail again, and an entry that no longer fails does.
    let (code, shown, _) = run(&["--baseline-write", "known.yaml"]);
    assert!(code.is_some_and(|code| code < 2), "{shown}");
    let (code, shown, _) = run(&["--baseline", "known.yaml"]);
    assert!(code == Some(0) && shown.contains("known to fail"), "{shown}");
    bundle(folder.path(), &[], &json!({}));
    let (code, shown, _) = run(&["--baseline", "known.yaml"]);
    assert_eq!(code, Some(1), "{shown}");
}

#[test]
fn what_another_version_does_not_have_is_said_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    bundle(folder.path(), &["thread/rollback", "turn/diff/updated"], &json!({}));
    let run = |arguments: &[&str]| {
        let output = frameproof(folder.path(), &[&["run", "codex", "--schemas", "b"], arguments].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    // A message of the server's that its version does not have is refused where it comes; a method of clients is only named.
    let (code, shown, told) = run(&["threads/start"]);
    assert_eq!(code, Some(0), "{shown}");
    let lacking = "a server of this version has no `turn/diff/updated`, `thread/rollback`: b lacks them";
    assert!(told.contains(lacking) && told.contains("an overlay says"), "{told}");
    let (code, shown, _) = run(&["items/diff"]);
    assert!(
        code == Some(1) && shown.contains("the server's own schemas have no message `turn/diff/updated`"),
        "{shown}"
    );
}

#[test]
fn what_is_no_bundle_of_codex_is_refused_with_the_way_to_one() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    for (given, told) in [
        ("empty", "empty is not a bundle for this protocol: ServerNotification.json"),
        ("nowhere", "the bundle of schemas nowhere is not there"),
    ] {
        let output = frameproof(folder.path(), &["run", "codex", "--schemas", given]);
        let shown = text(&output.stderr);
        assert!(output.status.code() == Some(2) && shown.contains(told), "{shown}");
        assert!(shown.contains("codex app-server generate-json-schema"), "{shown}");
    }
}

/// The target of the example, with its script as it is and the reference server in the place of the binary.
fn example(extra: &str, binary: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let own = root().join("examples/codex");
    for file in ["start.sh", "overlay.yaml", "known.yaml"] {
        fs::copy(own.join(file), folder.path().join(file)).expect(file);
    }
    let config = fs::read_to_string(own.join("frameproof.toml")).expect("the target");
    let config = config.replacen("[target.codex.tools]", &format!("{extra}\n[target.codex.tools]"), 1);
    let config = config.replacen("overlay = [\"overlay.yaml\"]\nbaseline = \"known.yaml\"\n", "", 1);
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    if !binary.is_empty() {
        let path: PathBuf = folder.path().join("node_modules/.bin/codex");
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, binary).expect("written");
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    folder
}

/// Speaks as the binary is spoken to: `codex app-server --listen ws://ADDRESS`.
fn stand_in() -> String {
    format!(
        "#!/bin/sh\ntest \"$1\" = app-server || exit 9\nexec '{BINARY}' serve codex --listen \"${{3#ws://}}\"\n"
    )
}

#[test]
fn a_target_s_schemas_judge_what_it_sends() {
    let mark = format!("mark-{}-schemas", std::process::id());
    let folder = example(&format!("schemas = \"b\"\nenv = {{ M = '{mark}' }}"), &stand_in());
    bundle(folder.path(), &[], &json!({}));
    let arguments = ["run", "--target", "codex", "threads/start"];
    let (code, shown, told) = run(&folder, &arguments);
    assert_eq!(code, Some(0), "{shown}\n{told}");
    bundle(folder.path(), &[], &closed());
    let (code, shown, told) = run(&folder, &arguments);
    assert!(code == Some(1) && shown.contains(TOLD), "{shown}\n{told}");
    assert_eq!(left_over(&mark), [], "processes are left");
}

#[test]
fn a_server_of_the_example_that_cannot_start_says_why() {
    let mark = format!("mark-{}-codex", std::process::id());
    let env = format!("env = {{ M = '{mark}' }}");
    let missing = example(&env, "");
    let (code, shown, told) = run(&missing, &["run", "--target", "codex", "threads/start"]);
    let hint = "node_modules/.bin/codex: run `npm install` in";
    assert!(code == Some(3) && (shown.clone() + &told).contains(hint), "{shown}\n{told}");
    // The scratch folder is where its CODEX_HOME is.
    let unwritable = example(&env, &stand_in());
    let path = unwritable.path().join("frameproof.toml");
    let config =
        fs::read_to_string(&path).expect("the target").replacen("\"{{scratch}}\"", "\"/dev/null\"", 1);
    fs::write(&path, config).expect("written");
    let (code, shown, told) = run(&unwritable, &["run", "--target", "codex", "threads/start"]);
    let hint = "CODEX_HOME cannot be written: /dev/null/codex";
    assert!(code == Some(3) && (shown.clone() + &told).contains(hint), "{shown}\n{told}");
    assert_eq!(left_over(&mark), [], "processes are left");
}
