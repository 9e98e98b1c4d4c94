//! A state message agrees with the events seen so far.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::items::{ItemComparison, Items, MAX_ITEMS};
use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::Memory;
use crate::check::history::Logged;
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::{counter, counter_json, key_text, same};
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Most bytes of the ids of open items; past that they are not compared any more.
const MAX_BYTES: usize = 1 << 20;
/// Most questions of a connection that wait for their state messages.
const MAX_ASKED: usize = 256;

/// Memory: the folds of each open connection; lists bounded by [`MAX_ITEMS`] and [`MAX_BYTES`], questions by [`MAX_ASKED`].
#[derive(Clone)]
pub(super) struct Projection {
    check: Check,
    on: Matcher,
    asked: Option<Matcher>,
    ids: Keys,
    cursor: Pointer,
    facts: Vec<Fact>,
    conns: FxHashMap<Conn, State>,
    /// What was asked on each connection, maybe before its first state message.
    questions: FxHashMap<Conn, Questions>,
    forgotten: u64,
}

#[derive(Clone)]
struct Fact {
    name: String,
    at: Pointer,
    when: Option<Matcher>,
    decides: Vec<String>,
    fold: Fold,
}

#[allow(clippy::large_enum_variant, reason = "a handful a protocol, built once")]
#[derive(Clone)]
enum Fold {
    Newest,
    Latest { set: (Matcher, Pointer), clear: Matcher },
    Open { add: (Matcher, Pointer), remove: (Matcher, Pointer), clear: Matcher, item: Pointer },
    Items { of: Matcher, comparison: ItemComparison },
    Count { of: Matcher, by: Option<Pointer> },
}

/// What the events of a connection add up to.
#[derive(Clone)]
struct State {
    cursor: i128,
    newest_event: u64,
    values: Vec<Folded>,
}

/// The state messages that were asked for and have not come, the oldest first: the id, and the cursor of then.
#[derive(Clone, Default)]
struct Questions(VecDeque<(Option<String>, i128)>);

impl Questions {
    /// The cursor at which the state message with this id was asked for, or may have been.
    fn answers(&mut self, id: Option<&str>) -> Option<i128> {
        let Some(at) = self.0.iter().position(|(asked, _)| asked.as_deref() == id) else {
            // Without an id it answers any of them, or came of itself.
            return self.0.front().filter(|_| id.is_none()).map(|(_, since)| *since);
        };
        self.0.remove(at).map(|(_, since)| since)
    }
}

#[derive(Clone)]
enum Folded {
    Value(Value),
    /// The newest id, or, before there is one, what the seed shows.
    Newest(Result<i128, Value>),
    Ids(BTreeSet<String>),
    /// There were too many ids.
    Lost,
    Items(Items),
    /// So many; what the one counted last is about.
    Count(i128, Option<String>),
}

impl Projection {
    pub fn new(rule: &rule::Projection, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let mut facts = Vec::new();
        for (name, fact) in &rule.facts {
            let fold = match &fact.fold {
                rule::Fold::Newest {} => Fold::Newest,
                rule::Fold::Latest { set, clear } => {
                    Fold::Latest { set: b.place(set)?, clear: b.pattern(clear)? }
                }
                rule::Fold::Open { add, remove, clear, item } => Fold::Open {
                    add: b.place(add)?,
                    remove: b.place(remove)?,
                    clear: b.pattern(clear)?,
                    item: item.clone(),
                },
                rule::Fold::Items { of, drop, join } => {
                    Fold::Items { of: b.pattern(of)?, comparison: ItemComparison::new(drop, join.as_ref()) }
                }
                rule::Fold::Count { of, by } => Fold::Count { of: b.pattern(of)?, by: by.clone() },
            };
            facts.push(Fact {
                name: name.clone(),
                at: fact.at.clone(),
                when: b.optional(fact.when.as_ref())?,
                decides: fact.decides.clone(),
                fold,
            });
        }
        b.log()?;
        Ok(Self {
            check: b.check.clone(),
            on: b.pattern(&rule.message)?,
            asked: b.optional(rule.asked.as_ref())?,
            ids: Keys::new(rule.id.as_ref(), b)?,
            cursor: rule.cursor.clone(),
            facts,
            conns: FxHashMap::default(),
            questions: FxHashMap::default(),
            forgotten: 0,
        })
    }

    /// Starts the folds of a connection from what a state message shows.
    fn seed(&self, body: &Value, cursor: i128, event: u64) -> State {
        let values = self.facts.iter().map(|fact| {
            let shown = fact.at.get(body).cloned().unwrap_or(Value::Null);
            match &fact.fold {
                Fold::Newest => Folded::Newest(Err(shown)),
                Fold::Latest { .. } => Folded::Value(shown),
                Fold::Open { item, .. } => Folded::Ids(ids_of(&shown, item)),
                Fold::Items { .. } => Folded::Items(Items::default()),
                Fold::Count { .. } => Folded::Count(counter(&shown).unwrap_or(0), None),
            }
        });
        State { cursor, newest_event: event, values: values.collect() }
    }

    /// What a message shows as the id of the newest event, wherever it does.
    fn newest<'v>(&'v self, body: &'v Value) -> impl Iterator<Item = Option<&'v Value>> {
        self.facts.iter().filter(|fact| matches!(fact.fold, Fold::Newest)).map(|fact| fact.at.get(body))
    }

    /// Up to which event a state is shown. A 0 beside a newest event of null is the state before the first event, whose id may
    /// be 0.
    fn shown_at(&self, body: &Value) -> Option<i128> {
        let cursor = counter(self.cursor.get(body)?)?;
        let before_all = cursor == 0 && self.newest(body).any(|shown| shown.is_none_or(Value::is_null));
        Some(if before_all { -1 } else { cursor })
    }

    /// Whether a message shows no more than the state of an earlier time, whole: it was being made when newer events came, and was asked
    /// for before.
    fn is_overtaken(&self, body: &Value, shown_at: i128, since: i128) -> bool {
        since <= shown_at && self.newest(body).all(|shown| shown.and_then(counter) == Some(shown_at))
    }

    fn fold(&mut self, seen: &Observation<'_>, logged: Logged) {
        let id = logged.id;
        let Some(state) = self.conns.get_mut(&seen.conn) else { return };
        if id <= state.cursor {
            return;
        }
        state.cursor = id;
        state.newest_event = seen.event;
        for (fact, value) in self.facts.iter_mut().zip(&mut state.values) {
            match (&mut fact.fold, value) {
                (Fold::Newest, Folded::Newest(newest)) => *newest = Ok(id),
                (Fold::Latest { set, clear }, Folded::Value(value)) => {
                    if seen.is(&set.0) {
                        *value = set.1.get(seen.body).cloned().unwrap_or(Value::Null);
                    } else if seen.is(clear) {
                        *value = Value::Null;
                    }
                }
                (Fold::Open { add, remove, clear, .. }, value @ Folded::Ids(_)) => {
                    let Folded::Ids(ids) = value else { continue };
                    if seen.is(&add.0) {
                        ids.extend(add.1.get(seen.body).map(|id| key_text(id).into_owned()));
                        if ids.len() > MAX_ITEMS || ids.iter().map(String::len).sum::<usize>() > MAX_BYTES {
                            self.forgotten += ids.len() as u64;
                            *value = Folded::Lost;
                        }
                    } else if seen.is(&remove.0) {
                        if let Some(id) = remove.1.get(seen.body) {
                            ids.remove(&*key_text(id));
                        }
                    } else if seen.is(clear) {
                        ids.clear();
                    }
                }
                (Fold::Items { of, comparison }, Folded::Items(items)) if seen.is(of) => {
                    items.push(comparison, seen);
                }
                (Fold::Count { of, by }, Folded::Count(count, last)) if seen.is(of) => {
                    let about = by.as_ref().and_then(|by| by.get(seen.body));
                    let about = about.map(|value| key_text(value).into_owned());
                    if about.is_none() || about != *last {
                        *count += 1;
                    }
                    *last = about;
                }
                _ => {}
            }
        }
    }

    fn compare(&self, seen: &Observation<'_>, state: &State, shown_at: i128, tally: &mut Tally) {
        for (fact, value) in self.facts.iter().zip(&state.values) {
            if fact.when.as_ref().is_some_and(|when| !seen.is(when)) {
                continue;
            }
            let shown = fact.at.get(seen.body).cloned().unwrap_or(Value::Null);
            // A cursor that lies behind shows an older state: only that is wrong, and the folds of then are gone.
            if shown_at < state.cursor && !matches!(fact.fold, Fold::Newest) {
                continue;
            }
            if matches!(value, Folded::Lost) {
                continue;
            }
            tally.exercise(&fact.decides);
            // No cursor yet may be shown as null or 0.
            let cursor = |value: &Value| if value.is_null() { Some(0) } else { counter(value) };
            let mut related = state.newest_event;
            let (agrees, expected) = match value {
                Folded::Value(value) => (same(value, &shown), value.clone()),
                Folded::Newest(Ok(newest)) => (cursor(&shown) == Some(*newest), counter_json(*newest)),
                Folded::Newest(Err(seed)) => {
                    let alike = cursor(seed).is_some() && cursor(seed) == cursor(&shown);
                    (alike || same(seed, &shown), seed.clone())
                }
                Folded::Lost => continue,
                Folded::Ids(ids) => match &fact.fold {
                    Fold::Open { item, .. } => (ids_of(&shown, item) == *ids, json!(ids)),
                    _ => (true, Value::Null),
                },
                Folded::Items(items) => {
                    let Fold::Items { comparison, .. } = &fact.fold else { continue };
                    let list = shown.as_array().map(Vec::as_slice).unwrap_or_default();
                    let wrong = items.mismatch(list, comparison);
                    related = wrong.as_ref().map_or(related, |(_, event)| *event);
                    let expected = match &wrong {
                        Some((Some(at), _)) => format!("item {at} as its event showed it"),
                        _ => format!("{} items, or more, for as many events showed one", items.len()),
                    };
                    (wrong.is_none(), expected.into())
                }
                Folded::Count(count, _) => (counter(&shown) == Some(*count), counter_json(*count)),
            };
            if !agrees {
                let message = format!("{}: {} does not agree with the preceding events", fact.name, fact.at);
                if let Some(violation) = tally.broken(&self.check, &fact.decides, seen.event, message) {
                    violation.related = Some(related);
                    violation.expected = Some(expected);
                    violation.actual = Some(shown);
                }
            }
        }
    }
}

fn ids_of(list: &Value, item: &Pointer) -> BTreeSet<String> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|element| item.get(element)).map(|id| key_text(id).into_owned()).collect()
}

impl Monitor for Projection {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let shows = seen.is(&self.on);
        let id = self.ids.id(seen, Part::begins(!shows));
        if shows {
            let Some(cursor) = self.shown_at(seen.body) else { return };
            let since = self.questions.get_mut(&seen.conn).and_then(|asked| asked.answers(id.as_deref()));
            match self.conns.get(&seen.conn) {
                Some(state) if cursor > state.cursor => {}
                Some(state)
                    if cursor < state.cursor
                        && since.is_some_and(|since| self.is_overtaken(seen.body, cursor, since)) => {}
                Some(state) => self.compare(seen, state, cursor, tally),
                None => {
                    let state = self.seed(seen.body, cursor, seen.event);
                    self.conns.insert(seen.conn, state);
                }
            }
            return;
        }
        if self.asked.as_ref().is_some_and(|asked| seen.is(asked)) {
            // Before the first state message, nobody knows what has been before.
            let since = self.conns.get(&seen.conn).map_or(i128::MIN, |state| state.cursor);
            let Questions(asked) = self.questions.entry(seen.conn).or_default();
            asked.push_back((id, since));
            if asked.len() > MAX_ASKED {
                asked.pop_front();
                self.forgotten += 1;
            }
        }
        if let Some(logged) = seen.logged {
            self.fold(seen, logged);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.ids.closed(conn);
        self.conns.remove(&conn);
        self.questions.remove(&conn);
    }

    fn memory(&self) -> Memory {
        let entries = self.conns.values().flat_map(|state| &state.values).map(|value| match value {
            Folded::Ids(ids) => ids.len(),
            Folded::Items(items) => items.len(),
            _ => 1,
        });
        let asked: usize = self.questions.values().map(|asked| asked.0.len()).sum();
        Memory { entries: entries.sum::<usize>() + asked, forgotten: self.forgotten } + self.ids.memory()
    }
}
