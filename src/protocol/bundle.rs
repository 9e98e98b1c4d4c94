//! A bundle of JSON Schemas that the server under test has generated: what its own frames must satisfy.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Protocol;
use super::bundle_rules::{BundleLevel, BundleRules, file_and_pointer, references, stays_within};
use super::extension::Extension;
use super::standalone::{branches, constants, resolved, standalone};
use crate::frame::Pointer;
use crate::input;
use crate::source::schema::{Schema, Violation};
use crate::source::{Diagnostic, Diagnostics, Document, Part};
use crate::text::listed;
use crate::trace::Direction;

/// Most bytes of all files of a bundle that are read.
const MAX_BYTES: usize = 256 << 20;
/// Most schemas of a bundle that are compiled.
const MAX_SCHEMAS: usize = 10_000;

/// Messages named of those that a bundle lacks.
const NAMED: usize = 12;

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
    /// Messages of the protocol that the bundle does not have, in both directions.
    lacking: Vec<String>,
    folder: PathBuf,
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
            let hint =
                "leave out --schemas, or add `schemas` to its `x-frameproof`; see docs/protocol-reference.md";
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
        let own: Vec<&str> = named(protocol, Direction::Recv).collect();
        let mut lacking: Vec<&str> =
            own.iter().filter(|name| !compiled.contains_key(**name)).copied().collect();
        if lacking.len() == own.len() && !own.is_empty() {
            let message = format!("{} has none of the messages of {}", folder.display(), protocol.name);
            let hint = format!("is it the bundle of another server? {}", rules.about);
            return Err(Diagnostic::new(message).hint(hint).into());
        }
        if !rules.requests.is_empty() {
            let sent = named(protocol, Direction::Send);
            lacking.extend(sent.filter(|name| !requests.contains_key(*name)));
        }
        let lacking = lacking.into_iter().map(str::to_owned).collect();
        Ok(Self {
            level: rules.level,
            received: compiled,
            answers,
            error,
            lacking,
            folder: folder.to_owned(),
        })
    }

    /// What a user should know before a run: which messages of the protocol a server of this version does not have.
    pub fn note(&self) -> Option<Diagnostic> {
        if self.lacking.is_empty() {
            return None;
        }
        let named = listed(self.lacking.iter().map(|name| format!("`{name}`")), NAMED);
        let folder = self.folder.display();
        let message = format!("a server of this version has no {named}: {folder} lacks them");
        let hint = "what tests them fails, unless an overlay says that their capability is not offered";
        Some(Diagnostic::note(message).hint(hint))
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
            let mut names_one = false;
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
                    names_one = true;
                    found.insert(value, Branch { file: file.to_owned(), pointer: pointer.to_owned() });
                }
            });
            if !names_one {
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

/// The names of a protocol's messages in a direction that are their discriminators.
fn named(protocol: &Protocol, dir: Direction) -> impl Iterator<Item = &str> {
    let messages = protocol.messages.iter().filter(move |message| message.dir == dir);
    messages.map(|message| message.name.as_str()).filter(move |name| protocol.says(name, dir))
}

/// Where in the schema of a message the schema of its discriminator is.
fn discriminated(discriminator: &Pointer) -> Pointer {
    let at = discriminator.as_str().replace('/', "/properties/");
    Pointer::new(&at).unwrap_or_else(|_| discriminator.clone())
}
