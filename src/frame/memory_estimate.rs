//! An estimate of the memory that a large text needs, made before any of it is stored.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::parse::Node;

/// Reads a value to estimate its memory, and stores nothing of it.
#[derive(Clone, Copy)]
pub(super) struct MemoryEstimate<'b>(pub Node<'b>);

impl<'de> DeserializeSeed<'de> for MemoryEstimate<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MemoryEstimate<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.expecting(f)
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.0.paid(self.0.budget.text(value.len()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let seed = Self(self.0.deeper()?);
        while access.next_element_seed(seed)?.is_some() {
            self.0.paid(self.0.budget.item())?;
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let seed = Self(self.0.deeper()?);
        let mut first = true;
        while let Some(Length(key)) = access.next_key()? {
            self.0.paid(self.0.budget.field(key))?;
            if std::mem::take(&mut first) {
                self.0.paid(self.0.budget.object())?;
            }
            access.next_value_seed(seed)?;
        }
        Ok(())
    }
}

/// A key's length in bytes.
struct Length(usize);

impl<'de> serde::Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Measure;
        impl Visitor<'_> for Measure {
            type Value = Length;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E>(self, key: &str) -> Result<Length, E> {
                Ok(Length(key.len()))
            }
        }
        deserializer.deserialize_str(Measure)
    }
}
