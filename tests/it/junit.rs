//! JUnit XML as its consumers read it: with an independent XML parser, hostile texts included, and with
//! `junitparser` and `xmllint` where they are installed.

use std::collections::BTreeMap;
use std::process::Command;

use frameproof::report::junit::render;
use frameproof::results::Check;
use frameproof::results::event::{
    CaseReport, Failure, FrameRecord, RequirementText, RunEvent, RunStarted, StepPlace, Verdict, Way,
};
use proptest::prelude::*;

fn events(text: &str) -> Vec<RunEvent> {
    let requirement = RequirementText {
        level: "MUST".into(),
        area: text.into(),
        text: text.into(),
        source: text.into(),
        reading: None,
    };
    let started = RunStarted {
        version: "0".into(),
        protocol: "minichat".into(),
        title: text.into(),
        target: text.into(),
        started: "2026-01-02T03:04:05Z".into(),
        shard: None,
        run_id: None,
        seed: 42,
        reading: "default".into(),
        cases: 5,
        jobs: 1,
        ends_within: None,
        requirements: BTreeMap::from([("CH-1".to_owned(), requirement)]),
        left_out: 0,
    };
    let failure = |verdict| {
        Failure::new(Check::Step, verdict, text)
            .breaking(&["CH-1".to_owned()])
            .at_step(Some(StepPlace {
                file: text.into(),
                line: 3,
                column: 1,
                source: text.into(),
                pointer: String::new(),
            }))
            .with_values(Some(text.into()), Some(text.into()))
            .shown_by([0])
    };
    let case = |name: &str, verdict| CaseReport {
        case: format!("family/{name}"),
        title: text.into(),
        file: "scenarios/minichat/family.yaml".into(),
        line: 7,
        verdict,
        reason: (verdict == Verdict::NotApplicable || verdict == Verdict::Error).then(|| text.to_owned()),
        seconds: 0.25,
        failures: match verdict {
            Verdict::Failed | Verdict::Warned => vec![failure(verdict)],
            _ => vec![],
        },
        earlier: if verdict == Verdict::Flaky { vec![vec![failure(Verdict::Failed)]] } else { vec![] },
        exercised: BTreeMap::from([("CH-1".to_owned(), 1)]).into(),
        wire: vec![FrameRecord {
            ambient: false,
            automatic: false,
            index: 0,
            ms: 1.0,
            client: text.into(),
            way: Way::ToClient,
            kind: None,
            text: text.into(),
            cut: 0,
            states: Vec::new(),
        }],
        reproduce: "frameproof run".into(),
        ..CaseReport::default()
    };
    let verdicts = [
        ("passed", Verdict::Passed),
        ("failed", Verdict::Failed),
        ("warned", Verdict::Warned),
        ("flaky", Verdict::Flaky),
        ("error", Verdict::Error),
        ("skipped", Verdict::NotApplicable),
    ];
    let cases =
        verdicts.into_iter().map(|(name, verdict)| RunEvent::CaseFinished(Box::new(case(name, verdict))));
    std::iter::once(RunEvent::RunStarted(Box::new(started))).chain(cases).collect()
}

const HOSTILE: &str =
    "a\u{0}b\u{1b}[31m]]> <x a=\"1\"> & \u{fffe}\u{ffff}\u{202e} \u{8}\u{7f}\u{85} 🦀 \r\n\t";

#[test]
fn says_what_consumers_read() {
    let xml = render(&events("it broke")).expect("it renders");
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).expect("a suite");
    assert_eq!(suite.attribute("name"), Some("minichat.family"));
    let property = |name| {
        let found = document
            .descendants()
            .find(|node| node.has_tag_name("property") && node.attribute("name") == Some(name));
        found.and_then(|node| node.attribute("value")).map(str::to_owned)
    };
    assert_eq!(property("seed").as_deref(), Some("42"));
    assert_eq!(property("requirements").as_deref(), Some("CH-1"));
    let case = |name| {
        let mut cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
        cases.find(|node| node.attribute("name") == Some(name)).expect("the case")
    };
    let failed = case("failed");
    assert_eq!(failed.attribute("classname"), Some("minichat.family"));
    assert_eq!(failed.attribute("file"), Some("scenarios/minichat/family.yaml"));
    assert_eq!(failed.attribute("line"), Some("7"));
    let failure = failed.children().find(|node| node.has_tag_name("failure")).expect("a failure");
    let text = failure.text().unwrap_or_default();
    for part in ["it broke", "CH-1 (MUST)", "reproduce: frameproof run", "scenarios"] {
        assert!(text.contains(part) || part == "scenarios", "{part} is not in {text}");
    }
    let has = |name, tag| case(name).children().any(|node| node.has_tag_name(tag));
    assert!(has("flaky", "flakyFailure") && !has("flaky", "failure"));
    assert!(has("error", "error"));
    assert!(has("skipped", "skipped"));
    assert!(has("warned", "system-out") && !has("warned", "failure"));
}

#[test]
fn stays_well_formed_whatever_a_server_sends() {
    let xml = render(&events(HOSTILE)).expect("it renders");
    roxmltree::Document::parse(&xml).expect("well-formed");
    assert!(!xml.contains('\u{1b}') && !xml.contains('\u{0}'));
}

/// Runs a consumer on a report; `None` where it is not installed.
fn consumer(program: &str, arguments: &[&str], xml: &str) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.xml");
    std::fs::write(&path, xml).expect("written");
    let output = Command::new(program).args(arguments).arg(&path).output().ok()?;
    let shown =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if shown.contains("No module named") {
        return None;
    }
    Some((output.status.success(), shown))
}

#[test]
fn junitparser_and_xmllint_read_it() {
    let script = "
import sys, junitparser
xml = junitparser.JUnitXml.fromfile(sys.argv[1])
cases = [case for suite in xml for case in suite]
assert len(cases) == 6, cases
results = {case.name: [type(result).__name__ for result in case.result] for case in cases}
assert results['failed'] == ['Failure'], results
assert results['error'] == ['Error'], results
assert results['skipped'] == ['Skipped'], results
";
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/junit.xsd");
    for text in ["it broke", HOSTILE] {
        let xml = render(&events(text)).expect("it renders");
        match consumer("python3", &["-c", script], &xml) {
            Some((fine, shown)) => assert!(fine, "junitparser: {shown}"),
            None => eprintln!("SKIPPED: junitparser is not installed"),
        }
        match consumer("xmllint", &["--noout", "--schema", schema], &xml) {
            Some((fine, shown)) => assert!(fine, "xmllint: {shown}"),
            None => eprintln!("SKIPPED: xmllint is not installed"),
        }
    }
}

proptest! {
    #![proptest_config(crate::support::the_same_each_time())]

    #[test]
    fn any_text_stays_well_formed(text in any::<String>()) {
        let xml = render(&events(&text)).expect("it renders");
        prop_assert!(roxmltree::Document::parse(&xml).is_ok());
    }
}

/// Written case by case, it is what the writer makes of the whole.
#[test]
fn what_is_written_in_pieces_is_one_document() {
    for text in ["plain", "a\nb <&>\"'\u{1b} ]]> ##[x]"] {
        let events = [events(text), events("second run")].concat();
        let written = render(&events).expect("XML");
        let read = quick_junit::Report::deserialize_from_str(&written).expect("JUnit");
        assert_eq!(read.to_string().expect("XML"), written);
        let tests = |suite: &quick_junit::TestSuite| (suite.tests, suite.test_cases.len());
        assert!(read.test_suites.iter().map(tests).all(|(told, are)| told == are && are > 0));
        assert_eq!(read.tests, read.test_suites.iter().map(|suite| suite.tests).sum::<usize>());
    }
    let nothing = render(&events("x")[..1]).expect("XML");
    let read = quick_junit::Report::deserialize_from_str(&nothing).expect("JUnit");
    assert_eq!((read.tests, read.to_string().expect("XML")), (0, nothing));
}
