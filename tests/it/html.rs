//! The page: the same from the run and from its events, safe whatever a server sends, small, and as a browser takes it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use frameproof::report::annotations::{self, Places};
use frameproof::report::html::render;
use frameproof::report::markdown;
use frameproof::results::Check;
use frameproof::results::event::{
    CaseReport, Failure, FrameRecord, LogLine, RequirementResult, RequirementText, RunEvent, RunStarted,
    StepPlace, Summary, Verdict, Way,
};

use crate::support::{Served, frameproof, hand, text};

const HOSTILE: &str = "</pre></title><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> \
     ]]>--><!-- ' \" & &amp; \u{0}\u{1b}[31m\u{7}\r\u{202e}\u{2066}\u{200b}\u{fffe}\u{85} ##[error]x ::error::y javascript:owned()";

fn started(text: &str) -> RunStarted {
    let requirement = RequirementText {
        level: text.into(),
        area: text.into(),
        text: text.into(),
        source: text.into(),
        reading: Some(text.into()),
    };
    RunStarted {
        version: text.into(),
        protocol: text.into(),
        title: text.into(),
        target: text.into(),
        started: text.into(),
        run_id: Some(text.into()),
        seed: 42,
        reading: text.into(),
        cases: 5,
        jobs: 1,
        shard: None,
        requirements: BTreeMap::from([("CH-1".to_owned(), requirement)]),
    }
}

fn frame(index: u64, way: Way, text: &str) -> FrameRecord {
    let kind = index.is_multiple_of(2).then(|| text.to_owned());
    FrameRecord {
        index,
        ms: index as f64,
        client: text.into(),
        way,
        kind,
        text: text.into(),
        ambient: false,
        cut: 7,
    }
}

fn case(name: &str, verdict: Verdict, text: &str) -> CaseReport {
    let step =
        StepPlace { file: text.into(), line: 3, column: 1, source: text.into(), pointer: String::new() };
    let failure = Failure::new(Check::Step, Verdict::Failed, text)
        .breaking(&["CH-1".to_owned(), text.to_owned()])
        .at_step(Some(step))
        .with_values(Some(serde_json::json!({ "a": text })), Some(serde_json::json!({ "a": 1, "b": text })))
        .shown_by([1]);
    let ways = [Way::Connection, Way::ToServer, Way::ToClient];
    CaseReport {
        case: format!("{text}/{name}"),
        title: text.into(),
        file: text.into(),
        covers: vec!["CH-1".to_owned(), text.to_owned()],
        verdict,
        reason: Some(text.into()),
        seconds: 0.25,
        failures: vec![failure.clone()],
        earlier: vec![vec![failure]],
        wire: (0..6).map(|index| frame(index, ways[index as usize % 3], text)).collect(),
        log: vec![LogLine { ms: 1.5, process: text.into(), error: true, text: text.into() }],
        reproduce: text.into(),
        known: Some(text.into()),
        embedded: true,
        ..CaseReport::default()
    }
}

fn events(text: &str) -> Vec<RunEvent> {
    let verdicts = [
        Verdict::Passed,
        Verdict::Failed,
        Verdict::Warned,
        Verdict::Flaky,
        Verdict::Error,
        Verdict::Known,
        Verdict::NotApplicable,
    ];
    let cases =
        verdicts.into_iter().enumerate().map(|(index, verdict)| case(&index.to_string(), verdict, text));
    let like = CaseReport { same_as: Some(format!("{text}/1")), ..case("like", Verdict::Failed, text) };
    let result = |verdict| RequirementResult { verdict, exercised: 2, broken_in: vec![text.to_owned()] };
    let summary = Summary {
        cases: BTreeMap::from([(Verdict::Failed, 1)]),
        requirements: BTreeMap::from([
            ("CH-1".to_owned(), result(Verdict::Failed)),
            // Behind the other whatever the text is.
            (format!("~{text}-2"), result(Verdict::NotApplicable)),
        ]),
        hints: vec![text.to_owned()],
        stale_baseline: vec![text.to_owned()],
        exit_code: 1,
        ..Summary::default()
    };
    let cases = cases.chain([like]).map(|case| RunEvent::CaseFinished(Box::new(case)));
    let end = RunEvent::RunFinished(Box::new(summary));
    std::iter::once(RunEvent::RunStarted(Box::new(started(text)))).chain(cases).chain([end]).collect()
}

/// The names of a page's tags and of their attributes, in their order.
fn structure(page: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), page);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("every tag ends");
        let (tag, behind) = rest.split_at(end);
        // Values are in double quotes, in which no quote stands.
        let names = tag.split('"').step_by(2).map(|part| part.trim().trim_end_matches('='));
        found.push(names.collect::<Vec<_>>().join(" "));
        rest = behind;
        // What stands in these is our own.
        for own in ["style", "script"] {
            if tag == own {
                rest = &rest[rest.find("</").expect("an end")..];
            }
        }
    }
    found
}

#[test]
fn what_ci_is_told_is_text_too() {
    let events = events(HOSTILE);
    let rendered = markdown::render(&events);
    // What stands between fences is shown as it is.
    let mut fenced = false;
    let mut is_fenced = |line: &&str| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        fenced || fence
    };
    let summary: String = rendered.lines().filter(|line| !is_fenced(line)).collect();
    assert!(!rendered.contains("::error") && !fenced, "{rendered}");
    assert!(
        !summary.contains("<script") && !summary.contains("<img") && !summary.contains("::error"),
        "{summary}"
    );
    let places = Places::default();
    let commands = annotations::github(&events, &places);
    for line in commands.lines() {
        let rest =
            line.strip_prefix("::error ").or_else(|| line.strip_prefix("::warning ")).expect("a command");
        assert!(!rest.contains("::error") && !rest.contains("##["), "{line}");
    }
    let issues: Vec<serde_json::Value> =
        serde_json::from_str(&annotations::gitlab(&events, &places)).expect("a list");
    assert_eq!(issues.len(), commands.lines().count());
}

#[test]
fn a_summary_is_as_long_as_github_takes() {
    let long = "\u{202e}<&*x ".repeat(100_000);
    let shown = markdown::render(&events(&long));
    assert!(shown.len() < markdown::MAX_BYTES && shown.contains("CH-1"), "{}", shown.len());
}

#[test]
fn no_text_is_more_than_text() {
    let (hostile, tame) = (render(&events(HOSTILE)), render(&events("said")));
    let (one, other) = (structure(&hostile), structure(&tame));
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    assert_eq!((differs, one.len()), (None, other.len()), "a text has made or unmade an element");
    assert_eq!(hostile.matches("<script>").count(), 1, "our own");
    let treacherous = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{2066}\u{200b}\u{fffe}\u{85}".contains(c)
    };
    assert_eq!(hostile.find(treacherous), None);
    assert!(hostile.contains("\\u{202e}\\u{2066}\\u{200b}\\u{fffe}\\u{85}"), "they are shown");
    assert!(hostile.contains("&lt;script&gt;document.title"), "and so are tags");
    assert!(!hostile.contains("##[") && !hostile.contains(" ::error"), "no command to a runner of CI");
    assert!(hostile.contains("default-src 'none'; style-src 'sha256-"), "the policy");
}

#[test]
fn long_texts_are_cut() {
    let page = render(&events(&"<&x\u{202e}".repeat(250_000)));
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
}

#[test]
fn a_thousand_failures_are_less_than_5_mb() {
    let ways = [Way::ToServer, Way::ToClient];
    let body = format!("{{\"type\":\"said\",\"text\":\"{}\",\"list\":[1,2,3]}}", "x".repeat(1_900));
    let failed = |index: u64| {
        let name = format!("case-{index:04}");
        let frame = |index: u64| FrameRecord {
            client: "alice".into(),
            kind: Some("said".into()),
            cut: 0,
            ..frame(index, ways[index as usize % 2], &body)
        };
        let plain = CaseReport {
            case: format!("family/{name}"),
            wire: (0..60).map(frame).collect(),
            log: Vec::new(),
            ..case(&name, Verdict::Failed, "it broke")
        };
        RunEvent::CaseFinished(Box::new(plain))
    };
    let begin = RunEvent::RunStarted(Box::new(started("chat")));
    let page = render(&std::iter::once(begin).chain((0..1000).map(failed)).collect::<Vec<_>>());
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<article").count(), 1000, "each is told, if only in brief");
    assert!(page.contains("The frames are left out, so that the page stays small."));
}

fn written(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).expect(file)
}

#[test]
fn the_page_is_made_again_from_the_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments =
        ["run", "minicodex", "--fault", "acks-twice", "--case", "abort/*", "--html", "out/run.html"];
    let output = frameproof(folder.path(), &[&arguments[..], &["--json", "run.jsonl"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let again = frameproof(folder.path(), &["report", "run.jsonl", "--html", "again.html"]);
    assert_eq!((again.status.code(), text(&again.stdout).as_str()), (Some(0), ""), "{}", text(&again.stderr));
    let page = written(folder.path(), "out/run.html");
    assert_eq!(page, written(folder.path(), "again.html"));
    for part in [
        "<title>minicodex: not conformant</title>",
        "id=\"case=minicodex/abort/abort-named-run\"",
        "id=\"req=MC-ENV-11\"",
        "href=\"#req=MC-ENV-11\"",
        "this frame shows the failure",
        ">accepted</text>",
        "<b>model</b> ",
        "frameproof run minicodex --fault acks-twice --seed 1 --case abort/",
        "more cases with the same cause",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
}

#[test]
fn a_run_of_all_has_one_page_beside_its_other_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["run", "--case", "*/ping*", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = written(folder.path(), "reports/frameproof.html");
    assert!(page.contains(": conformant</title>") && page.contains("Nothing failed"), "{}", &page[..2_000]);
}

/// A browser, if there is one.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let mut found = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    found.find(|file| file.is_file())
}

/// What a browser makes of a page, and what it tells meanwhile.
fn browsed(browser: &Path, folder: &Path, page: &str) -> (String, String) {
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--virtual-time-budget=2000", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", folder.join(page).display()))
        .stdout(Stdio::piped())
        .stderr(fs::File::create(folder.join("log")).expect("a log"))
        .spawn()
        .expect("the browser runs");
    let mut dom = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut dom).expect("text");
    child.wait().expect("it ends");
    (dom, written(folder, "log"))
}

#[test]
fn a_browser_runs_our_script_and_none_of_a_servers() {
    let Some(browser) = chromium() else {
        eprintln!("SKIPPED: there is no Chromium");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    // What a page would have to ask for is asked of nobody.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let url = hand::altered(&server.url, |text| {
        let said = r#"{"type":"</pre><script>document.title='owned'</script>","x":"\u202e"#;
        text.replacen("{\"type\":\"", said, 1)
    });
    let run = ["run", "minicodex", "--url", &url, "--case", "abort/*", "--html", "run.html", "--quiet"];
    assert_eq!(frameproof(folder.path(), &run).status.code(), Some(1));
    let image =
        format!("<img src='http://127.0.0.1:{port}/'><link rel=stylesheet href='http://127.0.0.1:{port}/'>");
    fs::write(folder.path().join("made.html"), render(&events(&format!("{HOSTILE}{image}"))))
        .expect("written");
    for page in ["run.html", "made.html"] {
        let (dom, log) = browsed(&browser, folder.path(), page);
        assert!(dom.contains("</html>"), "{page}: {log}");
        assert!(!dom.contains("<title>owned"), "{page}: a script of the server's ran");
        assert!(
            dom.contains("<form id=\"filter\" role=\"search\">"),
            "{page}: our script has not run: {log}"
        );
        assert!(!log.contains("CONSOLE"), "{page}: {log}");
    }
    assert!(listener.accept().is_err(), "a page has asked for something");
}
