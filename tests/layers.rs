//! The house rules that a compiler does not check: modules import downward only, and no Rust file outside
//! `src/reference/` names a protocol.

use std::fs;
use std::path::{Path, PathBuf};

/// From the top floor to the ground; a module may import those that come after it. Modules on one line are
/// neighbours and do not know each other.
const FLOORS: &[&[&str]] = &[
    &["cli", "fuzz_targets"],
    &["report"],
    &["fuzz", "doctor", "selftest"],
    &["run"],
    &["scenario", "reference", "model", "target"],
    &["wire"],
    &["check"],
    &["protocol"],
    &["trace"],
    &["frame", "source", "cue", "template", "output"],
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
