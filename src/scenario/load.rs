//! From scenario files to checked cases.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use include_dir::{Dir, include_dir};

use super::compile::{self, Mistake};
use super::file::{Case, ScenarioFile};
use super::{Beginning, LoadedCase, notes, preamble, recovery, turn, verify};
use crate::protocol::Protocol;
use crate::shortage;
use crate::source::{Diagnostic, Diagnostics, Document, Part, Shipped, decode};

static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// The cases that ship with the binary for a protocol, in the order of families and files.
///
/// # Errors
/// Everything that is wrong with them (a test sees to it that nothing is).
pub fn embedded(protocol: &Protocol) -> Result<Vec<LoadedCase>, Diagnostics> {
    let files = embedded_files(&protocol.name).into_iter();
    let mut cases: Vec<LoadedCase> = Vec::new();
    for (path, text) in files {
        let Shipped { document, lines } = Shipped::new(&format!("scenarios/{path}"), text)?;
        if protocol.is_shipped && document.is_shipped() {
            cases.extend(checked(document, &lines, protocol)?);
        } else {
            cases.extend(collect(std::iter::once(Ok(document)), protocol)?);
        }
    }
    cases.iter_mut().for_each(|case| case.embedded = true);
    Ok(cases)
}

/// The cases of a file of which a test has checked that nothing is wrong with it.
fn checked(document: Document, lines: &[usize], protocol: &Protocol) -> Result<Vec<LoadedCase>, Diagnostics> {
    let file = decode::<ScenarioFile>(&document, "")?;
    let document = Arc::new(document);
    let mut errors = Diagnostics::default();
    let mut cases = Vec::new();
    for (index, mut case) in file.cases.into_iter().enumerate() {
        shortage::look_at_once();
        let pointer = format!("/cases/{index}");
        case.needs = needs(&case, protocol);
        let id = format!("{}/{}", file.family, case.name);
        let (case, mistakes) = compile::case(case, protocol, &recovery::Gaps::default());
        report_mistakes(mistakes, &document, &pointer, &mut errors);
        cases.push(LoadedCase {
            id,
            family: file.family.clone(),
            case,
            file: document.name.clone(),
            embedded: true,
            document: Arc::clone(&document),
            pointer,
            line: lines.get(index).copied().unwrap_or(1),
            notes: Vec::new(),
            preamble: None,
        });
    }
    errors.or(cases)
}

/// The scenario files that ship with the binary for a protocol of this name: paths (`NAME/FAMILY.yaml`) and texts, in order.
pub fn embedded_files(protocol: &str) -> Vec<(&'static str, &'static str)> {
    let files =
        SCENARIOS.get_dir(protocol).into_iter().flat_map(Dir::files).filter(|file| is_yaml(file.path()));
    let mut files: Vec<_> =
        files.filter_map(|file| Some((file.path().to_str()?, file.contents_utf8()?))).collect();
    files.sort_unstable();
    files
}

/// The cases of a scenario file, or of all files of a folder.
///
/// # Errors
/// Everything that is wrong with them, each with its place.
pub fn load(path: &Path, protocol: &Protocol) -> Result<Vec<LoadedCase>, Diagnostics> {
    let cannot = |error| Diagnostic::new(format!("{} cannot be read: {error}", path.display()));
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(cannot)?;
        files = entries.flatten().map(|entry| entry.path()).filter(|path| is_yaml(path)).collect();
        files.sort();
        if files.is_empty() {
            let message = format!("{} contains no scenario files (*.yaml)", path.display());
            return Err(Diagnostic::new(message).into());
        }
    }
    collect(files.iter().map(|file| Document::read(file)), protocol)
}

/// The cases of scenario files that have been read already.
///
/// # Errors
/// As [`load`].
pub fn from_documents(
    documents: impl IntoIterator<Item = Document>,
    protocol: &Protocol,
) -> Result<Vec<LoadedCase>, Diagnostics> {
    collect(documents.into_iter().map(Ok), protocol)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn collect(
    documents: impl Iterator<Item = Result<Document, Diagnostics>>,
    protocol: &Protocol,
) -> Result<Vec<LoadedCase>, Diagnostics> {
    let mut errors = Diagnostics::default();
    let mut cases: Vec<LoadedCase> = Vec::new();
    for document in documents {
        shortage::look_at_once();
        let Some(document) = errors.take(document) else { continue };
        let Some(file) = errors.take(decode::<ScenarioFile>(&document, "")) else {
            for one in recovery::cases(&document) {
                verify::case(&one.case, protocol, &document, &one.pointer, &one.gaps, &mut errors);
                let (_, mistakes) = compile::case(one.case, protocol, &one.gaps);
                report_mistakes(mistakes, &document, &one.pointer, &mut errors);
            }
            continue;
        };
        let document = Arc::new(document);
        for (index, mut case) in file.cases.into_iter().enumerate() {
            shortage::look_at_once();
            let pointer = format!("/cases/{index}");
            let id = format!("{}/{}", file.family, case.name);
            if cases.iter().any(|known| known.id == id) {
                errors.push(
                    Diagnostic::new(format!("case `{id}` occurs twice"))
                        .at(&document, &format!("{pointer}/name"), Part::Value)
                        .hint("case names are unique in their family"),
                );
            }
            verify::case(&case, protocol, &document, &pointer, &recovery::Gaps::default(), &mut errors);
            case.needs = needs(&case, protocol);
            let notes = notes::of(&case, protocol, &document, &pointer);
            let (case, mistakes) = compile::case(case, protocol, &recovery::Gaps::default());
            report_mistakes(mistakes, &document, &pointer, &mut errors);
            let line = document.place(document.span(&format!("{pointer}/name"), Part::Key).start).0;
            cases.push(LoadedCase {
                notes,
                id,
                family: file.family.clone(),
                case,
                file: document.name.clone(),
                embedded: false,
                document: Arc::clone(&document),
                pointer,
                line,
                preamble: None,
            });
        }
    }
    preamble_names(&cases, &mut errors);
    errors.or(cases)
}

/// Names of preambles that none has. Where cases are loaded without any preamble, nobody knows.
fn preamble_names(cases: &[LoadedCase], errors: &mut Diagnostics) {
    let known: Vec<&str> =
        cases.iter().filter(|case| case.case.beginning.is_preamble).map(LoadedCase::name).collect();
    for case in cases.iter().filter(|_| !known.is_empty()) {
        let Beginning { not_behind, contains, .. } = &case.case.beginning;
        let named = not_behind.iter().enumerate().map(|(index, name)| ("not-behind", index, name));
        let named = named.filter(|(_, _, name)| *name != preamble::ANY);
        let contained = contains.iter().enumerate().map(|(index, name)| ("contains", index, name));
        for (key, index, name) in named.chain(contained) {
            if known.iter().all(|known| known != name) {
                let at = format!("{}/{key}/{index}", case.pointer);
                let diagnostic = Diagnostic::new(format!("unknown preamble `{name}`"));
                errors.push(diagnostic.suggest(name, known.iter().copied()).at(
                    &case.document,
                    &at,
                    Part::Value,
                ));
            }
        }
    }
}

/// Mistakes in a case that stands there.
fn report_mistakes(mistakes: Vec<Mistake>, document: &Document, at: &str, errors: &mut Diagnostics) {
    for mistake in mistakes {
        let place = format!("{at}{}", mistake.at);
        let diagnostic = Diagnostic::new(mistake.message).at(document, &place, mistake.part);
        errors.push(if mistake.hint.is_empty() { diagnostic } else { diagnostic.hint(mistake.hint) });
    }
}

/// What a case needs: what it says itself, and what the tools need that the model calls in it.
fn needs(case: &Case, protocol: &Protocol) -> Vec<String> {
    let mut needs = case.needs.clone();
    for class in turn::classes(case.turn.iter().chain(case.turns.values()).flatten()) {
        let tool = protocol.extension.tools.get(&class);
        needs.extend(tool.into_iter().flat_map(|tool| tool.needs.iter().cloned()));
    }
    let mut known = BTreeSet::new();
    needs.retain(|need| known.insert(need.clone()));
    needs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{DialectChoice, LoadOptions, ReadingName};

    /// Nobody checks them when they are loaded from the binary.
    #[test]
    fn what_ships_is_without_mistakes_in_every_reading_and_dialect() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for name in Protocol::embedded_names() {
            let default = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
            let dialects = default.extension.dialects.keys().cloned().map(DialectChoice::Named);
            for dialect in [DialectChoice::Own, DialectChoice::Auto].into_iter().chain(dialects) {
                for reading in [ReadingName::Strict, ReadingName::Default, ReadingName::Lenient] {
                    let options = LoadOptions { reading, dialect: dialect.clone(), ..LoadOptions::default() };
                    let shipped = Protocol::embedded(name, &options).expect("it loads");
                    let protocol = Protocol::load(&root.join("protocols").join(name), &options);
                    let protocol = protocol.unwrap_or_else(|errors| panic!("{errors}"));
                    assert!(shipped.is_shipped && !protocol.is_shipped);
                    let checked = load(&root.join("scenarios").join(name), &protocol);
                    let checked = checked.unwrap_or_else(|errors| panic!("{errors}"));
                    let cases = embedded(&shipped).expect("they load");
                    assert_eq!(cases.len(), checked.len(), "{name}");
                    for (case, checked) in cases.iter().zip(&checked) {
                        assert_eq!((&case.id, case.line), (&checked.id, checked.line));
                        assert_eq!(format!("{:?}", case.case), format!("{:?}", checked.case));
                        assert_eq!(case.source(), checked.source());
                    }
                }
            }
        }
    }
}
