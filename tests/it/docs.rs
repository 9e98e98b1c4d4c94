//! What the documentation says is true: its scenarios run, its protocol loads, its commands work, its tables are what the
//! program prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Served, frameproof, text};

pub fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file)
}

/// The fenced blocks of a Markdown text whose opening line is exactly this.
pub fn blocks(markdown: &str, opening: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if line.trim_end() == format!("```{opening}") {
            found.push(
                lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect(),
            );
        } else if line.starts_with("```") && line.len() > 3 {
            lines.by_ref().take_while(|line| *line != "```").for_each(drop);
        }
    }
    found
}

#[test]
fn the_scenarios_of_the_reference_page_run() {
    let scenarios = blocks(&read("docs/scenario-reference.md"), "yaml scenario");
    assert!(scenarios.len() >= 3);
    let server = Served::start(&["minicodex"]);
    for scenario in scenarios {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("s.yaml"), &scenario).expect("written");
        let output =
            frameproof(folder.path(), &["run", "minicodex", "--scenario", "s.yaml", "--url", &server.url]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{scenario}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

#[test]
fn the_trace_and_the_baseline_of_the_guide_are_read() {
    let guide = read("docs/reports.md");
    let folder = tempfile::tempdir().expect("a folder");
    let [trace] = &blocks(&guide, "json lines")[..] else { panic!("one trace") };
    fs::write(folder.path().join("t.ndjson"), trace).expect("written");
    let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "minicodex"]);
    assert!(text(&output.stdout).contains("5 events"), "{output:?}");
    let [baseline] = &blocks(&guide, "yaml baseline")[..] else { panic!("one baseline") };
    fs::write(folder.path().join("known.yaml"), baseline).expect("written");
    let case =
        ["--case", "approval/deny-does-not-run-the-tool", "--baseline", "known.yaml", "--json", "run.jsonl"];
    let run = |fault: &[&str]| frameproof(folder.path(), &[&["run", "minicodex"], fault, &case[..]].concat());
    let output = run(&["--fault", "executes-denied"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("1 known to fail"), "{}", text(&output.stdout));
    let again = frameproof(folder.path(), &["report", "run.jsonl"]);
    assert_eq!(text(&again.stdout), text(&output.stdout));
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("stale baseline entry"), "{}", text(&output.stdout));
}

/// Every page for users: the README and what is below docs/, without the pages for people who change the code.
fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec!["README.md".to_owned(), "SECURITY.md".to_owned()];
    for folder in ["docs", "docs/protocols"] {
        for entry in fs::read_dir(root.join(folder)).expect(folder).flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md")
                && !matches!(name.as_str(), "architecture.md" | "dependencies.md" | "extending.md")
            {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages
}

/// A region `<!-- `frameproof …` -->` … `<!-- end -->` holds what the command prints. `BLESS=1` writes it there.
#[test]
fn generated_tables_are_what_their_command_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    // What self-tests have measured: pages show it as a table.
    let measured = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/selftest.json");
    fs::copy(measured, folder.path().join("selftest.json")).expect("a copy");
    let mut stale = Vec::new();
    let mut count = 0;
    for page in pages() {
        let page_text = read(&page);
        let mut blessed = String::new();
        let mut rest = page_text.as_str();
        while let Some((before, after)) = rest.split_once("<!-- `frameproof ") {
            let (command, after) = after.split_once("` -->\n").expect("the end of the command");
            let (table, after) = after.split_once("<!-- end -->").expect("the end of the region");
            let words: Vec<&str> = command.split_whitespace().collect();
            let printed = text(&frameproof(folder.path(), &words).stdout);
            assert!(!printed.is_empty(), "{page}: {command}");
            if table != printed {
                stale.push(format!("{page}: {command}"));
            }
            blessed += &format!("{before}<!-- `frameproof {command}` -->\n{printed}<!-- end -->");
            rest = after;
            count += 1;
        }
        if std::env::var_os("BLESS").is_some() && !blessed.is_empty() {
            fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(&page), blessed + rest).expect("written");
        }
    }
    assert!(count >= 6, "only {count} tables");
    assert!(
        std::env::var_os("BLESS").is_some() || stale.is_empty(),
        "run `BLESS=1 cargo test --test it docs::` to renew\n{}",
        stale.join("\n")
    );
}

/// A folder with the files of a page: blocks whose opening line ends with a file's name. Blocks with the same name
/// belong together. The server that a configuration launches is a reference server with a defect.
fn files_of(page: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let openings: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("```")).collect();
    for opening in openings.into_iter().filter(|opening| opening.contains('.')) {
        let name = opening.split(' ').next_back().unwrap_or_default();
        let mut content = blocks(page, opening).concat().replace(OWN_SERVER, &defective_server());
        if name == "frameproof.toml" {
            // Whole suites behind preambles take minutes. Other tests run them.
            content.insert_str(0, "preambles = 'none'\n");
        }
        let path: PathBuf = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("written");
    }
    folder
}

const OWN_SERVER: &str = r#"["python3", "-m", "myserver", "--port", "{{port}}"]"#;

fn defective_server() -> String {
    format!(
        r#"["{}", "serve", "minicodex", "--fault", "args-json-of-another-call", "--listen", "127.0.0.1:{{{{port}}}}"]"#,
        env!("CARGO_BIN_EXE_frameproof")
    )
}

/// The commands of a page: lines of its console blocks that begin with `$ `, and of its CI recipes.
fn commands_of(page: &str) -> Vec<String> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in page.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            inside = trimmed == "```console";
        } else if inside && let Some(command) = trimmed.strip_prefix("$ ") {
            commands.push(command.to_owned());
        }
    }
    for recipe in blocks(page, "yaml recipe") {
        let parsed: serde_json::Value = serde_saphyr::from_str(&recipe).expect("YAML");
        let is_workflow = parsed.get("name").is_some() && parsed.get("jobs").is_some();
        assert!(!is_workflow || parsed.get("on").is_some(), "a workflow that nothing starts:\n{recipe}");
        let own = |line: &str| line.find("frameproof run").map(|at| line[at..].to_owned());
        commands.extend(recipe.lines().filter_map(own));
    }
    commands
}

/// A documented command as it is tried: bounded, and against a server that is there.
fn tried(command: &str, url: &str) -> String {
    let mut command = command
        .replace("cargo run --release --", "frameproof")
        .replace("ws://127.0.0.1:8765/ws", url)
        .replace("ws://localhost:8000/", "ws://127.0.0.1:1/")
        .replace("${{ matrix.shard }}/4", "1/4")
        .replace("--shard auto", "--shard 2/4")
        .replace("--time 10m", "--iterations 16");
    if let Some((before, _)) = command.split_once("--listen 127.0.0.1:") {
        command = format!("{before}--listen 127.0.0.1:0");
    }
    let bounded =
        ["--iterations", "--replay", "--max-findings"].iter().any(|option| command.contains(option));
    if command.starts_with("frameproof fuzz") && !bounded {
        command += " --iterations 16";
    }
    if command.starts_with("frameproof explore") && !command.contains("--max-findings") {
        command += " --walks 3";
    }
    command
}

/// What is built, installed or run by other tests: selftest runs whole matrices.
const ELSEWHERE: &[&str] = &[
    "cargo install ",
    "cargo test",
    "cargo fuzz ",
    "cargo +nightly ",
    "cargo run --example ",
    "bash ",
    "frameproof selftest ",
];

/// The exit codes that a comment permits: `exit code 1`, `exit code 0 or 1`. Without such words, 0.
pub fn exit_codes(note: &str) -> Vec<i32> {
    let Some((_, codes)) = note.split_once("exit code ") else { return vec![0] };
    let codes = codes.split(' ').map(|word| word.trim_end_matches([':', ',', ';']));
    codes
        .take_while(|word| *word == "or" || word.parse::<i32>().is_ok())
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Runs every command of a page in a folder with the page's files. The exit code is 0, or what a comment says:
/// `# exit code 1`.
fn commands_work(page: &str, url: &str) {
    let markdown = read(page);
    let folder = files_of(&markdown);
    let configured = files_of(&read("docs/testing-your-server.md"));
    let mut count = 0;
    for line in commands_of(&markdown) {
        let (command, note) = line.split_once(" #").unwrap_or((&line, ""));
        let command = tried(command.trim(), url);
        if ELSEWHERE.iter().any(|known| command.starts_with(known)) {
            continue;
        }
        count += 1;
        let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        match &words[..] {
            ["frameproof", "model", arguments @ ..] => {
                assert!(Served::command("model", arguments).url.starts_with("http://"), "{page}: {line}");
            }
            ["frameproof", "serve", arguments @ ..]
                if !arguments.iter().any(|one| one.starts_with("--list-")) =>
            {
                assert!(Served::start(arguments).url.starts_with("ws://"), "{page}: {line}");
            }
            ["frameproof", arguments @ ..] => {
                // A page without a configuration of its own means that of the guide.
                let own = folder.path().join("frameproof.toml").exists();
                let there = if arguments.contains(&"mine") && !own { &configured } else { &folder };
                let output = frameproof(there.path(), arguments);
                let shown = text(&output.stdout) + &text(&output.stderr);
                let code = output.status.code().expect("an exit code");
                assert!(exit_codes(note).contains(&code), "{page}: {line}\nexit code {code}\n{shown}");
            }
            ["python3", ..] => {
                let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
                let shown = text(&output.stdout);
                assert!(markdown.contains(shown.trim()) && !shown.is_empty(), "{page}: {line}\n{shown}");
            }
            _ => panic!("{page}: how is this tested? {line}"),
        }
    }
    assert!(count > 0, "{page} has no command");
}

#[test]
fn the_commands_of_the_readme_work() {
    commands_work("README.md", &Served::start(&["minicodex"]).url);
}

#[test]
fn the_commands_of_the_guide_to_testing_a_server_work() {
    commands_work("docs/testing-your-server.md", "ws://127.0.0.1:1/ws");
}

#[test]
fn the_commands_of_the_fuzzing_page_work() {
    commands_work("docs/fuzzing.md", &Served::start(&["minicodex"]).url);
}

/// Several pages at a time: their commands mostly wait.
fn commands_of_pages_work(pages: &[String], url: impl Fn() -> Option<Served> + Sync) {
    let next = AtomicUsize::new(0);
    let some = || {
        let served = url();
        let url = served.as_ref().map_or("ws://127.0.0.1:1/ws", |served| served.url.as_str());
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            commands_work(page, url);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(some))));
}

#[test]
fn the_commands_of_the_protocols_pages_work() {
    let mut pages = pages();
    pages.retain(|page| page.starts_with("docs/protocols/"));
    commands_of_pages_work(&pages, || None);
}

#[test]
fn the_commands_of_the_other_pages_work() {
    // The tutorials are executed in `tutorials`.
    let alone = [
        "README.md",
        "docs/testing-your-server.md",
        "docs/fuzzing.md",
        "docs/scenarios.md",
        "docs/monitors.md",
        "docs/protocols.md",
    ];
    let mut pages = pages();
    pages.retain(|page| !alone.contains(&page.as_str()) && !page.starts_with("docs/protocols/"));
    commands_of_pages_work(&pages, || Some(Served::start(&["minicodex"])));
}

/// What the guide quotes of silences is what the program says.
#[test]
fn the_silences_of_the_guide_are_those_of_the_program() {
    let guide = read("docs/testing-your-server.md");
    for kind in [
        "sent nothing on this connection",
        "not answered the last message",
        "started the turn and not ended it",
        "not ended the connection",
    ] {
        assert!(guide.contains(&format!("the server has {kind}")), "{kind}");
        assert!(read("src/results/cause.rs").contains(kind), "{kind}");
    }
}

/// frameproof is on no registry: nothing may say that it can be installed from one.
#[test]
fn nothing_installs_frameproof_from_a_registry() {
    for page in pages().into_iter().chain(["CONTRIBUTING.md".to_owned(), "docs/extending.md".to_owned()]) {
        for line in read(&page).lines().filter(|line| line.contains("cargo install")) {
            let known = ["--path .", "--git ", "cargo-fuzz"];
            assert!(known.iter().any(|known| line.contains(known)), "{page}: {line}");
        }
    }
}

/// Links between pages lead to files that are there.
#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for page in pages().into_iter().chain(["CONTRIBUTING.md".to_owned(), "docs/extending.md".to_owned()]) {
        let markdown = read(&page);
        for link in markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.starts_with("http") {
                continue;
            }
            let path = match file {
                "" => root.join(&page),
                file => root.join(&page).parent().expect("a folder").join(file),
            };
            if !path.exists() {
                broken.push(format!("{page}: {link}"));
                continue;
            }
            let heading = |line: &str| {
                let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                title.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>() == anchor
            };
            if !anchor.is_empty()
                && !fs::read_to_string(&path)
                    .expect("a page")
                    .lines()
                    .any(|line| line.starts_with('#') && heading(line))
            {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The output of the first run is from a machine; what it says of the suites is so today.
#[test]
fn the_first_run_of_the_readme_has_the_cases_that_ship() {
    let readme = read("README.md");
    let digits = |text: &str| text.replace(',', "").parse::<usize>().ok();
    let mut all = 0;
    for row in readme.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, title, .., cases, _faults] = cells.as_slice() else { continue };
        let (Some(cases), 7) = (digits(cases), cells.len()) else { continue };
        all += cases;
        let announced = readme.lines().find(|line| line.starts_with(title)).expect("it is run");
        assert!(announced.contains(&format!("({cases} cases, ")), "{announced}: {cases} cases");
        let shown = readme.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut shown = shown.filter(|words| words.len() == 8 && words[0] == *name);
        let row = shown.next().expect("a row of the closing table");
        assert_eq!(digits(row[1]), Some(cases), "{row:?}");
    }
    assert!(all > 1000, "{all} cases");
    assert!(readme.contains(&format!("conformant: {all} cases, ")), "{all} cases");
}
