//! The fuzz targets' bodies on the committed seeds, on every input that once broke something, and on real traces, as
//! ordinary tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use frameproof::fuzz_targets;
use frameproof::protocol::{LoadOptions, Protocol};
use frameproof::trace::{Event, Reader};
use proptest::prelude::*;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Runs a body, and says which input broke it.
fn hold(target: &fuzz_targets::FuzzTarget, bytes: &[u8], name: &str) {
    let run = std::panic::AssertUnwindSafe(|| target.run(bytes));
    if let Err(panic) = std::panic::catch_unwind(run) {
        let why =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        panic!("{} on {name}: {}", target.name, why.unwrap_or("a panic"));
    }
}

#[test]
fn seeds_and_regressions_hold() {
    let mut seeds: std::collections::BTreeMap<String, Vec<(String, Vec<u8>)>> = Default::default();
    for target in fuzz_targets::targets() {
        let mut count = 0;
        for name in &target.seeds {
            let made = seeds.entry(name.to_string()).or_insert_with(|| fuzz_targets::seeds(name));
            for (file, bytes) in made.iter() {
                hold(&target, bytes, &format!("{name}/{file}"));
                count += 1;
            }
        }
        for file in files(&fuzz().join("regressions").join(&target.name)) {
            hold(&target, &fs::read(&file).expect("an input"), &file.display().to_string());
        }
        assert!(count >= 4, "{}: only {count} seeds", target.name);
    }
}

#[test]
fn regressions_belong_to_targets() {
    let names: BTreeSet<String> = fuzz_targets::targets().into_iter().map(|target| target.name).collect();
    for folder in files(&fuzz().join("regressions")) {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(
            names.contains(&name) || name == "README.md",
            "{name} is no target: its inputs would not be replayed"
        );
    }
}

#[test]
fn reports_are_xml_to_another_parser() {
    let regressions = files(&fuzz().join("regressions/report"));
    let regressions =
        regressions.iter().map(|file| (file.display().to_string(), fs::read(file).expect("an input")));
    for (name, bytes) in fuzz_targets::seeds("report").into_iter().chain(regressions) {
        let xml = fuzz_targets::junit_of(&bytes);
        roxmltree::Document::parse(&xml).unwrap_or_else(|error| panic!("{name}: {error}\n{xml}"));
    }
}

/// What fuzzing begins with is made from the protocols as they are, and nothing of it is committed: it cannot be stale.
#[test]
fn seeds_and_dictionaries_are_made_for_every_target_and_the_same_each_time() {
    for target in fuzz_targets::targets() {
        if let Some(text) = fuzz_targets::dictionary(&target.name) {
            let word = |line: &str| {
                line.len() > 2 && line.is_ascii() && line.starts_with('"') && line.ends_with('"')
            };
            assert!(text.lines().skip(1).all(word), "{}: a word that libFuzzer does not read", target.name);
            assert!(text.lines().count() > 10, "{}: hardly a word", target.name);
            assert_eq!(fuzz_targets::dictionary(&target.name), Some(text), "{}", target.name);
        }
        assert_eq!(fuzz_targets::seeds(&target.name), fuzz_targets::seeds(&target.name), "{}", target.name);
    }
    let ignored = read(&fuzz().join("../.gitignore"));
    for folder in ["seeds", "dictionaries", "corpus"] {
        assert!(ignored.lines().any(|line| line == format!("/fuzz/{folder}/")), "{folder}");
    }
}

#[test]
fn every_target_is_built_and_run_everywhere() {
    let names: BTreeSet<String> = fuzz_targets::targets().into_iter().map(|target| target.name).collect();
    for protocol in Protocol::embedded_names() {
        assert!(names.contains(&format!("message_{protocol}")), "{protocol}");
    }
    let sources: BTreeSet<String> = files(&fuzz().join("fuzz_targets"))
        .iter()
        .map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(sources, names, "fuzz/fuzz_targets");
    let manifest: toml::Table = read(&fuzz().join("Cargo.toml")).parse().expect("TOML");
    let binaries = manifest["bin"].as_array().expect("binaries").iter();
    let binaries: BTreeSet<String> =
        binaries.map(|bin| bin["name"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(binaries, names, "fuzz/Cargo.toml");
    // The scripts take their list from there, and make the seeds first.
    assert!(fuzz().join("../examples/fuzz_seeds.rs").exists(), "examples/fuzz_seeds.rs");
    for script in [".clusterfuzzlite/build.sh", "fuzz/smoke.sh"] {
        let text = read(&fuzz().join("..").join(script));
        assert!(text.contains("cargo fuzz list") && text.contains("--example fuzz_seeds"), "{script}");
    }
    for name in &names {
        let text = read(&fuzz().join(format!("fuzz_targets/{name}.rs")));
        let body =
            name.strip_prefix("message_").map_or_else(|| format!("{name}(bytes)"), |of| format!("\"{of}\""));
        assert!(text.contains(&body), "fuzz_targets/{name}.rs runs something else");
    }
}

/// The traces of a run of the whole suite against the reference server, case by case.
#[test]
fn monitors_agree_on_real_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in Protocol::embedded_names() {
        let trace = folder.path().join(format!("{name}.ndjson"));
        let run = Command::new(env!("CARGO_BIN_EXE_frameproof"))
            .args(["run", name, "--quiet", "--trace"])
            .arg(&trace)
            .output()
            .expect("it runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
        let file = std::io::BufReader::new(fs::File::open(&trace).expect("the trace"));
        let mut cases: std::collections::BTreeMap<_, Vec<Event>> = Default::default();
        for event in Reader::new("trace", file) {
            let event = event.expect("an event");
            cases.entry(event.case.clone()).or_default().push(event);
        }
        assert!(cases.len() > 30, "{name}: only {} cases", cases.len());
        // The naive monitors look at every pair of events: long traces would take minutes.
        for events in cases.values().filter(|events| events.len() <= 150) {
            fuzz_targets::agrees(&protocol, events, true);
        }
    }
}

proptest! {
    #![proptest_config(crate::support::the_same_each_time())]

    #[test]
    fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_targets::frame(&bytes);
        fuzz_targets::frame_agrees(&bytes);
        fuzz_targets::trace(&bytes);
    }

    #[test]
    fn json_like_text_holds(text in r#"[{}\[\]",:0-9a-z\\ .eE+-]{0,60}"#) {
        fuzz_targets::frame(text.as_bytes());
        fuzz_targets::frame_agrees(text.as_bytes());
    }

    #[test]
    fn built_inputs_hold(bytes in proptest::collection::vec(any::<u8>(), 0..800)) {
        fuzz_targets::frame_structured(&bytes);
        fuzz_targets::monitors(&bytes);
        fuzz_targets::report(&bytes);
    }
}
