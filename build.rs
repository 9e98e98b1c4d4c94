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
        for protocol in entries(Path::new(folder))?.iter().filter(|path| path.is_dir()) {
            let name = protocol.file_name().unwrap_or_default();
            let to = shipped.join(folder).join(name);
            fs::create_dir_all(&to)?;
            let values = convert(protocol, &to)?;
            if folder == "scenarios"
                && let Some(read) = outlined(values)
            {
                fs::write(outlines.join(name), read.to_string())?;
            }
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

/// Writes what the files of a folder say, and returns their values. None: a file cannot be read here.
fn convert(from: &Path, to: &Path) -> io::Result<Vec<Option<Value>>> {
    let mut values = Vec::new();
    for path in entries(from)? {
        let read = read(&fs::read_to_string(&path)?);
        if let Some((value, lines)) = &read {
            let file = to.join(path.file_name().unwrap_or_default());
            fs::write(file, json!({ "value": value, "lines": lines }).to_string())?;
        }
        values.push(read.map(|(value, _)| value));
    }
    Ok(values)
}

/// The value of a file, and the lines of its cases.
fn read(text: &str) -> Option<(Value, Vec<u64>)> {
    let options = || serde_saphyr::options! { strict_booleans: true };
    let value: Value = serde_saphyr::from_str_with_options(text, options()).ok()?;
    let has_cases = value.get("cases").is_some();
    let cases =
        has_cases.then(|| serde_saphyr::from_str_with_options::<Cases>(text, options()).ok()).flatten();
    let cases = cases.into_iter().flat_map(|file| file.cases);
    Some((value, cases.map(|case| case.name.referenced.line()).collect()))
}

/// The outlines of all cases of a folder. None: a file cannot be read here.
fn outlined(values: Vec<Option<Value>>) -> Option<Value> {
    let mut outlines = Vec::new();
    for value in values {
        outlines.extend(serde_json::from_value::<File>(value?).ok()?.outlines());
    }
    Some(outlines.into())
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
    steps: Vec<Step>,
    #[serde(default)]
    parallel: Vec<Vec<Step>>,
}

impl Step {
    fn covered(self, ids: &mut Vec<String>) {
        ids.extend(self.covers);
        self.repeat.into_iter().for_each(|step| step.covered(ids));
        self.unchanged.into_iter().for_each(|step| step.covered(ids));
        self.steps.into_iter().for_each(|step| step.covered(ids));
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
