//! What a protocol file refers to: requirements by their ids, messages by patterns. Each type says which of its fields do.

use indexmap::IndexMap;

use super::explore_rules::{Explore, ScriptedTurn, Shared};
use super::extension::{
    At, Capability, Errors, Exchange, Extension, FrameRules, Invariant, Log, Pattern, Replies, Session,
    State, Turn,
};
use super::fuzz_rules::{FieldRule, Fuzzing, IdRule, Refusal, Refusals, Situation};
use super::{Automatic, Requests, UpgradeRules};
use crate::source::escape_token;

/// References, each with its place below the one where the collection began.
#[derive(Default)]
pub struct Refs<'r> {
    /// Lists of requirement ids.
    pub ids: Vec<(String, &'r [String])>,
    /// Patterns.
    pub patterns: Vec<(String, &'r Pattern)>,
    at: String,
}

/// What refers to something.
pub trait Refer {
    /// Adds what it refers to.
    fn refer<'r>(&'r self, refs: &mut Refs<'r>);
}

impl<'r> Refs<'r> {
    /// All references of a part of the protocol file.
    pub fn of(part: &'r impl Refer) -> Self {
        let mut refs = Self::default();
        part.refer(&mut refs);
        refs
    }

    /// Adds what stands at a pointer (without its first `/`).
    pub fn under(&mut self, pointer: &str, part: &'r impl Refer) {
        let above = self.at.len();
        self.at.push('/');
        self.at.push_str(pointer);
        part.refer(self);
        self.at.truncate(above);
    }

    /// Adds what stands in a field, which files write with hyphens.
    pub fn field(&mut self, field: &str, part: &'r impl Refer) {
        self.under(&field.replace('_', "-"), part);
    }

    /// Adds a list of requirement ids.
    pub fn ids(&mut self, field: &str, ids: &'r [String]) {
        if !ids.is_empty() {
            self.ids.push((format!("{}/{}", self.at, field.replace('_', "-")), ids));
        }
    }
}

/// Says which fields of a type refer to something. All are listed, so that none can be forgotten.
macro_rules! refer {
    ($type:ident { parts: [$($part:ident),*], ids: [$($ids:ident),*], other: [$($other:ident),*] }) => {
        impl $crate::protocol::refs::Refer for $type {
            #[allow(unused_variables, reason = "a type without references")]
            fn refer<'r>(&'r self, refs: &mut $crate::protocol::refs::Refs<'r>) {
                let Self { $($part,)* $($ids,)* $($other: _,)* } = self;
                $(refs.field(stringify!($part), $part);)*
                $(refs.ids(stringify!($ids), $ids);)*
            }
        }
    };
}
pub(super) use refer;

impl Refer for Pattern {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        refs.patterns.push((refs.at.clone(), self));
    }
}

impl<T: Refer> Refer for Option<T> {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        if let Some(part) = self {
            part.refer(refs);
        }
    }
}

impl<T: Refer> Refer for Box<T> {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        (**self).refer(refs);
    }
}

impl<T: Refer> Refer for Vec<T> {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        for (index, part) in self.iter().enumerate() {
            refs.under(&index.to_string(), part);
        }
    }
}

impl<T: Refer> Refer for IndexMap<String, T> {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        for (name, part) in self {
            refs.under(&escape_token(name), part);
        }
    }
}

refer!(At { parts: [message], ids: [], other: [at] });
refer!(Extension {
    parts: [
        replies,
        requests,
        client,
        frames,
        session,
        upgrade,
        openings,
        log,
        errors,
        repeats,
        turn,
        barrier,
        state,
        fuzzing,
        explore,
        capabilities,
        invariants
    ],
    ids: [],
    other: [
        discriminator,
        envelope,
        batches,
        schemas,
        parameters,
        ambient,
        times,
        mutants,
        tools,
        parts,
        dialects,
        readings
    ]
});
refer!(Replies { parts: [], ids: [unmatched], other: [id, result, error] });
refer!(FrameRules { parts: [], ids: [object, discriminator, message, schema, ended], other: [] });
refer!(Session { parts: [id, marks], ids: [], other: [join, is_single] });
refer!(UpgradeRules { parts: [], ids: [covers], other: [headers, protocols, selects] });
refer!(Exchange {
    parts: [],
    ids: [covers],
    other: [send, expect, with, schema, echo, save, reply, refuse, optional, or]
});
refer!(Automatic { parts: [message], ids: [], other: [send, reply, refuse] });
refer!(Requests { parts: [message, resolved], ids: [], other: [id, reply, refuse] });
refer!(Log { parts: [message], ids: [], other: [id, volatile] });
refer!(Errors { parts: [message], ids: [], other: [code] });
refer!(Turn { parts: [before, end], ids: [covers], other: [start, quiet_ms] });
refer!(State { parts: [query], ids: [], other: [at, changed_by] });
refer!(Capability { parts: [announced], ids: [], other: [about, offered] });
refer!(Invariant { parts: [monitor], ids: [], other: [about, warns] });
refer!(Fuzzing {
    parts: [refused, seen, ids, prepare, states, rest, phases],
    ids: [survives, unchanged, isolated],
    other: [fresh, closes, taken_over, avoid, suspend]
});
refer!(Refusals {
    parts: [no_json, no_object, no_type, unknown_type, server_type, missing, invalid, undeclared, fields],
    ids: [],
    other: [coerces]
});
refer!(Refusal { parts: [], ids: [covers], other: [tolerated, close] });
refer!(IdRule { parts: [unknown], ids: [], other: [fields, grants] });
refer!(Situation { parts: [enter, leave, ways, shows], ids: [], other: [turn, reopen, passing, outlives] });
refer!(Explore { parts: [shared, messages, turns, at_rest], ids: [keeps], other: [reopen, calls] });
refer!(Shared { parts: [], ids: [covers], other: [] });
refer!(ScriptedTurn { parts: [steps], ids: [], other: [turn, needs] });

impl Refer for FieldRule {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        let Self { missing, invalid, message: _, at: _, tolerated: _, close: _ } = self;
        refs.ids("missing", missing.as_deref().unwrap_or_default());
        refs.ids("invalid", invalid.as_deref().unwrap_or_default());
    }
}
