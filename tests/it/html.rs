//! The page: the same from the run and from its events, safe whatever a server sends, small, and as a browser takes it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::OnceLock;

use frameproof::report::annotations::{self, Places};
use frameproof::report::html::render;
use frameproof::report::markdown;
use frameproof::results::Check;
use frameproof::results::event::{
    Call, CaseReport, Coverage, Failure, FrameRecord, GeneratedStep, LogLine, RequirementResult,
    RequirementText, RunEvent, RunStarted, StepPlace, Summary, Verdict, Way,
};

use crate::support::{Served, frameproof, hand, text};

pub(crate) const HOSTILE: &str = "</pre></title><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> \
     ]]>--><!-- ' \" & &amp; \u{0}\u{1b}[31m\u{7}\r\u{202e}\u{2066}\u{200b}\u{fffe}\u{85} ##[error]x ::error::y javascript:owned()";

pub(crate) fn started(text: &str) -> RunStarted {
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
        ends_within: None,
        shard: None,
        requirements: BTreeMap::from([("CH-1".to_owned(), requirement)]),
        left_out: 0,
    }
}

pub(crate) fn frame(index: u64, way: Way, text: &str) -> FrameRecord {
    let kind = index.is_multiple_of(2).then(|| text.to_owned());
    FrameRecord {
        index,
        ms: index as f64,
        client: text.into(),
        way,
        kind,
        text: text.into(),
        ambient: false,
        automatic: false,
        cut: 7,
        states: vec![text.into()],
    }
}

pub(crate) fn case(name: &str, verdict: Verdict, text: &str) -> CaseReport {
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
        model: vec![Call {
            ms: 1.2,
            ended: Some(4.0),
            request: text.into(),
            played: text.into(),
            status: Some(200),
            cancelled: false,
        }],
        steps: vec![GeneratedStep { client: text.into(), what: text.into(), text: text.into() }],
        reproduce: text.into(),
        known: Some(text.into()),
        embedded: true,
        ..CaseReport::default()
    }
}

pub(crate) fn events(text: &str) -> Vec<RunEvent> {
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
        coverage: Some(Coverage {
            states: vec![text.to_owned(), "~".to_owned()],
            commands: vec![(text.to_owned(), vec![0, 7])],
        }),
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
            states: Vec::new(),
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

pub(crate) fn written(folder: &Path, file: &str) -> String {
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
        "▶ </span>turn begins</b>",
        "<rect class=\"busy\"",
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

/// The frames of passed cases are on the page only where that is wanted, and then in the events, too.
#[test]
fn frames_of_passed_cases_are_kept_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, more: &[&str]| {
        let (page, lines) = (format!("{name}.html"), format!("{name}.jsonl"));
        let run = ["run", "minicodex", "--case", "approval/*", "--quiet", "--html", &page, "--json", &lines];
        let output = frameproof(folder.path(), &[&run[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let again = frameproof(folder.path(), &["report", &lines, "--html", "again.html"]);
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
        let page = written(folder.path(), &page);
        assert_eq!(page, written(folder.path(), "again.html"), "{name}");
        page
    };
    let (brief, all) = (run("brief", &[]), run("all", &["--html-frames", "all"]));
    let cases = brief
        .matches("data-verdict=\"passed\"><td>")
        .count()
        .max(all.matches("<details class=\"diagram\"").count());
    assert!(cases >= 15, "{cases}");
    assert_eq!(brief.matches("class=\"sequence").count(), 0);
    assert_eq!(all.matches("class=\"sequence").count(), cases);
    for part in
        ["</span>alice: awaiting-approval</b>", "▶ </span>turn begins</b>", ">approval_pending</text>"]
    {
        assert!(all.contains(part) && !brief.contains(part), "{part}");
    }
}

/// Where the scripted model of a run listens.
static MODEL: OnceLock<String> = OnceLock::new();

/// Asks the model what the text tells it, as a server does.
fn ask(text: &str) {
    let Some((_, cue)) = text.split_once("[[cue:") else { return };
    let Some((cue, _)) = cue.split_once("]]") else { return };
    let body = serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": format!("[[cue:{cue}]]") }] });
    let (address, body) = (MODEL.get().expect("an address"), body.to_string());
    let mut stream = std::net::TcpStream::connect(address).expect("the model");
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// A server that asks the scripted model has it as a lifeline, with what was asked and what was played, and when.
#[test]
fn the_model_has_a_lifeline_where_it_was_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    MODEL.set(free.to_string()).expect("once");
    let server = Served::start(&["minicodex", "--fault", "acks-twice"]);
    let url = hand::altered(&server.url, |text| {
        if text.contains("\"user_text\"") {
            ask(text);
        }
        text.to_owned()
    });
    let config = format!("[target.mine]\nprotocol = 'minicodex'\nurl = '{url}'\nmodel = '{free}'\n");
    fs::write(folder.path().join("frameproof.toml"), config).expect("written");
    let run = [
        "run",
        "--target",
        "mine",
        "--case",
        "streaming/two-turns",
        "--html",
        "run.html",
        "--json",
        "run.jsonl",
    ];
    let output = frameproof(folder.path(), &run);
    assert_eq!(output.status.code(), Some(1), "{}{}", text(&output.stdout), text(&output.stderr));
    let page = written(folder.path(), "run.html");
    for part in [
        "sequence of-1 with-model",
        "Clients: alice, the server and the scripted model",
        ">POST /v1/chat/completions</text>",
        ">200 answer</text>",
        "the model answers: 200 answer",
        "<b>model</b> says “",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
    let again = frameproof(folder.path(), &["report", "run.jsonl", "--html", "again.html"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(page, written(folder.path(), "again.html"));
}
