//! Everything that loads has an effect: a key is taken out of a protocol's files, and what is loaded is another protocol, or nothing is.
//! What is only there for people, or for other readers of AsyncAPI, is listed in `protocol::documentation`, and nowhere else.
//!
//! Keys are of one class if their places differ only in names and indices. Two of each class are taken out, by seed; with
//! `KEYS=all` in the environment, all keys (`.ci/keys`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use frameproof::protocol::documentation::{documentation, without_annotations};
use frameproof::protocol::extension::ReadingName;
use frameproof::protocol::{DialectChoice, LoadOptions, Protocol};
use frameproof::source::Document;
use serde_json::{Value, json};

/// The representatives are chosen by it.
const SEED: u64 = 15;
/// How many of them.
const FROM_EACH_CLASS: usize = 2;

/// Every protocol of the repository: those that ship, the examples, and what `init` writes.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let below = |folder: &str, inner: &str| {
        let entries = std::fs::read_dir(root.join(folder)).expect(folder);
        let found = entries.map(|entry| entry.expect("an entry").path().join(inner));
        found.filter(|folder| folder.join("asyncapi.yaml").is_file()).collect::<Vec<_>>()
    };
    let mut folders =
        [below("protocols", ""), below("examples", "protocol"), below("templates", "protocol")].concat();
    folders.extend(below("templates/like", "protocol"));
    folders.sort();
    assert!(folders.len() >= 12, "{folders:?}");
    folders
}

/// The places of all keys of all maps.
fn keys(value: &Value, at: &[String], found: &mut Vec<Vec<String>>) {
    let below = |token: &str| [at, &[token.to_owned()]].concat();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found.push(below(key));
                keys(value, &below(key), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                keys(item, &below(&index.to_string()), found);
            }
        }
        _ => {}
    }
}

fn pointer(at: &[String]) -> String {
    at.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect()
}

fn without(document: &Document, at: &[String]) -> Document {
    let mut value = (*document.value).clone();
    let (key, parent) = at.split_last().expect("a key");
    value.pointer_mut(&pointer(parent)).and_then(Value::as_object_mut).expect("a map").shift_remove(key);
    // Places are for messages, which nobody reads here.
    let mut document = document.clone();
    document.value = Arc::new(value);
    document
}

/// What a protocol is once it is loaded, apart from what is only there to be patched or read by others.
fn loaded(protocol: &Protocol) -> Value {
    let mut extension = serde_json::to_value(&protocol.extension).expect("JSON");
    // What a patch does shows in the protocol that it was applied to.
    for patched in ["/readings", "/dialects"] {
        let all = extension.pointer_mut(patched).and_then(Value::as_object_mut).into_iter().flatten();
        all.filter_map(|(_, one)| one.as_object_mut()).for_each(|one| drop(one.shift_remove("patch")));
    }
    let messages = protocol.messages.iter().map(|message| {
        json!({
            "name": message.name, "dir": format!("{:?}", message.dir), "absent": message.absent, "examples": message.examples,
            "decides": message.decides().collect::<Vec<_>>(),
            "schema": plain(&without_annotations(message.payload())),
        })
    });
    json!({
        "title": protocol.title, "version": protocol.version, "address": protocol.address, "extension": extension,
        "messages": messages.collect::<Vec<_>>(),
        "requirements": protocol.requirements.0,
    })
}

/// A schema without what its places decide: that has an effect only where it is collected.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != "x-frameproof");
            Value::Object(kept.map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

/// A reading, in the document's own spelling or in a dialect.
type Way = (ReadingName, DialectChoice);

struct Subject {
    name: String,
    api: Document,
    catalogue: Document,
    ways: Vec<(Way, Value)>,
}

impl Subject {
    fn new(folder: &Path) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let [api, catalogue] = ["asyncapi.yaml", "requirements.yaml"]
            .map(|file| Document::read(&folder.join(file)).unwrap_or_else(|error| panic!("{error}")));
        let ways = Self::ways(&api, &catalogue);
        Self { name: folder.strip_prefix(root).expect("below").display().to_string(), ways, api, catalogue }
    }

    /// What it is in each reading, and in each dialect.
    fn ways(api: &Document, catalogue: &Document) -> Vec<(Way, Value)> {
        let dialects = api.value.pointer("/x-frameproof/dialects").and_then(Value::as_object);
        let dialects = dialects.into_iter().flatten().map(|(name, _)| DialectChoice::Named(name.clone()));
        let own = [ReadingName::Default, ReadingName::Strict, ReadingName::Lenient];
        let own = own.map(|one| (one, DialectChoice::Own));
        let ways = own.into_iter().chain(dialects.map(|one| (ReadingName::Default, one)));
        ways.map(|way| (way.clone(), load(api, catalogue, &way).expect("it loads as it is"))).collect()
    }

    /// Whether anything is different without a key of one of the files.
    fn differs(&self, file: File, at: &[String]) -> bool {
        let one = without(self.document(file), at);
        let (api, catalogue) = match file {
            File::Api => (&one, &self.catalogue),
            File::Catalogue => (&self.api, &one),
        };
        self.ways.iter().any(|(way, whole)| load(api, catalogue, way).as_ref() != Some(whole))
    }

    fn document(&self, file: File) -> &Document {
        match file {
            File::Api => &self.api,
            File::Catalogue => &self.catalogue,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum File {
    Api,
    Catalogue,
}

/// What is loaded in one way. Nothing: the files are refused.
fn load(api: &Document, catalogue: &Document, (reading, dialect): &Way) -> Option<Value> {
    let options = LoadOptions { reading: *reading, dialect: dialect.clone(), ..LoadOptions::default() };
    Protocol::from_documents_with("it", api, catalogue, &options).ok().map(|protocol| loaded(&protocol))
}

/// The class of a key: its place without the names that are everybody's own.
fn class(at: &[String]) -> String {
    const NAMED: &[&str] = &[
        "channels",
        "operations",
        "messages",
        "schemas",
        "properties",
        "patternProperties",
        "readings",
        "invariants",
        "dialects",
        "capabilities",
        "tools",
        "parts",
        "openings",
        "requests",
        "client",
        "parameters",
        "times",
        "mutants",
        "save",
        "with",
        "const",
        "payload-of",
    ];
    let mut names = false;
    let tokens = at.iter().map(|token| {
        let free = names || token.bytes().all(|byte| byte.is_ascii_digit());
        names = !names && NAMED.contains(&token.as_str());
        if free { "*" } else { token }
    });
    let tokens: Vec<&str> = tokens.collect();
    // What counts is the kind of thing, and the word itself; not how deep it stands.
    let kept = match tokens[..] {
        ["components", "messages", _, "examples", ..] => 4,
        ["x-frameproof", "invariants", _, "monitor", ..] => 5,
        ["x-frameproof", ..] => 2,
        _ => tokens
            .iter()
            .position(|token| matches!(*token, "payload" | "schemas"))
            .map_or(tokens.len(), |at| at + 1),
    };
    let tokens = match tokens.len() {
        long if long > kept + 1 => {
            let last = tokens[long - 1];
            let is_example = tokens.get(3) == Some(&"examples");
            [&tokens[..kept], &["…", if is_example { "*" } else { last }]].concat()
        }
        _ => tokens,
    };
    tokens.join("/")
}

/// A number that depends on the seed and the text alone.
fn lot(text: &str) -> u64 {
    text.bytes().fold(SEED ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A key of one of the files of a protocol.
type Key<'s> = (&'s Subject, File, Vec<String>);

/// The keys without which nothing is different, as lines.
fn without_effect(keys: &[Key<'_>]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let dead = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                while let Some((subject, file, at)) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !subject.differs(*file, at) {
                        dead.lock().expect("no panic").push(format!(
                            "{}: {file:?} {}",
                            subject.name,
                            pointer(at)
                        ));
                    }
                }
            });
        }
    });
    let mut dead = dead.into_inner().expect("no panic");
    dead.sort();
    dead
}

impl Subject {
    /// Its keys, but for those that are documentation, and how many those are.
    fn keys(&self) -> (Vec<Key<'_>>, usize) {
        let (mut tested, mut documented) = (Vec::new(), 0);
        for file in [File::Api, File::Catalogue] {
            let mut found = Vec::new();
            keys(&self.document(file).value, &[], &mut found);
            let all = found.len();
            found
                .retain(|at| matches!(file, File::Catalogue) || documentation(&self.api.value, at).is_none());
            documented += all - found.len();
            tested.extend(found.into_iter().map(|at| (self, file, at)));
        }
        (tested, documented)
    }
}

#[test]
fn every_key_of_every_protocol_file_has_an_effect_or_is_documentation() {
    let all = std::env::var("KEYS").is_ok_and(|keys| keys == "all");
    let subjects: Vec<Subject> = folders().iter().map(|folder| Subject::new(folder)).collect();
    let mut classes = BTreeMap::<String, Vec<Key<'_>>>::new();
    let (mut count, mut documented) = (0, 0);
    for subject in &subjects {
        let (keys, documentation) = subject.keys();
        (count, documented) = (count + keys.len(), documented + documentation);
        keys.into_iter().for_each(|key| classes.entry(class(&key.2)).or_default().push(key));
    }
    let kinds = classes.len();
    let chosen: Vec<Key<'_>> = classes
        .into_values()
        .flat_map(|mut members| {
            members.sort_by_key(|(subject, _, at)| lot(&format!("{}{}", subject.name, pointer(at))));
            members.truncate(if all { usize::MAX } else { FROM_EACH_CLASS });
            members
        })
        .collect();
    let dead = without_effect(&chosen);
    println!(
        "{} of {count} keys of {kinds} classes taken out; {documented} more are documentation",
        chosen.len()
    );
    assert!(dead.is_empty(), "nothing is different without\n{}", dead.join("\n"));
}

#[test]
fn a_key_without_effect_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut subject = Subject::new(&root.join("templates/like/greeting/protocol"));
    let mut api = (*subject.api.value).clone();
    api["components"]["schemas"] = json!({ "Unused": { "type": "string", "description": "said to nobody" } });
    api["x-frameproof"]["errors"]["message"] = json!({ "type": "error", "dir": "recv" });
    api["x-frameproof"]["readings"] = json!({ "X": { "topic": "t", "strict": "s", "default": "d", "lenient": "l",
        "patch": { "strict": { "info": { "title": api["info"]["title"] } } } } });
    subject.api.value = Arc::new(api);
    subject.ways = Subject::ways(&subject.api, &subject.catalogue);
    let (keys, _) = subject.keys();
    let dead = without_effect(&keys);
    let name = &subject.name;
    let expected = [
        "/components/schemas",
        "/components/schemas/Unused",
        "/components/schemas/Unused/type",
        "/x-frameproof/errors/message/dir",
        "/x-frameproof/readings/X/patch",
        "/x-frameproof/readings/X/patch/strict",
        "/x-frameproof/readings/X/patch/strict/info",
        "/x-frameproof/readings/X/patch/strict/info/title",
    ];
    assert_eq!(dead, expected.map(|at| format!("{name}: Api {at}")));
}
