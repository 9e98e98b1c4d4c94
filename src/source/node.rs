//! YAML as a tree in which every value knows its place.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use super::document::{Places, escape_token};

/// A YAML node with its place.
pub(super) struct Node(Spanned<Kind>);

enum Kind {
    Scalar(Value),
    Seq(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a YAML value")
    }
    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }
    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        Kind::deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Bool(value)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }
    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Kind::Seq(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Kind::Map(entries))
    }
}

impl Node {
    pub fn into_value(
        self,
        pointer: &mut String,
        key: Option<Location>,
        places: &mut HashMap<String, Places>,
    ) -> Value {
        let place = |location: Location| (location.line() as usize, location.column() as usize);
        let value = place(self.0.referenced);
        places.insert(pointer.clone(), Places { key: key.map_or(value, place), value });
        let length = pointer.len();
        match self.0.value {
            Kind::Scalar(value) => value,
            Kind::Seq(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    values.push(item.into_value(pointer, None, places));
                    pointer.truncate(length);
                }
                Value::Array(values)
            }
            Kind::Map(entries) => {
                let mut map = Map::new();
                for (name, item) in entries {
                    pointer.push('/');
                    pointer.push_str(&escape_token(&name.value));
                    let value = item.into_value(pointer, Some(name.referenced), places);
                    pointer.truncate(length);
                    map.insert(name.value, value);
                }
                Value::Object(map)
            }
        }
    }
}
