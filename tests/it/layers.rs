//! The house rules that a compiler does not check: modules import downward only, and no Rust file outside
//! `src/reference/` names a protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From the top floor to the ground; a module may import those that come after it. Modules on one line are
/// neighbours and do not know each other.
const FLOORS: &[&[&str]] = &[
    &["cli", "fuzz_targets"],
    &["report"],
    &["explore", "fuzz", "doctor", "recording", "selftest"],
    &["synthesis"],
    &["run"],
    &["scenario", "reference", "model", "target"],
    &["wire"],
    &["check"],
    &["protocol"],
    &["results"],
    &["trace"],
    &["frame", "source", "cue", "template", "output", "exit"],
    &["input", "shortage", "text"],
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("source text");
            (path.strip_prefix(&root).expect("below src").to_owned(), text)
        })
        .collect()
}

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

#[test]
fn modules_import_downward_only() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let module = parts.next().unwrap_or_default();
        let module = module.trim_end_matches(".rs");
        let Some(floor) = floor_of(module) else { continue };
        for (number, line) in text.lines().enumerate() {
            let mut rest = line;
            while let Some(at) = rest.find("crate::") {
                rest = &rest[at + "crate::".len()..];
                let name: String =
                    rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                if let Some(other) = floor_of(&name)
                    && name != module
                    && other <= floor
                {
                    wrong.push(format!("src/{}:{}: {module} imports {name}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports that go up or sideways:\n{}", wrong.join("\n"));
}

/// The rooms of `run` in the same way: a file is in the first room whose path it begins with.
const ROOMS: &[&[&str]] = &[
    &["suite", "testbed"],
    &["server"],
    &["isolation/precheck", "triage/groups", "triage/model_use", "triage/signature"],
    &["case"],
    &[
        "address",
        "alone",
        "context",
        "error",
        "isolation",
        "loop_lag",
        "options",
        "prompts",
        "run_id",
        "triage",
    ],
];

fn room_of(path: &str) -> Option<usize> {
    let rooms =
        ROOMS.iter().enumerate().flat_map(|(floor, rooms)| rooms.iter().map(move |room| (floor, room)));
    let in_it = rooms.filter(|(_, room)| {
        path.strip_prefix(**room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    // The longest prefix counts.
    in_it.max_by_key(|(_, room)| room.len()).map(|(floor, _)| floor)
}

#[test]
fn rooms_of_run_import_downward_only() {
    let graph = imports();
    let inner = |file: &str| file.strip_prefix("run/").and_then(room_of);
    let mut wrong = Vec::new();
    for (file, imported) in &graph {
        let Some(floor) = inner(file) else {
            assert!(!file.starts_with("run/"), "src/{file}.rs is in no room: add it to ROOMS");
            continue;
        };
        let is_up = |other: &&String| inner(other).is_some_and(|other| other < floor);
        let up = imported.iter().filter(is_up);
        wrong.extend(up.map(|other| format!("{file} imports {other}")));
    }
    assert!(wrong.is_empty(), "imports that go up:\n{}", wrong.join("\n"));
}

/// Structs that may have more than a dozen fields, and why: what people write, or what is written for them, field by field.
const BROAD: &[(&str, &str)] = &[
    ("cli/config.rs Config", "frameproof.toml"),
    ("cli/fuzz.rs Fuzz", "the options of a command"),
    ("cli/run.rs Run", "the options of a command"),
    ("protocol/extension.rs Extension", "x-frameproof in a protocol file"),
    ("protocol/fuzz_rules.rs Fuzzing", "x-frameproof.fuzzing in a protocol file"),
    ("protocol/rules/log.rs Correlation", "a monitor in a protocol file"),
    ("results/event.rs CaseReport", "a line of the JSON events"),
    ("results/event.rs RunStarted", "a line of the JSON events"),
    ("scenario/frame.rs RawFrame", "`frame` in a scenario file"),
    ("scenario/file.rs Case", "a case in a scenario file"),
    ("scenario/file.rs Step", "a step in a scenario file"),
    ("target/config.rs TargetConfig", "a target's table in frameproof.toml"),
];
const MOST_FIELDS: usize = 12;

#[test]
fn structs_have_at_most_a_dozen_fields() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
            let Some(name) = line.strip_prefix("struct ").filter(|_| line.ends_with('{')) else { continue };
            let is_field = |line: &&str| {
                let field = line.trim_start();
                line.len() - field.len() == 4
                    && field.starts_with(|c: char| c.is_ascii_lowercase())
                    && field.contains(':')
            };
            let fields = lines.by_ref().take_while(|line| *line != "}").filter(is_field).count();
            let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            let name = format!("{} {name}", path.display());
            if fields > MOST_FIELDS && !BROAD.iter().any(|(known, _)| *known == name) {
                wrong.push(format!("{name}: {fields} fields"));
            }
        }
    }
    assert!(wrong.is_empty(), "structs that own too much:\n{}", wrong.join("\n"));
}

/// Files that import each other in circles, directly or not: three may, for a type and what it is made of.
const MOST_IN_CIRCLE: usize = 3;

#[test]
fn circles_of_imports_are_small() {
    let graph = imports();
    let reach = |from: &String| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = left.pop() {
            for other in graph.get(&file).into_iter().flatten() {
                if seen.insert(other.clone()) {
                    left.push(other.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|file| (file, reach(file))).collect();
    let mut wrong = BTreeSet::new();
    for (file, others) in &reached {
        let back = others.iter().filter(|other| reached.get(other).is_some_and(|all| all.contains(*file)));
        let circle: Vec<&str> = back.map(String::as_str).collect();
        if circle.len() > MOST_IN_CIRCLE {
            wrong.insert(circle.join(", "));
        }
    }
    assert!(wrong.is_empty(), "circles of imports:\n{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

/// Structs with state that many could reach into, and where they are implemented: nowhere else.
const IMPLEMENTED_IN: &[(&str, &str)] = &[
    ("Interpreter", "run/case"),
    ("Connections", "run/case/connections.rs"),
    ("CaseLog", "run/case/log.rs"),
    ("CaseVerdict", "run/case/verdict.rs"),
    ("Client", "run/case/client.rs"),
    ("Dispatcher", "run/suite/dispatcher.rs"),
    ("Testbed", "run/testbed.rs"),
    ("CaseRun", "run/testbed.rs"),
    ("ServerPool", "run/server/pool.rs"),
    ("Campaign", "fuzz/campaign.rs"),
    ("Judge", "check/judge.rs"),
    ("SummaryBuilder", "results/summary.rs"),
];

/// What an `impl` block is of: `impl<'a> Trait for Name<'a> {` → `Name`.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?.strip_suffix('{')?.trim();
    let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest };
    let of = rest.rsplit_once(" for ").map_or(rest, |(_, of)| of);
    Some(of.split(['<', ' ']).next().unwrap_or(of))
}

#[test]
fn structs_with_state_are_implemented_in_their_own_room() {
    for (line, expected) in [
        ("impl<'r> Interpreter<'r> {", Some("Interpreter")),
        ("impl Judge {", Some("Judge")),
        ("impl Drop for Judge {", Some("Judge")),
        ("impl<T> From<T> for Client<T> where T: X {", Some("Client")),
        ("let implied = 1;", None),
    ] {
        assert_eq!(implemented(line), expected, "{line}");
    }
    let (mut wrong, mut found) = (Vec::new(), BTreeSet::new());
    for (path, text) in sources() {
        let top =
            path.components().next().expect("a folder or file").as_os_str().to_string_lossy().into_owned();
        for name in text.lines().filter_map(implemented) {
            // Another module may have a struct of the same name.
            let Some((name, room)) = IMPLEMENTED_IN
                .iter()
                .find(|(known, room)| *known == name && room.split('/').next() == Some(top.as_str()))
            else {
                continue;
            };
            found.insert(*name);
            if !path.starts_with(room) {
                wrong.push(format!("src/{}: impl {name}, which belongs to src/{room}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "implemented outside their room:\n{}", wrong.join("\n"));
    assert_eq!(found.len(), IMPLEMENTED_IN.len(), "a struct was renamed: only {found:?} are there");
}

/// Which files of a module import which others of it, by path below `src/`, without tests.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let mut texts = BTreeMap::new();
    for (path, text) in sources() {
        let name = path.with_extension("").to_string_lossy().into_owned();
        let name = name.strip_suffix("/mod").unwrap_or(&name).to_owned();
        if name.ends_with("/tests") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
        texts.insert(name, code.join("\n"));
    }
    let file_of = |path: &[String]| {
        (1..=path.len()).rev().map(|n| path[..n].join("/")).find(|file| texts.contains_key(file))
    };
    let mut graph = BTreeMap::new();
    for (name, code) in &texts {
        let mut imported = BTreeSet::new();
        for path in paths(name, code) {
            // A module's root re-exports what is below it, and is no part of a circle.
            let other = file_of(&path).filter(|other| other != name && other.contains('/'));
            imported.extend(other.filter(|other| other.split('/').next() == name.split('/').next()));
        }
        graph.insert(name.clone(), imported);
    }
    graph
}

/// The paths that a file names, from the crate's root.
fn paths(file: &str, code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with("super::") || code[..at].ends_with("r#") {
                continue;
            }
            let (mut rest, mut prefix) = (&code[at..], Vec::new());
            if let Some(below) = rest.strip_prefix("crate::") {
                rest = below;
            } else {
                prefix = file.split('/').map(str::to_owned).collect();
                while let Some(above) = rest.strip_prefix("super::") {
                    rest = above;
                    prefix.pop();
                }
            }
            spread(rest, prefix, &mut found);
        }
    }
    found
}

/// A path, or each of those in its braces. The result is what follows it.
fn spread<'c>(mut rest: &'c str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> &'c str {
    loop {
        rest = rest.trim_start();
        if let Some(mut inner) = rest.strip_prefix('{') {
            while !inner.is_empty() && !inner.starts_with('}') {
                inner = spread(inner, path.clone(), found);
                inner = inner.trim_start_matches(|c: char| c != ',' && c != '}');
                inner = inner.strip_prefix(',').unwrap_or(inner).trim_start();
            }
            return inner.strip_prefix('}').unwrap_or(inner);
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end > 0 {
            path.push(rest[..end].to_owned());
        }
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(below) if end > 0 => rest = below,
            _ => {
                found.push(path);
                return rest;
            }
        }
    }
}

#[test]
fn no_protocol_is_named_outside_the_reference_servers() {
    let protocols: Vec<String> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("protocols"))
        .expect("the protocols folder")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!protocols.is_empty());
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if path.starts_with("reference") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            if let Some(name) = protocols.iter().find(|name| line.contains(name.as_str())) {
                wrong.push(format!("src/{}:{}: {name}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "protocol names in Rust:\n{}", wrong.join("\n"));
}

/// What asks a sentence for its words, in code that decides something: what names like these stand for is written for people, and its
/// wording may change. Whoever decides asks for the value: `results::cause::Cause`, `results::Check`, an error's variant.
const SENTENCES: [&str; 9] =
    ["message", "reason", "sentence", "how", "told", "label", "advice", "opening", "summary"];
const QUESTIONS: [&str; 10] = [
    "starts_with(",
    "ends_with(",
    "contains(",
    "strip_prefix(",
    "strip_suffix(",
    "split_once(",
    "rsplit_once(",
    "find(",
    "replace(",
    "match_indices(",
];

/// Whether a line of code asks a sentence for its words: `message.contains("…")` and the like.
fn asks_for_words(line: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    QUESTIONS.iter().any(|question| {
        let question = format!(".{question}");
        line.match_indices(&question).any(|(at, _)| {
            let asked = line[..at].trim_end_matches('?');
            let asked =
                asked.strip_suffix(".as_deref()").or(asked.strip_suffix(".as_str()")).unwrap_or(asked);
            let asked = asked.trim_end_matches('?').trim_end_matches("()");
            let name = &asked[asked.rfind(|c| !is_part(c)).map_or(0, |at| at + 1)..];
            // Only what is looked for as text: a list may be searched for a value.
            let argument = &line[at + question.len()..];
            let is_text = argument.starts_with(['"', '\'', '[']) || argument.starts_with(char::is_uppercase);
            SENTENCES.contains(&name) && is_text
        })
    })
}

#[test]
fn nothing_is_decided_by_the_words_of_a_sentence() {
    for (line, expected) in [
        (r#"if failure.message.contains("is not allowed here") {"#, true),
        (r#"reason.as_deref()?.strip_prefix(DIED)"#, true),
        (r#"let known = message.split_once(": ");"#, true),
        (r#"list.contains("x") && self.message.is_empty()"#, false),
        (r#"message.is_some_and(|message| self.opening.contains(index))"#, false),
    ] {
        assert_eq!(asks_for_words(line), expected, "{line}");
    }
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let shown = path.to_string_lossy();
        let is_decider = ["run", "doctor", "fuzz", "results"].iter().any(|room| path.starts_with(room));
        if !is_decider || shown.ends_with("tests.rs") {
            continue;
        }
        // Tests may read what people read.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
        let lines = code.lines().enumerate().filter(|(_, line)| asks_for_words(line));
        wrong.extend(lines.map(|(number, line)| format!("src/{shown}:{}: {}", number + 1, line.trim())));
    }
    assert!(wrong.is_empty(), "sentences that are asked for their words:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_of_tests_is_part_of_the_one_test_program() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let main = fs::read_to_string(tests.join("it/main.rs")).expect("the test program");
    let names = |folder: &Path| -> Vec<String> {
        let files = fs::read_dir(folder).expect("a folder").flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter_map(|name| name.strip_suffix(".rs").map(ToOwned::to_owned)).collect()
    };
    assert_eq!(names(&tests), Vec::<String>::new(), "they belong in tests/it/, with a line in main.rs");
    for name in names(&tests.join("it")).iter().filter(|name| *name != "main") {
        assert!(main.contains(&format!("mod {name};")), "tests/it/main.rs lacks `mod {name};`");
    }
}

/// Words that say nothing to somebody from the field; what is meant has a term: leak detection, back-off, mutation, obligation, outcome.
const UNUSUAL: &[&str] = &[
    "akin",
    "dice",
    "ear",
    "essence",
    "farewell",
    "fate",
    "fates",
    "forgive",
    "frail",
    "grave",
    "graver",
    "heard",
    "hears",
    "heed",
    "hurry",
    "manners",
    "mute",
    "overheard",
    "poetry",
    "purse",
    "rightful",
    "said",
    "salvage",
    "sham",
    "shams",
    "spoil",
    "stories",
    "story",
    "stray",
    "strays",
    "tame",
    "tell",
    "tells",
    "told",
    "treacherous",
    "vain",
    "wear",
];

/// The words of a name: `has_told`, `HasTold` and `HAS_TOLD` have two.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let is_constant = !name.contains(|c: char| c.is_ascii_lowercase());
    for c in name.chars() {
        if c == '_' || (c.is_ascii_uppercase() && !is_constant) {
            words.push(String::new());
        }
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn items_are_named_by_the_terms_of_the_field() {
    const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "mod", "const", "static", "type"];
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in sources() {
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut names = vec![(0, file)];
        let mut is_test = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let mut words = line.split_whitespace().skip_while(|word| {
                word.starts_with("pub")
                    || matches!(*word, "async" | "unsafe" | "in" | "const" if line.contains(" fn "))
            });
            if words.next().is_some_and(|word| KINDS.contains(&word)) && !is_test {
                let name = words.next().unwrap_or_default();
                let name: String =
                    name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                names.push((number + 1, name));
            }
            // The name of a test is a sentence.
            is_test = line.ends_with("test]") || (is_test && line.starts_with('#'));
        }
        count += names.len();
        for (number, name) in names {
            let unusual = words_of(&name).into_iter().find(|word| UNUSUAL.contains(&word.as_str()));
            wrong.extend(unusual.map(|word| format!("src/{}:{number}: {name} ({word})", path.display())));
        }
    }
    assert!(count > 4000, "only {count} names are read");
    assert!(wrong.is_empty(), "names by no term of the field:\n{}", wrong.join("\n"));
}
