//! What people write, and what is read from disk: traces, scenarios, protocols, overlays, baselines.

use std::io::BufReader;
use std::time::Duration;

use super::{all_rules_protocol, shipped};
use crate::check::Judge;
use crate::frame::Limits;
use crate::protocol::{Protocol, ReadingName};
use crate::report::escape::terminal;
use crate::results::baseline::Baseline;
use crate::source::{Diagnostics, Document};
use crate::trace::{Event, Reader, write_line};

/// Up to this many nanoseconds (26 days) a time comes back exactly from its milliseconds in the file.
const EXACT: Duration = Duration::from_nanos(1 << 51);

/// The trace reader on any bytes: what it reads can be written and read again, and how the bytes arrive makes no
/// difference.
pub fn trace(bytes: &[u8]) {
    let (events, error) = read(Reader::new("t", bytes));
    let (slowly, same_error) = read(Reader::new("t", BufReader::with_capacity(7, bytes)));
    assert_eq!((&slowly, &same_error), (&events, &error), "the size of reads makes a difference");
    if let Some(error) = error {
        assert!(error.starts_with("t:"), "{error} has no place");
        assert!(terminal(&error).chars().all(|c| !c.is_control()));
    }
    let mut text = Vec::new();
    events.iter().for_each(|event| write_line(event, &mut text).expect("a vector takes all"));
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), events.len(), "one line an event");
    let (again, error) = read(Reader::new("t", &text[..]));
    assert_eq!(error, None, "what was written can be read");
    for (event, again) in events.iter().zip(&again) {
        let mut again = again.clone();
        if event.at > EXACT {
            again.at = event.at;
        }
        assert_eq!(&again, event, "a round trip changes nothing");
    }
    assert_eq!(events.len(), again.len());
}

fn read(reader: Reader<impl std::io::BufRead>) -> (Vec<Event>, Option<String>) {
    let mut events = Vec::new();
    for event in reader {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error.to_string())),
        }
    }
    (events, None)
}

/// Errors are shown with nothing in them that a terminal would act on, and say something.
fn shown(errors: &Diagnostics) {
    assert!(!errors.0.is_empty(), "an error without a reason");
    for error in &errors.0 {
        assert!(!error.message.is_empty(), "an error says what is wrong");
        if let Some((document, span)) = &error.place {
            assert!(span.start <= span.end && span.start <= document.text.len(), "{span:?} is no place");
        }
    }
    let text = errors.to_string();
    let treacherous = text.lines().find(|line| terminal(line) != *line);
    assert_eq!(treacherous, None, "an error would be acted on by a terminal");
}

fn document(name: &str, text: &str) -> Option<Document> {
    match Document::parse(name, text) {
        Ok(document) => Some(document),
        Err(errors) => {
            shown(&errors);
            None
        }
    }
}

/// The scenario loader. A first line `# NAME` says for which shipped protocol the file is; else it is the first one.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let named = text.lines().next().and_then(|line| line.strip_prefix("# "));
    let named = named.and_then(|name| shipped().iter().find(|protocol| protocol.name == name.trim()));
    let Some(protocol) = named.or(shipped().first()) else { return };
    let Some(document) = document("s.yaml", text) else { return };
    match crate::scenario::from_documents([document.clone()], protocol) {
        Err(errors) => shown(&errors),
        Ok(cases) => {
            for case in &cases {
                assert_eq!(case.id, format!("{}/{}", case.family, case.name()));
                assert!((1..=text.lines().count() + 1).contains(&case.line), "line {} is none", case.line);
                for id in case.covered() {
                    assert!(protocol.requirements.get(&id).is_some(), "{id} is no requirement");
                }
                for step in 0..case.case.steps.len() {
                    let (line, column, _) = case.place(&format!("/steps/{step}"));
                    assert!(line >= 1 && column >= 1);
                }
            }
            let again = crate::scenario::from_documents([document.clone(), document], protocol);
            assert_eq!(again.is_err(), !cases.is_empty(), "the same cases twice are refused");
        }
    }
}

/// What divides the two files of a protocol in one input.
pub(super) const DIVIDER: &str = "\n--- requirements.yaml\n";

/// The protocol loader, on `asyncapi.yaml`, a divider, and `requirements.yaml` (without one: a small catalogue of ours).
/// What loads can be used: under every reading its examples are valid, and a judge can be made of it.
pub fn protocol(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (api, catalogue) = text.split_once(DIVIDER).unwrap_or((text, all_rules_protocol::REQUIREMENTS));
    let (Some(api), Some(catalogue)) =
        (document("asyncapi.yaml", api), document("requirements.yaml", catalogue))
    else {
        return;
    };
    for reading in [ReadingName::Default, ReadingName::Strict, ReadingName::Lenient] {
        match Protocol::from_documents("fuzzed", &api, &catalogue, reading, &[]) {
            Ok(protocol) => usable(&protocol),
            Err(errors) => shown(&errors),
        }
    }
}

fn usable(protocol: &std::sync::Arc<Protocol>) {
    for message in &protocol.messages {
        assert!(!message.examples.is_empty(), "{} has no example", message.name);
        for example in &message.examples {
            assert!(message.validate(example).is_empty(), "an example of {} is not valid", message.name);
        }
        assert!(protocol.message_named(&message.name, message.dir).is_ok(), "{} is not found", message.name);
        message.absent.iter().for_each(|id| assert!(protocol.requirements.get(id).is_some(), "{id}"));
    }
    let judge = Judge::new(std::sync::Arc::clone(protocol), Limits::default(), &[]);
    judge.unwrap_or_else(|errors| panic!("what loads has monitors: {errors}")).finish(true);
}

/// The overlay loader: a merge patch on a small protocol of ours is refused with a reason, or gives a usable protocol.
pub fn overlay(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(overlay) = document("overlay.yaml", text) else { return };
    let (api, catalogue) = all_rules_protocol::documents();
    match Protocol::from_documents("lab", api, catalogue, ReadingName::Default, &[overlay]) {
        Ok(protocol) => usable(&protocol),
        Err(errors) => shown(&errors),
    }
}

/// The baseline loader: what loads excuses failures that it names, and says of the rest that they are stale.
pub fn baseline(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(document) = document("baseline.yaml", text) else { return };
    match Baseline::from_document(&document, "2026-07-01") {
        Err(errors) => shown(&errors),
        Ok(mut baseline) => {
            let entries = document.value["known"].as_array().map_or(0, Vec::len);
            let none = std::collections::BTreeSet::new();
            assert_eq!(
                baseline
                    .stale(&none, &std::collections::BTreeSet::new(), &std::collections::BTreeSet::new())
                    .0
                    .len(),
                entries,
                "an entry that excuses nothing is stale"
            );
            baseline.partial = true;
            let known = document.value["known"].as_array().into_iter().flatten();
            let failures: Vec<_> =
                known.map(|known| super::report::failure(&known["message"], "A-1")).collect();
            let (excuses, used) = baseline.excuses("family/case", &failures);
            assert_eq!(excuses.len(), failures.len());
            let fits = excuses.iter().flatten().all(|one| one.entry < entries && used.contains(&one.entry));
            assert!(fits, "what excuses a failure has its use");
        }
    }
}
