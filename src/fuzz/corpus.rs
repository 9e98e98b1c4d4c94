//! The corpus on disk: a program a file.

use std::path::{Path, PathBuf};

use super::program::Program;
use crate::protocol::Protocol;
use crate::scenario;
use crate::source::Document;

/// Longest file of a corpus or a folder of findings that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// Programs of a corpus folder. What cannot be read, or is no program for this protocol, is named in the second list and left out.
///
/// # Errors
/// The folder cannot be read.
pub fn load(folder: &Path, protocol: &Protocol) -> Result<(Vec<Program>, Vec<String>), String> {
    if !folder.exists() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (mut programs, mut skipped) = (Vec::new(), Vec::new());
    for path in files(folder, &["json"])? {
        match program(&path, protocol) {
            Ok(program) => programs.push(program),
            Err(error) => skipped.push(format!("{}: {error}", path.display())),
        }
    }
    Ok((programs, skipped))
}

/// The entries of a folder with one of these extensions, sorted.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let cannot = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let fits =
        |path: &PathBuf| extensions.iter().any(|known| path.extension().is_some_and(|one| one == *known));
    paths.retain(fits);
    paths.sort();
    Ok(paths)
}

/// Whether an entry is a file of a length that may be read: no folder, no pipe that nobody writes to, no device without an end.
///
/// # Errors
/// Why not.
pub(super) fn readable(path: &Path) -> Result<(), String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a file".to_owned());
    }
    if about.len() > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    Ok(())
}

/// The program of a file. What it does must be what a scenario may: nothing without bounds.
fn program(path: &Path, protocol: &Protocol) -> Result<Program, String> {
    readable(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut program: Program = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if protocol.lacks_isolation().is_some() {
        (program.bystander, program.bystander_state) = (false, None);
    }
    let mut states = program.state.iter().chain(&program.bystander_state);
    if let Some(unknown) = states.find(|state| !protocol.extension.fuzzing.states.contains_key(*state)) {
        return Err(format!("the protocol has no state `{unknown}`"));
    }
    if program.repeat.is_some() {
        return Err("`repeat` is for findings".to_owned());
    }
    let case = program.render(protocol, "case", "A case", &[]).case;
    let plain = |errors: crate::source::Diagnostics| {
        let first = errors.to_string();
        first.lines().next().unwrap_or_default().to_owned()
    };
    let document = Document::parse("it", &scenario::write::file(&[], "fuzz", &[case])).map_err(plain)?;
    scenario::from_documents([document], protocol).map_err(plain)?;
    Ok(program)
}

/// Keeps a program in a corpus folder, under a name that says what it is.
///
/// # Errors
/// The path and the reason.
pub fn store(folder: &Path, program: &Program) -> Result<(), String> {
    use std::hash::{Hash, Hasher};
    let text = serde_json::to_string_pretty(program).map_err(|error| error.to_string())?;
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    let path = folder.join(format!("{:016x}.json", hasher.finish()));
    let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    crate::output::replace(&path, &text).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;
    use serde_json::{Value, json};

    #[test]
    fn what_is_no_program_of_the_protocol_is_named_and_left_out() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
        let folder = tempfile::tempdir().expect("a folder");
        let program = |key: &str, value: Value| {
            let mut program = json!({ "inputs": [], "own": true, "fresh": false, "witness": false });
            program[key] = value;
            program.to_string()
        };
        let input = |step: Value| json!([{ "client": "alice", "command": "c", "mutation": "m", "duty": "survive", "action": { "steps": [step] } }]);
        for (file, text) in [
            ("good", program("own", json!(false))),
            ("no-json", "{oops".to_owned()),
            ("other-state", program("state", json!("nowhere"))),
            ("without-end", program("repeat", json!(4_000_000_000_u32))),
            ("too-often", program("inputs", input(json!({ "raw": "x", "count": 4_000_000_000_u32 })))),
            ("no-verb", program("inputs", input(json!({ "destroy": "x" })))),
            ("long", " ".repeat(5 << 20)),
        ] {
            std::fs::write(folder.path().join(format!("{file}.json")), text).expect("written");
        }
        std::fs::create_dir(folder.path().join("folder.json")).expect("made");
        std::fs::write(folder.path().join("other.txt"), "x").expect("written");
        let (programs, skipped) = load(folder.path(), &protocol).expect("read");
        assert_eq!(programs.len(), 1, "{skipped:?}");
        let parts = [
            ("folder", "not a file"),
            ("long", "longer than 4 MiB"),
            ("no-json", "key must be"),
            ("no-verb", ""),
            ("other-state", "no state `nowhere`"),
            ("too-often", ""),
            ("without-end", "`repeat`"),
        ];
        assert_eq!(skipped.len(), parts.len(), "{skipped:?}");
        for (line, (file, why)) in skipped.iter().zip(parts) {
            assert!(line.contains(&format!("{file}.json: ")) && line.contains(why), "{line}");
        }
    }
}
