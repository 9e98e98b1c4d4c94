//! Secrets of the user's, kept out of everything that is written: a server may echo what it was sent.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::results::event::CaseReport;
use crate::source::read;
use crate::trace::{Event, Payload};

/// What stands in a secret's place.
const MASK: &str = "[redacted]";
/// Shorter texts are no secrets, and would be found everywhere.
const MIN: usize = 6;

/// The texts that must not be shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Header values, what a URL has besides scheme, host and path, and these.
    pub fn new(url: &str, headers: &[(String, String)], known: &[String]) -> Self {
        let mut found = known.to_vec();
        for (_, value) in headers {
            // The token of `Bearer TOKEN` is echoed without its scheme.
            found.extend(value.split_once(' ').map(|(_, token)| token.trim().to_owned()));
            found.push(value.clone());
        }
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
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
        masked.ok().and_then(|value| read(&value).ok()).unwrap_or(report)
    }

    /// A case's report without the secrets in its texts. What is not written is kept, too.
    pub fn case(&self, mut report: CaseReport) -> CaseReport {
        if self.0.is_empty() {
            return report;
        }
        let mask = |text: String| self.text(text);
        let (cause, precise_cause) = (report.cause.take(), report.precise_cause.take());
        let mut masked = CaseReport {
            cued: report.cued,
            cause: cause.map(|cause| cause.masked(&mask)),
            precise_cause: precise_cause.map(|cause| cause.masked(&mask)),
            ..self.report(report.clone())
        };
        let failures = masked.failures.iter_mut().chain(masked.earlier.iter_mut().flatten());
        let known = report.failures.iter().chain(report.earlier.iter().flatten());
        failures.zip(known).for_each(|(failure, known)| failure.restore(known, &mask));
        masked
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
    use crate::results::Check;
    use crate::results::cause::{Cause, Statement, WaitFailure};
    use crate::results::event::{Failure, Verdict};
    use serde_json::json;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let secrets = Secrets::new(
            "ws://me:hunter22@h/ws?token=abcdef&session={session}&v=1",
            &[("Authorization".into(), "Bearer s3cr\"et".into()), ("X".into(), "on".into())],
            &[],
        );
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
    fn causes_outlast_the_masking() {
        let secrets = Secrets::new("ws://h/ws?token=abcdef", &[], &[]);
        let failure = Failure::new(
            Check::Step,
            Verdict::Failed,
            Statement::in_silence("abcdef did not come", WaitFailure::NotEnded),
        );
        let report = CaseReport {
            failures: vec![failure],
            cause: Some(Cause::Unanswered("abcdef".to_owned())),
            precise_cause: Some(Cause::NotRun),
            cued: true,
            ..CaseReport::default()
        };
        let masked = secrets.case(report);
        assert_eq!(masked.failures[0].cause, Some(Cause::Silence(WaitFailure::NotEnded)));
        assert_eq!(masked.failures[0].core(), "[redacted] did not come");
        assert_eq!(masked.cause, Some(Cause::Unanswered("[redacted]".to_owned())));
        assert_eq!((masked.precise_cause, masked.cued), (Some(Cause::NotRun), true));
    }
}
