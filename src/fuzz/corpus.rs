//! The corpus on disk: a program a file.

use std::path::PathBuf;

use super::program::Program;

/// Programs of a corpus folder. What cannot be read is named in the second list and left out.
///
/// # Errors
/// The folder cannot be read.
pub fn load(folder: &std::path::Path) -> Result<(Vec<Program>, Vec<String>), String> {
    let cannot = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    if !folder.exists() {
        return Ok((Vec::new(), Vec::new()));
    }
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let (mut programs, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        match read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string())) {
            Ok(program) => programs.push(program),
            Err(error) => skipped.push(format!("{}: {error}", path.display())),
        }
    }
    Ok((programs, skipped))
}

/// Keeps a program in a corpus folder, under a name that says what it is.
///
/// # Errors
/// The path and the reason.
pub fn store(folder: &std::path::Path, program: &Program) -> Result<(), String> {
    use std::hash::{Hash, Hasher};
    let text = serde_json::to_string_pretty(program).map_err(|error| error.to_string())?;
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    let path = folder.join(format!("{:016x}.json", hasher.finish()));
    let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(cannot)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(cannot)?;
    file.persist(&path).map(drop).map_err(|error| cannot(error.error))
}
