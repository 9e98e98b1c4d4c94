//! What the documentation says is true: its scenarios run, its protocol loads, its commands work.

use std::fs;
use std::path::Path;

use crate::support::{Served, frameproof, text};

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file)
}

/// The fenced blocks of a Markdown text whose opening line is exactly this.
fn blocks(markdown: &str, opening: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if line.trim_end() == format!("```{opening}") {
            found.push(
                lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect(),
            );
        } else if line.starts_with("```") && line.len() > 3 {
            lines.by_ref().take_while(|line| *line != "```").for_each(drop);
        }
    }
    found
}

#[test]
fn the_scenarios_of_the_guide_run() {
    let scenarios = blocks(&read("docs/scenarios.md"), "yaml scenario");
    assert!(scenarios.len() >= 3);
    let server = Served::start(&["minicodex"]);
    for scenario in scenarios {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("s.yaml"), &scenario).expect("written");
        let output =
            frameproof(folder.path(), &["run", "minicodex", "--scenario", "s.yaml", "--url", &server.url]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{scenario}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

/// With `FRAMEPROOF_WRITE_DOCS` in the environment the tables are written instead.
#[test]
fn the_tables_of_verbs_are_those_of_the_code() {
    const FILE: &str = "docs/scenarios.md";
    let guide = read(FILE);
    let begin = guide.find("<!-- verbs").expect("a region");
    let begin = begin + guide[begin..].find('\n').expect("a line") + 1;
    let end = begin + guide[begin..].find("<!-- end -->").expect("an end");
    let tables = frameproof::scenario::verbs::documentation();
    if std::env::var_os("FRAMEPROOF_WRITE_DOCS").is_some() {
        let guide = [&guide[..begin], &tables, &guide[end..]].concat();
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE), guide).expect("written");
    } else {
        assert_eq!(
            guide[begin..end],
            tables,
            "write them anew: FRAMEPROOF_WRITE_DOCS=1 cargo test --test docs"
        );
    }
}

#[test]
fn the_protocol_of_the_guide_loads() {
    let parts = blocks(&read("docs/protocols.md"), "yaml");
    let [requirements, messages, extension, overlay] = &parts[..] else { panic!("{} blocks", parts.len()) };
    let folder = tempfile::tempdir().expect("a folder");
    let protocol = folder.path().join("my-protocol");
    fs::create_dir(&protocol).expect("a folder");
    fs::write(protocol.join("requirements.yaml"), requirements).expect("written");
    fs::write(protocol.join("asyncapi.yaml"), format!("{messages}{extension}")).expect("written");
    fs::write(folder.path().join("overlay.yaml"), overlay).expect("written");
    let output = frameproof(folder.path(), &["explain", "CH-2", "--protocol", "my-protocol"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("invariant sequence"), "{}", text(&output.stdout));
    let trace = concat!(
        r#"{"t_ms":1,"client":"c","dir":"recv","text":"{\"type\":\"said\",\"text\":\"a\",\"seq\":2}"}"#,
        "\n",
        r#"{"t_ms":2,"client":"c","dir":"recv","text":"{\"type\":\"said\",\"text\":7,\"seq\":1}"}"#,
        "\n",
        r#"{"t_ms":3,"client":"c","dir":"recv","text":"[]"}"#,
    );
    fs::write(folder.path().join("t.ndjson"), trace).expect("written");
    let output = frameproof(
        folder.path(),
        &["check", "t.ndjson", "--protocol", "my-protocol", "--overlay", "overlay.yaml"],
    );
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}{}", text(&output.stderr));
    for part in [
        "CH-2",
        "/seq 1 comes after 2",
        "CH-3",
        "an array, not a JSON object",
        "3 violations of 3 requirements",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

#[test]
fn the_commands_of_the_readme_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    let mut count = 0;
    for block in blocks(&read("README.md"), "console") {
        for line in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let command = line.split(" #").next().unwrap_or_default().trim();
            let command = command.replace("cargo run --release --", "frameproof");
            let command = command.replace("ws://127.0.0.1:8765/ws", &server.url);
            let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
            // Building, testing, and servers that run until they are ended are tested by this very run.
            let ["frameproof", arguments @ ..] = &words[..] else { continue };
            if arguments.first() == Some(&"serve") && !arguments.contains(&"--list-faults") {
                continue;
            }
            let output = frameproof(folder.path(), arguments);
            let wanted = if line.contains("--fault") { 1 } else { 0 };
            assert_eq!(
                output.status.code(),
                Some(wanted),
                "{line}\n{}{}",
                text(&output.stdout),
                text(&output.stderr)
            );
            count += 1;
        }
    }
    assert!(count >= 6, "only {count} commands");
}

/// The guide from beginning to end, with a reference server that has a defect as "my server".
#[test]
fn the_guide_to_testing_a_server_works() {
    let guide = read("docs/testing-your-server.md");
    let [config] = &blocks(&guide, "toml frameproof.toml")[..] else { panic!("one configuration") };
    let own = r#"["python3", "-m", "myserver", "--port", "{{port}}"]"#;
    assert!(config.contains(own), "{config}");
    let served = format!(
        r#"["{}", "serve", "minicodex", "--fault", "executes-denied", "--listen", "127.0.0.1:{{{{port}}}}"]"#,
        env!("CARGO_BIN_EXE_frameproof")
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("frameproof.toml"), config.replace(own, &served)).expect("written");
    let mut lines: Vec<String> = Vec::new();
    for block in blocks(&guide, "console") {
        lines.extend(block.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned));
    }
    let recipes = blocks(&guide, "yaml recipe");
    assert_eq!(recipes.len(), 2);
    for recipe in &recipes {
        serde_saphyr::from_str::<serde_json::Value>(recipe).expect("YAML");
        lines.extend(
            recipe.lines().filter_map(|line| line.find("frameproof ").map(|at| line[at..].to_owned())),
        );
    }
    // The recipes have commands in common, with each other and with the text.
    let mut seen = std::collections::BTreeSet::new();
    let mut count = 0;
    for line in lines.into_iter().filter(|line| seen.insert(line.clone())) {
        let (command, note) = line.split_once(" # ").unwrap_or((&line, ""));
        let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        let ["frameproof", arguments @ ..] = &words[..] else { panic!("{line}") };
        if arguments.first() == Some(&"--locked") {
            // `cargo install frameproof --locked`
            continue;
        }
        let wanted = if note.contains("exit code 1") { 1 } else { 0 };
        let output = frameproof(folder.path(), arguments);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(wanted), "{line}\n{shown}");
        count += 1;
    }
    assert_eq!(count, 7, "commands");
    assert!(folder.path().join("conformance.xml").is_file());
    // What it says of exit codes and silences is what is said.
    for kind in [
        "said nothing on this connection",
        "not answered what was sent last",
        "begun the turn and not ended it",
        "not ended the connection",
    ] {
        assert!(guide.contains(&format!("the server has {kind}")), "{kind}");
        assert!(read("src/run/case/diagnose.rs").contains(kind), "{kind}");
    }
}

#[test]
fn the_table_of_the_readme_is_what_the_command_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["list", "--markdown"]);
    let readme = read("README.md");
    let (_, rest) =
        readme.split_once("<!-- `frameproof list --markdown` -->\n").expect("the table's beginning");
    let (table, _) = rest.split_once("<!-- end -->").expect("the table's end");
    assert_eq!(table, text(&output.stdout), "paste what `frameproof list --markdown` prints");
}

#[test]
fn the_trace_and_the_baseline_of_the_guide_are_read() {
    let guide = read("docs/reports.md");
    let folder = tempfile::tempdir().expect("a folder");
    let [trace] = &blocks(&guide, "json lines")[..] else { panic!("one trace") };
    fs::write(folder.path().join("t.ndjson"), trace).expect("written");
    let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "minicodex"]);
    assert!(text(&output.stdout).contains("5 events"), "{output:?}");
    let [baseline] = &blocks(&guide, "yaml baseline")[..] else { panic!("one baseline") };
    fs::write(folder.path().join("known.yaml"), baseline).expect("written");
    let case =
        ["--case", "approval/deny-does-not-run-the-tool", "--baseline", "known.yaml", "--json", "run.jsonl"];
    let run = |fault: &[&str]| frameproof(folder.path(), &[&["run", "minicodex"], fault, &case[..]].concat());
    let output = run(&["--fault", "executes-denied"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("1 known to fail"), "{}", text(&output.stdout));
    let again = frameproof(folder.path(), &["report", "run.jsonl"]);
    assert_eq!(text(&again.stdout), text(&output.stdout));
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("stale baseline entry"), "{}", text(&output.stdout));
}

/// The table of monitors as the published schema has them: each kind with its property and its parameters.
fn table_of_monitors() -> String {
    let output = frameproof(Path::new("."), &["schema", "protocol"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a schema");
    let mut table = "| monitor | the property | parameters | optional |\n|---|---|---|---|\n".to_owned();
    for kind in schema["$defs"]["Rule"]["oneOf"].as_array().expect("kinds") {
        let (name, rule) = kind["properties"].as_object().and_then(|one| one.iter().next()).expect("a name");
        let property = kind["description"].as_str().expect("a description").trim_end_matches('.');
        let rule = schema.pointer(rule["$ref"].as_str().expect("its type").trim_start_matches('#'));
        let rule = rule.expect("the type is there");
        let required = rule["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let (needed, optional): (Vec<_>, Vec<_>) = rule["properties"]
            .as_object()
            .expect("parameters")
            .keys()
            .partition(|parameter| required.iter().any(|known| known == *parameter));
        let list =
            |names: Vec<&String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        table += &format!("| `{name}` | {property} | {} | {} |\n", list(needed), list(optional));
    }
    table
}

#[test]
fn the_table_of_monitors_is_that_of_the_schema() {
    let table = table_of_monitors();
    assert!(
        read("docs/protocols.md").contains(&table),
        "docs/protocols.md, section 4, should have:\n{table}"
    );
}
