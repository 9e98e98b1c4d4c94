//! Reads the YAML that ships with the binary, so that no start has to: each file's value as JSON and, of a scenario file, the line of
//! each case. A file that cannot be read here is left to the binary, which says what is wrong with it.

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
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?).join("shipped");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    for folder in ["protocols", "scenarios"] {
        println!("cargo::rerun-if-changed={folder}");
        convert(Path::new(folder), &out.join(folder))?;
    }
    Ok(())
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
