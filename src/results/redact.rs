//! Secrets of the user's, kept out of everything that is written: a server may echo what it was sent.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::results::event::CaseReport;
use crate::run::Target;
use crate::trace::{Event, Payload};

/// What stands in a secret's place.
const MASK: &str = "[redacted]";
/// Shorter texts are no secrets, and would be found everywhere.
const MIN: usize = 6;

/// The texts that must not be shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Header values, and what a URL has besides scheme, host and path.
    pub fn of(target: &Target) -> Self {
        let (url, headers, mut found) = match target {
            Target::Reference { .. } => return Self::default(),
            Target::Url { url, headers } => (url, headers, Vec::new()),
            Target::Configured(spec) => (&spec.url, &spec.headers, spec.secrets.clone()),
        };
        for (_, value) in headers {
            // The token of `Bearer TOKEN` is echoed without its scheme.
            found.extend(value.split_once(' ').map(|(_, token)| token.trim().to_owned()));
            found.push(value.clone());
        }
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some((user, _)) = authority.rsplit_once('@') {
            found.extend(user.split(':').map(str::to_owned));
        }
        let query = url.split_once('?').map_or("", |(_, query)| query);
        // A parameter that frameproof itself fills in stands in braces and is no secret.
        let values = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
        found.extend(values.filter(|value| !value.starts_with('{')).map(str::to_owned));
        found.retain(|secret| secret.len() >= MIN);
        let escaped: Vec<String> = found
            .iter()
            .map(|secret| Value::from(secret.as_str()).to_string().trim_matches('"').to_owned())
            .collect();
        found.extend(escaped);
        // The longest first: one may hold another.
        found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        found.dedup();
        Self(found)
    }

    /// A text without its secrets.
    pub fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), MASK) } else { text }
        })
    }

    /// Any report without the secrets in its texts.
    pub fn report<T: Serialize + DeserializeOwned>(&self, report: T) -> T {
        if self.0.is_empty() {
            return report;
        }
        let masked = serde_json::to_value(&report).map(|value| self.value(value));
        masked.and_then(serde_json::from_value).unwrap_or(report)
    }

    /// A case's report without the secrets in its texts. What is not written is kept, too.
    pub fn case(&self, mut report: CaseReport) -> CaseReport {
        let (cued, also) = (report.cued, report.also.take());
        CaseReport { cued, also: also.map(|also| self.text(also)), ..self.report(report) }
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, value)| (self.text(key), self.value(value))).collect()
            }
            other => other,
        }
    }

    /// An event of the trace without the secrets in its text. Binary frames hold what they held.
    pub fn event(&self, mut event: Event) -> Event {
        let mask = |text: &mut Arc<str>| {
            if self.0.iter().any(|secret| text.contains(secret.as_str())) {
                *text = self.text(text.to_string()).into();
            }
        };
        match &mut event.payload {
            Payload::Text(text) | Payload::Close { reason: text, .. } | Payload::Open { url: text } => {
                mask(text)
            }
            Payload::Binary(_) | Payload::Raw(_) | Payload::Ping(_) | Payload::Pong(_) | Payload::End(_) => {}
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let secrets = Secrets::of(&Target::Url {
            url: "ws://me:hunter22@h/ws?token=abcdef&session={session}&v=1".into(),
            headers: vec![("Authorization".into(), "Bearer s3cr\"et".into()), ("X".into(), "on".into())],
        });
        for (text, expected) in [
            ("hunter22 and abcdef", "[redacted] and [redacted]"),
            ("you sent Bearer s3cr\"et", "you sent [redacted]"),
            ("{\"echo\":\"s3cr\\\"et\"}", "{\"echo\":\"[redacted]\"}"),
            ("{session} on v=1", "{session} on v=1"),
        ] {
            assert_eq!(secrets.text(text.to_owned()), expected);
        }
        assert_eq!(secrets.report(json!({ "a": ["abcdef", 1] })), json!({ "a": ["[redacted]", 1] }));
    }

    #[test]
    fn the_reference_server_is_told_no_secrets() {
        let secrets = Secrets::of(&Target::Reference(crate::reference::Variant::default()));
        assert_eq!(secrets.text("anything".to_owned()), "anything");
    }
}
