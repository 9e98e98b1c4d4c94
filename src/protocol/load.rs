//! From files to a compiled protocol.

use std::path::Path as FilePath;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::annotation::Annotations;
use super::asyncapi::check_asyncapi;
use super::extension::{Extension, MessageExtension, ReadingName};
use super::names::by_own_names;
use super::path::Path;
use super::references::{check_references, components_of, resolve};
use super::requirement::{Requirements, RequirementsFile};
use super::unknown_places::unknown_places;
use super::{
    Bundle, ClientRule, Compiled, DialectChoice, Dialects, LoadOptions, Message, PartOf, Protocol,
    RepeatRule, Roles, ServerRequest, overlay,
};
use crate::shortage;
use crate::source::schema::Schema;
use crate::source::{Diagnostic, Diagnostics, Document, Part, decode, decode_value, escape_token};
use crate::trace::Direction;

/// The two files of a protocol's folder.
pub(super) const FILES: [&str; 2] = ["asyncapi.yaml", "requirements.yaml"];

impl Protocol {
    /// Loads a protocol's folder: `asyncapi.yaml` and `requirements.yaml`.
    ///
    /// # Errors
    /// Everything that is wrong with the files, each with its place.
    pub fn load(folder: &FilePath, options: &LoadOptions) -> Result<Arc<Self>, Diagnostics> {
        let name = folder.file_name().map_or_else(|| "protocol".into(), |name| name.to_string_lossy());
        if !folder.is_dir() {
            let message = format!("{} is not a folder", folder.display());
            let hint =
                "a protocol is a folder with asyncapi.yaml and requirements.yaml; see docs/protocols.md";
            return Err(Diagnostic::new(message).hint(hint).into());
        }
        let mut errors = Diagnostics::default();
        let files = FILES.map(|file| errors.take(Document::read(&folder.join(file))));
        let [Some(api), Some(catalogue)] = files else { return Err(errors) };
        compile(&name, &api, &catalogue, options)
    }

    /// Compiles a protocol from the texts of its two files and of overlays, which are applied in order.
    ///
    /// # Errors
    /// As [`Protocol::load`].
    pub fn from_documents(
        name: &str,
        api: &Document,
        catalogue: &Document,
        reading: ReadingName,
        overlays: &[Document],
    ) -> Result<Arc<Self>, Diagnostics> {
        compile_all(name, api, catalogue, reading, &DialectChoice::Auto, overlays)
    }

    /// Compiles a protocol from the texts of its two files; the options may name further files.
    ///
    /// # Errors
    /// As [`Protocol::load`].
    pub fn from_documents_with(
        name: &str,
        api: &Document,
        catalogue: &Document,
        options: &LoadOptions,
    ) -> Result<Arc<Self>, Diagnostics> {
        compile(name, api, catalogue, options)
    }
}

/// Compiles a protocol from its two documents.
pub(super) fn compile(
    name: &str,
    api: &Document,
    catalogue: &Document,
    options: &LoadOptions,
) -> Result<Arc<Protocol>, Diagnostics> {
    let mut errors = Diagnostics::default();
    let overlays = options.overlays.iter().filter_map(|path| errors.take(Document::read(path))).collect();
    let overlays: Vec<Document> = errors.or(overlays)?;
    let mut protocol = compile_all(name, api, catalogue, options.reading, &options.dialect, &overlays)?;
    if let Some(folder) = &options.schemas {
        let bundle = Arc::new(Bundle::load(folder, &protocol)?);
        // Nobody else has it yet.
        Arc::get_mut(&mut protocol).into_iter().for_each(|protocol| protocol.set_bundle(&bundle));
    }
    Ok(protocol)
}

/// Compiles the protocol in the dialect that is chosen; where none is, in its own spelling, with the others at hand.
fn compile_all(
    name: &str,
    api: &Document,
    catalogue: &Document,
    reading: ReadingName,
    choice: &DialectChoice,
    overlays: &[Document],
) -> Result<Arc<Protocol>, Diagnostics> {
    let requirements = load_requirements(catalogue)?;
    let mut errors = Diagnostics::default();
    let api = errors.take(by_own_names(api));
    let overlays: Vec<Document> =
        overlays.iter().filter_map(|overlay| errors.take(by_own_names(overlay))).collect();
    let Some(api) = &api.filter(|_| errors.0.is_empty()) else { return Err(errors) };
    let overlays = overlays.as_slice();
    let compiled = |dialect: Option<&str>| compile_with(name, api, &requirements, reading, dialect, overlays);
    let mut own = compiled(None)?;
    verify_readings(&own, catalogue)?;
    match choice {
        DialectChoice::Own => {}
        DialectChoice::Named(chosen) => {
            let known: Vec<&str> = own.extension.dialects.keys().map(String::as_str).collect();
            if known.contains(&chosen.as_str()) {
                return compiled(Some(chosen)).map(Arc::new);
            }
            let error = Diagnostic::new(format!("{name} has no dialect `{chosen}`"));
            return Err(error.suggest(chosen, known.into_iter().chain(["auto", "own"])).into());
        }
        DialectChoice::Auto => {
            let mut alternatives = Vec::new();
            for (dialect, known) in &own.extension.dialects {
                // Compiled in any case, so that a mistake in it is told.
                let protocol = compiled(Some(dialect))?;
                let strict = |id: &String| own.readings.get(id) == Some(&ReadingName::Strict);
                if !known.answers.iter().any(strict) {
                    alternatives.push((dialect.clone(), Arc::new(protocol)));
                }
            }
            own.dialects.alternatives = alternatives;
        }
    }
    Ok(Arc::new(own))
}

fn compile_with(
    name: &str,
    api: &Document,
    requirements: &Requirements,
    reading: ReadingName,
    dialect: Option<&str>,
    overlays: &[Document],
) -> Result<Protocol, Diagnostics> {
    shortage::look_at_once();
    let mut document = (*api.value).clone();
    if !document["asyncapi"].as_str().is_some_and(|version| version.starts_with("3.")) {
        return Err(Diagnostic::new("not an AsyncAPI 3 document")
            .at(api, "/asyncapi", Part::Value)
            .hint("begin the file with `asyncapi: 3.0.0`")
            .into());
    }
    let mut readings = apply_readings(&mut document, api, reading)?;
    if let Some(dialect) = dialect {
        apply_dialect(&mut document, api, dialect)?;
    }
    for overlay in overlays {
        overlay::apply(overlay, &mut document)?;
    }
    let api = &api.patched(overlays);
    // Of what ships, nothing else reads it: no mistake in it has to be placed.
    let extension = match document.get_mut("x-frameproof") {
        Some(extension) if api.is_shipped() => Some(extension.take()),
        extension => extension.cloned(),
    };
    shortage::look_at_once();
    let mut errors = Diagnostics::default();
    if !api.is_shipped() {
        check_asyncapi(&document, api, &mut errors);
    }
    let Some(extension) = extension else {
        // A misspelt key says so itself.
        if errors.0.is_empty() {
            let missing = Diagnostic::new("the document has no `x-frameproof`").at(api, "", Part::Value);
            errors.push(missing.hint("see docs/protocols.md, section 4"));
        }
        return Err(errors);
    };
    let Some(extension) = errors.take::<Extension>(decode_value(extension, api, "/x-frameproof")) else {
        return Err(errors);
    };
    if !api.is_shipped() {
        check_references(&document, &document, api, Path::Root, &mut errors);
    }
    if !errors.0.is_empty() {
        return Err(errors);
    }
    let messages = load_messages(&document, api, &extension, &mut errors);
    if !errors.0.is_empty() {
        // What uses the messages would only complain that they are not there.
        schema_mistakes(&document, api)?;
    }
    let text =
        |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let address = document["channels"].as_object().and_then(|channels| channels.values().next());
    let address = address.and_then(|channel| channel["address"].as_str()).unwrap_or("/").to_owned();
    let mut by_name: [rustc_hash::FxHashMap<String, usize>; 2] = Default::default();
    for (index, message) in messages.iter().enumerate() {
        by_name[message.dir as usize].insert(message.name.clone(), index);
    }
    let mut parts = Vec::new();
    for (name, part) in &extension.parts {
        let at = format!("/x-frameproof/parts/{}", escape_token(name));
        let known = by_name[Direction::Recv as usize].keys().map(String::as_str);
        if by_name[Direction::Recv as usize].contains_key(name) {
            let message = format!("`{name}` is the name of a message, and cannot be that of a part, too");
            errors.push(Diagnostic::new(message).at(api, &at, Part::Key));
        }
        let mut of = Vec::new();
        for message in part.of.as_slice() {
            match by_name[Direction::Recv as usize].get(message) {
                Some(index) => of.push(*index),
                None => errors.push(
                    Diagnostic::new(format!("the server sends no message `{message}`"))
                        .at(api, &format!("{at}/of"), Part::Value)
                        .suggest(message, known.clone()),
                ),
            }
        }
        parts.push(PartOf { of, at: part.at.clone(), keep: part.keep.clone() });
    }
    let dialect = dialect.and_then(|name| extension.dialects.get_key_value(name));
    let dialect = dialect.map(|(name, dialect)| (name.clone(), dialect.clone()));
    for answered in dialect.iter().flat_map(|(_, dialect)| &dialect.answers) {
        readings.insert(answered.clone(), ReadingName::Lenient);
    }
    let written = ["/x-frameproof/invariants", "/x-frameproof/client"];
    let written = written.iter().filter_map(|at| api.value.pointer(at).and_then(Value::as_object));
    let is_there =
        |name: &String| extension.invariants.contains_key(name) || extension.client.contains_key(name);
    let left_out = written.flat_map(Map::keys).filter(|name| !is_there(name)).cloned().collect();
    let mut protocol = Protocol {
        dialects: Dialects { spoken: dialect, alternatives: Vec::new() },
        compiled: Compiled { parts, by_name, left_out, ..Compiled::default() },
        name: name.to_owned(),
        title: text("/info/title"),
        version: text("/info/version"),
        address,
        extension,
        messages,
        requirements: requirements.clone(),
        reading,
        readings,
        is_shipped: api.is_shipped(),
    };
    protocol.compiled.roles = Roles::of(&protocol);
    protocol.compiled.requests = ServerRequest::all(&protocol);
    protocol.compiled.client = ClientRule::all(&protocol);
    protocol.compiled.repeats = RepeatRule::all(&protocol);
    if !protocol.is_shipped {
        super::verify::verify(&protocol, api, &document, &mut errors);
        protocol.compiled.unknown_places = unknown_places(&protocol, api, &document);
    }
    errors.or(protocol)
}

fn load_requirements(catalogue: &Document) -> Result<Requirements, Diagnostics> {
    let file: RequirementsFile = decode(catalogue, "")?;
    let mut errors = Diagnostics::default();
    let mut by_id = IndexMap::new();
    for (index, requirement) in file.requirements.into_iter().enumerate() {
        let id = requirement.id.clone();
        if by_id.insert(id.clone(), requirement).is_some() {
            errors.push(
                Diagnostic::new(format!("requirement `{id}` occurs twice"))
                    .at(catalogue, &format!("/requirements/{index}/id"), Part::Value)
                    .label("second one"),
            );
        }
    }
    errors.or(Requirements(by_id))
}

/// The readings that requirements name must be declared.
fn verify_readings(protocol: &Protocol, catalogue: &Document) -> Result<(), Diagnostics> {
    let declared = &protocol.extension.readings;
    let mut errors = Diagnostics::default();
    for (index, requirement) in protocol.requirements.0.values().enumerate() {
        let Some(reading) = requirement.reading.as_ref().filter(|reading| !declared.contains_key(*reading))
        else {
            continue;
        };
        let error = Diagnostic::new(format!("reading `{reading}` is not declared"));
        let error = match declared.is_empty() {
            true => error.hint("declare it in `x-frameproof.readings` of asyncapi.yaml"),
            false => error.suggest(reading, declared.keys().map(String::as_str)),
        };
        errors.push(error.at(catalogue, &format!("/requirements/{index}/reading"), Part::Value));
    }
    errors.or(())
}

/// Applies a dialect's patch.
fn apply_dialect(document: &mut Value, api: &Document, name: &str) -> Result<(), Diagnostics> {
    let at = format!("/x-frameproof/dialects/{}/patch", escape_token(name));
    match document.pointer(&at).cloned() {
        None => {}
        Some(patch) if patch.is_object() => json_patch::merge(document, &patch),
        Some(_) => return Err(Diagnostic::new("a patch is a map").at(api, &at, Part::Value).into()),
    }
    Ok(())
}

/// Applies the patches of the chosen reading, and says which answer is taken for each ambiguity.
fn apply_readings(
    document: &mut Value,
    api: &Document,
    chosen: ReadingName,
) -> Result<std::collections::BTreeMap<String, ReadingName>, Diagnostics> {
    let Some(Value::Object(readings)) = document.pointer("/x-frameproof/readings").cloned() else {
        return Ok(std::collections::BTreeMap::new());
    };
    let key = match chosen {
        ReadingName::Strict => "strict",
        ReadingName::Default => "default",
        ReadingName::Lenient => "lenient",
    };
    let mut taken = std::collections::BTreeMap::new();
    for (id, reading) in &readings {
        if let Some(patch) = reading.pointer(&format!("/patch/{key}")) {
            if !patch.is_object() {
                let at = format!("/x-frameproof/readings/{}/patch/{key}", escape_token(id));
                return Err(Diagnostic::new("a patch is a map").at(api, &at, Part::Value).into());
            }
            json_patch::merge(document, patch);
        }
        taken.insert(id.clone(), chosen);
    }
    Ok(taken)
}

fn load_messages(
    document: &Value,
    api: &Document,
    extension: &Extension,
    errors: &mut Diagnostics,
) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let empty = Map::new();
    let operations = document["operations"].as_object().unwrap_or(&empty);
    for (operation_name, operation) in operations {
        let dir = match operation["action"].as_str() {
            Some("receive") => Direction::Send,
            Some("send") => Direction::Recv,
            _ => {
                let at = format!("/operations/{}", escape_token(operation_name));
                errors.push(Diagnostic::new("an operation's `action` is `send` or `receive`").at(
                    api,
                    &at,
                    Part::Key,
                ));
                continue;
            }
        };
        let answer = operation.pointer("/reply/messages");
        let listed = operation["messages"].as_array().into_iter().flatten().map(|message| (message, dir));
        let replies = answer.and_then(Value::as_array).into_iter().flatten();
        for (reference, dir) in listed.chain(replies.map(|message| (message, dir.other()))) {
            let (message, pointer) = resolve(document, reference);
            let pointer = pointer.unwrap_or_default();
            // The component's key has a narrow alphabet; a message whose type does not fit says `name`.
            let key = pointer.rsplit('/').next().unwrap_or_default();
            let name = message["name"].as_str().unwrap_or(key).to_owned();
            if name.is_empty() || messages.iter().any(|known| known.name == name && known.dir == dir) {
                continue;
            }
            match load_message(document, api, &name, &pointer, dir, extension) {
                Ok(message) => messages.push(message),
                Err(mistakes) => errors.0.extend(mistakes.0),
            }
        }
    }
    messages
}

/// What is wrong with the schemas, each where it is written.
fn schema_mistakes(document: &Value, api: &Document) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for (kind, inner) in [("schemas", ""), ("messages", "/payload")] {
        let known = document["components"][kind].as_object().into_iter().flatten();
        for (name, value) in known {
            let Some(schema) = value.pointer(inner) else { continue };
            for mistake in Schema::mistakes(schema) {
                let at = format!("/components/{kind}/{}{inner}{}", escape_token(name), mistake.at);
                let message = format!("this is not a JSON Schema: {}", mistake.problem);
                errors.push(Diagnostic::new(message).at(api, &at, Part::Value));
            }
        }
    }
    errors.or(())
}

fn load_message(
    document: &Value,
    api: &Document,
    name: &str,
    pointer: &str,
    dir: Direction,
    extension: &Extension,
) -> Result<Message, Diagnostics> {
    let message = document.pointer(pointer).unwrap_or(&Value::Null);
    let own: MessageExtension = match message.get("x-frameproof") {
        Some(own) => decode_value(own.clone(), api, &format!("{pointer}/x-frameproof"))?,
        None => MessageExtension::default(),
    };
    let wrong = |message: String| Diagnostics::from(Diagnostic::new(message).at(api, pointer, Part::Key));
    let payload = message.get("payload").cloned().unwrap_or(json!({ "type": "object" }));
    let mut standalone = match payload {
        Value::Object(map) => map,
        other => return Err(wrong(format!("the payload of `{name}` is not a JSON Schema: {other}"))),
    };
    // References are absolute in the document; the components that they name come along so that they stay so.
    let components = components_of(&standalone, document);
    if !components.is_empty() {
        standalone.insert("components".into(), json!({ "schemas": components }));
    }
    let standalone = Arc::new(Value::Object(standalone));
    let schema = if api.is_shipped() {
        Schema::known_good(Arc::clone(&standalone))
    } else {
        Schema::new(&standalone).map_err(|error| wrong(format!("the schema of `{name}`: {error}")))?
    };
    let annotations =
        Annotations::collect(&standalone, &standalone, own.requirements, extension.frames.schema.clone());
    let examples = message["examples"].as_array().into_iter().flatten();
    let examples = examples.filter_map(|example| example.get("payload").cloned()).collect();
    Ok(Message {
        name: name.to_owned(),
        place: pointer.to_owned(),
        dir,
        absent: own.absent,
        examples,
        payload: standalone,
        schema,
        annotations,
    })
}
