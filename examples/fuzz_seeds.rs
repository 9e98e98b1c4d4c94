//! Makes what fuzzing begins with: `cargo run --example fuzz_seeds`.
//!
//! - `fuzz/seeds/TARGET/`: seeds from the protocols' examples and scenarios (a test replays them);
//! - `fuzz/dictionaries/TARGET.dict`: words from the schemas;
//! - `fuzz/corpus/TARGET/`: what `cargo fuzz run TARGET` reads and grows: seeds and regressions, copied.
//!
//! Nothing of it is committed: it is made from the protocols as they are.

use std::fs;
use std::path::Path;

use frameproof::fuzz_targets;

fn main() -> std::io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let dictionaries = fuzz.join("dictionaries");
    let targets = fuzz_targets::targets();
    for old in [&dictionaries, &fuzz.join("seeds")].into_iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(old)?;
    }
    fs::create_dir_all(&dictionaries)?;
    for target in &targets {
        let seeds = fuzz_targets::seeds(&target.name);
        let folder = fuzz.join("seeds").join(&target.name);
        if !seeds.is_empty() {
            fs::create_dir_all(&folder)?;
        }
        for (name, bytes) in &seeds {
            fs::write(folder.join(name), bytes)?;
        }
        if let Some(text) = fuzz_targets::dictionary(&target.name) {
            fs::write(dictionaries.join(format!("{}.dict", target.name)), text)?;
        }
        println!("{}: {} seeds", target.name, seeds.len());
    }
    for target in &targets {
        let corpus = fuzz.join("corpus").join(&target.name);
        fs::create_dir_all(&corpus)?;
        for folder in target.seeds.iter().map(|folder| fuzz.join("seeds").join(folder)) {
            copy_into(&folder, &corpus)?;
        }
        copy_into(&fuzz.join("regressions").join(&target.name), &corpus)?;
    }
    Ok(())
}

fn copy_into(folder: &Path, corpus: &Path) -> std::io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let label = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for entry in fs::read_dir(folder)?.flatten() {
        fs::copy(entry.path(), corpus.join(format!("{label}-{}", entry.file_name().to_string_lossy())))?;
    }
    Ok(())
}
