//! The verbs that ask for something: `expect`, `check`, `joined`, `assert`, `unchanged`.

use serde_json::{Value, json};

use crate::check::{counter, same};
use crate::protocol::{Matcher, Pattern};
use crate::results::Check;
use crate::results::cause::{Cause, LastRequest, Statement, WaitFailure};
use crate::results::event::Way;
use crate::run::case::client::{Received, Taken};
use crate::run::case::context::{StepScope, Tolerance};
use crate::run::case::exchange::ExchangeKind;
use crate::run::case::fail::Evidence;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::wait::{OnError, WaitOutcome, is_error};
use crate::run::case::wait_deadline::WaitDeadline;
use crate::scenario::TURN_END;
use crate::scenario::case::{self, Awaited, Expect, Relation};
use crate::scenario::file::Joined;
use crate::source::schema::{Problem, Violation};
use crate::trace::Direction;

/// Adds the fields of a value to another one: a null, too, which is as much of a demand.
fn show(to: &mut Value, fields: &Value) {
    match (to, fields) {
        (Value::Object(to), Value::Object(fields)) => {
            fields.iter().for_each(|(key, value)| show(to.entry(key).or_insert(Value::Null), value));
        }
        (to, value) => to.clone_from(value),
    }
}

/// Pieces that a message which they do not make points to: the first ones.
const LISTED: usize = 100;

impl Interpreter<'_> {
    pub(crate) async fn expect(&mut self, verb: &Expect, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, names) = (cx.client, &verb.awaited.names);
        if verb.awaited.refusal {
            return self.expect_refusal(verb, cx);
        }
        let mut wanted = self.wanted(&verb.awaited)?;
        wanted.keep = verb.keep;
        wanted.reading = verb.leniency.reading().map(str::to_owned);
        let deadline = self.deadline(verb.within);
        let on_error = if verb.past_errors { OnError::LookPast } else { OnError::Fail };
        let mut wait_deadline = match verb.within {
            Some(_) => WaitDeadline::for_time(deadline, self.cx.run.lag.total()),
            None => WaitDeadline::for_silence(deadline),
        };
        for _ in 0..verb.count {
            match self.wait(client, &wanted, &mut wait_deadline, on_error).await? {
                WaitOutcome::Found(received) | WaitOutcome::Closed(received) => {
                    self.loops.took(&received);
                    if !self.save(verb, &received, cx)? {
                        self.client(client)?.inbox.taken = Taken::Missed;
                        return Ok(());
                    }
                    if let Some(answer) = &verb.answer {
                        self.answer(client, answer, &received, cx.blame).await?;
                    }
                    self.client(client)?.inbox.taken = Taken::Message(received);
                }
                WaitOutcome::Ended(message) => {
                    let blame = self.absent(cx, names, cx.blame);
                    self.client(client)?.inbox.taken = Taken::Missed;
                    self.vars.miss(verb.save.keys());
                    return self.fail_on_end(Check::Step, client, &blame, message);
                }
                WaitOutcome::Missed(message, instead) => {
                    let mut blame = self.absent(cx, names, cx.blame);
                    if instead.is_none() {
                        blame = self.endless(client, names, &message, blame)?;
                    }
                    let expected = self.asked_for(&verb.awaited)?;
                    let refused = instead.as_ref().is_some_and(|one| is_error(&self.cx.protocol, one));
                    self.client(client)?.inbox.taken = if refused { Taken::Refused } else { Taken::Missed };
                    self.vars.miss(verb.save.keys());
                    return self.fail_step(&blame, message, instead.as_deref(), expected);
                }
            }
        }
        if cx.covers.is_empty() && names.len() == 1 {
            // What its absence would have broken.
            let held = self.absent(cx, names, &[]);
            self.verdict.exercise(&held);
        }
        Ok(())
    }

    /// Keeps the values that a step saves. `false`: one lacks, which the step was held against.
    pub(crate) fn save(
        &mut self,
        verb: &Expect,
        received: &Received,
        cx: &StepScope<'_>,
    ) -> Result<bool, Abort> {
        for (name, at) in &verb.save {
            let Some(value) = at.get(&received.body).cloned() else {
                if self.loops.is_over() {
                    self.vars.miss(std::iter::once(name));
                    continue;
                }
                let blame = self.absent(cx, &verb.awaited.names, cx.blame);
                let message = format!("it has no {at}, to be saved as `{name}`");
                // What follows is not judged by an older message, and not held against the scenario.
                self.vars.miss(verb.save.keys());
                return self.fail_step(&blame, message, Some(received), None).map(|()| false);
            };
            self.vars.set(name, value);
        }
        Ok(true)
    }

    /// What a step asks for of a message beside its type, for the report.
    pub(crate) fn asked_for(&mut self, awaited: &Awaited) -> Result<Option<Value>, Abort> {
        if awaited.with.is_none() && awaited.schema.is_none() {
            return Ok(None);
        }
        let mut expected = json!({});
        let said: Vec<&str> = awaited
            .names
            .iter()
            .filter(|name| self.cx.protocol.says(name, Direction::Recv))
            .map(String::as_str)
            .collect();
        if !said.is_empty() {
            self.cx.protocol.extension.discriminator.put(&mut expected, json!(said.join(" or ")));
        }
        if let Some(Value::Object(with)) = &awaited.with {
            let with = self.expand(&Value::Object(with.clone()), None)?;
            show(&mut expected, &with);
        }
        if let Some(schema) = &awaited.schema {
            expected["where"] = schema.given.clone();
        }
        Ok(Some(expected))
    }

    /// The requirements that a turn without an end breaks.
    fn turn_covers(&self) -> Vec<String> {
        self.cx.protocol.extension.turn.covers.clone()
    }

    /// Whether a step waited for the end of the turn; or for that or another message, with nothing asked since the turn began that
    /// could have ended it otherwise.
    fn awaited_end(&self, client: &str, names: &[String], told: &Statement) -> bool {
        let turn = &self.cx.protocol.extension.turn;
        let goes_on = matches!(told.cause, Some(Cause::Silence(WaitFailure::TurnNotEnded(_))));
        let ends = |name: &String| matches!(&turn.end, Pattern::Type(end) if end == name);
        let is_asked_alone = || match self.last_request(client) {
            LastRequest::Of(kind) => self.cx.protocol.type_of(&turn.start) == Some(kind.as_str()),
            _ => false,
        };
        names == [TURN_END] || (goes_on && names.iter().any(ends) && is_asked_alone())
    }

    /// Who is to blame for a turn that has not ended at all, where the step is about something lighter: that is no warning, unless
    /// the step before was told by an error that the turn is over.
    fn endless(
        &mut self,
        client: &str,
        names: &[String],
        told: &Statement,
        blame: Vec<String>,
    ) -> Result<Vec<String>, Abort> {
        let own = self.turn_covers();
        let was_refused = matches!(self.client(client)?.inbox.taken, Taken::Refused);
        let requirements = &self.cx.protocol.requirements;
        let light = self.step.tolerance == Tolerance::Warns || !requirements.fails(&blame);
        let excused = self.step.is_tolerated || was_refused;
        if !self.awaited_end(client, names, told) || !light || excused || !requirements.fails(&own) {
            return Ok(blame);
        }
        self.step.tolerance = Tolerance::Full;
        let more: Vec<String> = own.into_iter().filter(|id| !blame.contains(id)).collect();
        Ok(blame.into_iter().chain(more).collect())
    }

    /// Who is to blame when an expected message does not come.
    fn absent(&self, cx: &StepScope<'_>, names: &[String], case: &[String]) -> Vec<String> {
        if !cx.covers.is_empty() {
            return cx.covers.to_vec();
        }
        if names.iter().any(|name| name == "turn-end") {
            return self.turn_covers();
        }
        let absent: Vec<String> = names
            .iter()
            .filter_map(|name| self.cx.protocol.message_named(name, Direction::Recv).ok())
            .flat_map(|message| self.cx.protocol.messages[message].absent.clone())
            .collect();
        if absent.is_empty() { case.to_vec() } else { absent }
    }

    pub(crate) fn check(&mut self, verb: &case::Check, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, blame) = (cx.client, cx.blame);
        let (_, compiled) = self.compiled(&verb.schema)?;
        let taken = match &self.client(client)?.inbox.taken {
            Taken::Message(received) => (**received).clone(),
            Taken::Missed | Taken::Refused => {
                self.step.vacuous = true;
                return Ok(());
            }
            Taken::Nothing => return Err(Abort::Error("`check` comes after an `expect`".to_owned())),
        };
        let violations = compiled.violations_within(&taken.body);
        let Some(violation) = violations.first() else { return Ok(()) };
        if let Some(ended) = &taken.ended {
            let message = match &violation.problem {
                Problem::NotOneOf(codes) => {
                    let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
                    format!("{ended}, where code {} was expected", codes.join(" or "))
                }
                _ => format!("{ended}: {}", describe(violation, &taken.body)),
            };
            return self.fail_on_end(Check::Step, client, blame, message);
        }
        let message = describe(violation, &taken.body);
        // No expected value: the step, which is shown, says what it wants.
        self.fail_step(blame, message, Some(&taken), None)
    }

    pub(crate) fn joined(&mut self, verb: &case::Joined, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, joined) = (cx.client, &verb.pieces);
        let (_, compiled) = self.compiled(&verb.schema)?;
        let wrong = |error: &dyn std::fmt::Display| Abort::Error(format!("`joined`: {error}"));
        let of = self.expand(&json!(joined.of), None)?;
        let of: Pattern = serde_json::from_value(of).map_err(|error| wrong(&error))?;
        let of = Matcher::new(&of, &self.cx.protocol).map_err(|error| wrong(&error))?;
        let looked = &self.client(client)?.inbox.looked;
        let pieces = looked.iter().map(|looked| &looked.received);
        let pieces = pieces.filter(|piece| of.matches(piece.message, Direction::Recv, &piece.body));
        let pieces: Vec<&Received> = pieces.collect();
        let frames = pieces.iter().take(LISTED).map(|piece| piece.event).collect();
        let text = join(pieces.iter().map(|piece| &piece.body), joined);
        let violations = compiled.violations_within(&text);
        let Some(violation) = violations.first() else { return Ok(()) };
        let message =
            format!("the pieces form {}, which {}", crate::protocol::shorten(&text), violation.problem);
        // The pieces show it, and not what came last.
        self.fail_with(
            Check::Step,
            cx.blame,
            message,
            Evidence { actual: Some(text), frames, expected: None },
        )
    }

    pub(crate) fn assert(&mut self, relation: &Relation, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (holds, how, values) = self.relation(relation)?;
        if holds {
            return Ok(());
        }
        let shown: Vec<String> = values.iter().map(crate::protocol::shorten).collect();
        self.fail_step(cx.blame, format!("these are not {how}: {}", shown.join(", ")), None, None)
    }

    /// Whether values are as the relation says, what it says in words, and the values.
    pub(crate) fn relation(
        &mut self,
        relation: &Relation,
    ) -> Result<(bool, &'static str, Vec<Value>), Abort> {
        let mut list = |values: &[Value]| -> Result<Vec<Value>, Abort> {
            values.iter().map(|value| self.expand(value, None)).collect()
        };
        Ok(match relation {
            Relation::Equal(values) => {
                let values = list(values)?;
                (values.windows(2).all(|pair| same(&pair[0], &pair[1])), "equal", values)
            }
            Relation::Differ(values) => {
                let values = list(values)?;
                let is_new =
                    |index: usize| !values[..index].iter().any(|before| same(before, &values[index]));
                let differ = (1..values.len()).all(is_new);
                (differ, "all different", values)
            }
            Relation::Ascending(values) => {
                let values = list(values)?;
                let grows = values.windows(2).all(|pair| is_less(&pair[0], &pair[1]));
                (grows, "ascending", values)
            }
            Relation::Difference(values) => {
                let values = list(&values[..])?;
                let number = |index: usize| values.get(index).and_then(counter);
                let holds =
                    matches!((number(0), number(1), number(2)), (Some(a), Some(b), Some(c)) if a - b == c);
                (holds, "two numbers and their difference", values)
            }
        })
    }

    /// The state that the protocol lets a client see.
    async fn state(&mut self, client: &str) -> Result<Value, Abort> {
        let Some(state) = self.cx.protocol.extension.state.clone() else {
            return Err(Abort::Error("the protocol declares no `state`, which `unchanged` needs".to_owned()));
        };
        let seen = self.exchange(client, &state.query, None, ExchangeKind::Query).await?;
        let body = seen.map(|received| received.body).unwrap_or_default();
        if state.at.iter().all(|at| at.get(&body).is_none()) {
            // Nothing compared with nothing is always the same.
            let message = "the answer to the state query does not contain the state".to_owned();
            self.fail_step(&[], message, Some(&Received::made(self.log.last_index(), body.clone())), None)?;
        }
        Ok(state
            .at
            .iter()
            .map(|at| (at.to_string(), at.get(&body).cloned().unwrap_or(Value::Null)))
            .collect())
    }

    /// Whether the server has said that it changed the state of its own accord.
    fn state_has_changed_since(&self, index: u64, client: &str) -> bool {
        let protocol = &self.cx.protocol;
        let telling =
            protocol.extension.state.as_ref().map(|state| &state.changed_by[..]).unwrap_or_default();
        let mut come = self.log.of_client(client).rev().take_while(|entry| entry.line.index >= index);
        come.any(|entry| {
            let received = entry.line.way == Way::ToClient;
            received && entry.messages().flatten().any(|one| telling.contains(&protocol.messages[one].name))
        })
    }

    pub(crate) async fn unchanged(
        &mut self,
        verb: &case::Unchanged,
        cx: &StepScope<'_>,
    ) -> Result<(), Abort> {
        let before = self.state(cx.client).await?;
        let since = self.log.next_index();
        let at = format!("{}/unchanged", cx.at);
        self.steps(&verb.steps, &at).await?;
        let after = self.state(cx.client).await?;
        if same(&before, &after) || self.state_has_changed_since(since, cx.client) {
            return Ok(());
        }
        let message = "the state that the server shows has changed".to_owned();
        let received = Received::made(self.log.last_index(), after);
        self.fail_step(cx.blame, message, Some(&received), Some(before))
    }
}

/// One text, or one for each key in the order of their first pieces.
fn join<'b>(pieces: impl Iterator<Item = &'b Value>, joined: &Joined) -> Value {
    let mut pieces: Vec<&Value> = pieces.collect();
    if let Some(order) = &joined.order {
        let number = |piece: &Value| order.get(piece).and_then(Value::as_f64).unwrap_or(f64::INFINITY);
        pieces.sort_by(|one, other| number(one).total_cmp(&number(other)));
    }
    let mut texts: Vec<(Option<&Value>, String)> = Vec::new();
    for body in pieces {
        let Some(piece) = joined.at.iter().find_map(|at| at.text(body)) else { continue };
        let key = joined.by.as_ref().and_then(|by| by.get(body));
        let is_of = |known: Option<&Value>| match (known, key) {
            (Some(known), Some(key)) => same(known, key),
            (known, key) => known == key,
        };
        match texts.iter_mut().find(|(known, _)| is_of(*known)) {
            Some((_, text)) => text.push_str(&piece),
            None => texts.push((key, piece)),
        }
    }
    let value = |text: String| match crate::frame::parse_within(&text) {
        Ok(value) if joined.json => value,
        // No text at all is no value.
        Err(_) if joined.json && text.is_empty() => Value::Null,
        _ => Value::from(text),
    };
    match joined.by {
        Some(_) => texts.into_iter().map(|(_, text)| value(text)).collect(),
        None => value(texts.into_iter().map(|(_, text)| text).collect()),
    }
}

/// What is wrong, where, and with which value, unless the problem says that itself.
pub(super) fn describe(violation: &Violation, body: &Value) -> String {
    let value = match &violation.problem {
        Problem::Other(_) => body.pointer(&violation.at).map(crate::protocol::shorten),
        _ => None,
    };
    let parts = [Some(violation.at.clone()), value, Some(violation.problem.to_string())];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether one number is less than another: exactly for whole numbers. What is no number is never less.
fn is_less(one: &Value, other: &Value) -> bool {
    match (counter(one), counter(other)) {
        (Some(one), Some(other)) => one < other,
        _ => matches!((one.as_f64(), other.as_f64()), (Some(one), Some(other)) if one < other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_by_key() {
        let pieces = [
            json!({ "id": 1, "text": "a" }),
            json!({ "id": 2, "text": "x" }),
            json!({ "id": 1.0, "parts": [{ "text": "b" }] }),
            json!({ "id": 1, "text": 7 }),
        ];
        for (by, expected) in [(json!("/id"), json!(["ab", "x"])), (json!(null), json!("axb"))] {
            let joined = json!({ "of": "m", "at": ["/text", "/parts/0/text"], "by": by });
            let joined: Joined = serde_json::from_value(joined).expect("joined");
            assert_eq!(join(pieces.iter(), &joined), expected);
        }
        let parts = json!({ "id": 1, "parts": [{ "text": "a" }, { "kind": "image" }, { "text": "b" }] });
        let joined = json!({ "of": "m", "at": ["/parts/*/text", "/parts"] });
        let joined: Joined = serde_json::from_value(joined).expect("joined");
        assert_eq!(join([parts, json!({ "parts": "c" })].iter(), &joined), json!("abc"));
        let joined = json!({ "of": "m", "at": ["/text"], "json": true });
        let joined: Joined = serde_json::from_value(joined).expect("joined");
        assert_eq!(join([json!({ "text": "[1" }), json!({ "text": ",2]" })].iter(), &joined), json!([1, 2]));
        assert_eq!(join([json!({ "text": "[1" })].iter(), &joined), json!("[1"));
        assert_eq!(join([json!({ "text": null })].iter(), &joined), json!(null));
    }

    #[test]
    fn numbers_ascend_and_nothing_else() {
        for (one, other, expected) in [
            (json!(1), json!(2), true),
            (json!(2), json!(2), false),
            (json!(1.5), json!(2), true),
            (json!(9_007_199_254_740_992_u64), json!(9_007_199_254_740_993_u64), true),
            (json!("a"), json!(5), false),
            (json!(null), json!(5), false),
            (json!("1"), json!("2"), false),
        ] {
            assert_eq!(is_less(&one, &other), expected, "{one} {other}");
        }
    }

    #[test]
    fn an_expected_null_is_in_the_picture_of_what_was_expected() {
        let mut expected = json!({ "type": "a" });
        show(&mut expected, &json!({ "req_id": null, "run": { "at": null } }));
        assert_eq!(expected, json!({ "type": "a", "req_id": null, "run": { "at": null } }));
    }
}
