//! What pairs messages, as a monitor reads it.

use std::borrow::Cow;

use serde_json::Value;

use super::{MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::values::key_text;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules::{Key, Places};
use crate::source::Diagnostics;

/// Reads the keys of messages. Memory: for each place that is read through another message, a window of what those told.
#[derive(Clone, Default)]
pub(super) struct Keys(Kind);

#[derive(Clone, Default)]
enum Kind {
    /// Messages are not told apart.
    #[default]
    None,
    Sides(Pointer, Pointer),
    ByMessage(Vec<Place>),
}

#[derive(Clone)]
struct Place {
    on: Option<Matcher>,
    at: Places,
    through: Option<Link>,
}

/// What a third message tells: by value, the key.
#[derive(Clone)]
struct Link {
    on: Matcher,
    at: Places,
    gives: Places,
    known: BoundedMap<Box<str>>,
}

/// The part of a message in a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Begins,
    Follows,
}

impl Part {
    pub fn begins(begins: bool) -> Self {
        if begins { Self::Begins } else { Self::Follows }
    }
}

/// How a value is written in a key.
type Write = fn(&Value) -> Cow<'_, str>;

/// The values at the places: as the text of the one, or as a list of the texts of several.
fn read<'v>(places: &Places, body: &'v Value, write: Write) -> Option<Cow<'v, str>> {
    match places.as_slice() {
        [one] => one.get(body).map(write),
        all => {
            let texts = all.iter().map(|at| at.get(body).map(write)).collect::<Option<Vec<_>>>()?;
            Some(Cow::Owned(Value::from(texts).to_string()))
        }
    }
}

impl Keys {
    pub fn new(key: Option<&Key>, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let Some(key) = key else { return Ok(Self::default()) };
        Ok(Self(match key {
            Key::Same(at) => Kind::Sides(at.clone(), at.clone()),
            Key::Each(first, then) => Kind::Sides(first.clone(), then.clone()),
            Key::ByMessage(places) => {
                let place = |place: &crate::protocol::rules::KeyPlace| {
                    let on = place
                        .message
                        .as_ref()
                        .map(|on| Matcher::of_connection(on, b.protocol))
                        .transpose()?;
                    let through = place.through.as_ref().map(|through| {
                        let (at, gives) = (through.at.clone(), through.gives.clone());
                        let on = b.pattern(&through.message)?;
                        Ok::<_, Diagnostics>(Link { on, at, gives, known: BoundedMap::default() })
                    });
                    Ok(Place { on, at: place.at.clone(), through: through.transpose()? })
                };
                Kind::ByMessage(places.iter().map(place).collect::<Result<_, Diagnostics>>()?)
            }
        }))
    }

    /// Whether messages are told apart at all.
    pub fn are_distinguished(&self) -> bool {
        !matches!(self.0, Kind::None)
    }

    /// The key of a message, which is taken in first if it tells what a value stands for.
    pub fn of<'v>(&mut self, seen: &Observation<'v>, part: Part) -> Option<Cow<'v, str>> {
        self.read(seen, part, key_text)
    }

    /// The same of an id: as JSON, so that 1 and "1" differ, and null is none.
    pub fn id(&mut self, seen: &Observation<'_>, part: Part) -> Option<String> {
        let id = self.read(seen, part, |id| Cow::Owned(id.to_string()))?;
        (id != "null").then(|| id.into_owned())
    }

    /// Whether a message that follows has the id null.
    pub fn is_null(&mut self, seen: &Observation<'_>) -> bool {
        self.read(seen, Part::Follows, |id| Cow::Owned(id.to_string())).is_some_and(|id| id == "null")
    }

    fn read<'v>(&mut self, seen: &Observation<'v>, part: Part, write: Write) -> Option<Cow<'v, str>> {
        match &mut self.0 {
            Kind::None => None,
            Kind::Sides(begins, follows) => {
                (if part == Part::Begins { begins } else { follows }).get(seen.body).map(write)
            }
            Kind::ByMessage(places) => {
                places.iter_mut().for_each(|place| place.learn(seen, write));
                places
                    .iter_mut()
                    .find(|place| place.on.as_ref().is_none_or(|on| seen.is(on)))?
                    .read(seen, write)
            }
        }
    }

    pub fn closed(&mut self, conn: Conn) {
        if let Kind::ByMessage(places) = &mut self.0 {
            places
                .iter_mut()
                .filter_map(|place| place.through.as_mut())
                .for_each(|link| link.known.leave(conn.0));
        }
    }

    pub fn memory(&self) -> Memory {
        let Kind::ByMessage(places) = &self.0 else { return Memory::default() };
        let links = places.iter().filter_map(|place| place.through.as_ref());
        links.fold(Memory::default(), |all, link| all + link.known.memory())
    }
}

impl Place {
    fn learn(&mut self, seen: &Observation<'_>, write: Write) {
        let Some(link) = self.through.as_mut().filter(|link| seen.is(&link.on)) else { return };
        if let (Some(value), Some(key)) =
            (read(&link.at, seen.body, write), read(&link.gives, seen.body, write))
        {
            link.known.insert(seen.conn.0, Some(&value), key.as_ref().into(), key.len());
        }
    }

    fn read<'v>(&mut self, seen: &Observation<'v>, write: Write) -> Option<Cow<'v, str>> {
        let value = read(&self.at, seen.body, write)?;
        match &mut self.through {
            None => Some(value),
            Some(link) => link.known.get(seen.conn.0, Some(&value)).map(|key| Cow::Owned(key.to_string())),
        }
    }
}
