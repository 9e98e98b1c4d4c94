//! The streaming monitors against naive ones that read the whole trace again for every event.

use std::sync::Arc;
use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::{Map, Value, json};

use super::all_rules_protocol::all_rules;
use super::oracle::{self, Finding};
use super::schema_frames::{SchemaWalk, anything};
use super::shipped;
use crate::check::Judge;
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::trace::{Direction, End, Event, Payload};

/// Longest trace that is made.
const MAX_EVENTS: usize = 120;

/// A made-up trace is judged alike by the streaming monitors and by the naive ones.
pub fn monitors(bytes: &[u8]) {
    let Ok(made) = Made::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    agrees(&made.protocol, &made.events, made.settled);
}

/// Judges a trace of one case twice, and compares.
///
/// # Panics
/// The two disagree: the message shows what each found.
pub fn agrees(protocol: &Arc<Protocol>, events: &[Event], settled: bool) {
    let mut judge = Judge::new(Arc::clone(protocol), Limits::default(), &[])
        .unwrap_or_else(|errors| panic!("what loads has monitors: {errors}"));
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate() {
        for violation in judge.observe(event).violations {
            // A stretch is judged when the next one begins, and then names its end.
            let past = violation.event.is_some_and(|event| event <= index as u64);
            assert!(past, "a violation belongs to the past, not to {:?}", violation.event);
            assert!(
                violation.related.is_none_or(|related| related <= index as u64),
                "it conflicts with the past"
            );
            found.push(violation);
        }
    }
    let crate::check::Outcome { violations, exercised, limits } = judge.finish(settled);
    assert_eq!(limits, [], "so short a trace");
    found.extend(violations);
    for violation in &found {
        for id in &violation.requirements {
            assert!(protocol.requirements.get(id).is_some(), "{id} is no requirement");
            let counted = exercised.get(id).copied().unwrap_or(0);
            let uncounted = violation.check.invariant().is_none_or(|name| !counts(protocol, name));
            assert!(counted > 0 || uncounted, "{id} is broken, not exercised");
        }
    }
    let items = oracle::read(protocol, events);
    for (name, invariant) in &protocol.extension.invariants {
        let of_it = || found.iter().filter(|violation| violation.check.invariant() == Some(name));
        // Those that are only counted are of the same requirements as the one that counts them; of which event is not told.
        let mut counted: Vec<&[String]> = Vec::new();
        for violation in of_it() {
            counted.extend((0..violation.more).map(|_| violation.requirements.as_slice()));
        }
        let mut streamed: Vec<Finding> =
            of_it().map(|violation| (violation.event, violation.requirements.clone())).collect();
        streamed.sort();
        let mut naive = oracle::judge(&invariant.monitor, protocol, &items, settled);
        naive.retain(|(_, ids)| !ids.is_empty());
        naive.sort();
        if !counted.is_empty() {
            naive.retain(|finding| {
                let listed = streamed.iter().filter(|other| *other == finding).count();
                let only_counted = counted.iter().position(|ids| **ids == *finding.1).filter(|_| listed == 0);
                only_counted.map(|at| counted.swap_remove(at)).is_none()
            });
        }
        assert_eq!(
            streamed,
            naive,
            "`{name}`: streamed (left), naive (right), settled {settled}:\n{}",
            show(events)
        );
    }
}

/// Whether an invariant counts the occasion of each violation under the same ids: correlations and replays break some
/// rules without having counted them.
fn counts(protocol: &Protocol, name: &str) -> bool {
    use crate::protocol::rules::Rule;
    !matches!(
        protocol.extension.invariants.get(name).map(|invariant| &invariant.monitor),
        Some(Rule::Correlation(_) | Rule::Replay(_) | Rule::Series(_))
    )
}

fn show(events: &[Event]) -> String {
    let line = |(index, event): (usize, &Event)| {
        format!("{index} {:?} {} {:?} {:?}", event.at, event.client, event.dir, event.payload)
    };
    events.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// A made-up trace of a protocol.
struct Made {
    protocol: Arc<Protocol>,
    events: Vec<Event>,
    settled: bool,
}

impl<'a> Arbitrary<'a> for Made {
    fn arbitrary(source: &mut Unstructured<'a>) -> Result<Self> {
        // One in four is of a shipped protocol.
        let pick = source.int_in_range(0..=15u8)?;
        let protocol = match pick {
            0..=3 => &shipped()[source.choose_index(shipped().len())?],
            _ => all_rules(),
        };
        let settled = source.ratio(3, 4)?;
        let mut at = Duration::ZERO;
        let mut events: Vec<Event> = Vec::new();
        while !source.is_empty() && events.len() < MAX_EVENTS {
            at += *source.choose(&[0, 0, 1, 3, 400, 2000].map(Duration::from_millis))?;
            let client = *source.choose(&["a", "b", "a", "c"])?;
            let (dir, payload) = if events.is_empty() || source.ratio(2, 3)? {
                if pick <= 3 { walked(protocol, source)? } else { simple(source)? }
            } else {
                again(source.choose(&events)?.clone(), source)?
            };
            events.push(Event { at, case: None, client: client.into(), dir, payload, why: None });
        }
        Ok(Self { protocol: Arc::clone(protocol), events, settled })
    }
}

/// An earlier event once more, perhaps with a field changed: to another client, mostly, that is a replay or a fan-out.
fn again(event: Event, source: &mut Unstructured<'_>) -> Result<(Direction, Payload)> {
    let Payload::Text(text) = &event.payload else { return Ok((event.dir, event.payload)) };
    let Ok(Value::Object(mut body)) = serde_json::from_str(text) else {
        return Ok((event.dir, event.payload));
    };
    if source.arbitrary()? {
        let changed = fields(source)?;
        let at = source.choose_index(changed.len().max(1))?;
        body.extend(changed.into_iter().skip(at).take(1));
    } else if let Some(Value::String(text)) =
        body.get_mut("t").filter(|_| source.arbitrary().unwrap_or(false))
    {
        // Texts that grow.
        text.push('b');
    }
    Ok((event.dir, Payload::Text(Value::Object(body).to_string().into())))
}

/// What is no message: an opened or ended connection, a close frame, rubbish.
fn other(source: &mut Unstructured<'_>) -> Result<(Direction, Payload)> {
    let dir = *source.choose(&[Direction::Recv, Direction::Send])?;
    Ok((
        dir,
        match source.int_in_range(0..=7u8)? {
            0..=2 => Payload::Open { url: format!("ws://h/lab/{}", source.choose(&["r", "q", ""])?).into() },
            3 | 4 => Payload::End(End::Closed),
            5 => Payload::Text("{oops".into()),
            6 => Payload::Binary([0u8].as_slice().into()),
            _ => Payload::Close {
                code: *source.choose(&[Some(1000), None, Some(4410), Some(1005)])?,
                reason: "".into(),
            },
        },
    ))
}

/// Something of the protocol with all rules: few fields with few values, so that events have to do with each other.
fn simple(source: &mut Unstructured<'_>) -> Result<(Direction, Payload)> {
    const RECEIVED: [&str; 9] = ["say", "done", "work", "out", "log", "state", "res", "joined", "odd"];
    let (dir, kind) = match source.int_in_range(0..=15u8)? {
        0 => return other(source),
        1..=4 => (Direction::Send, "ask"),
        5 => (Direction::Send, "stop"),
        _ => (Direction::Recv, *source.choose(&RECEIVED)?),
    };
    let mut body = fields(source)?;
    body.insert("type".into(), kind.into());
    if source.ratio(1, 4)? {
        let length = source.int_in_range(0..=3)?;
        let list = (0..length).map(|_| Ok(Value::Object(fields(source)?))).collect::<Result<Vec<_>>>()?;
        body.insert("list".into(), list.into());
    }
    Ok((dir, Payload::Text(Value::Object(body).to_string().into())))
}

fn fields(source: &mut Unstructured<'_>) -> Result<Map<String, Value>> {
    let pools: [(&str, &[Value]); 7] = [
        (
            "id",
            &[
                json!(1),
                json!(2),
                json!(3),
                json!(0),
                json!(5),
                json!(-1),
                json!(2.0),
                json!("1"),
                Value::Null,
            ],
        ),
        (
            "k",
            &[
                json!("u"),
                json!("a"),
                json!("1"),
                json!(1),
                Value::Null,
                json!("2026-01-01T00:00:02Z"),
                json!(false),
            ],
        ),
        (
            "n",
            &[
                json!(0),
                json!(1),
                json!(2),
                json!(2.0),
                json!(3),
                json!(100),
                json!(1.5),
                json!(u64::MAX),
                Value::Null,
            ],
        ),
        (
            "t",
            &[
                json!("a"),
                json!("ab"),
                json!(""),
                json!("aba"),
                json!("abababab"),
                json!("1"),
                json!("{}"),
                json!("{\"n\":2}"),
                json!("[1,"),
                json!("2]"),
                // A model that says `aba`, and one that says `aabab` and hangs.
                json!("[[cue:eyJ2IjoxLCJ0dXJuIjpbeyJzYXkiOlsiYWIiLCJhIl19XX0]]"),
                json!("[[cue:eyJ2IjoxLCJ0dXJuIjpbeyJzYXkiOlsiYWFiYWIiXX0seyJoYW5nIjp0cnVlfV19]]"),
                json!(
                    "[[cue:eyJ2IjoxLCJ0dXJuIjpbeyJzYXkiOlsiYWIiXX0seyJjYWxsIjp7Im5hbWUiOiJ0IiwiYXJncyI6e319fSx7InNheSI6WyJhIl19XX0]]"
                ),
            ],
        ),
        (
            "s",
            &[
                json!("new"),
                json!("run"),
                json!("end"),
                json!("odd"),
                json!("2026-01-01T00:00:01Z"),
                json!("u"),
            ],
        ),
        ("v", &[json!(0), json!(50.0), json!(2), json!(100)]),
        ("w", &[json!(1), json!(4), json!(0)]),
    ];
    let mut map = Map::new();
    // A bit for each field, so that a mutation of one byte adds or takes away one.
    let present: u8 = source.arbitrary()?;
    for (bit, (name, pool)) in pools.iter().enumerate() {
        if present >> bit & 1 == 1 {
            map.insert((*name).to_owned(), source.choose(pool)?.clone());
        }
    }
    Ok(map)
}

/// A message of a shipped protocol, by its schema.
fn walked(protocol: &Protocol, source: &mut Unstructured<'_>) -> Result<(Direction, Payload)> {
    if source.ratio(1, 16)? {
        return other(source);
    }
    let message = source.choose(&protocol.messages)?;
    let body = if source.ratio(1, 32)? {
        anything(source, 4)?
    } else {
        SchemaWalk::new(message, false).body(source)?
    };
    Ok((message.dir, Payload::Text(body.to_string().into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};
    use std::collections::BTreeMap;

    #[test]
    fn made_up_traces_break_every_invariant() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut broken: BTreeMap<&str, usize> =
            all_rules().extension.invariants.keys().map(|name| (name.as_str(), 0)).collect();
        for _ in 0..1500 {
            let mut bytes = vec![0; 900];
            random.fill_bytes(&mut bytes);
            let Ok(made) = Made::arbitrary_take_rest(Unstructured::new(&bytes)) else { continue };
            if made.protocol.name != "lab" {
                continue;
            }
            agrees(&made.protocol, &made.events, made.settled);
            let items = oracle::read(&made.protocol, &made.events);
            for (name, invariant) in &all_rules().extension.invariants {
                let found = oracle::judge(&invariant.monitor, all_rules(), &items, made.settled);
                broken.entry(name).and_modify(|count| *count += found.len());
            }
        }
        // Three long pieces, each with all of the one before, are rare in what is made up; `check::tests` has them.
        broken.remove("pieces");
        let never: Vec<_> = broken.iter().filter(|(_, count)| **count == 0).collect();
        assert!(never.is_empty(), "never broken, so never compared: {never:?}");
    }

    /// Few ids, unreadable requests and answers with the id null, so that it is often open what belongs to what.
    #[test]
    fn requests_and_answers_are_paired_alike() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let mut pick = |many: u32| (random.next_u32() % many) as usize;
        for _ in 0..2000 {
            let mut events = vec![Event {
                at: Duration::ZERO,
                case: None,
                client: "a".into(),
                dir: Direction::Recv,
                payload: Payload::Open { url: "ws://h/lab/r".into() },
                why: None,
            }];
            for step in 0..3 + pick(12) as u64 {
                let kind = ["ask", "ask", "odd", "", "res", "res", "done"][pick(7)];
                let dir = if matches!(kind, "res" | "done") { Direction::Recv } else { Direction::Send };
                let mut body = Map::new();
                if !kind.is_empty() {
                    body.insert("type".into(), kind.into());
                }
                let ids = [json!(1), json!(2), json!(2), json!(2.5), Value::Null];
                for at in ["id", "k"] {
                    if let Some(id) = ids.get(pick(7)) {
                        body.insert(at.into(), id.clone());
                    }
                }
                let text = if kind.is_empty() && pick(3) == 0 {
                    "{oops".to_owned()
                } else {
                    Value::Object(body).to_string()
                };
                let payload = Payload::Text(text.into());
                events.push(Event {
                    at: Duration::from_millis(step),
                    case: None,
                    client: "a".into(),
                    dir,
                    payload,
                    why: None,
                });
            }
            agrees(all_rules(), &events, true);
        }
    }
}
