//! Messages by which a server tells again what it has told.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extension::Pattern;
use super::refs::refer;
use super::verify::place_all;
use super::{Matcher, Protocol};
use crate::frame::Pointer;
use crate::source::{Diagnostic, Diagnostics, Document};

/// Messages that tell a client the present value of something, and may tell it again though it has not changed: steps skip one with the
/// value that the client has, unless they name the `reading`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Repeats {
    /// The messages of the server that tell a value.
    pub message: Pattern,
    /// Where they, and those of `renewed-by`, say what the value is of.
    pub key: Pointer,
    /// Where they have the value.
    pub value: Pointer,
    /// Messages of either side behind which the next one repeats nothing, whatever its value.
    #[serde(default)]
    pub renewed_by: Vec<Pattern>,
    /// The ambiguity about such messages: a step that is `tolerated` or `allowed` by it does not skip them.
    pub reading: String,
}

refer!(Repeats { parts: [message, renewed_by], ids: [], other: [key, value, reading] });

/// [`Repeats`], compiled.
#[derive(Debug)]
pub struct RepeatRule {
    /// The messages that tell a value.
    pub on: Matcher,
    /// Where they say what it is of.
    pub key: Pointer,
    /// Where they have it.
    pub value: Pointer,
    /// Behind these the next one repeats nothing.
    pub renewed_by: Vec<Matcher>,
    /// The ambiguity about them.
    pub reading: Arc<str>,
}

impl RepeatRule {
    /// Compiles the rules of a protocol.
    pub(super) fn all(protocol: &Protocol) -> Vec<Self> {
        protocol.extension.repeats.iter().filter_map(|rule| Self::new(rule, protocol)).collect()
    }

    /// Compiles a rule. What is wrong with it is told when the protocol is verified.
    pub(crate) fn new(rule: &Repeats, protocol: &Protocol) -> Option<Self> {
        let renewed_by = rule.renewed_by.iter().map(|on| Matcher::new(on, protocol).ok());
        Some(Self {
            on: Matcher::new(&rule.message, protocol).ok()?,
            key: rule.key.clone(),
            value: rule.value.clone(),
            renewed_by: renewed_by.collect::<Option<_>>()?,
            reading: rule.reading.as_str().into(),
        })
    }
}

impl Protocol {
    /// Which messages may repeat a value.
    pub fn repeats(&self) -> &[RepeatRule] {
        &self.compiled.repeats
    }
}

/// The ambiguities that rules name are declared.
pub(super) fn verify_repeats(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let readings = &protocol.extension.readings;
    for (index, rule) in protocol.extension.repeats.iter().enumerate() {
        if !readings.contains_key(&rule.reading) {
            let known = readings.keys().map(String::as_str);
            let error =
                Diagnostic::new(format!("unknown reading `{}`", rule.reading)).suggest(&rule.reading, known);
            place_all(error.into(), api, &format!("/x-frameproof/repeats/{index}/reading"), errors);
        }
    }
}
