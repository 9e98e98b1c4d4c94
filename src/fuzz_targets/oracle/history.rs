//! Logs, replays of them, and what is shown of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::keys::Keys;
use super::{Compile, Finding, Item, Items, key, whole};
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules::{self as rule, Fold};

/// The first delivery of each id of a session among the first `until` items.
fn first_of(items: &Items, until: usize, session: usize, id: i128) -> Option<&Item> {
    items.all[..until]
        .iter()
        .find(|item| item.session == session && item.logged.as_ref().is_some_and(|(own, _)| *own == id))
}

/// The ids of a session that other connections delivered first, among the first `until` items.
fn of_others(items: &Items, until: usize, session: usize, conn: usize) -> BTreeSet<i128> {
    let ids: BTreeSet<i128> = items.all[..until]
        .iter()
        .filter(|item| item.session == session)
        .filter_map(|item| item.logged.as_ref().map(|(id, _)| *id))
        .collect();
    ids.into_iter()
        .filter(|id| first_of(items, until, session, *id).is_some_and(|first| first.conn != conn))
        .collect()
}

/// Equal as JSON, numbers by value.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || ((left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        (left, right) => left == right,
    }
}

pub(super) fn agreement(rule: &rule::Agreement, items: &Items, settled: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some((id, content)) = &item.logged else { continue };
        let again = items
            .before_on_conn(index)
            .any(|(_, other)| other.logged.as_ref().is_some_and(|(own, _)| own == id));
        let first =
            first_of(items, index, item.session, *id).filter(|first| first.conn != item.conn && !again);
        if let Some((_, other)) = first.and_then(|first| first.logged.as_ref())
            && !same(other, content)
        {
            found.push((Some(item.event), rule.content.clone()));
        }
    }
    for conn in (0..items.ended.len()).filter(|_| settled) {
        let own: Vec<(&Item, i128)> = items
            .all
            .iter()
            .filter(|item| item.conn == conn)
            .filter_map(|item| Some((item, item.logged.as_ref()?.0)))
            .collect();
        let (Some((_, first)), Some((last_item, _))) = (own.first(), own.last()) else { continue };
        let last = own.iter().map(|(_, id)| *id).max().unwrap_or(*first);
        let others = of_others(items, items.all.len(), last_item.session, conn);
        if others.range(*first..=last).any(|id| !own.iter().any(|(_, have)| have == id)) {
            found.push((None, rule.complete.clone()));
        }
    }
    found
}

/// A resume and what came after it on its connection.
struct Resumed<'i> {
    cursor: i128,
    /// The cursor, or what was shown instead of the events up to it.
    base: i128,
    event: u64,
    /// Logged items, with their indices.
    logged: Vec<(usize, &'i Item, i128)>,
}

impl Resumed<'_> {
    /// The newest id of a session that was known when the resume was sent.
    fn newest_then(&self, items: &Items, session: usize) -> Option<i128> {
        let before = items.all.iter().filter(|item| item.event < self.event && item.session == session);
        before.filter_map(|item| item.logged.as_ref().map(|(id, _)| *id)).max()
    }

    /// How far the row of delivered events reaches after the first `count` of them.
    fn reached(&self, count: usize) -> i128 {
        let delivered = self.logged[..count].iter().map(|(_, _, id)| *id);
        delivered.filter(|id| *id > self.cursor).fold(self.base, i128::max)
    }
}

pub(super) fn replay(rule: &rule::Replay, c: &Compile<'_>, items: &Items, settled: bool) -> Vec<Finding> {
    let (resume, refused) = (c.place(&rule.resume), c.optional(rule.refused.as_ref()));
    let (resets, joined) = (rule.resets.as_ref().map(|at| c.place(at)), c.optional(rule.joined.as_ref()));
    let instead = rule.instead.as_ref().map(|at| c.place(at));
    let mut found = Vec::new();
    for (index, item) in items.iter().filter(|(_, item)| item.is(&resume.0)) {
        let rest: Vec<(usize, &Item)> = items.all[index + 1..]
            .iter()
            .enumerate()
            .map(|(at, other)| (index + 1 + at, other))
            .filter(|(_, other)| other.conn == item.conn)
            .collect();
        let last = !rest.iter().any(|(_, other)| other.is(&resume.0));
        let rest: Vec<_> = rest.into_iter().take_while(|(_, other)| !other.is(&resume.0)).collect();
        // A refusal counts as long as nothing of the log has come.
        let silent = rest.iter().take_while(|(_, other)| other.logged.is_none()).count();
        if rest.iter().take(silent + 1).any(|(_, other)| other.is_any(refused.as_ref())) {
            continue;
        }
        let logged: Vec<_> =
            rest.iter().filter_map(|(at, other)| Some((*at, *other, other.logged.as_ref()?.0))).collect();
        let delivered = logged.last().map(|(_, newest, _)| newest.session);
        let cursor = item.get(&resume.1).and_then(whole).filter(|cursor| {
            // Before any event, one that shows an older id or none voids the cursor.
            let behind =
                |other: &Item, at| other.get(at).and_then(whole).is_none_or(|newest| newest < *cursor);
            let resets = resets.as_ref();
            !rest
                .iter()
                .take(silent + 1)
                .any(|(_, other)| resets.is_some_and(|(resets, at)| other.is(resets) && behind(other, at)))
        });
        let mut shown = rest.iter().take(silent + 1).filter_map(|(_, other)| {
            let (_, at) = instead.as_ref().filter(|(instead, _)| other.is(instead))?;
            Some(other.get(at).and_then(whole))
        });
        // A first event at or below it is the beginning of a replay after all.
        let shown =
            shown.next_back().flatten().filter(|shown| logged.first().is_some_and(|(_, _, id)| id > shown));
        let cursor_or_least = cursor.unwrap_or(i128::MIN);
        let base = shown.map_or(cursor_or_least, |shown| shown.max(cursor_or_least));
        let mut resumed = Resumed { cursor: cursor_or_least, base, event: item.event, logged };
        if items.before_on_conn(index).any(|(_, other)| other.is_any(joined.as_ref())) {
            let known = |other: &Item, id| {
                resumed.newest_then(items, other.session).is_some_and(|newest| id <= newest)
            };
            let logged = resumed.logged.iter().filter(|(_, other, id)| known(other, *id)).copied();
            resumed.logged = logged.collect();
        }
        for count in 0..resumed.logged.len() {
            replayed(rule, items, &resumed, cursor.is_some(), count, &mut found);
        }
        let Some(session) = delivered.filter(|_| settled && last && cursor.is_some()) else { continue };
        let owed = resumed.newest_then(items, session).unwrap_or(resumed.cursor);
        let reached = resumed.reached(resumed.logged.len());
        let others = of_others(items, items.all.len(), session, item.conn);
        if others.iter().any(|id| *id > reached && *id <= owed) {
            found.push((None, rule.complete.clone()));
        }
    }
    found
}

/// One delivered event after a resume.
fn replayed(
    rule: &rule::Replay,
    items: &Items,
    resumed: &Resumed<'_>,
    has_cursor: bool,
    count: usize,
    found: &mut Vec<Finding>,
) {
    let (index, item, id) = resumed.logged[count];
    if has_cursor && id <= resumed.cursor {
        let mut ids = rule.floor.clone();
        if resumed.newest_then(items, item.session) == Some(resumed.cursor) {
            ids.extend(rule.current.clone());
        }
        found.push((Some(item.event), ids));
        return;
    }
    let first = first_of(items, index, item.session, id)
        .filter(|first| first.conn != item.conn && first.event < resumed.event);
    if let (Some((_, first)), Some((_, content))) =
        (first.and_then(|first| first.logged.as_ref()), &item.logged)
        && !same(first, content)
    {
        found.push((Some(item.event), rule.content.clone()));
    }
    let reached = resumed.reached(count);
    let others = of_others(items, index, item.session, item.conn);
    if has_cursor && others.iter().any(|other| *other > reached && *other < id) {
        found.push((Some(item.event), rule.complete.clone()));
    }
}

pub(super) fn projection(rule: &rule::Projection, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    let newest_facts = || rule.facts.values().filter(|fact| matches!(fact.fold, Fold::Newest {}));
    let is_asked =
        |item: &Item| c.optional(rule.asked.as_ref()).is_some_and(|asked| item.is(&asked) && !item.is(&on));
    let ids = Keys::ids(rule.id.as_ref(), c, items, |item| !item.is(&on));
    // A 0 beside a newest event of null is the state before the first event.
    let before_all = |item: &Item| newest_facts().any(|fact| item.get(&fact.at).is_none_or(Value::is_null));
    let cursor = |item: &Item| {
        let cursor = item.get(&rule.cursor).and_then(whole).filter(|_| item.is(&on))?;
        Some(if cursor == 0 && before_all(item) { -1 } else { cursor })
    };
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some(shown_at) = cursor(item) else { continue };
        let on_conn: Vec<&Item> = items.all[..index].iter().filter(|other| other.conn == item.conn).collect();
        let Some(from) = on_conn.iter().position(|other| cursor(other).is_some()) else { continue };
        let seed = on_conn[from];
        let mut newest = cursor(seed).unwrap_or_default();
        let mut log: Vec<(&Item, i128)> = Vec::new();
        let mut asked = Vec::new();
        for (at, other) in on_conn.iter().enumerate() {
            if cursor(other).is_some() {
                let answered = asked.iter().position(|(id, _)| *id == ids.of(other));
                answered.map(|at| asked.remove(at));
            } else if is_asked(other) {
                // Before the first state, nobody knows what has been before.
                asked.push((ids.of(other), if at < from { i128::MIN } else { newest }));
            }
            if at <= from {
                continue;
            }
            if let Some((id, _)) = other.logged.as_ref().filter(|(id, _)| !other.is(&on) && *id > newest) {
                newest = *id;
                log.push((other, *id));
            }
        }
        if shown_at > newest {
            continue;
        }
        // It was being made while newer events came.
        if shown_at < newest
            && asked
                .iter()
                .find(|(id, _)| *id == ids.of(item))
                .or_else(|| asked.first().filter(|_| ids.of(item).is_none()))
                .is_some_and(|(_, since)| *since <= shown_at)
            && newest_facts().all(|fact| item.get(&fact.at).and_then(whole) == Some(shown_at))
        {
            continue;
        }
        for fact in rule.facts.values() {
            let compared = c.optional(fact.when.as_ref()).is_none_or(|when| item.is(&when));
            let current = shown_at == newest || matches!(fact.fold, Fold::Newest {});
            if compared && current && !agrees(fact, c, seed, &log, item) {
                found.push((Some(item.event), fact.decides.clone()));
            }
        }
    }
    found
}

/// Whether a part of a shown state follows from the seed and the events since.
fn agrees(fact: &rule::Fact, c: &Compile<'_>, seed: &Item, log: &[(&Item, i128)], item: &Item) -> bool {
    let seeded = seed.get(&fact.at).cloned().unwrap_or_default();
    let shown = item.get(&fact.at).cloned().unwrap_or_default();
    let is = |item: &Item, matcher: &Matcher| item.is(matcher);
    match &fact.fold {
        Fold::Newest {} => {
            // Nothing yet is shown as null or as 0.
            let read = |value: &Value| if value.is_null() { Some(0) } else { whole(value) };
            match log.last() {
                Some((_, id)) => read(&shown) == Some(*id),
                None => same(&seeded, &shown) || (read(&shown).is_some() && read(&shown) == read(&seeded)),
            }
        }
        Fold::Latest { set, clear } => {
            let ((set, at), clear) = (c.place(set), c.pattern(clear));
            let turn =
                log.iter().rev().map(|(event, _)| *event).find(|event| is(event, &set) || is(event, &clear));
            let value = turn.map_or(seeded, |event| {
                if is(event, &set) { event.get(&at).cloned().unwrap_or_default() } else { Value::Null }
            });
            same(&value, &shown)
        }
        Fold::Open { add, remove, clear, item: id } => {
            let (add, remove, clear) = (c.place(add), c.place(remove), c.pattern(clear));
            let ids = |list: &Value| -> BTreeSet<String> {
                list.as_array().into_iter().flatten().filter_map(|element| id.get(element)).map(key).collect()
            };
            let mut open = ids(&seeded);
            for (event, _) in log {
                if is(event, &add.0) {
                    open.extend(event.key(&add.1));
                } else if is(event, &remove.0) {
                    let gone = event.key(&remove.1);
                    open.retain(|own| Some(own) != gone.as_ref());
                } else if is(event, &clear) {
                    open.clear();
                }
            }
            ids(&shown) == open
        }
        Fold::Items { of, drop, join } => {
            let of = c.pattern(of);
            let bare = |body: &Value| {
                let mut body = body.clone();
                for at in drop {
                    body.as_object_mut().map(|map| map.remove(at.as_str().trim_start_matches('/')));
                }
                body
            };
            let of_log = log.iter().filter(|(event, _)| is(event, &of)).map(|(event, _)| bare(&event.body));
            let items = joined(of_log, join.as_ref());
            let list = joined(shown.as_array().into_iter().flatten().map(bare), join.as_ref());
            list.len() >= items.len()
                && list[list.len() - items.len()..].iter().zip(&items).enumerate().all(
                    |(at, (shown, item))| {
                        let mut shown = shown.clone();
                        if at == 0
                            && let Some((all, end)) =
                                text_of(&shown, join.as_ref()).zip(text_of(item, join.as_ref()))
                            && all.ends_with(end)
                        {
                            let end = end.to_owned();
                            set_text(&mut shown, join.as_ref(), end);
                        }
                        same(&shown, item)
                    },
                )
        }
        Fold::Count { of, by } => {
            let of = c.pattern(of);
            let counted: Vec<&Item> =
                log.iter().map(|(event, _)| *event).filter(|event| is(event, &of)).collect();
            let about = |event: &Item| by.as_ref().and_then(|by| event.key(by));
            let repeats = counted
                .windows(2)
                .filter(|pair| about(pair[1]).is_some() && about(pair[0]) == about(pair[1]));
            let count = (counted.len() - repeats.count()) as i128;
            whole(&shown) == Some(whole(&seeded).unwrap_or(0) + count)
        }
    }
}

/// Neighbours that differ in nothing but the text at `join` as one, with the texts of all.
fn joined(items: impl Iterator<Item = Value>, join: Option<&Pointer>) -> Vec<Value> {
    let without = |item: &Value| {
        let mut item = item.clone();
        set_text(&mut item, join, String::new());
        item
    };
    let mut all: Vec<Value> = Vec::new();
    for item in items {
        if let Some(last) = all.last_mut()
            && let Some((before, after)) = text_of(last, join).zip(text_of(&item, join))
            && same(&without(last), &without(&item))
        {
            let whole = format!("{before}{after}");
            set_text(last, join, whole);
        } else {
            all.push(item);
        }
    }
    all
}

fn text_of<'v>(item: &'v Value, join: Option<&Pointer>) -> Option<&'v str> {
    join?.get(item)?.as_str()
}

fn set_text(item: &mut Value, join: Option<&Pointer>, text: String) {
    if let Some(place) = join.and_then(|join| item.pointer_mut(join.as_str())) {
        *place = text.into();
    }
}
