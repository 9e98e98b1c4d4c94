//! From a case as it was written to the case that is run: one verb a step, with the modifiers that it takes; texts that
//! stand for lengths of time, bytes and schemas are read once, here. What is wrong is told with its place in the case.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use serde_json::Value;

use super::case::{
    Alive, Awaited, Case, Check, Common, Constraint, Cut, Ended, Expect, ExpectFile, Get, Group, Joined,
    Leniency, Never, Open, Opening, Rejected, Relation, Repeat, Rounds, Selected, SendBinary, SendMessage,
    SendText, Step, Steps, Text, Unchanged, Upgrade, Verb, WriteBytes, WriteFrame,
};
use super::file;
use super::frame::unhex;
use super::preamble::{Beginning, Further};
use super::recovery::Gaps;
use super::template;
use super::verbs::{VERBS, takes, taking};
use super::verify::{CLOSE, REFUSED, TURN_END, means};
use crate::protocol::{
    Answer, END, HTTP_ANSWER, OneOrMany, Protocol, ValueMistake, ValuesOf, answer_mistakes, mistake_of_code,
};
use crate::source::{Part, escape_token};
use crate::trace::Direction;

/// How often a loop is done at most, where it does not say.
const MOST_ROUNDS: u32 = 100;
/// How long a client waits at most before a message.
const MOST_THINKING: Duration = Duration::from_secs(10);
/// How long connections stay open at most when the steps are done.
const MOST_LINGERING: Duration = Duration::from_secs(60);

/// What is wrong with a step.
#[derive(Debug)]
pub(super) struct Mistake {
    /// JSON Pointer, from the case on.
    pub at: String,
    pub part: Part,
    pub message: String,
    pub hint: String,
}

/// Compiles a case. Where there are mistakes, steps are missing from it. `gaps`: what is missing of it to begin with.
pub(super) fn case(given: file::Case, protocol: &Protocol, gaps: &Gaps) -> (Case, Vec<Mistake>) {
    let mut compiler = Compiler {
        protocol,
        at_end: HashMap::new(),
        is_conditional: false,
        suspended: given.suspend.clone(),
        mistakes: Vec::new(),
    };
    let steps = given.steps.into_iter().enumerate();
    let whole = steps.filter(|(index, step)| step.verbs().len() == 1 || !gaps.steps.contains(index));
    let steps = whole
        .filter_map(|(index, step)| compiler.step(step, &format!("/steps/{index}")).map(Arc::new))
        .collect();
    let further = compiler.further(given.further);
    let think_time = compiler.at_most(given.think_time, "think-time", MOST_THINKING);
    let linger = compiler.at_most(given.linger, "linger", MOST_LINGERING);
    let case = Case {
        title: given.title,
        covers: given.covers,
        needs: given.needs,
        turn: given.turn,
        turns: given.turns,
        vars: given.vars,
        rounds: Rounds { sweep: given.sweep, repeat: given.repeat, max_growth: given.max_growth },
        settle: given.settle,
        suspend: given.suspend,
        beginning: Beginning {
            is_preamble: given.preamble,
            contains: given.contains,
            not_behind: given.not_behind,
            words: given.words,
            thoughts: given.thoughts.unwrap_or_default(),
            preface: given.preface.unwrap_or_default(),
            pseudolocale: given.pseudolocale,
            pipelined: given.pipelined,
            respelled: given.respelled,
            further,
            think_time,
            linger,
        },
        steps,
    };
    (case, compiler.mistakes)
}

struct Compiler<'p> {
    protocol: &'p Protocol,
    /// Of each client, whether the last `expect` so far waits for the end of its connection and for nothing else.
    at_end: HashMap<Option<String>, bool>,
    /// The step has a `when`.
    is_conditional: bool,
    suspended: Vec<String>,
    mistakes: Vec<Mistake>,
}

impl Compiler<'_> {
    fn mistake(&mut self, at: String, part: Part, message: impl Into<String>, hint: impl Into<String>) {
        self.mistakes.push(Mistake { at, part, message: message.into(), hint: hint.into() });
    }

    fn steps(&mut self, given: Vec<file::Step>, at: &str) -> Steps {
        let steps = given.into_iter().enumerate();
        steps.filter_map(|(index, step)| self.step(step, &format!("{at}/{index}")).map(Arc::new)).collect()
    }

    fn step(&mut self, mut given: file::Step, at: &str) -> Option<Step> {
        let verbs = given.verbs();
        let [verb] = verbs[..] else {
            self.no_verb(&verbs, at);
            return None;
        };
        for modifier in given.modifiers() {
            if !takes(verb, modifier) {
                let message = format!("`{modifier}` does not go with `{verb}`");
                let hint = format!("it goes with {}", taking(modifier).join(", "));
                self.mistake(format!("{at}/{modifier}"), Part::Key, message, hint);
            }
        }
        self.is_conditional = given.when.is_some();
        let common = Common {
            covers: std::mem::take(&mut given.covers),
            when: given.when.take().and_then(|when| self.relation(when, &format!("{at}/when"))),
        };
        let verb = self.connection(&mut given, at);
        let verb = verb.or_else(|| self.stimulus(&mut given, at));
        let verb = verb.or_else(|| self.judgement(&mut given, at));
        let verb = verb.or_else(|| self.state(&mut given, at))?;
        Some(Step { verb, common })
    }

    fn no_verb(&mut self, verbs: &[&str], at: &str) {
        let message = match verbs {
            [] => "a step needs a verb".to_owned(),
            many => format!("a step has one verb, not {}", many.join(" and ")),
        };
        let mut names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        let last = names.pop().unwrap_or_default();
        let hint = format!("verbs are {} and {last}", names.join(", "));
        self.mistake(at.to_owned(), Part::Value, message, hint);
    }

    /// Verbs about connections.
    fn connection(&mut self, given: &mut file::Step, at: &str) -> Option<Verb> {
        self.codes(given.codes.as_deref().unwrap_or_default(), &format!("{at}/codes"));
        Some(if let Some(client) = given.open.take() {
            Verb::Open(Open {
                client,
                session: given.session.take(),
                opening: match given.opening.take() {
                    None => Opening::First,
                    Some(name) if name == "none" => Opening::None,
                    Some(name) => Opening::Named(name),
                },
                with: given.with.take(),
                may_refuse: given.may_refuse,
                upgrade: Upgrade {
                    headers: std::mem::take(&mut given.headers).into_iter().collect(),
                    protocols: given.protocols.take(),
                    selects: given.selects.take().map(|name| match name.as_str() {
                        "none" => Selected::None,
                        _ => Selected::Named(name),
                    }),
                },
            })
        } else if let Some(client) = given.close.take() {
            Verb::Close(client)
        } else if let Some(client) = given.drop.take() {
            Verb::Drop(Cut { client, after: given.after.take(), noticed: given.noticed, leaves: false })
        } else if let Some(client) = given.stall.take() {
            Verb::Stall(client)
        } else if let Some(client) = given.unstall.take() {
            Verb::Unstall(client)
        } else if let Some(client) = given.settle.take() {
            Verb::Settle(client)
        } else if let Some(client) = given.alive.take() {
            Verb::Alive(Alive { client, codes: given.codes.take() })
        } else if let Some(client) = given.ended.take() {
            Verb::Ended(Ended { client, codes: given.codes.take().unwrap_or_default() })
        } else {
            Verb::Restart(given.restart.take()?)
        })
    }

    /// Verbs that send something.
    fn stimulus(&mut self, given: &mut file::Step, at: &str) -> Option<Verb> {
        let (by, count, abandon) = (given.client.clone(), given.count.unwrap_or(1), given.abandon);
        Some(if let Some(message) = given.send.take() {
            Verb::Send(SendMessage { by, message, count, abandon })
        } else if let Some(text) = given.raw.take() {
            Verb::Raw(SendText { by, text, count, abandon })
        } else if let Some(text) = given.binary.take() {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            let bytes = decoded.unwrap_or_else(|error| {
                let message = format!("`binary` is not base64: {error}");
                self.mistake(format!("{at}/binary"), Part::Value, message, "");
                Vec::new()
            });
            Verb::Binary(SendBinary { by, bytes })
        } else if let Some(frame) = given.frame.take() {
            Verb::Frame(Box::new(WriteFrame { by, frame, count }))
        } else if let Some(text) = given.bytes.take() {
            let bytes = unhex(&text).unwrap_or_else(|message| {
                self.mistake(format!("{at}/bytes"), Part::Value, format!("`bytes`: {message}"), "");
                Vec::new()
            });
            Verb::Bytes(WriteBytes { by, bytes, count })
        } else {
            Verb::Ping(Text { by, text: given.ping.take()? })
        })
    }

    /// Verbs that judge what came, or did not.
    fn judgement(&mut self, given: &mut file::Step, at: &str) -> Option<Verb> {
        let by = given.client.clone();
        let leniency =
            Leniency { tolerated: given.tolerated.take(), allowed: given.allowed.take(), warns: given.warns };
        Some(if let Some(names) = given.expect.take() {
            if given.count.is_some() && names.as_slice().iter().any(|name| means(name, CLOSE, self.protocol))
            {
                let message = "`count` does not go with `close`";
                self.mistake(format!("{at}/count"), Part::Key, message, "a connection ends once");
            }
            if names.as_slice().iter().any(|name| means(name, REFUSED, self.protocol)) {
                self.refusal(&names, given, at);
            }
            let at_end = matches!(names.as_slice(), [name] if means(name, CLOSE, self.protocol));
            // One that may be left out, or fail, leaves what was taken before.
            let is_certain = !self.is_conditional && leniency == Leniency::default();
            self.at_end.insert(by.clone(), at_end && is_certain);
            Verb::Expect(Box::new(Expect {
                by,
                awaited: self.awaited(names.as_slice(), given, at),
                save: std::mem::take(&mut given.save),
                answer: self.answer(names.as_slice(), given, at),
                within: self.time(given.within.take(), &format!("{at}/within")),
                count: given.count.unwrap_or(1),
                past_errors: given.past_errors,
                keep: given.keep,
                leniency,
            }))
        } else if let Some(client) = given.refusal.take() {
            self.at_end.insert(Some(client.clone()), false);
            Verb::Expect(Box::new(Expect {
                by: Some(client),
                awaited: self.refused(given, at),
                save: std::mem::take(&mut given.save),
                answer: None,
                within: None,
                count: 1,
                past_errors: false,
                keep: false,
                leniency,
            }))
        } else if let Some(schema) = given.check.take() {
            if self.at_end.get(&by) == Some(&true) {
                let mistakes = ValuesOf::End(Direction::Recv).mistakes_of_schema(&schema);
                self.value_mistakes(mistakes, &format!("{at}/check"));
            }
            Verb::Check(Check { by, schema: self.constraint(schema, at, "check"), leniency })
        } else if let Some(names) = given.never.take() {
            Verb::Never(Box::new(Never {
                by,
                awaited: self.awaited(names.as_slice(), given, at),
                window: self.time(given.window.take(), &format!("{at}/window")),
                leniency,
            }))
        } else if let Some(pieces) = given.joined.take() {
            let Some(schema) = given.schema.take() else {
                let hint = "`where: { const: TEXT }`, or another JSON Schema";
                self.mistake(format!("{at}/joined"), Part::Key, "`joined` needs a `where`", hint);
                return None;
            };
            Verb::Joined(Box::new(Joined { by, pieces, schema: self.constraint(schema, at, "where") }))
        } else if let Some(count) = given.rejected.take() {
            Verb::Rejected(Rejected { by, count: count as usize, leniency })
        } else {
            Verb::Unseen(Text { by, text: given.unseen.take()? })
        })
    }

    /// Verbs about what the server shows or keeps, and about steps.
    fn state(&mut self, given: &mut file::Step, at: &str) -> Option<Verb> {
        if let Some(path) = given.expect_file.take() {
            let schema = given.schema.take().map(|schema| self.constraint(schema, at, "where"));
            let within = self.time(given.within.take(), &format!("{at}/within"));
            return Some(Verb::ExpectFile(ExpectFile { path, schema, within }));
        }
        if let Some(path) = given.get.take() {
            return Some(self.get(path, given, at));
        }
        if let Some(assertion) = given.assert.take() {
            return self.relation(assertion, &format!("{at}/assert")).map(Verb::Assert);
        }
        if let Some(steps) = given.unchanged.take() {
            let steps = self.steps(steps, &format!("{at}/unchanged"));
            return Some(Verb::Unchanged(Unchanged { by: given.client.take(), steps }));
        }
        if let Some(steps) = given.repeat.take() {
            return self.repeat(steps, given, at);
        }
        if let Some(steps) = given.steps.take() {
            let steps = self.steps(steps, &format!("{at}/steps"));
            return Some(Verb::Steps(Group { vars: std::mem::take(&mut given.vars), steps }));
        }
        let branches = given.parallel.take()?.into_iter().enumerate();
        let steps = |(index, steps)| self.steps(steps, &format!("{at}/parallel/{index}"));
        Some(Verb::Parallel(branches.map(steps).collect()))
    }

    fn get(&mut self, path: String, given: &mut file::Step, at: &str) -> Verb {
        if !path.starts_with('/') {
            let hint = "the path of the server under test: it begins with a slash";
            self.mistake(format!("{at}/get"), Part::Value, format!("`{path}` is not a path"), hint);
        }
        if let Some(wrong) = path
            .chars()
            .find(|one| !one.is_ascii_graphic())
            .filter(|_| template::is_constant(&Value::from(path.as_str())))
        {
            let hint = "percent-encode what is not ASCII, and spaces";
            self.mistake(format!("{at}/get"), Part::Value, format!("a path cannot contain {wrong:?}"), hint);
        }
        let mut with = given.with.take();
        self.check_fields(with.as_ref(), &HTTP_ANSWER, "an answer", at);
        let answer = given.schema.as_ref();
        self.values_asked_for(ValuesOf::Answer, with.as_ref(), answer, at, &|_| false);
        let is_object = with.as_ref().is_none_or(Value::is_object);
        if !is_object {
            let hint = "`with: { status: 200 }`";
            self.mistake(format!("{at}/with"), Part::Value, "`with` of `get` must be an object", hint);
        }
        // The answer has them in lower case.
        if let Some(Value::Object(headers)) = with.as_mut().and_then(|with| with.get_mut("headers")) {
            *headers = std::mem::take(headers)
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect();
        }
        Verb::Get(Box::new(Get {
            path,
            upgrade: Upgrade {
                headers: std::mem::take(&mut given.headers).into_iter().collect(),
                ..Upgrade::default()
            },
            with,
            schema: given.schema.take().map(|schema| self.constraint(schema, at, "where")),
            within: self.time(given.within.take(), &format!("{at}/within")),
        }))
    }

    /// A loop ends by a message that one of its steps takes.
    fn repeat(&mut self, steps: Vec<file::Step>, given: &mut file::Step, at: &str) -> Option<Verb> {
        let Some(until) = given.until.take() else {
            let hint = "`until: TYPE`, with `with` or `where`: the message that ends the loop";
            self.mistake(format!("{at}/repeat"), Part::Key, "`repeat` needs an `until`", hint);
            return None;
        };
        let steps = self.steps(steps, &format!("{at}/repeat"));
        let names = until.as_slice();
        fn takes(step: &Step, names: &[String]) -> bool {
            let own = matches!(&step.verb, Verb::Expect(verb) if verb.awaited.names.iter().any(|name| names.contains(name)));
            own || step.verb.inner().any(|inner| takes(inner, names))
        }
        if !steps.iter().any(|step| takes(step, names)) {
            let message = format!("no `expect` in the loop takes {}", names.join(" or "));
            let hint = "the loop ends by a message that one of its steps takes";
            self.mistake(format!("{at}/until"), Part::Value, message, hint);
        }
        let most = given.count.unwrap_or(MOST_ROUNDS);
        Some(Verb::Repeat(Box::new(Repeat { until: self.awaited(names, given, at), most, steps })))
    }

    /// `expect: refused` waits for nothing: it looks at what the last `open` came to.
    fn refusal(&mut self, names: &OneOrMany, given: &file::Step, at: &str) {
        if names.as_slice().len() > 1 {
            let hint = "the refusal of a connection is known when `open` is done";
            self.mistake(
                format!("{at}/expect"),
                Part::Value,
                "`refused` cannot be combined with other types",
                hint,
            );
        }
        let pointless = ["within", "count", "past-errors", "keep"];
        for name in given.modifiers().into_iter().filter(|name| pointless.contains(name)) {
            let message = format!("`{name}` does not go with `refused`");
            self.mistake(format!("{at}/{name}"), Part::Key, message, "nothing is waited for");
        }
    }

    /// How a request of the server's is answered.
    fn answer(&mut self, names: &[String], given: &mut file::Step, at: &str) -> Option<Answer> {
        let answer = match Answer::of(given.reply.take(), given.refuse.take()) {
            Ok(answer) => answer?,
            Err(message) => {
                self.mistake(format!("{at}/refuse"), Part::Key, message, "leave out one of them");
                return None;
            }
        };
        // Names that the protocol does not know have been told.
        let known = |name: &String| {
            self.protocol.index_of(name, Direction::Recv).is_some()
                || [CLOSE, REFUSED, TURN_END].contains(&name.as_str())
        };
        let names: Vec<String> = names.iter().filter(|name| known(name)).cloned().collect();
        if let Some(rule) = self.protocol.answering_rule(&names, &self.suspended) {
            let message = format!("clients answer it automatically (`x-frameproof.client.{}`)", rule.name);
            let hint = format!("add `suspend: [{}]` to the case", rule.name);
            self.mistake(format!("{at}/{}", answer.kind().name()), Part::Key, message, hint);
        }
        if !names.is_empty() {
            for (message, hint) in answer_mistakes(self.protocol, &names, &answer) {
                self.mistake(format!("{at}/{}", answer.kind().name()), Part::Key, message, hint);
            }
        }
        Some(answer)
    }

    fn awaited(&mut self, names: &[String], given: &mut file::Step, at: &str) -> Awaited {
        if matches!(names, [name] if means(name, REFUSED, self.protocol)) {
            return self.refused(given, at);
        }
        let schema = given.schema.take().map(|schema| self.constraint(schema, at, "where"));
        let with = given.with.take();
        let is_end = |name: &String| means(name, CLOSE, self.protocol);
        let condition = schema.as_ref().map(|schema: &Constraint| &schema.given);
        if names.iter().any(is_end) {
            if names.len() == 1 {
                self.check_fields(with.as_ref(), &END, "the end of a connection", at);
            }
            // What one of the messages may have is asked of that.
            let protocol = self.protocol;
            let others: Vec<&String> = names.iter().filter(|name| !is_end(name)).collect();
            let elsewhere =
                |field: &str| others.iter().any(|name| protocol.may_have_field(name, field).unwrap_or(true));
            let end = ValuesOf::End(Direction::Recv);
            self.values_asked_for(end, with.as_ref(), condition, at, &elsewhere);
        }
        Awaited { names: names.to_vec(), refusal: false, with, schema }
    }

    /// The refusal of a connection, and what a step asks of it.
    fn refused(&mut self, given: &mut file::Step, at: &str) -> Awaited {
        let with = given.with.take();
        self.check_fields(with.as_ref(), &HTTP_ANSWER, "a refusal", at);
        self.values_asked_for(ValuesOf::Answer, with.as_ref(), given.schema.as_ref(), at, &|_| false);
        let schema = given.schema.take().map(|schema| self.constraint(schema, at, "where"));
        Awaited { names: Vec::new(), refusal: true, with, schema }
    }

    /// Tells of the values that a step asks for and that nothing of this kind has; `elsewhere`: whether something else that the step
    /// waits for may have a field.
    fn values_asked_for(
        &mut self,
        kind: ValuesOf,
        with: Option<&Value>,
        schema: Option<&Value>,
        at: &str,
        elsewhere: &dyn Fn(&str) -> bool,
    ) {
        let given = [("with", with, with.map(|with| kind.mistakes_of_part(with)))];
        let conditions = [("where", schema, schema.map(|schema| kind.mistakes_of_schema(schema)))];
        for (key, given, mistakes) in given.into_iter().chain(conditions) {
            let mut mistakes = mistakes.unwrap_or_default();
            mistakes.retain(|one| {
                !given.and_then(|given| one.field(given)).is_some_and(|field| elsewhere(&field))
            });
            self.value_mistakes(mistakes, &format!("{at}/{key}"));
        }
    }

    fn value_mistakes(&mut self, mistakes: Vec<ValueMistake>, at: &str) {
        for one in mistakes {
            self.mistake(format!("{at}{}", one.at), Part::Value, one.message, one.hint);
        }
    }

    fn codes(&mut self, codes: &[u16], at: &str) {
        for (index, code) in codes.iter().enumerate() {
            if let Some((message, hint)) = mistake_of_code(*code) {
                self.mistake(format!("{at}/{index}"), Part::Value, message, hint);
            }
        }
    }

    /// A part of something that has these fields only names these.
    fn check_fields(&mut self, with: Option<&Value>, fields: &[&str], what: &str, at: &str) {
        let given = with.and_then(Value::as_object).into_iter().flat_map(|with| with.keys());
        for field in given.filter(|field| !fields.contains(&field.as_str())) {
            let message = format!("{what} has no `{field}`");
            let hint = format!("it has {}", fields.join(", "));
            self.mistake(format!("{at}/with/{}", escape_token(field)), Part::Key, message, hint);
        }
    }

    /// A length of time under a key of the case that has a bound.
    fn at_most(&mut self, text: Option<String>, key: &str, most: Duration) -> Option<Duration> {
        let at = format!("/{key}");
        let time = self.time(text, &at)?;
        if time > most {
            let message = format!("`{key}` is at most {}s", most.as_secs());
            self.mistake(at, Part::Value, message, "each case behind the preamble takes so much longer");
        }
        Some(time)
    }

    fn further(&mut self, given: Option<file::Further>) -> Option<Further> {
        let given = given?;
        let when = given.when.and_then(|when| self.relation(when, "/further/when"));
        Some(Further { members: given.members.into_iter().collect(), at: given.at, when })
    }

    fn time(&mut self, text: Option<String>, at: &str) -> Option<Duration> {
        match self.protocol.time(&text?) {
            Ok(time) => Some(time),
            Err(errors) => {
                for error in errors.0 {
                    self.mistake(at.to_owned(), Part::Value, error.message, error.hint.unwrap_or_default());
                }
                None
            }
        }
    }

    /// A JSON Schema. With templates in it, what it comes to is known only when it is used.
    fn constraint(&mut self, given: Value, at: &str, field: &str) -> Constraint {
        if !template::is_constant(&given) {
            return Constraint { given, fixed: None };
        }
        let fixed = match self.protocol.schema(&given) {
            Ok(schema) => Some(schema),
            Err(error) => {
                let message = format!("`{field}` is not a JSON Schema: {error}");
                self.mistake(format!("{at}/{field}"), Part::Value, message, "");
                None
            }
        };
        Constraint { given, fixed }
    }

    fn relation(&mut self, given: file::Assertion, at: &str) -> Option<Relation> {
        let relations = [
            given.equal.map(Relation::Equal),
            given.differ.map(Relation::Differ),
            given.ascending.map(Relation::Ascending),
            given.difference.map(|values| Relation::Difference(Box::new(values))),
        ];
        let mut relations = relations.into_iter().flatten();
        if let (Some(relation), None) = (relations.next(), relations.next()) {
            return Some(relation);
        }
        let hint = "equal, differ, ascending or difference";
        self.mistake(at.to_owned(), Part::Value, "an assertion states one relation", hint);
        None
    }
}
