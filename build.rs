//! Reads the YAML that ships with the binary, so that no start has to: each file's value as JSON and, of a scenario file, the line of
//! each case; and of each protocol the outlines of its cases. A file that cannot be read here is left to the binary, which says what is wrong
//! with it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::Deserialize;
use serde_json::{Value, json};
use serde_saphyr::Spanned;

/// Of a scenario file, where its cases are.
#[derive(Deserialize)]
struct Cases {
    cases: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: Spanned<String>,
}

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let [shipped, outlines] = ["shipped", "outlines"].map(|folder| out.join(folder));
    for folder in [&shipped, &outlines] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir(folder)?;
    }
    for folder in ["protocols", "scenarios"] {
        println!("cargo::rerun-if-changed={folder}");
        convert(Path::new(folder), &shipped.join(folder))?;
    }
    for protocol in entries(Path::new("scenarios"))?.iter().filter(|path| path.is_dir()) {
        if let Some(read) = outlined(protocol)? {
            fs::write(outlines.join(protocol.file_name().unwrap_or_default()), read)?;
        }
    }
    Ok(())
}

/// What a folder has, in the order of the names.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The outlines of all cases of a folder, as JSON. None: a file cannot be read here.
fn outlined(folder: &Path) -> io::Result<Option<String>> {
    let mut outlines = Vec::new();
    for path in entries(folder)? {
        let file = serde_saphyr::from_str_with_options::<File>(
            &fs::read_to_string(path)?,
            serde_saphyr::options! { strict_booleans: true },
        );
        let Ok(file) = file else { return Ok(None) };
        outlines.extend(file.outlines());
    }
    Ok(Some(json!(outlines).to_string()))
}

fn convert(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            convert(&path, &to.join(name))?;
        } else if let Some(read) = read(&fs::read_to_string(&path)?) {
            fs::write(to.join(name), read.to_string())?;
        }
    }
    Ok(())
}

fn read(text: &str) -> Option<Value> {
    let options = || serde_saphyr::options! { strict_booleans: true };
    let value: Value = serde_saphyr::from_str_with_options(text, options()).ok()?;
    let cases = serde_saphyr::from_str_with_options::<Cases>(text, options()).map(|file| file.cases);
    let lines: Vec<u64> = cases.into_iter().flatten().map(|case| case.name.referenced.line()).collect();
    Some(json!({ "value": value, "lines": lines }))
}

/// A scenario file, as far as outlines need it.
#[derive(Deserialize)]
struct File {
    family: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    title: String,
    #[serde(default)]
    covers: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    covers: Vec<String>,
    #[serde(default)]
    unchanged: Vec<Step>,
    #[serde(default)]
    repeat: Vec<Step>,
    #[serde(default)]
    parallel: Vec<Vec<Step>>,
}

impl Step {
    fn covered(self, ids: &mut Vec<String>) {
        ids.extend(self.covers);
        self.repeat.into_iter().for_each(|step| step.covered(ids));
        self.unchanged.into_iter().for_each(|step| step.covered(ids));
        self.parallel.into_iter().flatten().for_each(|step| step.covered(ids));
    }
}

impl File {
    /// The outlines of its cases.
    fn outlines(self) -> impl Iterator<Item = Value> {
        let Self { family, cases } = self;
        cases.into_iter().map(move |case| case.outline(&family))
    }
}

impl Case {
    fn outline(self, family: &str) -> Value {
        let mut covered = self.covers;
        self.steps.into_iter().for_each(|step| step.covered(&mut covered));
        covered.sort();
        covered.dedup();
        json!({ "id": format!("{family}/{}", self.name), "title": self.title, "covered": covered })
    }
}
