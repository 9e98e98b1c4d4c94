//! An example of each kind of monitor: what it is told, a trace that passes, and one that does not.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Exercised, Judge, Violation};
use crate::frame::Limits;
use crate::protocol::{Protocol, ReadingName};
use crate::source::{Diagnostic, Diagnostics, Document, duration};
use crate::trace::{Direction, End, Event, Payload};

/// The examples, as they are shown.
const TEXT: &str = include_str!("examples.yaml");
/// Requirements that an example can name: EX-1 to this.
const MOST_IDS: usize = 4;

/// An example of a kind of monitor, as it is shown.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitorExample {
    /// What the protocol needs besides, as YAML.
    #[serde(default)]
    pub extension: String,
    /// The monitor's parameters, as YAML.
    pub monitor: String,
    /// A trace that passes, an event a line.
    pub passes: String,
    /// One that does not.
    pub fails: String,
}

/// What a trace comes to.
#[derive(Debug)]
pub struct Judged {
    /// What it breaks.
    pub violations: Vec<Violation>,
    /// What it exercises.
    pub exercised: Exercised,
}

/// The examples, by the name of the monitor.
pub fn examples() -> &'static IndexMap<String, MonitorExample> {
    static EXAMPLES: LazyLock<IndexMap<String, MonitorExample>> = LazyLock::new(|| {
        let document = Document::parse("examples.yaml", TEXT).unwrap_or_else(|errors| panic!("{errors}"));
        serde_json::from_value((*document.value).clone())
            .unwrap_or_else(|error| panic!("the examples: {error}"))
    });
    &EXAMPLES
}

impl MonitorExample {
    /// Judges one of its traces by its monitor alone.
    ///
    /// # Errors
    /// A line that is no event, or a monitor that does not load.
    pub fn judge(&self, kind: &str, trace: &str) -> Result<Judged, Diagnostics> {
        let known = [events(&self.passes)?, events(&self.fails)?].concat();
        let mut judge = Judge::new(self.protocol(kind, &known)?, Limits::default(), &[])?;
        let mut violations = Vec::new();
        for event in events(trace)? {
            violations.extend(judge.observe(&event).violations);
        }
        let end = judge.finish(true);
        violations.extend(end.violations);
        Ok(Judged { violations, exercised: end.exercised })
    }

    /// A protocol of the messages that its traces have.
    fn protocol(&self, kind: &str, events: &[Event]) -> Result<Arc<Protocol>, Diagnostics> {
        let (mut messages, mut operations) = (Map::new(), [Vec::new(), Vec::new()]);
        let mut known = BTreeSet::new();
        for event in events {
            let Payload::Text(text) = &event.payload else { continue };
            let body: Value = serde_json::from_str(text).unwrap_or_default();
            let name = body["type"].as_str().unwrap_or_default().to_owned();
            if known.insert(name.clone()) {
                let payload = json!({ "type": "object", "properties": { "type": { "const": name } } });
                let reference = json!({ "$ref": format!("#/components/messages/{name}") });
                operations[usize::from(event.dir == Direction::Recv)].push(reference);
                messages.insert(name, json!({ "payload": payload, "examples": [{ "payload": body }] }));
            }
        }
        // A protocol has turns, which no example is about.
        for (side, name) in ["begin", "over"].into_iter().enumerate() {
            let payload = json!({ "type": "object", "properties": { "type": { "const": name } } });
            let message = json!({ "payload": payload, "examples": [{ "payload": { "type": name } }] });
            messages.insert(name.to_owned(), message);
            operations[side].push(json!({ "$ref": format!("#/components/messages/{name}") }));
        }
        let [up, down] = operations;
        let mut document = json!({
            "asyncapi": "3.0.0",
            "info": { "title": "Example", "version": "1.0.0" },
            "channels": { "c": { "address": "/" } },
            "operations": {
                "up": { "action": "receive", "messages": up },
                "down": { "action": "send", "messages": down },
            },
            "components": { "messages": messages },
            "x-frameproof": {
                "discriminator": "/type",
                "session": { "join": "connection" },
                "turn": { "start": { "type": "begin" }, "end": "over" },
            },
        });
        json_patch::merge(&mut document["x-frameproof"], &yaml(&self.extension)?);
        let invariant = json!({ "about": "an example", "monitor": { kind: yaml(&self.monitor)? } });
        document["x-frameproof"]["invariants"] = json!({ "example": invariant });
        let ids = (1..=MOST_IDS).map(|number| {
            json!({ "id": format!("EX-{number}"), "level": "MUST", "area": "example", "text": "t", "source": "s" })
        });
        let requirements = json!({ "requirements": ids.collect::<Vec<_>>() });
        let api = Document::parse("asyncapi.yaml", &document.to_string())?;
        let catalogue = Document::parse("requirements.yaml", &requirements.to_string())?;
        Protocol::from_documents("example", &api, &catalogue, ReadingName::Default, &[])
    }
}

fn yaml(text: &str) -> Result<Value, Diagnostics> {
    if text.is_empty() {
        return Ok(json!({}));
    }
    Ok((*Document::parse("example.yaml", text)?.value).clone())
}

/// The events of a trace, an event a line.
fn events(trace: &str) -> Result<Vec<Event>, Diagnostics> {
    let line =
        |text: &str| event(text).ok_or_else(|| Diagnostic::new(format!("`{text}` is no event")).into());
    trace.lines().map(line).collect()
}

/// `[TIME] [CLIENT] (-> JSON | <- JSON | open | close CODE REASON | gone)`
fn event(line: &str) -> Option<Event> {
    let (mut at, mut client) = (Duration::ZERO, "client");
    let mut rest = line.trim();
    loop {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let (dir, payload) = match word {
            "->" => (Direction::Send, Payload::Text(after.into())),
            "<-" => (Direction::Recv, Payload::Text(after.into())),
            "open" => (Direction::Send, Payload::Open { url: "ws://example/".into() }),
            "gone" => (Direction::Recv, Payload::End(End::Eof)),
            "close" => {
                let (code, reason) = after.split_once(' ').unwrap_or((after, ""));
                (Direction::Recv, Payload::Close { code: Some(code.parse().ok()?), reason: reason.into() })
            }
            _ if after.is_empty() => return None,
            time if time.starts_with(char::is_numeric) => {
                (at, rest) = (duration(time).ok()?, after);
                continue;
            }
            name => {
                (client, rest) = (name, after);
                continue;
            }
        };
        return Some(Event { at, case: None, client: client.into(), dir, payload, why: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::rules::Rule;

    #[test]
    fn each_kind_of_monitor_has_an_example_that_passes_and_one_that_fails() {
        let schema = crate::source::schema_of::<Rule>();
        let kinds = schema["oneOf"].as_array().expect("the kinds").iter();
        let kinds: BTreeSet<&str> = kinds.filter_map(|kind| kind["required"][0].as_str()).collect();
        assert_eq!(kinds, examples().keys().map(String::as_str).collect());
        for (kind, example) in examples() {
            let judge =
                |trace: &str| example.judge(kind, trace).unwrap_or_else(|errors| panic!("{kind}: {errors}"));
            let passes = judge(&example.passes);
            assert!(passes.violations.is_empty(), "{kind}: {:?}", passes.violations);
            assert!(!passes.exercised.is_empty(), "{kind}: nothing is exercised");
            let fails = judge(&example.fails);
            let [violation] = &fails.violations[..] else { panic!("{kind}: {:?}", fails.violations) };
            assert_eq!(violation.check.invariant(), Some("example"), "{kind}");
        }
    }

    /// The trace with each whole number of the server's messages written as a float: JSON has one kind of number.
    fn with_floats(trace: &str) -> String {
        fn rewrite(value: &mut Value) {
            match value {
                Value::Number(number) => {
                    if let Some(whole) = number.as_i64() {
                        *value = json!(whole as f64);
                    }
                }
                Value::Array(items) => items.iter_mut().for_each(rewrite),
                Value::Object(members) => members.values_mut().for_each(rewrite),
                _ => {}
            }
        }
        let line = |line: &str| {
            let Some((before, text)) = line.split_once("<- ") else { return line.to_owned() };
            let Ok(mut body) = serde_json::from_str(text) else { return line.to_owned() };
            rewrite(&mut body);
            format!("{before}<- {body}")
        };
        trace.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_whole_number_that_is_written_as_a_float_is_the_same_to_every_monitor() {
        // The id of a reply is that of its request as it was written: JSON-RPC 2.0, Response object.
        for (kind, example) in
            examples().iter().filter(|(kind, _)| !["correlation", "echo"].contains(&kind.as_str()))
        {
            let violations = |trace: &str| {
                let judged = example.judge(kind, trace).unwrap_or_else(|errors| panic!("{kind}: {errors}"));
                let told = judged.violations.iter();
                told.map(|violation| violation.requirements.clone()).collect::<Vec<_>>()
            };
            for trace in [&example.passes, &example.fails] {
                assert_eq!(
                    violations(&with_floats(trace)),
                    violations(trace),
                    "{kind}:\n{}",
                    with_floats(trace)
                );
            }
        }
    }

    #[test]
    fn what_is_no_event_is_told() {
        for line in ["", "alice", "close", "x close 99999999 a", "1y2 ", "alice speaks"] {
            assert!(event(line).is_none(), "{line}");
        }
        let seen = event("1.5s bob close 4000 so long").expect("an event");
        assert_eq!((seen.at.as_millis(), &*seen.client), (1500, "bob"));
        assert_eq!(seen.payload, Payload::Close { code: Some(4000), reason: "so long".into() });
    }
}
