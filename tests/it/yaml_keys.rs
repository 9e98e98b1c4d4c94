//! Keys of YAML files that readers of YAML 1.1 take for truth values: `on` has another name, and what ships uses none of them.

use std::fs;
use std::path::{Path, PathBuf};

use frameproof::protocol::{Protocol, ReadingName};
use frameproof::source::Document;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn yaml_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "node_modules" && name != "target" {
            yaml_below(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "yaml") {
            found.push(path);
        }
    }
}

/// Keys that are no texts for a reader of YAML 1.1, with the place of each.
fn truth_values(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let at = format!("{at}/{key}");
                if ["yes", "no", "on", "off", "true", "false"].contains(&key.to_lowercase().as_str()) {
                    found.push(at.clone());
                }
                // The arguments of a tool are content, which has the keys that it has.
                if key != "args" {
                    truth_values(value, &at, found);
                }
            }
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| truth_values(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

#[test]
fn no_key_that_ships_is_a_truth_value_in_yaml_1_1() {
    let mut files = Vec::new();
    ["protocols", "scenarios", "examples", "templates"]
        .iter()
        .for_each(|one| yaml_below(&root().join(one), &mut files));
    assert!(files.len() > 60, "{}", files.len());
    for file in files {
        let document = Document::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let mut found = Vec::new();
        truth_values(&document.value, "", &mut found);
        assert!(found.is_empty(), "{}: {found:?}", file.display());
    }
}

/// The file with the old key where it has the new one: not in schemas and in messages, which have a field of this name.
fn with_old_key(api: &str) -> String {
    let (schemas, extension) = api.split_once("\nx-frameproof:").expect("an extension");
    let old = |line: &str| match ["properties", "send:", "args:", "x-frameproof: {"]
        .iter()
        .any(|word| line.contains(word))
    {
        true => line.to_owned(),
        false => line.replace("{ message: ", "{ on: ").replace("fields: [{ on:", "on: [{ on:"),
    };
    let lines: Vec<String> = extension.lines().map(old).collect();
    format!("{schemas}\nx-frameproof:{}\n", lines.join("\n"))
}

/// What a protocol file is loaded as.
fn loaded(folder: &Path, api: &str, overlay: &str) -> Result<String, String> {
    let api = Document::parse("api.yaml", api).map_err(|error| error.to_string())?;
    let catalogue = Document::read(&folder.join("requirements.yaml")).map_err(|error| error.to_string())?;
    let overlays =
        if overlay.is_empty() { Vec::new() } else { vec![Document::parse("o.yaml", overlay).expect("YAML")] };
    let protocol = Protocol::from_documents("p", &api, &catalogue, ReadingName::Strict, &overlays);
    protocol.map(|protocol| format!("{:?}", protocol.extension)).map_err(|error| error.to_string())
}

#[test]
fn files_with_the_old_key_load_as_before() {
    for folder in [
        "protocols/minicodex",
        "protocols/codelab",
        "protocols/agentloop",
        "templates/like/greeting/protocol",
    ] {
        let folder = root().join(folder);
        let api = fs::read_to_string(folder.join("asyncapi.yaml")).expect("it is there");
        let old = with_old_key(&api);
        assert!(old.matches("on: ").count() > 2, "{}", folder.display());
        let expected = loaded(&folder, &api, "").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            loaded(&folder, &old, "").unwrap_or_else(|error| panic!("{error}")),
            expected,
            "{}",
            folder.display()
        );
        // An overlay reaches the key by either name, and a mistake is shown where it is written.
        let overlay = |key: &str| format!("x-frameproof: {{ errors: {{ {key}: close }} }}\n");
        let patched = loaded(&folder, &api, &overlay("message"));
        assert!(patched.is_ok() && patched != Ok(expected), "{patched:?}");
        assert_eq!(loaded(&folder, &api, &overlay("on")), patched);
        assert_eq!(loaded(&folder, &old, &overlay("message")), patched);
        let wrong =
            loaded(&folder, &api, "x-frameproof:\n  errors:\n    on: nobody\n").expect_err("it is nobody");
        assert!(wrong.contains("o.yaml:3:9"), "{wrong}");
    }
}
