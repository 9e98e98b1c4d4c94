//! The example changes of docs/extending.md: each applies to the sources as they are, is short, and is shown in full.
//! `.ci/extending` builds and uses them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::text;

const PAGE: &str = "docs/extending.md";
const EXAMPLES: &[&str] = &["verb", "monitor", "report", "transport", "subcommand"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

fn patch_of(example: &str) -> String {
    format!("tests/extending/{example}.patch")
}

#[test]
fn each_example_applies_and_adds_less_than_a_hundred_lines() {
    // In a copy: in a work tree git would leave out what lies outside the folder that it runs in.
    let folder = tempfile::tempdir().expect("a folder");
    for example in EXAMPLES {
        let patch = read(&patch_of(example));
        let added = patch.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++"));
        assert!(added.count() < 100, "{example}");
        for file in patch.lines().filter_map(|line| line.strip_prefix("--- a/")) {
            let to = folder.path().join(file);
            fs::create_dir_all(to.parent().expect("a folder")).expect("made");
            fs::copy(root().join(file), to).expect(file);
        }
        let output = Command::new("git")
            .args(["apply", "--check", "-C1"])
            .arg(root().join(patch_of(example)))
            .current_dir(folder.path())
            .env("GIT_CEILING_DIRECTORIES", folder.path().parent().expect("a folder"))
            .output()
            .expect("git");
        assert!(
            output.status.success(),
            "tests/extending/{example}.patch no longer applies: adapt it to the sources\n{}",
            text(&output.stderr)
        );
    }
}

/// `BLESS=1` writes them there.
#[test]
fn the_page_shows_each_example_in_full() {
    let mut page = read(PAGE);
    for example in EXAMPLES {
        let mark = format!("<!-- {} -->\n", patch_of(example));
        let begin = page.find(&mark).expect(example) + mark.len();
        let end = begin + page[begin..].find("<!-- end -->").expect("an end");
        let shown = format!("```diff\n{}```\n", read(&patch_of(example)));
        if std::env::var_os("BLESS").is_some() {
            page.replace_range(begin..end, &shown);
        } else {
            assert_eq!(page[begin..end], shown, "BLESS=1 cargo test --test it extending:: renews {PAGE}");
        }
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(root().join(PAGE), page).expect("written");
    }
}
