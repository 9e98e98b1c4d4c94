//! What loaders say of wrong files is whole: thousands of mistakes are made in protocols, catalogues and scenarios, and each text that
//! comes of it is looked through for holes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{frameproof, text};
use frameproof::protocol::{Protocol, ReadingName};
use frameproof::results::baseline::Baseline;
use frameproof::scenario;
use frameproof::source::{Diagnostic, Diagnostics, Document, Part};
use serde_json::{Value, json};

/// Random numbers, the same in every run (the constants of Knuth's MMIX).
struct Lottery(u64);

impl Lottery {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Every place of a document, as JSON Pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        all.push(at.clone());
        places(value, &at, all);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| below(&index.to_string(), value))
        }
        _ => {}
    }
}

/// Makes a mistake at a place: a value of another type, another word, a key more, or a key less.
fn spoil(document: &mut Value, at: &str, lottery: &mut Lottery) {
    let Some(value) = document.pointer_mut(at) else { return };
    *value = match lottery.below(10) {
        0 => json!(7),
        1 => json!(-1.5),
        2 => json!([]),
        3 => json!(["nobody", 3]),
        4 => json!({}),
        5 => json!({ "nobody": "knows" }),
        6 => json!(true),
        7 => Value::Null,
        8 => return forget(document, at),
        _ => match &*value {
            Value::String(text) => json!(format!("{text}-nobody")),
            Value::Object(map) => {
                let mut map = map.clone();
                map.insert("nobody".to_owned(), json!(1));
                Value::Object(map)
            }
            _ => json!("nobody {{nobody}}"),
        },
    };
}

/// Takes the entry at a place away.
fn forget(document: &mut Value, at: &str) {
    let Some((above, last)) = at.rsplit_once('/') else { return };
    let name = last.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(above) {
        Some(Value::Object(map)) => drop(map.remove(&name)),
        Some(Value::Array(items)) => drop(name.parse().ok().map(|index: usize| items.remove(index))),
        _ => {}
    }
}

/// What is wrong with a text that a person is to read, if anything is.
fn hole(text: &str) -> Option<&'static str> {
    let ends = [" of type", " of", " or", " and", " be", " is", " are", " by", " at", ":", ",", " the", " a"];
    let bare = text.trim_end();
    if text.is_empty() {
        Some("nothing is said")
    } else if bare != text || text.trim_start() != text {
        Some("blanks at an end")
    } else if ends.iter().any(|end| bare.ends_with(end)) && !bare.ends_with("which message it is") {
        Some("it breaks off")
    } else if text.contains("\\n") || text.contains("\\t") || text.contains("\\\"") {
        Some("escapes")
    } else if text.contains('\n') {
        Some("several lines")
    } else if text.contains("  ") || text.contains(" ,") || text.contains("of type ,") || text.contains(": ,")
    {
        Some("something is missing within")
    } else if text.contains("Some(")
        || text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "None")
        || text.contains("String(")
        || text.contains("Object {")
        || text.contains("expected struct")
        || text.contains("expected a sequence")
    {
        Some("words of Rust")
    } else if text.contains("``") {
        Some("an empty name")
    } else {
        None
    }
}

/// Looks through all that is said, and keeps the messages.
fn look(errors: &Diagnostics, seen: &mut BTreeSet<String>, holes: &mut BTreeSet<String>) {
    let shown = errors.to_string();
    for one in &errors.0 {
        let texts = [Some(&one.message), one.label.as_ref(), one.hint.as_ref()];
        for text in texts.into_iter().flatten() {
            if let Some(why) = hole(text) {
                holes.insert(format!("{why}: {text:?}"));
            }
            // What is rendered has it all.
            let first = text.split('\n').next().unwrap_or_default();
            assert!(shown.contains(first), "{text:?} is not shown\n{shown}");
        }
        if one.place.is_none() {
            holes.insert(format!("no place: {:?}", one.message));
        }
        // Values differ: the kind of message counts.
        let kind: String = one.message.split('`').step_by(2).collect();
        seen.insert(kind.chars().filter(|c| !c.is_ascii_digit()).collect());
    }
}

/// The document as text: JSON is YAML.
fn document(name: &str, value: &Value) -> Document {
    let text = serde_json::to_string_pretty(value).expect("JSON");
    Document::parse(name, &text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a file");
    let document = Document::parse("f", &text).unwrap_or_else(|errors| panic!("{errors}"));
    Value::clone(&document.value)
}

#[test]
fn what_is_said_of_wrong_files_has_no_holes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut seen, mut holes) = (BTreeSet::new(), BTreeSet::new());
    let mut lottery = Lottery(1);
    for folder in [
        "src/fuzz_targets/all_rules_protocol",
        "examples/graphql-transport-ws/protocol",
        "examples/mcp/protocol",
    ] {
        let [api, catalogue] =
            ["asyncapi.yaml", "requirements.yaml"].map(|file| read(&root.join(folder).join(file)));
        for (is_api, rounds) in [(true, 60), (false, 10)] {
            let original = if is_api { &api } else { &catalogue };
            let mut all = Vec::new();
            places(original, "", &mut all);
            let within: Vec<&String> =
                all.iter().filter(|at| !is_api || at.starts_with("/x-frameproof/")).collect();
            for round in 0..rounds {
                let mut spoilt = original.clone();
                // Mistakes in the form hide mistakes in what is meant: one alone, too.
                for _ in 0..[1, 2, 12][round % 3] {
                    let places = if lottery.below(5) == 0 { all.iter().collect() } else { within.clone() };
                    spoil(&mut spoilt, places[lottery.below(places.len())], &mut lottery);
                }
                let (api, catalogue) = if is_api { (&spoilt, &catalogue) } else { (&api, &spoilt) };
                let (api, catalogue) =
                    (document("asyncapi.yaml", api), document("requirements.yaml", catalogue));
                if let Err(errors) =
                    Protocol::from_documents("lab", &api, &catalogue, ReadingName::Default, &[])
                {
                    look(&errors, &mut seen, &mut holes);
                }
            }
        }
    }
    let protocol = Protocol::embedded("minicodex", &Default::default()).expect("it ships");
    for family in ["approval", "transport", "resume", "snapshot"] {
        let original = read(&root.join(format!("scenarios/minicodex/{family}.yaml")));
        let mut all = Vec::new();
        places(&original, "", &mut all);
        for round in 0..40 {
            let mut spoilt = original.clone();
            for _ in 0..[1, 3, 25][round % 3] {
                spoil(&mut spoilt, &all[lottery.below(all.len())], &mut lottery);
            }
            if let Err(errors) = scenario::from_documents([document("s.yaml", &spoilt)], &protocol) {
                look(&errors, &mut seen, &mut holes);
            }
        }
    }
    assert!(seen.len() > 60, "few kinds of mistakes were made: {seen:#?}");
    assert!(holes.is_empty(), "{holes:#?}");
}

#[test]
fn what_is_said_of_wrong_overlays_and_baselines_has_no_holes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut seen, mut holes) = (BTreeSet::new(), BTreeSet::new());
    let mut lottery = Lottery(2);
    let folder = root.join("examples/graphql-transport-ws/protocol");
    let [api, catalogue] = ["asyncapi.yaml", "requirements.yaml"].map(|file| read(&folder.join(file)));
    let [whole, demands] =
        [("asyncapi.yaml", &api), ("requirements.yaml", &catalogue)].map(|(name, of)| document(name, of));
    let overlay = json!({ "x-frameproof": api["x-frameproof"], "components": { "messages": api["components"]["messages"] } });
    let baseline = json!({ "known": [
        { "case": "abort/*", "match": "MC-ABT-*", "message": "m", "count": 2, "reason": "r", "expires": "2099-01-31" },
        { "match": "MC-ERR-1", "sometimes": true, "reason": "r" },
    ] });
    let load = |spoilt: &Value| {
        let overlay = document("overlay.yaml", spoilt);
        Protocol::from_documents("lab", &whole, &demands, ReadingName::Default, &[overlay]).map(drop)
    };
    let check =
        |spoilt: &Value| Baseline::from_document(&document("known.yaml", spoilt), "2026-01-01").map(drop);
    type Load<'l> = &'l dyn Fn(&Value) -> Result<(), Diagnostics>;
    for (original, rounds, load) in [(&overlay, 90, &load as Load<'_>), (&baseline, 90, &check)] {
        assert!(load(original).is_ok(), "{original}");
        let mut all = Vec::new();
        places(original, "", &mut all);
        let mut refused = 0;
        for round in 0..rounds {
            let mut spoilt = original.clone();
            for _ in 0..[1, 2, 9][round % 3] {
                spoil(&mut spoilt, &all[lottery.below(all.len())], &mut lottery);
            }
            if let Err(errors) = load(&spoilt) {
                refused += 1;
                look(&errors, &mut seen, &mut holes);
            }
        }
        assert!(refused > rounds / 3, "{refused} of {rounds}");
    }
    assert!(seen.len() > 30, "few kinds of mistakes were made: {seen:#?}");
    assert!(holes.is_empty(), "{holes:#?}");
}

const CONFIGURATION: &str = "
protocol = 'minicodex'
scenario = []
reading = 'strict'
header = ['X-Key: open']
jobs = 2
timeout-scale = 1.5
quiet-period = '500ms'
retries = 1
preambles = 'few'
seed = 3
strict = true
junit = 'junit.xml'

[target.mine]
protocol = 'minicodex'
url = 'ws://127.0.0.1:{{port}}/ws'
command = ['sleep', '9']
ports = { port = 0 }
env = { MARK = 'x' }
ready = { log = 'listening' }
start-timeout = '5s'
stop-timeout = '2s'
header = ['X-Other: {{port}}']
bearer = '{{token}}'
sessions = 3
fresh = 'family'
setup = [{ method = 'POST', url = 'http://127.0.0.1:{{port}}/login', body = { user = 'u' }, status = 201, save = { token = '/token' }, per = 'launch' }]
tools = { guarded = { name = 'write', args = { key = 'k' } } }
without-tools = ['slow']
mutants = [{ name = 'm', env = { BROKEN = '1' }, breaks = ['MC-ERR-1'] }]
";

/// A value as TOML has it: null is left out.
fn toml_of(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Object(map) => toml::Value::Table(
            map.iter().filter_map(|(key, value)| Some((key.clone(), toml_of(value)?))).collect(),
        ),
        Value::Array(items) => toml::Value::Array(items.iter().filter_map(toml_of).collect()),
        other => toml::Value::try_from(other).expect("a value"),
    })
}

/// The configuration belongs to the command line: what the program says is looked through, in pieces.
#[test]
fn what_is_said_of_a_wrong_configuration_has_no_holes() {
    let folder = tempfile::tempdir().expect("a folder");
    let parsed: toml::Value = toml::from_str(CONFIGURATION).expect("TOML");
    let original = serde_json::to_value(&parsed).expect("JSON");
    let mut all = Vec::new();
    places(&original, "", &mut all);
    let (mut lottery, mut holes, mut kinds) = (Lottery(3), BTreeSet::new(), BTreeSet::new());
    for round in 0..60 {
        let mut spoilt = original.clone();
        // The first is the configuration as it is.
        for _ in 0..if round == 0 { 0 } else { [1, 1, 6][round % 3] } {
            spoil(&mut spoilt, &all[lottery.below(all.len())], &mut lottery);
        }
        let Some(config) = toml_of(&spoilt) else { continue };
        fs::write(folder.path().join("frameproof.toml"), toml::to_string(&config).expect("TOML"))
            .expect("written");
        let output = frameproof(folder.path(), &["run", "--target", "mine", "--list"]);
        let shown = text(&output.stderr);
        if output.status.success() {
            continue;
        }
        assert!(round > 0, "{shown}");
        assert_eq!(output.status.code(), Some(2), "{shown}");
        let blocks: Vec<&str> = shown.split("\n\n").filter(|block| block.starts_with("error: ")).collect();
        assert!(!blocks.is_empty(), "{shown}");
        for block in blocks {
            let message = block.lines().next().unwrap_or_default().trim_start_matches("error: ");
            kinds.insert(message.split('`').step_by(2).collect::<String>());
            let place = block.lines().any(|line| line.trim_start().starts_with("--> "));
            let hints = block.lines().filter_map(|line| line.split_once("= help: ")).map(|(_, hint)| hint);
            for said in hints.chain([message]) {
                if let Some(why) = hole(said) {
                    holes.insert(format!("{why}: {said:?}"));
                }
            }
            if !place {
                holes.insert(format!("no place: {block:?}"));
            }
        }
    }
    assert!(kinds.len() > 12, "few kinds of mistakes were made: {kinds:#?}");
    assert!(holes.is_empty(), "{holes:#?}");
}

/// The string literals of a Rust source, each with the code before it on its way from the last `;` or brace.
fn literals(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut code = String::new();
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            rest = &rest[rest.find("\"'").map_or(rest.len(), |at| at + 2)..];
        } else if rest.starts_with("r#\"") {
            let end = rest.find("\"#").map_or(rest.len(), |end| end + 2);
            found.push((code.clone(), rest[3..end.max(5) - 2].to_owned()));
            rest = &rest[end..];
        } else if next == '"' {
            let mut text = String::new();
            let mut chars = rest[1..].char_indices();
            let mut end = rest.len();
            while let Some((at, c)) = chars.next() {
                match c {
                    '"' => {
                        end = at + 2;
                        break;
                    }
                    '\\' => match chars.next() {
                        Some((_, 'n')) => text.push('\n'),
                        // A line that goes on: the blanks at the beginning of the next one are none of the text.
                        Some((_, '\n')) => {
                            let blanks = chars.as_str().len() - chars.as_str().trim_start().len();
                            for _ in 0..blanks {
                                chars.next();
                            }
                        }
                        Some((_, other)) => text.push(other),
                        None => {}
                    },
                    other => text.push(other),
                }
            }
            found.push((code.clone(), text));
            rest = &rest[end..];
        } else {
            if matches!(next, ';' | '}') {
                code.clear();
            }
            code.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    found
}

/// A format string with a word for each argument.
fn filled(format: &str) -> String {
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        text += &rest[..at];
        let doubled = rest[at..].starts_with("{{") || rest[at..].starts_with("}}");
        if doubled {
            text += &rest[at..=at];
            rest = &rest[at + 2..];
        } else {
            text += "word";
            rest = rest[at..].find('}').map_or("", |end| &rest[at + end + 1..]);
        }
    }
    text + rest
}

/// Each diagnostic that the sources write is rendered once, with words for what it is about; the mistakes above show that those words come.
#[test]
fn every_diagnostic_of_the_sources_is_rendered_whole() {
    const MAKES: [&str; 7] = [
        "Diagnostic::new(",
        "Diagnostic::note(",
        ".hint(",
        ".label(",
        "let message =",
        "let hint =",
        "let mistake =",
    ];
    let place = Document::parse("d.yaml", "key: value\n").expect("YAML");
    let (mut open, mut count) = (vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")], 0);
    let mut holes = Vec::new();
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).unwrap_or_default();
            let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            for (code, format) in literals(source) {
                let code = code.trim_end();
                let code = code.strip_suffix("format!(").unwrap_or(code).trim_end();
                if !MAKES.iter().any(|made| code.ends_with(made)) {
                    continue;
                }
                let text = if code.ends_with('=') || format.contains('{') { filled(&format) } else { format };
                count += 1;
                let shown = Diagnostics::from(Diagnostic::new(text.as_str()).at(&place, "/key", Part::Value))
                    .to_string();
                let is_shown = shown.contains(&text) && shown.contains("d.yaml:1:6");
                if let Some(why) = hole(&text).or((!is_shown).then_some("it is not shown")) {
                    holes.push(format!("{}: {why}: {text:?}", path.display()));
                }
            }
        }
    }
    assert!(count > 300, "{count}");
    assert!(holes.is_empty(), "{holes:#?}");
}
