//! Values that belong to something, and values in one message.

use std::borrow::Cow;

use serde_json::Value;

use super::history::same;
use super::keys::Keys;
use super::order::place;
use super::{Compile, Finding, Item, Items, key};
use crate::frame::Pointer;
use crate::protocol::rules::{self as rule, Comparison, InText, Spot};
use crate::source::received_schema::loadable;
use crate::source::schema::Schema;

pub(super) fn unique(rule: &rule::Unique, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    // Where a value counts, the value, and what it names.
    let first_part = c.0.messages.len();
    let parts = first_part..first_part + c.0.parts().len();
    let is_part = |item: &Item| item.message.is_some_and(|message| parts.contains(&message));
    let names = |(index, item): (usize, &Item)| {
        let value = item.get(&rule.at).filter(|value| !value.is_null() && item.is(&on)).map(key)?;
        match &rule.identity {
            Some(at) => Some((item.session, value, item.key(at)?)),
            None if is_part(item) => Some((item.conn, value, format!("{}, part {index}", item.event))),
            None => Some((item.conn, value, item.event.to_string())),
        }
    };
    // Without an identity the elements of a message's lists are compared with one another alone, unless the rule says otherwise.
    let is_listed = |item: &Item| {
        let in_message = rule.within.map_or(is_part(item), |within| within == rule::Within::Message);
        rule.identity.is_none() && in_message
    };
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some((place, value, identity)) = names((index, item)) else { continue };
        let listed = is_listed(item);
        let before = items.iter().take(index);
        let mut earlier = before
            .filter(|(_, other)| is_listed(other) == listed && (!listed || other.event == item.event))
            .filter_map(names);
        let first = earlier.find(|(other, same, _)| *other == place && *same == value);
        if first.is_some_and(|(_, _, first)| listed || first != identity) {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}

pub(super) fn constant(rule: &rule::Constant, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (places, restarts) = (c.places(&rule.values), c.optional(rule.restarts.as_ref()));
    let keys = Keys::optional(rule.key.as_ref(), c, items, |_| false);
    let owner = |item: &Item| rule.key.as_ref().map(|_| keys.of(item));
    let values = |item: &Item| -> Vec<Value> {
        if owner(item).is_some_and(|owner| owner.is_none()) {
            return Vec::new();
        }
        let value = |(on, at): &(crate::protocol::Matcher, Pointer)| {
            item.get(at).filter(|value| item.is(on) && !value.is_null()).cloned()
        };
        places.iter().filter_map(value).collect()
    };
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let same_place = |other: &Item| place(other, rule.scope) == place(item, rule.scope);
        let restart = (0..=index).rev().find(|at| {
            let other = &items.all[*at];
            same_place(other) && other.is_any(restarts.as_ref())
        });
        let since = &items.all[restart.unwrap_or(0)..index];
        let earlier =
            since.iter().filter(|other| same_place(other) && owner(other) == owner(item)).flat_map(values);
        let own = values(item);
        let Some(first) = earlier.chain(own.iter().cloned()).next() else { continue };
        let differing = own.iter().filter(|value| !same(value, &first));
        found.extend(differing.map(|_| (Some(item.event), rule.decides.clone())));
    }
    found
}

pub(super) fn states(rule: &rule::States, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (on, known) = (c.pattern(&rule.message), c.places(&rule.known));
    let keys = Keys::new(&rule.key, c, items, |_| false);
    let state_of = |item: &Item| {
        let state = item.text(&rule.at).filter(|_| item.is(&on))?.to_owned();
        Some((keys.of(item)?, state))
    };
    let is_end = |state: &str| rule.transitions.get(state).is_some_and(Vec::is_empty);
    let shows = |item: &Item, wanted: &str| {
        known.iter().any(|(on, at)| {
            item.is(on) && item.get(at).filter(|key| !key.is_null()).map(key).as_deref() == Some(wanted)
        })
    };
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some((own, state)) = state_of(item) else { continue };
        let mut on_conn = items.before_on_conn(index).filter_map(|(_, other)| state_of(other));
        let ids = if let Some((_, last)) = on_conn.find(|(other, _)| *other == own) {
            let allowed =
                last == state || rule.transitions.get(&last).is_some_and(|next| next.contains(&state));
            match (is_end(&last) && is_end(&state), allowed) {
                (true, _) => vec![&rule.terminal],
                (false, false) => vec![&rule.transition],
                (false, true) => vec![],
            }
        } else {
            let seen = |other: &Item| {
                other.session == item.session
                    && (shows(other, &own) || state_of(other).is_some_and(|(key, _)| key == own))
            };
            // A key that this connection shows for the first time counts for the session that it was in by then; later
            // ones of the same connection do not carry it into another session.
            let first_on_conn = |at: usize, other: &Item| {
                !state_of(other).is_some_and(|(key, _)| {
                    items
                        .before_on_conn(at)
                        .filter_map(|(_, one)| state_of(one))
                        .any(|(earlier, _)| earlier == key)
                }) || shows(other, &own)
            };
            // Of what comes to one that joined late, the beginning may be under way to another one.
            let counts = |other: &Item| shows(other, &own) || !other.late;
            let mut before = items.before(index);
            let before = before.any(|(at, other)| seen(other) && counts(other) && first_on_conn(at, other));
            if before || item.unwatched || item.late || shows(item, &own) {
                continue;
            }
            let mut ids = Vec::new();
            if !rule.initial.as_slice().contains(&state) {
                ids.push(&rule.start);
            }
            let newest = items.before_on_conn(index).find_map(|(_, other)| state_of(other));
            if newest.is_some_and(|(other, state)| other != own && !is_end(&state)) {
                ids.push(&rule.overlap);
            }
            ids
        };
        found.extend(ids.into_iter().map(|ids| (Some(item.event), ids.clone())));
    }
    found
}

pub(super) fn holds(rule: &rule::Holds, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    let told = rule.told.as_ref().map(|told| c.place(told));
    let brings = |item: &Item| told.as_ref().is_some_and(|(on, _)| item.is(on));
    let keys = Keys::optional(rule.key.as_ref(), c, items, brings);
    let holds = |item: &Item| {
        // Compiled apart from the one that the protocol keeps.
        let schema = match (&rule.schema, &told) {
            (Some(schema), _) => schema.clone(),
            (None, Some((_, at))) => {
                let key = keys.of(item);
                if brings(item) || (rule.key.is_some() && key.is_none()) {
                    return true;
                }
                let mut before = items.before_on_conn(item.index);
                let last = before.find(|(_, other)| brings(other) && keys.of(other) == key);
                match last.and_then(|(_, other)| other.get(at)) {
                    Some(schema) if loadable(schema).is_some() => schema.clone(),
                    _ => return true,
                }
            }
            (None, None) => return true,
        };
        let schema =
            Schema::new(&schema).unwrap_or_else(|error| panic!("the schema compiled before: {error}"));
        let text = |at: &Pointer| {
            let text = item.text(at)?;
            Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
        };
        let value = match (&rule.json, &rule.at) {
            (Some(at), _) | (None, Some(Spot::In(InText { json: at, at: None }))) => text(at),
            (None, Some(Spot::In(InText { json, at: Some(at) }))) => {
                text(json).and_then(|held| at.get(&held).cloned())
            }
            (None, Some(Spot::At(at))) => item.get(at).cloned(),
            (None, None) => Some(item.body.clone()),
        };
        value.is_none_or(|value| schema.is_valid(&value))
    };
    let broken = items.all.iter().filter(|item| item.is(&on) && !holds(item));
    broken.map(|item| (Some(item.event), rule.decides.clone())).collect()
}

pub(super) fn relation(rule: &rule::Relation, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    let broken = |item: &&Item| {
        let value = |at: &Spot| at.get(&item.body).map(Cow::into_owned).filter(|value| !value.is_null());
        let (Some(left), Some(right)) = (value(&rule.left), value(&rule.right)) else { return false };
        let (left, right) = (&left, &right);
        match rule.is {
            Comparison::Equal => !same(left, right),
            Comparison::AtMost => match (left.as_f64(), right.as_f64()) {
                (Some(left), Some(right)) => left > right,
                _ => false,
            },
            Comparison::NotLater => {
                let time =
                    |value: &Value| value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
                time(left).zip(time(right)).is_some_and(|(left, right)| left > right)
            }
        }
    };
    let broken = items.all.iter().filter(|item| item.is(&on)).filter(broken);
    broken.map(|item| (Some(item.event), rule.decides.clone())).collect()
}

pub(super) fn proportion(rule: &rule::Proportion, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    let broken = |item: &&Item| {
        let number = |at: &Pointer| item.get(at).and_then(Value::as_f64);
        let minus = rule.minus.as_ref().map_or(Some(0.0), number);
        let (Some(value), Some(part), Some(minus), Some(whole)) =
            (number(&rule.value), number(&rule.part), minus, number(&rule.whole))
        else {
            return false;
        };
        whole != 0.0 && (rule.factor * (part - minus) / whole - value).abs() > rule.tolerance + 1e-9
    };
    let broken = items.all.iter().filter(|item| item.is(&on)).filter(broken);
    broken.map(|item| (Some(item.event), rule.decides.clone())).collect()
}
