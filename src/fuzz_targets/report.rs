//! Reports of runs against a hostile server.

use std::collections::BTreeMap;
use std::convert::identity;

use arbitrary::{Result, Unstructured};
use serde_json::Value;

use super::schema_frames::anything;
use crate::report::console::{Console, ConsoleOptions};
use crate::report::{escape, html, json as lines, junit};
use crate::results::Check;
use crate::results::event::{
    Call, CaseReport, Coverage, Failure, FrameRecord, GeneratedStep, LogLine, RequirementResult,
    RequirementText, RunEvent, RunStarted, StepPlace, StopReason, Summary, Verdict, Way,
};
use crate::results::excused::ExcusedList;
use crate::results::window::Window;

/// Whatever texts a run's events hold, JUnit XML has only characters that XML allows, the page no element and no control character of theirs, the console none that a terminal
/// would act on but its own, and JSON lines give the same events again, but for cases that end alike. `fuzz/` and the tests parse the XML besides.
pub fn report(bytes: &[u8]) {
    let events = events(bytes, &identity);
    let text: Vec<String> = events.iter().map(lines::line).collect();
    let read = |text: &[String]| -> Vec<String> {
        let events = lines::read(text.join("\n").as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        events.iter().map(lines::line).collect()
    };
    // Cases that end alike are put together once.
    let once = read(&text);
    assert_eq!(read(&once), once, "a further round trip changes nothing");

    let xml = junit::render(&events).unwrap_or_else(|error| panic!("{error}"));
    let illegal =
        |c: char| (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    assert_eq!(xml.chars().find(|c| illegal(*c)), None, "XML must not hold this");

    let page = html::render(&events);
    let shown = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    assert!(page.chars().all(shown), "no control character reaches a page");
    assert_eq!(page.matches("<script").count(), 1, "no text is an element");

    for verbosity in [-1, 0, 2] {
        let shown = console(&events, verbosity);
        let harmless = console(&self::events(bytes, &sanitized), verbosity);
        for control in ['\u{1b}', '\r', '\u{7}', '\u{9b}', '\u{202e}', '\u{200b}', '\0'] {
            let count = |text: &str| text.chars().filter(|c| *c == control).count();
            assert_eq!(
                count(&shown),
                count(&harmless),
                "{control:?} of a text reaches the terminal:\n{shown:?}"
            );
        }
    }
    for event in &events {
        if let RunEvent::RunStarted(started) = event {
            let text = escape::terminal(&started.target);
            assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
            assert_eq!(escape::terminal(&text), text, "what is escaped needs no escaping");
            assert_eq!(escape::xml(&escape::xml(&started.target)), escape::xml(&started.target));
        }
    }
}

/// The JUnit XML of the run that the bytes describe.
pub fn junit_of(bytes: &[u8]) -> String {
    junit::render(&events(bytes, &identity)).unwrap_or_else(|error| panic!("{error}"))
}

fn console(events: &[RunEvent], verbosity: i8) -> String {
    let mut out = Vec::new();
    let mut console = Console::new(
        &mut out,
        ConsoleOptions { progress: true, verbosity, overview: verbosity > 1, width: None },
    );
    for event in events {
        console.event(event).unwrap_or_else(|error| panic!("{error}"));
    }
    console.finish().unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(out).unwrap_or_else(|error| panic!("{error}"))
}

/// A text without anything that a terminal would stumble over. Each such character has a private one in its place, so that
/// texts that differ still do, and a report groups and compares them in the same way.
fn sanitized(text: String) -> String {
    let private = |c: char| char::from_u32(0xf_0000 + (u32::from(c) & 0xffff)).unwrap_or('x');
    text.chars()
        .map(
            |c| {
                if escape::terminal(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8() {
                    c
                } else {
                    private(c)
                }
            },
        )
        .collect()
}

/// A failure that says `message` (if it is a text) and breaks one requirement.
pub(super) fn failure(message: &Value, id: &str) -> Failure {
    let message = message.as_str().unwrap_or_default();
    Failure::new(Check::Step, Verdict::Failed, message).breaking(&[id.to_owned()])
}

/// The run that the bytes describe, every text of it passed through `map`.
fn events(bytes: &[u8], map: &dyn Fn(String) -> String) -> Vec<RunEvent> {
    let mut maker = Maker { source: Unstructured::new(bytes), map };
    let mut events = Vec::new();
    // Bytes that run out give empty texts and zeros: there is always a run.
    let mut make = || -> Result<()> {
        events.push(RunEvent::RunStarted(Box::new(maker.started()?)));
        for _ in 0..maker.source.int_in_range(1..=3)? {
            events.push(RunEvent::CaseStarted { case: maker.text()?, attempt: 1 });
            events.push(RunEvent::CaseFinished(Box::new(maker.case()?)));
        }
        events.push(RunEvent::RunFinished(Box::new(maker.summary()?)));
        Ok(())
    };
    // What was made before an error stands.
    let _ = make();
    events
}

struct Maker<'b, 'm> {
    source: Unstructured<'b>,
    map: &'m dyn Fn(String) -> String,
}

const WAYS: [Way; 3] = [Way::ToServer, Way::ToClient, Way::Connection];

const VERDICTS: [Verdict; 7] = [
    Verdict::Failed,
    Verdict::Warned,
    Verdict::Error,
    Verdict::Flaky,
    Verdict::Passed,
    Verdict::NotApplicable,
    Verdict::NotExercised,
];

impl Maker<'_, '_> {
    fn text(&mut self) -> Result<String> {
        const HOSTILE: [&str; 12] = [
            "\u{1b}[31m",
            "]]>",
            "<a b='\"&amp;",
            "\u{0}",
            "\u{ffff}\u{fffe}",
            "\r\n::error::",
            "\u{202e}",
            "\u{9b}2J",
            "case/name",
            "A-1",
            "--",
            "\u{200b}\u{7}",
        ];
        let text = match self.source.int_in_range(0..=3u8)? {
            0 => self.source.arbitrary::<String>()?,
            1 => (*self.source.choose(&HOSTILE)?).to_owned(),
            2 => format!("{}{}", self.source.choose(&HOSTILE)?, self.source.choose(&HOSTILE)?),
            _ => self.source.choose(&HOSTILE)?.repeat(usize::from(self.source.arbitrary::<u8>()?)),
        };
        Ok((self.map)(text))
    }

    fn maybe(&mut self) -> Result<Option<String>> {
        if self.source.arbitrary()? { self.text().map(Some) } else { Ok(None) }
    }

    fn seconds(&mut self) -> Result<f64> {
        let wanted = *self.source.choose(&[0.0, 0.5, -1.0, 1e9, 1e300, f64::MAX])?;
        Ok(wanted)
    }

    fn value(&mut self) -> Result<Option<Value>> {
        if !self.source.arbitrary::<bool>()? {
            return Ok(None);
        }
        let value = anything(&mut self.source, 0)?;
        Ok(Some(self.mapped(value)))
    }

    fn mapped(&self, value: Value) -> Value {
        match value {
            Value::String(text) => (self.map)(text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.mapped(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, value)| ((self.map)(key), self.mapped(value))).collect()
            }
            other => other,
        }
    }

    fn started(&mut self) -> Result<RunStarted> {
        let text = RequirementText {
            level: self.text()?,
            area: self.text()?,
            text: self.text()?,
            source: self.text()?,
            reading: self.maybe()?,
        };
        Ok(RunStarted {
            version: self.text()?,
            protocol: self.text()?,
            title: self.text()?,
            target: self.text()?,
            started: self.text()?,
            seed: self.source.arbitrary()?,
            shard: None,
            run_id: self.maybe()?,
            reading: self.text()?,
            cases: 1,
            jobs: 1,
            ends_within: None,
            requirements: BTreeMap::from([("A-1".to_owned(), text)]),
            left_out: 0,
        })
    }

    fn failure(&mut self) -> Result<Failure> {
        let step = StepPlace {
            file: self.text()?,
            line: 1,
            column: 1,
            source: self.text()?,
            pointer: String::new(),
        };
        let id = if self.source.arbitrary()? { "A-1".to_owned() } else { self.text()? };
        let verdict = *self.source.choose(&VERDICTS)?;
        let check = Check::from(self.text()?);
        let failure = Failure::new(check, verdict, self.text()?)
            .breaking(&[id])
            .with_values(self.value()?, self.value()?)
            .shown_by([self.source.int_in_range(0..=3)?]);
        Ok(failure.at_step(self.source.arbitrary::<bool>()?.then_some(step)))
    }

    fn case(&mut self) -> Result<CaseReport> {
        let line = |index: u64, text: String, client: String, way: Way| FrameRecord {
            index,
            ms: 1.0,
            client,
            way,
            kind: None,
            text,
            ambient: false,
            automatic: false,
            cut: 0,
            states: vec!["turn begins".to_owned()],
        };
        let call = Call {
            ms: 1.0,
            ended: Some(2.0),
            request: self.text()?,
            played: self.text()?,
            status: Some(200),
            cancelled: false,
        };
        let step = GeneratedStep { client: self.text()?, what: self.text()?, text: self.text()? };
        Ok(CaseReport {
            case: self.text()?,
            title: self.text()?,
            file: self.text()?,
            line: self.source.arbitrary()?,
            covers: vec![self.text()?],
            verdict: *self.source.choose(&VERDICTS)?,
            reason: self.maybe()?,
            seconds: self.seconds()?,
            started: self.seconds()?,
            failures: vec![self.failure()?],
            earlier: vec![vec![self.failure()?]],
            exercised: BTreeMap::from([(self.text()?, 1)]).into(),
            repeats: 0,
            wire: vec![line(2, self.text()?, self.text()?, *self.source.choose(&WAYS)?)],
            wire_omitted: 0,
            reproduce: self.text()?,
            known: self.maybe()?,
            log: vec![LogLine { ms: 1.0, process: self.text()?, error: false, text: self.text()? }],
            log_omitted: 0,
            model: vec![call],
            steps: vec![step],
            cause: None,
            cued: false,
            embedded: false,
            precise_cause: None,
            same_as: None,
            unoffered: vec![self.text()?],
            windows: vec![Window { line: Some(1), ms: 500, silence: true }],
            excused: ExcusedList::default(),
        })
    }

    fn summary(&mut self) -> Result<Summary> {
        let verdict = *self.source.choose(&VERDICTS)?;
        let result = RequirementResult { verdict, exercised: 1, broken_in: vec![self.text()?] };
        Ok(Summary {
            cases: BTreeMap::from([(verdict, 1)]),
            requirements: BTreeMap::from([(self.text()?, result)]),
            stale_baseline: vec![self.text()?],
            hints: Vec::new(),
            unoffered: BTreeMap::from([(self.text()?, 1)]),
            excused: ExcusedList::default(),
            coverage: Some(Coverage { states: vec![self.text()?], commands: vec![(self.text()?, vec![1])] }),
            stopped: *self.source.choose(&[
                None,
                Some(StopReason::FailFast),
                Some(StopReason::Interrupted),
            ])?,
            seconds: self.seconds()?,
            exit_code: *self.source.choose(&[0, 1, 2, 3, 130])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_is_made_of_any_bytes() {
        assert!(events(&[], &identity).len() >= 2);
        let many = [7u8; 4096];
        assert!(events(&many, &identity).iter().any(|event| matches!(event, RunEvent::RunFinished(_))));
        assert_eq!(sanitized("a\u{1b}é\n".into()), "a\u{f001b}é\u{f000a}");
        assert_eq!(failure(&json!("m"), "A-1").message, "m");
    }
}
