//! What comes before, after and between what.

use std::time::Duration;

use serde_json::Value;

use super::keys::Keys;
use super::{Compile, Finding, Item, Items, key, whole};
use crate::protocol::rules::{self as rule, Scope};
use crate::protocol::{ConnectionEvent, Matcher};

/// Connection or session of an item.
pub(super) fn place(item: &Item, scope: Scope) -> usize {
    match scope {
        Scope::Connection => item.conn,
        Scope::Session => item.session,
    }
}

pub(super) fn increasing(rule: &rule::Increasing, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (on, restarts) = (c.pattern(&rule.message), c.optional(rule.restarts.as_ref()));
    let keys = Keys::optional(rule.key.as_ref(), c, items, |_| false);
    let key = |item: &Item| keys.of(item);
    let number = |item: &Item| item.get(&rule.at).filter(|shown| shown.is_number() && item.is(&on)).cloned();
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some(value) = number(item) else { continue };
        if whole(&value).is_some() && value.to_string().parse::<i128>().is_err() {
            found.push((Some(item.event), rule.written.clone()));
        }
        let restarted = |other: &Item| {
            other.is_any(restarts.as_ref()) && (key(other).is_none() || key(other) == key(item))
        };
        if restarted(item) {
            continue;
        }
        let earlier = items.before_on_conn(index).take_while(|(_, other)| {
            // A restart that bears the counter counts from its own value on.
            !restarted(other)
        });
        let mut values: Vec<Value> = earlier
            .filter(|(_, other)| key(other) == key(item))
            .filter_map(|(_, other)| number(other))
            .collect();
        let restart = items.before_on_conn(index).find(|(_, other)| restarted(other));
        values.extend(
            restart.filter(|(_, other)| key(other) == key(item)).and_then(|(_, other)| number(other)),
        );
        let is_less = |one: &Value, other: &Value| match (whole(one), whole(other)) {
            (Some(one), Some(other)) => one < other,
            _ => one.as_f64() < other.as_f64(),
        };
        if values.iter().any(|earlier| is_less(&value, earlier)) {
            found.push((Some(item.event), rule.order.clone()));
        } else if values.iter().any(|earlier| !is_less(earlier, &value)) {
            found.push((Some(item.event), rule.repeat.clone()));
        }
    }
    found
}

pub(super) fn precedence(rule: &rule::Precedence, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (first, then) = (c.pattern(&rule.first), c.pattern(&rule.then));
    let side = |begins| rule.key.as_ref().map(|key| Keys::new(key, c, items, |_| begins));
    let keys = side(true).zip(side(false));
    // Keys name one thing in a session, wherever it was seen.
    let scope = if keys.is_some() { Scope::Session } else { rule.scope };
    let mut found = Vec::new();
    let known = rule.known.as_ref().map(|known| (c.pattern(&known.by), &known.at, &known.named));
    let is_known = |index: usize, item: &Item| {
        known.as_ref().is_none_or(|(told, at, named)| {
            named.get(&item.body).is_some_and(|named| {
                let mut told = items.before_on_conn(index).filter(|(_, other)| other.is(told));
                told.any(|(_, other)| at.get(&other.body).is_some_and(|value| key(value) == key(named)))
            })
        })
    };
    for (index, item) in items.iter().filter(|(index, item)| item.is(&then) && is_known(*index, item)) {
        let wanted = match &keys {
            None => None,
            Some((_, then)) => match then.of(item) {
                Some(key) => Some(key),
                None => continue,
            },
        };
        let came = items.before(index).any(|(_, other)| {
            other.is(&first)
                && place(other, scope) == place(item, scope)
                && keys
                    .as_ref()
                    .is_none_or(|(first, _)| first.of(other).is_some() && first.of(other) == wanted)
        });
        if !(came || (item.unwatched || item.late) && scope == Scope::Session) {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}

pub(super) fn absence(rule: &rule::Absence, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (of, after, until) = (c.pattern(&rule.of), c.pattern(&rule.after), c.optional(rule.until.as_ref()));
    let (owed, unless) = (c.optional(rule.owed.as_ref()), c.optional(rule.unless.as_ref()));
    let keys = Keys::optional(rule.key.as_ref(), c, items, |item| item.is(&after));
    let key = |item: &Item| rule.key.as_ref().map(|_| keys.of(item));
    let paired = |item: &Item| key(item).is_none_or(|key| key.is_some());
    let answers = rule.answered.as_ref().map(|answered| answers(answered, c, items));
    let mut found = Vec::new();
    for (index, item) in items.iter().filter(|(_, item)| item.is(&of) && paired(item)) {
        if item.is_any(until.as_ref()) {
            continue;
        }
        let own = |other: &Item| place(other, rule.scope) == place(item, rule.scope);
        let ends = |other: &Item| {
            other.is_any(until.as_ref())
                && (own(other) || (rule.until_anywhere && other.session == item.session))
        };
        let mut earlier: Vec<&Item> = items
            .before(index)
            .map(|(_, other)| other)
            .filter(|other| paired(other) && key(other) == key(item) && (own(other) || ends(other)))
            .collect();
        earlier.reverse();
        let (mut open, mut waiting, mut passed, mut barred) = (false, 0_u32, false, false);
        // Whether the server has read what was sent by then.
        let knows = |since: &Item| {
            let asked_later = |(asked, _): &&(usize, usize)| *asked > since.index;
            answers.as_ref().is_none_or(|all| {
                let mut later = all.iter().filter(asked_later);
                later.any(|(asked, replied)| *replied < item.index && items.all[*asked].conn == item.conn)
            })
        };
        for other in earlier {
            let asks = other.is_any(owed.as_ref());
            if ends(other) {
                waiting += u32::from(own(other) && passed && !asks);
                passed &= !own(other);
                open = false;
            }
            if !own(other) {
                continue;
            }
            waiting += u32::from(asks);
            barred |= other.is_any(unless.as_ref());
            if other.is(&after) {
                waiting = waiting.saturating_sub(1);
                passed = waiting > 0;
                open |= !passed && !barred && knows(other);
            }
        }
        if open {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}

/// Which item answers which: the requests and their replies.
fn answers(rule: &rule::Answered, c: &Compile<'_>, items: &Items) -> Vec<(usize, usize)> {
    let (request, reply) = (c.pattern(&rule.request), c.pattern(&rule.reply));
    let asks = |item: &Item| item.is(&request);
    let ids = rule.id.as_ref().map(|id| Keys::ids(Some(id), c, items, asks));
    let mut open: Vec<&Item> = Vec::new();
    let mut found = Vec::new();
    for (_, item) in items.iter() {
        let id = ids.as_ref().map(|ids| ids.of(item));
        if asks(item) {
            // A second request with an id takes the place of the first.
            open.retain(|one| {
                id.is_none() || one.conn != item.conn || ids.as_ref().map(|ids| ids.of(one)) != id
            });
            open.push(item);
        } else if item.is(&reply) && id != Some(None) {
            let fits = |one: &&Item| one.conn == item.conn && ids.as_ref().map(|ids| ids.of(one)) == id;
            if let Some(place) = open.iter().position(fits) {
                found.push((open.remove(place).index, item.index));
            }
        }
    }
    found
}

pub(super) fn bracket(rule: &rule::Bracket, c: &Compile<'_>, items: &Items, settled: bool) -> Vec<Finding> {
    let (open, close, inside) = (c.pattern(&rule.open), c.pattern(&rule.close), c.pattern(&rule.inside));
    let (joined, middle) = (c.places(&rule.joined), c.optional(rule.middle.as_ref()));
    let exempt = rule.exempt.as_ref().map(|place| c.place(place));
    let is_free = |index: usize, item: &Item| {
        exempt.as_ref().is_some_and(|(on, at)| {
            let named =
                |other: &Item| other.is(on) && other.key(at).is_some() && other.key(at) == item.key(at);
            item.is(&inside) && !named(item) && items.before_on_conn(index).any(|(_, other)| named(other))
        })
    };
    let joins = |item: &Item| {
        joined.iter().any(|(on, at)| item.is(on) && item.get(at).is_some_and(|value| !value.is_null()))
    };
    if rule.counted {
        let kind = |index: usize, item: &Item| match () {
            () if is_free(index, item) => None,
            () if item.is_any(middle.as_ref()) => Some(Step::Middle),
            () if item.is(&open) => Some(Step::Open),
            () if item.is(&close) => Some(Step::Close),
            () => item.is(&inside).then_some(Step::Inside),
        };
        return counted(rule, items, settled, &kind, &joins);
    }
    // Inside or outside from this item on; none: it changes nothing.
    let turns = |index: usize, item: &Item| {
        if is_free(index, item) {
            None
        } else if item.is(&open) {
            Some(true)
        } else if item.is(&close) {
            Some(false)
        } else {
            item.is_any(middle.as_ref()).then_some(true)
        }
    };
    let mut found = Vec::new();
    for (index, item) in
        items.iter().filter(|(_, item)| item.is(&inside) && !item.is(&open) && !item.is(&close))
    {
        if is_free(index, item) || item.is_any(middle.as_ref()) {
            continue;
        }
        match items.before_on_conn(index).find_map(|(at, other)| turns(at, other)) {
            Some(true) => {}
            Some(false) => found.push((Some(item.event), rule.after.clone())),
            None if joins(item) || items.before_on_conn(index).any(|(_, other)| joins(other)) => {}
            None => found.push((Some(item.event), rule.before.clone())),
        }
    }
    found
}

/// What an item is to a bracket whose scopes are counted.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Open,
    Close,
    Middle,
    Inside,
}

/// A bracket whose scopes end when as many `close` as `open` have come.
fn counted(
    rule: &rule::Bracket,
    items: &Items,
    settled: bool,
    kind: &dyn Fn(usize, &Item) -> Option<Step>,
    joins: &dyn Fn(&Item) -> bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for conn in 0..items.ended.len() {
        let own = items.iter().filter(|(_, item)| item.conn == conn);
        let steps: Vec<(&Item, Option<Step>)> = own.map(|(at, item)| (item, kind(at, item))).collect();
        let of = |range: std::ops::Range<usize>| steps[range].iter().filter_map(|(_, step)| *step);
        // How many scopes are open, once any was.
        let mut depth: Option<u32> = None;
        // What comes inside after a close that may repeat an earlier one: whether it is judged.
        let mut doubtful: Option<bool> = None;
        let mut reopened = false;
        for (at, (item, step)) in steps.iter().enumerate() {
            if depth.is_none() && joins(item) {
                depth = Some(1);
            }
            let Some(step) = step else { continue };
            match step {
                Step::Middle => depth = Some(1),
                Step::Open => {
                    reopened = depth == Some(0);
                    depth = Some(depth.unwrap_or(0) + 1);
                }
                Step::Close => {
                    doubtful = None;
                    depth = Some(depth.unwrap_or(0).saturating_sub(1));
                    if depth == Some(0) && reopened && of(0..at).next_back() == Some(Step::Open) {
                        match of(at + 1..steps.len()).find(|step| *step != Step::Inside) {
                            Some(Step::Close) => depth = Some(1),
                            Some(Step::Middle) => doubtful = Some(false),
                            Some(_) => doubtful = Some(true),
                            None => doubtful = Some(settled || !items.is_open(conn)),
                        }
                    }
                }
                Step::Inside => match depth {
                    None => found.push((Some(item.event), rule.before.clone())),
                    Some(0) if doubtful.is_none_or(|judged| judged) => {
                        found.push((Some(item.event), rule.after.clone()));
                        // One is told of those that are doubtful.
                        doubtful = doubtful.map(|_| false);
                    }
                    Some(_) => {}
                },
            }
        }
    }
    found
}

pub(super) fn response(rule: &rule::Response, c: &Compile<'_>, items: &Items, settled: bool) -> Vec<Finding> {
    let (first, then) = (c.pattern(&rule.first), c.pattern(&rule.then));
    let (unless, before) = (c.optional(rule.unless.as_ref()), c.optional(rule.before.as_ref()));
    let keys = Keys::optional(rule.key.as_ref(), c, items, |item| item.is(&first));
    let key = |item: &Item| keys.of(item);
    let mut found = Vec::new();
    let now = items.iter().map(|(_, item)| item.at).max().unwrap_or_default();
    let old = |item: &Item| now.saturating_sub(item.at) >= Duration::from_millis(rule.lasting_ms);
    let within = rule.within.as_ref().map(|time| c.time(time));
    let closed = c.0.index_of_event(ConnectionEvent::Close);
    for (index, item) in items.iter().filter(|(_, item)| item.is(&first)) {
        let own = key(item);
        let excuses = |other: &Item| own.is_some() && other.is_any(unless.as_ref()) && key(other) == own;
        if excuses(item) || items.before_on_conn(index).any(|(_, other)| excuses(other)) {
            continue;
        }
        let released = |other: &Item| {
            (other.is(&then) && key(other) == own)
                || (other.is_any(unless.as_ref()) && (key(other).is_none() || key(other) == own))
        };
        // A later one of the same key takes the duty over.
        let settles = |other: &&Item| {
            released(other) || other.is_any(before.as_ref()) || (other.is(&first) && key(other) == own)
        };
        let late = |at: Duration| within.is_some_and(|within| at.saturating_sub(item.at) > within);
        let ends = |other: &Item| within.is_some() && other.message == Some(closed);
        match items.after_on_conn(index).find(|other| settles(other) || ends(other)) {
            Some(other) if other.is(&then) && key(other) == own => {
                found.extend(late(other.at).then(|| (Some(other.event), rule.decides.clone())));
            }
            Some(other) if !released(other) && other.is_any(before.as_ref()) => {
                found.push((Some(other.event), rule.decides.clone()));
            }
            Some(other) => found.extend(late(other.at).then(|| (Some(item.event), rule.decides.clone()))),
            None if within.is_some() => {
                let told = items.is_open(item.conn) && late(now);
                found.extend(told.then(|| (Some(item.event), rule.decides.clone())));
            }
            None if settled && before.is_none() && items.is_open(item.conn) && old(item) => {
                found.push((Some(item.event), rule.decides.clone()));
            }
            None => {}
        }
    }
    found
}

pub(super) fn existence(
    rule: &rule::Existence,
    c: &Compile<'_>,
    items: &Items,
    settled: bool,
) -> Vec<Finding> {
    let (of, from, to) = (c.pattern(&rule.of), c.pattern(&rule.from), c.pattern(&rule.to));
    let (with, without) = (c.optional(rule.with.as_ref()), c.optional(rule.without.as_ref()));
    let unless = c.optional(rule.unless.as_ref());
    let keys = Keys::optional(rule.key.as_ref(), c, items, |item| item.is(&from));
    let within = rule.within.as_ref().map(|time| c.time(time));
    let named = |item: &Item| rule.key.is_none() || keys.of(item).is_some();
    let mut found = Vec::new();
    for (index, item) in items.iter().filter(|(_, item)| item.is(&from) && named(item)) {
        // From this on nothing begins on the connection.
        let on_conn = || items.iter().filter(|(_, other)| other.conn == item.conn);
        let barred =
            on_conn().find(|(_, other)| other.is_any(unless.as_ref())).map_or(usize::MAX, |(at, _)| at);
        if index >= barred {
            continue;
        }
        let begins = |at: usize, other: &Item| {
            at < barred && other.is(&from) && keys.of(other) == keys.of(item) && named(other)
        };
        let after = || on_conn().filter(|(at, _)| *at > index);
        let rest = after().take_while(|(at, other)| !begins(*at, other)).map(|(_, other)| other);
        let rest: Vec<&Item> =
            rest.filter(|other| !named(other) || keys.of(other) == keys.of(item)).collect();
        let another = after().any(|(at, other)| begins(at, other));
        let stretch: Vec<&Item> = std::iter::once(item).chain(rest).collect();
        let any = |stretch: &[&Item], matcher: &Matcher| stretch.iter().any(|other| other.is(matcher));
        // Whether the rule is about a stretch, as far as it is seen, and how many there are in it.
        let counted = |stretch: &[&Item]| {
            let end = stretch.iter().rev().find(|other| other.is(&to))?;
            let about = with.as_ref().is_none_or(|with| any(stretch, with));
            let about = about && !without.as_ref().is_some_and(|without| any(stretch, without));
            let timely =
                |other: &Item| within.is_none_or(|within| other.at.saturating_sub(item.at) <= within);
            let counts = |other: &&&Item| other.is(&of) && named(other) && timely(other);
            let count = stretch.iter().filter(counts).count() as u64;
            about.then_some((end.event, count))
        };
        // Too many are too many whatever follows; too few only when nothing can follow any more.
        let too_many = (1..=stretch.len())
            .filter_map(|seen| counted(&stretch[..seen]))
            .find(|(_, count)| rule.max.is_some_and(|most| *count > u64::from(most)));
        let too_few = counted(&stretch)
            .filter(|_| another || (settled && items.is_open(item.conn)))
            .filter(|(_, count)| *count < u64::from(rule.min));
        let broken = too_many.or(too_few);
        found.extend(broken.map(|(event, _)| (Some(event), rule.decides.clone())));
    }
    found
}

pub(super) fn cadence(rule: &rule::Cadence, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    let period = |item: &Item| {
        let whole = rule.period.get(&item.body).and_then(whole).filter(|_| item.is(&on));
        whole.and_then(|whole| u64::try_from(whole).ok())
    };
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some(millis) = period(item) else { continue };
        let Some((_, last)) = items.before_on_conn(index).find(|(_, other)| period(other).is_some()) else {
            continue;
        };
        let gap = item.at.saturating_sub(last.at);
        let late = gap.as_secs_f64() > millis as f64 / 1e3 * rule.factor.max(1.0);
        if late && gap > Duration::from_millis(millis).saturating_add(Duration::from_millis(900)) {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}
