//! What pairs messages: looked up for each message in the whole trace before it.

use serde_json::Value;

use super::{Compile, Item, Items, key};
use crate::protocol::rules::{Key, KeyPlace, Places};

/// The key of each item.
pub(super) struct Keys(Vec<Option<String>>);

/// How a value is written.
type Write = fn(&Value) -> String;

fn values(places: &Places, item: &Item, write: Write) -> Option<String> {
    let texts: Option<Vec<String>> = places.as_slice().iter().map(|at| item.get(at).map(write)).collect();
    match (places, texts?) {
        (Places::One(_), texts) => texts.into_iter().next(),
        (Places::All(all), texts) if all.len() == 1 => texts.into_iter().next(),
        (_, texts) => Some(Value::from(texts).to_string()),
    }
}

impl Keys {
    /// Of a monitor without keys: none.
    pub fn optional(
        of: Option<&Key>,
        c: &Compile<'_>,
        items: &Items,
        begins: impl Fn(&Item) -> bool,
    ) -> Self {
        of.map_or_else(|| Self(vec![None; items.all.len()]), |of| Self::new(of, c, items, begins))
    }

    pub fn new(of: &Key, c: &Compile<'_>, items: &Items, begins: impl Fn(&Item) -> bool) -> Self {
        Self::written(of, c, items, begins, key)
    }

    /// Ids: as JSON, and null is none.
    pub fn ids(of: Option<&Key>, c: &Compile<'_>, items: &Items, begins: impl Fn(&Item) -> bool) -> Self {
        let Some(of) = of else { return Self(vec![None; items.all.len()]) };
        let Self(keys) = Self::written(of, c, items, begins, Value::to_string);
        Self(keys.into_iter().map(|id| id.filter(|id| id != "null")).collect())
    }

    /// The ids that are null.
    pub fn nulls(of: Option<&Key>, c: &Compile<'_>, items: &Items, begins: impl Fn(&Item) -> bool) -> Self {
        let Some(of) = of else { return Self(vec![None; items.all.len()]) };
        let Self(keys) = Self::written(of, c, items, begins, Value::to_string);
        Self(keys.into_iter().map(|id| id.filter(|id| id == "null")).collect())
    }

    fn written(
        of: &Key,
        c: &Compile<'_>,
        items: &Items,
        begins: impl Fn(&Item) -> bool,
        write: Write,
    ) -> Self {
        let one = |(index, item): (usize, &Item)| match of {
            Key::Same(at) => item.get(at).map(write),
            Key::Each(first, _) if begins(item) => item.get(first).map(write),
            Key::Each(_, then) => item.get(then).map(write),
            Key::ByMessage(places) => {
                let is = |place: &&KeyPlace| place.message.as_ref().is_none_or(|on| item.is(&c.pattern(on)));
                let place = places.iter().find(is)?;
                let value = values(&place.at, item, write)?;
                let Some(through) = &place.through else { return Some(value) };
                let on = c.pattern(&through.message);
                let told = |other: &Item| {
                    let (value, key) =
                        (values(&through.at, other, write)?, values(&through.gives, other, write)?);
                    (other.conn == item.conn && other.is(&on)).then_some((value, key))
                };
                let mut told = items.all[..=index].iter().rev().filter_map(told);
                told.find(|(other, _)| *other == value).map(|(_, key)| key)
            }
        };
        Self(items.iter().map(one).collect())
    }

    pub fn of(&self, item: &Item) -> Option<String> {
        self.0[item.index].clone()
    }
}
