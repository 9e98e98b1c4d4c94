//! A bundle of JSON Schemas that the server under test has generated: what its own frames must satisfy.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::Protocol;
use super::bundle_rules::{BundleLevel, BundleRules, file_and_pointer, references, stays_within};
use super::extension::Extension;
use crate::frame::Pointer;
use crate::input;
use crate::source::schema::{Schema, Violation};
use crate::source::{Diagnostic, Diagnostics, Document, Part};
use crate::trace::Direction;

/// Most bytes of all files of a bundle that are read.
const MAX_BYTES: usize = 256 << 20;
/// Most schemas of a bundle that are compiled.
const MAX_SCHEMAS: usize = 10_000;

/// A bundle, compiled.
#[derive(Debug)]
pub struct Bundle {
    /// What comes of what it refuses.
    pub level: BundleLevel,
    /// By the discriminator's value.
    received: HashMap<String, BundleSchema>,
    /// By the discriminator's value of the request.
    answers: HashMap<String, BundleSchema>,
    error: Option<BundleSchema>,
    /// Messages of the protocol's that the bundle does not have.
    pub lacking: Vec<String>,
}

/// One schema of a bundle.
#[derive(Debug, Clone)]
pub struct BundleSchema {
    /// Its file, and its place there.
    pub place: String,
    schema: Schema,
}

/// What a bundle says of a frame.
#[derive(Debug)]
pub enum BundleVerdict {
    /// It has no schema for it and need not have one.
    Unjudged,
    /// It has none, and no such message is sent by a server of this version.
    Unknown,
    /// It is valid.
    Valid,
    /// It is not: by which schema, and why.
    Refused(String, Vec<Violation>),
}

impl Bundle {
    /// Reads a bundle, for a protocol that says how.
    ///
    /// # Errors
    /// The protocol does not say how; the folder is no such bundle; a schema does not compile.
    pub(super) fn load(folder: &Path, protocol: &Protocol) -> Result<Self, Diagnostics> {
        let extension = &protocol.extension;
        let Some(rules) = &extension.schemas else {
            let message = format!("{} does not say how a bundle of schemas is read", protocol.name);
            let hint = "leave out --schemas, or add `schemas` to its `x-frameproof`; see docs/protocols.md";
            return Err(Diagnostic::new(message).hint(hint).into());
        };
        let mut reader = Reader { folder, rules, extension, files: HashMap::new(), bytes: 0, compiled: 0 };
        reader.is_folder()?;
        let received = reader.unions(&rules.received)?;
        let requests = reader.unions(&rules.requests)?;
        let answers = reader.answers(&requests)?;
        let mut compiled = HashMap::new();
        for (name, branch) in &received {
            compiled.insert(name.clone(), reader.compile(branch)?);
        }
        let error = rules.error.as_ref().map(|name| reader.whole(name)).transpose()?;
        let own = protocol.messages.iter().filter(|message| message.dir == Direction::Recv);
        let own: Vec<&str> =
            own.map(|message| message.name.as_str()).filter(|name| protocol.says(name)).collect();
        let lacking: Vec<String> =
            own.iter().filter(|name| !compiled.contains_key(**name)).map(|name| (*name).to_owned()).collect();
        if lacking.len() == own.len() && !own.is_empty() {
            let message = format!("{} has none of the messages of {}", folder.display(), protocol.name);
            let hint = format!("is it the bundle of another server? {}", rules.about);
            return Err(Diagnostic::new(message).hint(hint).into());
        }
        Ok(Self { level: rules.level, received: compiled, answers, error, lacking })
    }

    /// Judges a message that the server sends, by its discriminator.
    pub fn message(&self, name: &str, body: &Value) -> BundleVerdict {
        self.received.get(name).map_or(BundleVerdict::Unknown, |schema| schema.judge(body))
    }

    /// Judges a reply to a request of this name.
    pub fn reply(&self, extension: &Extension, request: Option<&str>, body: &Value) -> BundleVerdict {
        let Some(replies) = &extension.replies else { return BundleVerdict::Unjudged };
        if replies.error.get(body).is_some() {
            return self.error.as_ref().map_or(BundleVerdict::Unjudged, |schema| schema.judge(body));
        }
        let schema = request.and_then(|request| self.answers.get(request));
        match (schema, replies.result.get(body)) {
            (Some(schema), Some(result)) => schema.judge(result),
            _ => BundleVerdict::Unjudged,
        }
    }
}

impl BundleSchema {
    fn judge(&self, value: &Value) -> BundleVerdict {
        let violations = self.schema.violations_within(value);
        if violations.is_empty() {
            return BundleVerdict::Valid;
        }
        BundleVerdict::Refused(self.place.clone(), violations)
    }
}

/// The schema of one message in a file.
struct Branch {
    file: String,
    pointer: String,
}

/// Reads the files of a bundle, each once.
struct Reader<'r> {
    folder: &'r Path,
    rules: &'r BundleRules,
    extension: &'r Extension,
    files: HashMap<String, Value>,
    bytes: usize,
    compiled: usize,
}

impl Reader<'_> {
    /// An error about a file, at a place in it where it can be shown.
    fn error(&self, file: &str, pointer: &str, message: String) -> Diagnostics {
        let path = self.folder.join(file);
        let hint = format!("a bundle for this protocol: {}", self.rules.about);
        let error = Diagnostic::new(message).hint(hint);
        match Document::read(&path) {
            Ok(document) if document.value.pointer(pointer).is_some() => {
                error.at(&document, pointer, Part::Value).into()
            }
            _ => error.into(),
        }
    }

    fn is_folder(&self) -> Result<(), Diagnostics> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let what = if self.folder.exists() { "is not a folder" } else { "is not there" };
        let message = format!("the bundle of schemas {} {what}", self.folder.display());
        Err(Diagnostic::new(message).hint(format!("a bundle for this protocol: {}", self.rules.about)).into())
    }

    fn read(&mut self, file: &str) -> Result<&Value, Diagnostics> {
        if !self.files.contains_key(file) {
            let path = self.folder.join(file);
            let bytes = input::read(&path, input::DOCUMENT).map_err(|error| {
                let message =
                    format!("{} is not a bundle for this protocol: {file}: {error}", self.folder.display());
                Diagnostic::new(message).hint(format!("a bundle for this protocol: {}", self.rules.about))
            })?;
            self.bytes += bytes.len();
            if self.bytes > MAX_BYTES {
                let message = format!("the bundle of schemas has more than {} MiB", MAX_BYTES >> 20);
                return Err(Diagnostic::new(message).into());
            }
            let value: Value = serde_json::from_slice(&bytes)
                .map_err(|error| self.error(file, "", format!("{} is not JSON: {error}", path.display())))?;
            if let Some(mistake) = Schema::mistakes(&value).first() {
                let message =
                    format!("{} is not a JSON Schema: {}: {}", path.display(), mistake.at, mistake.problem);
                return Err(self.error(file, &mistake.at, message));
            }
            self.files.insert(file.to_owned(), value);
        }
        self.files.get(file).ok_or_else(|| Diagnostic::new("the file is gone").into())
    }

    /// The schemas of messages in unions, by the discriminator's value.
    fn unions(&mut self, names: &[String]) -> Result<HashMap<String, Branch>, Diagnostics> {
        let at = discriminated(&self.extension.discriminator);
        let mut found = HashMap::new();
        for name in names {
            let (file, pointer) = file_and_pointer(name);
            let before = found.len();
            let root = self.read(file)?;
            let Some(node) = root.pointer(pointer) else {
                return Err(self.error(
                    file,
                    "",
                    format!("{name}: there is nothing at this place of the file"),
                ));
            };
            branches(root, node, pointer, 0, &mut |pointer, branch| {
                for value in constants(resolved(root, at.get(branch).unwrap_or(&Value::Null))) {
                    found.insert(value, Branch { file: file.to_owned(), pointer: pointer.to_owned() });
                }
            });
            if found.len() == before {
                let message =
                    format!("{name}: no schema there has a constant `{}`", self.extension.discriminator);
                return Err(self.error(file, pointer, message));
            }
        }
        Ok(found)
    }

    /// The schemas of answers, by the discriminator's value of the request.
    fn answers(
        &mut self,
        requests: &HashMap<String, Branch>,
    ) -> Result<HashMap<String, BundleSchema>, Diagnostics> {
        let Some(answers) = &self.rules.answers else { return Ok(HashMap::new()) };
        let mut found = HashMap::new();
        for (request, branch) in requests {
            let mut candidates: Vec<String> = answers.by_name.get(request).cloned().into_iter().collect();
            let root = self.read(&branch.file)?;
            let named = root.pointer(&branch.pointer).and_then(|schema| answers.named_at.get(schema));
            for definition in named.map(references).unwrap_or_default() {
                let Some((before, after)) = answers.named.split_once("{name}") else { continue };
                let name = definition.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                let Some(name) = name.filter(|name| !name.contains(['/', '\\', '#', '~'])) else { continue };
                candidates.extend(answers.schemas.iter().map(|schema| schema.replace("{name}", name)));
            }
            let folder = self.folder;
            let is_there =
                |name: &&String| stays_within(name) && folder.join(file_and_pointer(name).0).exists();
            if let Some(name) = candidates.iter().find(is_there) {
                found.insert(request.clone(), self.whole(name)?);
            }
        }
        Ok(found)
    }

    /// A schema by its name.
    fn whole(&mut self, name: &str) -> Result<BundleSchema, Diagnostics> {
        let (file, pointer) = file_and_pointer(name);
        self.compile(&Branch { file: file.to_owned(), pointer: pointer.to_owned() })
    }

    /// Compiles a schema of a file, with what it refers to there.
    fn compile(&mut self, branch: &Branch) -> Result<BundleSchema, Diagnostics> {
        self.compiled += 1;
        if self.compiled > MAX_SCHEMAS {
            return Err(Diagnostic::new(format!("the bundle has more than {MAX_SCHEMAS} schemas")).into());
        }
        let (file, pointer) = (&branch.file, &branch.pointer);
        let root = self.read(file)?;
        let alone = standalone(root, pointer);
        let place = if pointer.is_empty() { file.clone() } else { format!("{file}#{pointer}") };
        match Schema::new(&alone) {
            Ok(schema) => Ok(BundleSchema { place, schema }),
            Err(error) => Err(self.error(file, pointer, format!("{place} does not compile: {error}"))),
        }
    }
}

/// Where in the schema of a message the schema of its discriminator is.
fn discriminated(discriminator: &Pointer) -> Pointer {
    let at = discriminator.as_str().replace('/', "/properties/");
    Pointer::new(&at).unwrap_or_else(|_| discriminator.clone())
}

/// A schema, or the one in the same file that it refers to.
fn resolved<'r>(root: &'r Value, schema: &'r Value) -> &'r Value {
    let to = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
    to.and_then(|to| root.pointer(to)).unwrap_or(schema)
}

/// The texts that a schema takes.
fn constants(schema: &Value) -> Vec<String> {
    let one = schema.get("const").into_iter();
    let many = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    one.chain(many).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Deepest nesting of unions.
const DEEPEST: usize = 16;

/// Visits the schemas of a union, and of the unions in it, each with its pointer.
fn branches<'r>(
    root: &'r Value,
    node: &'r Value,
    pointer: &str,
    depth: usize,
    visit: &mut impl FnMut(&str, &'r Value),
) {
    if depth > DEEPEST {
        return;
    }
    if let Some(to) = node.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#')) {
        if let Some(other) = root.pointer(to) {
            branches(root, other, to, depth + 1, visit);
        }
        return;
    }
    let mut is_union = false;
    for key in ["oneOf", "anyOf"] {
        for (index, one) in node.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            is_union = true;
            branches(root, one, &format!("{pointer}/{key}/{index}"), depth + 1, visit);
        }
    }
    if !is_union {
        visit(pointer, node);
    }
}

/// Where a file keeps what its schemas refer to.
const DEFINITIONS: [&str; 2] = ["definitions", "$defs"];

/// The schema at a pointer, standing alone: with the definitions that it needs.
fn standalone(root: &Value, pointer: &str) -> Value {
    let node = root.pointer(pointer).cloned().unwrap_or(Value::Bool(true));
    let mut needed = BTreeSet::new();
    collect(root, &node, &mut needed);
    let mut alone = Map::new();
    if let Some(dialect) = root.get("$schema") {
        alone.insert("$schema".to_owned(), dialect.clone());
    }
    for to in &needed {
        let mut parts = to.splitn(3, '/').skip(1);
        let (Some(kind), Some(name)) = (parts.next(), parts.next()) else { continue };
        let own = alone.entry(kind).or_insert_with(|| json!({}));
        if let (Some(own), Some(definition)) = (own.as_object_mut(), root.pointer(to)) {
            own.insert(name.replace("~1", "/").replace("~0", "~"), definition.clone());
        }
    }
    let mut node = node;
    if let (true, Some(map)) = (pointer.is_empty(), node.as_object_mut()) {
        DEFINITIONS.iter().for_each(|key| drop(map.remove(*key)));
    }
    alone.insert("allOf".to_owned(), json!([node]));
    Value::Object(alone)
}

/// Collects the pointers of definitions that a schema refers to, directly and by others.
fn collect(root: &Value, node: &Value, needed: &mut BTreeSet<String>) {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        match node {
            Value::Object(map) => {
                if let Some(to) = map.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'))
                {
                    let mut parts = to.split('/').skip(1);
                    let kind = parts.next().filter(|kind| DEFINITIONS.contains(kind));
                    if let (Some(kind), Some(name)) = (kind, parts.next()) {
                        let definition = format!("/{kind}/{name}");
                        let target = root.pointer(&definition);
                        if needed.insert(definition) {
                            waiting.extend(target);
                        }
                    }
                }
                // The whole file's definitions are looked at only where they are referred to.
                let is_store = |key: &str| DEFINITIONS.contains(&key);
                waiting.extend(map.iter().filter(|(key, _)| !is_store(key)).map(|(_, value)| value));
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_stands_alone_with_what_it_needs() {
        let root = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {
                "A": { "properties": { "b": { "$ref": "#/definitions/B" } } },
                "B": { "type": "integer" },
                "C": { "type": "string" },
            },
            "oneOf": [{ "properties": { "method": { "enum": ["a"] }, "params": { "$ref": "#/definitions/A" } } }],
        });
        let alone = standalone(&root, "/oneOf/0");
        let names: Vec<&String> = alone["definitions"].as_object().expect("definitions").keys().collect();
        assert_eq!(names, ["A", "B"]);
        let schema = Schema::new(&alone).expect("it compiles");
        assert!(schema.is_valid(&json!({ "method": "a", "params": { "b": 1 } })));
        assert!(!schema.is_valid(&json!({ "method": "a", "params": { "b": "x" } })));
        let mut seen = Vec::new();
        branches(&root, &root, "", 0, &mut |pointer, branch| {
            seen.push((pointer.to_owned(), constants(&branch["properties"]["method"])));
        });
        assert_eq!(seen, [("/oneOf/0".to_owned(), vec!["a".to_owned()])]);
    }

    #[test]
    fn names_stay_within_the_bundle() {
        for (name, expected) in [
            ("v2/A.json", true),
            ("A.json#/definitions/B", true),
            ("../A.json", false),
            ("/etc/passwd", false),
            ("a/./b", false),
            ("a\\b", false),
            ("A.json#B", false),
        ] {
            assert_eq!(stays_within(name), expected, "{name}");
        }
    }
}
