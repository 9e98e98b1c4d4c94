//! What a recorded case shows of the target's behaviour: it is looked at once, as soon as the case is over, for a server may have sent
//! much. Only this is kept.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::generate::mutate::DEEP;
use super::program::{ALICE, BOB, BYSTANDER, Program};
use super::render::Rendered;
use super::step_writer::Part;
use crate::frame::{self, FrameError};
use crate::protocol::Protocol;
use crate::results::Check;
use crate::run::alone::look_at;
use crate::run::testbed::{CaseRun, Recorded};
use crate::text::beginning;
use crate::trace::{Direction, End, Event, Payload};

/// Answers of one input that make its signature.
const ANSWERS: usize = 3;
/// How much of an answer counts, in bytes: a server makes it as long as it likes.
const SIGNIFICANT: usize = 256;

/// What the events of a case show.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// What came of the inputs that were sent, in their order.
    pub answered: Vec<Answered>,
    /// Whether an input was sent, and not only what leads there.
    pub has_sent_input: bool,
    /// Whether a connection broke off.
    pub has_lost_connection: bool,
    /// Whether the last connection that the server has ended was ended below WebSocket: by the end of the TCP stream, or a reset.
    pub hangs_up: bool,
    /// Of the frames that failures are about, those that are too deep for the parser: an echo of a deep input may be.
    pub too_deep: BTreeSet<u64>,
    /// The clients that were without a connection in the end because another one took their session over, as it may.
    pub taken_over: BTreeSet<String>,
    /// The frames by which that was said.
    pub takeovers: BTreeSet<u64>,
}

/// What came of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The state in which it was sent.
    pub phase: String,
    /// The first answers to it, as one text: types, error codes, close codes.
    pub answers: String,
}

impl Observed {
    /// Looks at what was recorded of a program.
    pub fn new(
        protocol: &Protocol,
        program: &Program,
        rendered: &Rendered,
        run: &CaseRun,
        recorded: &Recorded,
    ) -> Self {
        let trace = recorded.trace.as_slice();
        let lost = |event: &Event| {
            event.dir == Direction::Recv && matches!(event.payload, Payload::End(End::Eof | End::Reset))
        };
        let first = rendered.places.first().and_then(|first| start_of(recorded, first));
        let sent =
            |event: &Event| event.dir == Direction::Send && !matches!(event.payload, Payload::Open { .. });
        let received = trace.iter().rev().filter(|event| event.dir == Direction::Recv);
        let mut ends = received.map(|event| &event.payload);
        let end = ends.find(|what| matches!(what, Payload::Close { .. } | Payload::End(_)));
        let (taken_over, takeovers) = takeovers(protocol, trace);
        Self {
            taken_over,
            takeovers,
            answered: answered(protocol, program, rendered, recorded),
            has_sent_input: first.is_some_and(|at| trace[at..].iter().any(sent)),
            has_lost_connection: trace.iter().any(lost),
            hangs_up: matches!(end, Some(Payload::End(End::Eof | End::Reset))),
            too_deep: too_deep(program, run, trace),
        }
    }
}

/// The clients whose last connection was taken over, and the frames that ended those, by the codes that the protocol names: another client
/// of the session has connected, or said something, since the connection began.
fn takeovers(protocol: &Protocol, trace: &[Event]) -> (BTreeSet<String>, BTreeSet<u64>) {
    let codes = &protocol.extension.fuzzing.taken_over;
    let (mut clients, mut frames) = (BTreeSet::new(), BTreeSet::new());
    if codes.is_empty() {
        return (clients, frames);
    }
    let is_single = protocol.lacks_isolation().is_some();
    // The session of the bystander is another one, and so is that of the connection that comes afterwards.
    let share =
        |one: &str, other: &str| is_single || [one, other].iter().all(|name| [ALICE, BOB].contains(name));
    // Where the connection of each client began, and where each did something last.
    let (mut begun, mut acted) = (BTreeMap::new(), BTreeMap::new());
    for (index, event) in trace.iter().enumerate() {
        let client = &*event.client;
        match (&event.payload, event.dir) {
            (Payload::Open { .. }, _) => {
                clients.remove(client);
                begun.insert(client, index);
                acted.insert(client, index);
            }
            (Payload::Close { code: Some(code), .. }, Direction::Recv) if codes.contains(code) => {
                let began = begun.get(client).copied().unwrap_or(0);
                let mut others = acted.iter().filter(|(other, _)| **other != client && share(client, other));
                if others.any(|(_, at)| *at > began) {
                    clients.insert(client.to_owned());
                    frames.insert(index as u64);
                }
            }
            (_, Direction::Send) => drop(acted.insert(client, index)),
            _ => {}
        }
    }
    (clients, frames)
}

fn too_deep(program: &Program, run: &CaseRun, trace: &[Event]) -> BTreeSet<u64> {
    if !program.inputs.iter().any(|input| input.mutation == DEEP) {
        return BTreeSet::new();
    }
    let is_too_deep = |frame: &&u64| match trace.get(**frame as usize).map(|event| &event.payload) {
        Some(Payload::Text(text)) => look_at(text.len(), || {
            matches!(frame::parse_text(text, &frame::Limits::default()), Err(FrameError::TooDeep { .. }))
        }),
        _ => false,
    };
    let failures = run.report.failures.iter().filter(|failure| failure.check == Check::Frame);
    failures.flat_map(|failure| &failure.frames).filter(is_too_deep).copied().collect()
}

fn answered(
    protocol: &Protocol,
    program: &Program,
    rendered: &Rendered,
    recorded: &Recorded,
) -> Vec<Answered> {
    let trace = recorded.trace.as_slice();
    // Both are in the order in which they came.
    let mut marks = recorded.marks.as_slice();
    let mut start = |place: &String| -> Option<usize> {
        let at = marks.iter().position(|(pointer, _)| is_below(pointer, place))?;
        marks = &marks[at..];
        Some(marks[0].1.min(trace.len()))
    };
    let mut starts = Vec::new();
    for place in &rendered.places {
        let Some(at) = start(place) else { break };
        // A step begins after the one before it.
        starts.push(at.max(starts.last().copied().unwrap_or(0)));
    }
    let end = end_of_inputs(rendered, recorded);
    let reader = Reader::new(protocol);
    // Until a message shows another one.
    let mut phase = program.state_name().to_owned();
    for event in starts.first().into_iter().flat_map(|first| &trace[..*first]) {
        reader.read(event).follow(&mut phase);
    }
    let mut found = Vec::new();
    for (index, input) in program.inputs.iter().enumerate() {
        let Some(start) = starts.get(index).copied() else { break };
        let next = starts.get(index + 1).copied();
        let stop = next.unwrap_or(end).max(start);
        let (before, mut answers) = (phase.clone(), Vec::new());
        for event in &trace[start..stop] {
            let counts =
                answers.len() < ANSWERS && event.dir == Direction::Recv && *event.client == *input.client;
            if !counts && next.is_none() {
                if answers.len() < ANSWERS {
                    continue;
                }
                break;
            }
            let read = reader.read(event);
            read.follow(&mut phase);
            if counts {
                answers.extend(read.answers);
                answers.dedup();
                answers.truncate(ANSWERS);
            }
        }
        found.push(Answered { phase: before, answers: answers.join(", ") });
    }
    found
}

/// Where in the trace the inputs are over.
fn end_of_inputs(rendered: &Rendered, recorded: &Recorded) -> usize {
    let last = rendered.parts.iter().rposition(|part| *part == Part::Inputs);
    let after = last.map(|index| index + 1).filter(|index| *index < rendered.parts.len());
    let place = after.map(|index| format!("/steps/{index}"));
    place.and_then(|place| start_of(recorded, &place)).unwrap_or(recorded.trace.len())
}

/// Where in the trace of a case the step at a place began, if it did.
fn start_of(recorded: &Recorded, place: &str) -> Option<usize> {
    let mut marks = recorded.marks.iter();
    marks.find(|(pointer, _)| is_below(pointer, place)).map(|(_, at)| (*at).min(recorded.trace.len()))
}

fn is_below(pointer: &str, place: &str) -> bool {
    pointer.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
}

/// Reads what events say, by the protocol.
struct Reader<'p> {
    protocol: &'p Protocol,
    /// Messages that answer the barrier, which say nothing about an input.
    barrier: BTreeSet<String>,
}

/// What an event says.
#[derive(Default)]
struct Read {
    /// The state that it leads to.
    phase: Option<String>,
    /// What it answers: types, error codes, close codes.
    answers: Vec<String>,
}

impl Read {
    fn follow(&self, phase: &mut String) {
        if let Some(next) = &self.phase {
            phase.clone_from(next);
        }
    }
}

impl<'p> Reader<'p> {
    fn new(protocol: &'p Protocol) -> Self {
        let barrier = protocol.extension.barrier_query().iter().filter_map(|step| step.expect.as_ref());
        Self { barrier: barrier.flat_map(|names| names.as_slice().to_vec()).collect(), protocol }
    }

    fn read(&self, event: &Event) -> Read {
        let one = |answer: String| Read { answers: vec![answer], phase: None };
        match &event.payload {
            Payload::Close { code, .. } => one(format!("close {}", code.unwrap_or(0))),
            Payload::End(end) => one(format!("{end:?}")),
            Payload::Text(text) => look_at(text.len(), || self.read_text(event, text)),
            _ => Read::default(),
        }
    }

    fn read_text(&self, event: &Event, text: &str) -> Read {
        let phases = &self.protocol.roles().phases;
        let mut read = Read::default();
        for body in self.protocol.bodies(text, event.dir) {
            let message = self.message(&body, event.dir);
            let mut phases = phases.iter();
            if let Some((name, _)) = phases.find(|(_, on)| on.matches(message, event.dir, &body))
                && &*event.client != BYSTANDER
            {
                read.phase = Some(name.clone());
            }
            let answer = self.answer(message, &body, event.dir);
            if let Some(answer) = answer.filter(|answer| read.answers.last() != Some(answer)) {
                read.answers.push(answer);
            }
        }
        read
    }

    fn message(&self, body: &Value, dir: Direction) -> Option<usize> {
        // Which request a reply answers is not looked up: a result by another name is a phase of its own.
        self.protocol.message_of(body, dir).or_else(|| {
            let reply = self.protocol.is_reply(body);
            reply.then(|| self.protocol.reply_of(body, dir, None)).flatten()
        })
    }

    /// What an answer says: its type, and the code of an error. Nothing of one that says nothing about the input.
    fn answer(&self, message: Option<usize>, body: &Value, dir: Direction) -> Option<String> {
        let name = self.protocol.type_of(body).unwrap_or("reply").to_owned();
        if self.protocol.extension.ambient.contains(&name) || self.barrier.contains(&name) {
            return None;
        }
        let errors = self.protocol.roles().errors.as_ref();
        let error = errors.filter(|(on, _)| on.matches(message, dir, body));
        let code = error.and_then(|(_, at)| at.as_ref()?.get(body));
        let answer = code.map_or(name.clone(), |code| format!("{name} {code}"));
        Some(beginning(&answer, SIGNIFICANT).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::results::event::{CaseReport, Failure, Verdict};

    fn event(dir: Direction, payload: Payload) -> Event {
        Event { at: std::time::Duration::ZERO, case: None, client: "alice".into(), dir, payload, why: None }
    }

    fn text(text: &str) -> Event {
        event(Direction::Recv, Payload::Text(text.into()))
    }

    /// A program of such inputs, each a step.
    fn program(inputs: &[&str]) -> (Program, Rendered) {
        let input = |how: &&str| json!({ "client": "alice", "command": "text", "mutation": how, "action": { "text": "" }, "duty": "survive" });
        let inputs: Vec<Value> = inputs.iter().map(input).collect();
        let places = (0..inputs.len()).map(|at| format!("/steps/{at}")).collect();
        let parts = inputs.iter().map(|_| Part::Inputs).chain([Part::Framing]).collect();
        let program = json!({ "inputs": inputs, "own": false, "fresh": false, "witness": false });
        let program = serde_json::from_value(program).expect("a program");
        (program, Rendered { case: json!({}), places, parts })
    }

    fn protocol() -> std::sync::Arc<Protocol> {
        let name = Protocol::embedded_names()[0];
        Protocol::embedded(name, &crate::protocol::LoadOptions::default()).expect("it loads")
    }

    fn observed(how: &[&str], failures: Vec<Failure>, recorded: &Recorded) -> Observed {
        let (program, rendered) = program(how);
        let report = CaseReport { failures, ..CaseReport::default() };
        let run = CaseRun { report, failed_at: Vec::new(), sent: 0, has_begun: true };
        Observed::new(&protocol(), &program, &rendered, &run, recorded)
    }

    #[test]
    fn what_was_sent_deep_may_come_back_deep() {
        let deep = "[".repeat(100);
        // One that is looked at alone, for its length.
        let large = deep.clone() + &" ".repeat(1 << 20);
        for (how, check, said, expected) in [
            ("deep", "frame", deep.as_str(), true),
            ("deep", "frame", &large, true),
            ("long-text", "frame", &deep, false),
            ("deep", "frame", "no JSON", false),
            ("deep", "step", &deep, false),
        ] {
            let failure = Failure::new(Check::from(check), Verdict::Failed, "it is wrong").shown_by([0]);
            let observed = observed(&[how], vec![failure], &Recorded::of(vec![text(said)], &[]));
            assert_eq!(observed.too_deep.contains(&0), expected, "{how} {check} {}", said.len());
        }
    }

    #[test]
    fn a_session_is_taken_over_by_another_client_of_it() {
        let by = |client: &str, dir, payload| Event { client: client.into(), ..event(dir, payload) };
        let open = |client| by(client, Direction::Send, Payload::Open { url: "ws://x/".into() });
        let says = |client| by(client, Direction::Send, Payload::Text("x".into()));
        let ends =
            |code| by("alice", Direction::Recv, Payload::Close { code: Some(code), reason: "".into() });
        let protocol = |codes: &[u16]| {
            let mut protocol = std::sync::Arc::try_unwrap(protocol()).expect("nobody else has it");
            protocol.extension.fuzzing.taken_over = codes.to_vec();
            protocol
        };
        let own = protocol(&[4411]);
        for (trace, expected) in [
            (vec![open("alice"), open("bob"), ends(4411)], Some(2)),
            (vec![open("bob"), open("alice"), says("bob"), ends(4411)], Some(3)),
            // Nobody else did anything since.
            (vec![open("bob"), open("alice"), says("alice"), ends(4411)], None),
            (vec![open("alice"), open("bob"), ends(4410)], None),
            // That one is of another session.
            (vec![open("alice"), open(BYSTANDER), ends(4411)], None),
        ] {
            let (clients, frames) = takeovers(&own, &trace);
            assert_eq!(frames.iter().copied().next(), expected, "{trace:?}");
            assert_eq!(clients.contains("alice"), expected.is_some(), "{trace:?}");
            assert_eq!(takeovers(&protocol(&[]), &trace).1.len(), 0, "{trace:?}");
        }
        // A new connection is its own.
        let trace = [open("alice"), open("bob"), ends(4411), open("alice")];
        let (clients, frames) = takeovers(&own, &trace);
        assert!(clients.is_empty() && frames.contains(&2));
    }

    #[test]
    fn how_the_server_ends_the_last_connection_is_kept() {
        let close = |dir| event(dir, Payload::Close { code: Some(1008), reason: "".into() });
        let end = |how| event(Direction::Recv, Payload::End(how));
        let (sent, received) = (Direction::Send, Direction::Recv);
        for (trace, hangs_up) in [
            (vec![close(sent), end(End::Eof)], true),
            (vec![end(End::Reset)], true),
            (vec![close(received), end(End::Closed)], false),
            (Vec::new(), false),
        ] {
            let observed = observed(&["bom"], Vec::new(), &Recorded::of(trace.clone(), &[]));
            assert_eq!(observed.hangs_up, hangs_up, "{trace:?}");
        }
    }

    #[test]
    fn an_input_is_in_the_state_that_was_entered_where_no_message_shows_another() {
        for (state, expected) in [(None, "opened"), (Some("waiting"), "waiting")] {
            let (program, rendered) = program(&["a"]);
            let program = Program { state: state.map(str::to_owned), ..program };
            let trace = vec![event(Direction::Send, Payload::Text("x".into()))];
            let recorded = Recorded::of(trace, &[("/steps/0/text", 0)]);
            let found = answered(&protocol(), &program, &rendered, &recorded);
            assert_eq!(found[0].phase, expected);
        }
    }

    #[test]
    fn answers_are_those_to_each_input_and_bounded() {
        let close = event(Direction::Recv, Payload::Close { code: Some(1008), reason: "".into() });
        let sent = || event(Direction::Send, Payload::Text("x".into()));
        let long = format!("{{\"type\":\"{}\"}}", "t".repeat(1 << 20));
        let trace = vec![
            text(r#"{"type":"before"}"#),
            sent(),
            text(r#"{"type":"one"}"#),
            text(r#"{"type":"one"}"#),
            text("no JSON"),
            text(&long),
            sent(),
            text(r#"{"type":"two"}"#),
            close,
            text(r#"{"type":"behind"}"#),
        ];
        let marks = [("/steps/0/text", 1), ("/steps/1/text", 6), ("/steps/2/ended", 9)];
        let observed = observed(&["a", "b", "c"], Vec::new(), &Recorded::of(trace, &marks));
        assert!(observed.has_sent_input);
        let answers: Vec<&str> = observed.answered.iter().map(|one| one.answers.as_str()).collect();
        let first = format!("one, {}", "t".repeat(SIGNIFICANT));
        assert_eq!(answers, [first.as_str(), "two, close 1008", "behind"]);
    }
}
