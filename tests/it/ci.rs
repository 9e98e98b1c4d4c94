//! What CI shows: annotations, summaries, the action and the job template, whose steps are executed as they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{Served, frameproof, text};
use serde_json::Value;

const FAULTY: &[&str] = &["minicodex", "--fault", "executes-denied"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs frameproof as a job of CI would: with these variables, and no others of CI's.
fn job(folder: &Path, arguments: &[&str], environment: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frameproof"));
    for name in ["GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "GITLAB_CI", "CI_PROJECT_DIR"] {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .current_dir(folder)
        .envs(environment.iter().copied())
        .output()
        .expect("frameproof")
}

fn yaml(path: &str) -> Value {
    let text = fs::read_to_string(root().join(path)).expect(path);
    serde_saphyr::from_str(&text).expect("YAML")
}

/// A scenario of one's own, in a folder below the root of a repository, that every server of minicodex fails in so many ways.
fn failing(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let below = folder.path().join("server");
    fs::create_dir(&below).expect("made");
    let requirements = yaml("protocols/minicodex/requirements.yaml");
    let musts = requirements["requirements"]
        .as_array()
        .expect("requirements")
        .iter()
        .filter(|one| one["level"] == "MUST");
    let mut scenario = String::from("family: own\ncases:\n");
    for (index, must) in musts.take(count).enumerate() {
        scenario += &format!(
            "  - name: case-{index}\n    title: \"::error::title {index}\"\n    steps:\n      - open: alice\n      \
             - send: {{ type: send, text: true }}\n      - expect: error\n      \
             - check: {{ properties: {{ code: {{ const: NO }} }} }}\n        covers: [{}]\n",
            must["id"].as_str().expect("an id")
        );
    }
    fs::write(below.join("own.yaml"), scenario).expect("written");
    folder
}

#[test]
fn a_job_of_github_gets_annotations_at_their_lines_and_a_summary() {
    let folder = failing(14);
    let (below, summary) = (folder.path().join("server"), folder.path().join("summary.md"));
    fs::write(&summary, "of an earlier step\n").expect("written");
    let environment: [(&str, &Path); 3] = [
        ("GITHUB_ACTIONS", Path::new("true")),
        ("GITHUB_WORKSPACE", folder.path()),
        ("GITHUB_STEP_SUMMARY", &summary),
    ];
    let arguments = ["run", "minicodex", "--scenario", "own.yaml", "--annotations", "auto", "--quiet"];
    let output = job(&below, &arguments, &environment);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}{}", text(&output.stderr));
    let commands: Vec<&str> = shown.lines().filter(|line| line.starts_with("::")).collect();
    // GitHub drops what is beyond ten.
    assert_eq!(commands.len(), 10, "{shown}");
    assert!(commands[0].starts_with("::error file=server/own.yaml,line="), "{shown}");
    assert!(commands[9].contains("5 more causes"), "{shown}");
    let line: usize = commands[0]
        .split("line=")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .expect("a line")
        .parse()
        .expect("a number");
    let scenario = fs::read_to_string(below.join("own.yaml")).expect("the scenario");
    assert!(scenario.lines().nth(line - 1).expect("such a line").contains("check: "), "{shown}");
    let told = fs::read_to_string(&summary).expect("the summary");
    assert!(told.starts_with("of an earlier step\n## ❌ not conformant\n"), "{told}");
    assert!(!told.contains("::error"), "{told}");
}

#[test]
fn nothing_is_marked_where_no_ci_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [&["run"], FAULTY, &["--case", "approval/deny-*", "--annotations", "auto"]].concat();
    let shown = text(&job(folder.path(), &arguments, &[]).stdout);
    assert!(shown.contains("MC-APR-8") && !shown.lines().any(|line| line.starts_with("::")), "{shown}");
    assert!(!folder.path().join("gl-code-quality-report.json").exists());
}

#[test]
fn a_job_of_gitlab_gets_a_report_of_code_quality() {
    let folder = failing(2);
    let below = folder.path().join("server");
    let environment: [(&str, &Path); 2] =
        [("GITLAB_CI", Path::new("true")), ("CI_PROJECT_DIR", folder.path())];
    let arguments =
        ["run", "minicodex", "--scenario", "own.yaml", "--annotations", "auto", "--report-dir", "out", "-q"];
    let read = || {
        let output = job(&below, &arguments, &environment);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let report = fs::read_to_string(below.join("out/gl-code-quality-report.json")).expect("the report");
        serde_json::from_str::<Vec<Value>>(&report).expect("a list")
    };
    let issues = read();
    assert_eq!(issues.len(), 2);
    for issue in &issues {
        assert_eq!(issue["severity"], "major");
        assert_eq!(issue["location"]["path"], "server/own.yaml");
        assert!(issue["location"]["lines"]["begin"].as_u64().is_some_and(|line| line > 1));
        assert!(issue["description"].as_str().is_some_and(|text| text.contains("reproduce: ")));
    }
    // GitLab compares the branches by it.
    let fingerprints =
        |issues: &[Value]| issues.iter().map(|one| one["fingerprint"].clone()).collect::<Vec<_>>();
    assert_ne!(issues[0]["fingerprint"], issues[1]["fingerprint"]);
    assert_eq!(fingerprints(&issues), fingerprints(&read()));
}

#[test]
fn a_folder_gets_every_report_and_each_can_be_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = [&["run"], FAULTY, &["--case", "approval/*", "--report-dir", "new/out"]].concat();
    assert_eq!(frameproof(folder.path(), &run).status.code(), Some(1));
    let again = ["report", "new/out/minicodex.jsonl", "--report-dir", "again"];
    assert_eq!(frameproof(folder.path(), &again).status.code(), Some(0));
    for name in ["minicodex.junit.xml", "minicodex.jsonl", "minicodex.html", "minicodex.md"] {
        let read = |folder_name: &str| fs::read(folder.path().join(folder_name).join(name)).expect(name);
        assert!(read("new/out") == read("again"), "{name} differs");
    }
    let own = ["report", "again/minicodex.jsonl", "--report-dir", "again"];
    let output = frameproof(folder.path(), &own);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("would be overwritten"), "{}", text(&output.stderr));
}

/// A folder with a target, and one of programs in which `frameproof` is the one that is tested.
fn repository() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = env!("CARGO_BIN_EXE_frameproof");
    let target = format!(
        "[target.mine]\nprotocol = \"minicodex\"\nurl = \"ws://127.0.0.1:{{{{port}}}}/ws\"\nports = {{ port = 0 }}\n\
         command = [\"{binary}\", \"serve\", \"minicodex\", \"--fault\", \"executes-denied\", \"--listen\", \"127.0.0.1:{{{{port}}}}\"]\n"
    );
    fs::write(folder.path().join("frameproof.toml"), target).expect("written");
    let programs = folder.path().join("bin");
    fs::create_dir(&programs).expect("made");
    std::os::unix::fs::symlink(binary, programs.join("frameproof")).expect("linked");
    (folder, programs)
}

fn path_with(programs: &Path) -> String {
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default())
}

#[test]
fn the_action_does_what_it_says() {
    let (folder, programs) = repository();
    let action = yaml("action.yml");
    let output_file = folder.path().join("outputs");
    let temporary = folder.path().join("tmp");
    let inputs = BTreeMap::from([
        ("target", "mine"),
        ("arguments", "'approval/deny-*' --seed 7"),
        ("working-directory", "."),
    ]);
    let known = action["inputs"].as_object().expect("inputs");
    assert!(inputs.keys().all(|name| known.contains_key(*name)));
    let mut codes = Vec::new();
    let mut shown = String::new();
    for step in action["runs"]["steps"].as_array().expect("steps") {
        let Some(script) = step["run"].as_str() else { continue };
        // Nothing that somebody else writes becomes a part of a script.
        assert!(!script.contains("${{"), "{script}");
        let mut command = Command::new("bash");
        // As the runner calls it.
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(folder.path());
        for (name, value) in step["env"].as_object().expect("env") {
            let value = value.as_str().expect("text");
            let input = value.trim_start_matches("${{ inputs.").trim_end_matches(" }}");
            command.env(name, inputs.get(input).copied().unwrap_or("nowhere"));
        }
        command.env("PATH", path_with(&programs));
        command.env("RUNNER_TEMP", &temporary).env("GITHUB_OUTPUT", &output_file);
        command
            .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
            .env("GITHUB_WORKSPACE", folder.path());
        let output = command.output().expect("bash");
        shown += &(text(&output.stdout) + &text(&output.stderr));
        codes.push(output.status.code());
    }
    assert_eq!(codes, [Some(0), Some(1)], "{shown}");
    assert!(
        shown.contains("::error file=frameproof.toml,line=1,title=minicodex%3A approval/deny-"),
        "{shown}"
    );
    assert!(shown.contains("seed 7"), "{shown}");
    assert!(fs::read_to_string(folder.path().join("summary.md")).expect("the summary").contains("MC-APR-8"));
    let outputs = fs::read_to_string(&output_file).expect("the outputs");
    let reports = outputs.trim().strip_prefix("reports=").expect("the folder of the reports");
    assert!(Path::new(reports).join("minicodex.junit.xml").is_file(), "{outputs}");
}

#[test]
fn the_job_template_does_what_it_says() {
    let (folder, programs) = repository();
    let template = yaml("ci/gitlab.yml");
    let job = &template[".frameproof"];
    let script: Vec<&str> =
        job["script"].as_array().expect("a script").iter().filter_map(Value::as_str).collect();
    let output = Command::new("sh")
        .args(["-ec", &script.join("\n")])
        .current_dir(folder.path())
        .env("PATH", path_with(&programs))
        .env("FRAMEPROOF_INSTALL", "false")
        .env("FRAMEPROOF_ARGUMENTS", "--target mine approval/deny-*")
        .output()
        .expect("sh");
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    let reports = &job["artifacts"]["reports"];
    assert!(folder.path().join(reports["codequality"].as_str().expect("a path")).is_file(), "{shown}");
    let junit = reports["junit"].as_str().expect("a pattern").replace('*', "minicodex");
    assert!(folder.path().join(junit).is_file(), "{shown}");
}

/// Each pod of the indexed Job, as Kubernetes would start it, and the verdict on all.
#[test]
fn the_job_of_kubernetes_does_what_it_says() {
    let job = yaml("ci/kubernetes.yaml");
    let spec = &job["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    let container = &spec["template"]["spec"]["containers"][0];
    // The image has no shell.
    assert!(container.get("command").is_none());
    assert_eq!(container["env"][0]["name"], "INDEX");
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    let pods = spec["completions"].as_u64().expect("a number");
    for index in 0..pods {
        let arguments = container["args"].as_array().expect("arguments").iter().map(|argument| {
            let argument = argument.as_str().expect("text").replace("$(INDEX)", &index.to_string());
            argument.replace("ws://agent:8765/ws", &server.url)
        });
        let output = Command::new(env!("CARGO_BIN_EXE_frameproof"))
            .args(arguments)
            .current_dir(folder.path())
            .env("JOB_COMPLETION_INDEX", index.to_string())
            .output()
            .expect("frameproof");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    }
    let names: Vec<String> = (0..pods).map(|index| format!("shard-{index}.jsonl")).collect();
    let arguments: Vec<&str> = ["merge"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let merged = frameproof(folder.path(), &arguments);
    assert_eq!(merged.status.code(), Some(0), "{}", text(&merged.stdout) + &text(&merged.stderr));
}

#[test]
fn every_command_has_completions_and_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = text(&frameproof(folder.path(), &["--help"]).stdout);
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next().filter(|_| !line.starts_with("   ")))
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 10, "{help}");
    assert_eq!(frameproof(folder.path(), &["man", "--dir", "man"]).status.code(), Some(0));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&frameproof(folder.path(), &["completions", shell]).stdout);
        assert!(commands.iter().all(|name| script.contains(name)), "{shell}");
    }
    for name in commands {
        let page = fs::read_to_string(folder.path().join(format!("man/frameproof-{name}.1"))).expect(name);
        assert!(page.contains(".SH OPTIONS"), "{name}");
    }
    // A shell takes the completions.
    let script = frameproof(folder.path(), &["completions", "bash"]).stdout;
    fs::write(folder.path().join("completions"), script).expect("written");
    let check =
        Command::new("bash").args(["-n", "completions"]).current_dir(folder.path()).output().expect("bash");
    assert!(check.status.success(), "{}", text(&check.stderr));
}
