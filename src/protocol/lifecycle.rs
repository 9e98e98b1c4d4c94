//! What happens to a connection, as patterns of monitors see it: its beginning and its end, beside the messages.

use serde_json::{Value, json};

use super::Protocol;
use super::end_values::ValuesOf;
use crate::source::{Diagnostic, Diagnostics};
use crate::trace::Direction;

/// An event of a connection. Patterns name it as they name a type of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The upgrade succeeded: `{ url }`.
    Open,
    /// A close frame, or the end of the connection without one: see [`END`].
    Close,
}

/// The fields of a connection's end.
pub const END: [&str; 4] = ["code", "reason", "clean", "by"];
/// The fields of a connection's beginning.
const BEGINNING: [&str; 1] = ["url"];

/// What a pattern can ask of a connection's end. `reason`: none where there was no close frame. `by`: whose close frame came first.
pub(crate) fn end_of(code: Option<u16>, reason: Option<&str>, by: Direction) -> Value {
    let by = if by == Direction::Send { "client" } else { "server" };
    json!({ "code": code, "reason": reason, "clean": reason.is_some(), "by": by })
}

/// What a pattern can ask of a connection's beginning.
pub(crate) fn beginning_of(url: &str) -> Value {
    json!({ "url": url })
}

impl ConnectionEvent {
    /// All of them, in the order of their indices.
    pub const ALL: [Self; 2] = [Self::Open, Self::Close];

    /// What patterns call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Close => "close",
        }
    }

    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Open => &BEGINNING,
            Self::Close => &END,
        }
    }

    /// What a pattern asks of it that it does not have.
    pub(super) fn verify(
        self,
        dir: Direction,
        with: Option<&Value>,
        schema: Option<&Value>,
        errors: &mut Diagnostics,
    ) {
        if self == Self::Close {
            let parts = with.into_iter().flat_map(|with| ValuesOf::End(dir).mistakes_of_part(with));
            let schemas = schema.into_iter().flat_map(|schema| ValuesOf::End(dir).mistakes_of_schema(schema));
            let told = parts.chain(schemas).map(|one| Diagnostic::new(one.message).hint(one.hint));
            errors.0.extend(told);
        }
        if self == Self::Open && dir == Direction::Send {
            errors
                .push(Diagnostic::new("`open` is the server's answer to an upgrade: it has no `dir: send`"));
        }
        let (name, fields) = (self.name(), self.fields());
        let asked = with.and_then(Value::as_object).into_iter().flat_map(|with| with.keys());
        for key in asked.filter(|key| !fields.contains(&key.as_str())) {
            let known = fields.iter().copied();
            errors.push(
                Diagnostic::new(format!("`{name}` of a connection has no `{key}`")).suggest(key, known),
            );
        }
    }
}

impl Protocol {
    /// The index by which patterns know an event of a connection: behind the messages and their parts.
    pub(crate) fn index_of_event(&self, event: ConnectionEvent) -> usize {
        self.messages.len() + self.parts().len() + event as usize
    }

    /// The event of a connection that a pattern means by a name, unless the protocol has a message or a part of that name.
    pub(super) fn event_named(&self, name: &str, dir: Direction) -> Option<ConnectionEvent> {
        let event = ConnectionEvent::ALL.into_iter().find(|event| event.name() == name)?;
        self.pattern_named(name, dir).is_err().then_some(event)
    }
}
