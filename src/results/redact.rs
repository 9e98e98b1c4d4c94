//! Secrets of the user's, kept out of everything that is written: a server may echo what it was sent.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::results::event::CaseReport;
use crate::results::secret::{Needle, places, places_in_bytes};
use crate::source::read;
use crate::trace::{Event, Payload};

/// What stands in a secret's place.
const MASK: &str = "[redacted]";
/// Shorter texts are no secrets, and would be found everywhere.
const MIN: usize = 6;

/// The texts that must not be shown, in any encoding.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<Needle>);

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
        let mut needles: Vec<Needle> = found.iter().flat_map(|secret| Needle::all(secret)).collect();
        // The longest first: one may hold another.
        needles.sort();
        needles.dedup();
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.length()));
        Self(needles)
    }

    /// A text without its secrets, and without the beginning of one where the text was cut.
    pub fn text(&self, text: String) -> String {
        let places = if self.0.is_empty() { Vec::new() } else { places(&self.0, &text) };
        if places.is_empty() {
            return text;
        }
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for place in places {
            out.push_str(&text[done..place.start]);
            out.push_str(MASK);
            done = place.end;
        }
        out + &text[done..]
    }

    /// Bytes without their secrets; none: there are none in them.
    fn bytes(&self, bytes: &[u8]) -> Option<Arc<[u8]>> {
        let places = places_in_bytes(&self.0, bytes);
        let mut masked = Vec::new();
        let mut done = 0;
        for place in &places {
            masked.extend_from_slice(&bytes[done..place.start]);
            masked.extend_from_slice(MASK.as_bytes());
            done = place.end;
        }
        masked.extend_from_slice(&bytes[done..]);
        (!places.is_empty()).then(|| masked.into())
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

    /// An event of the trace without the secrets in its text or bytes.
    pub fn event(&self, mut event: Event) -> Event {
        if self.0.is_empty() {
            return event;
        }
        match &mut event.payload {
            Payload::Text(text) | Payload::Close { reason: text, .. } | Payload::Open { url: text } => {
                let masked = self.text(text.to_string());
                if *masked != **text {
                    *text = masked.into();
                }
            }
            Payload::Binary(bytes) | Payload::Raw(bytes) | Payload::Ping(bytes) | Payload::Pong(bytes) => {
                if let Some(masked) = self.bytes(bytes) {
                    *bytes = masked;
                }
            }
            Payload::End(_) => {}
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

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..Default::default() })]
        #[test]
        fn no_encoding_of_a_secret_is_shown(
            secret in "[!-~]{8,40}", before in "[a-z .\"]{0,12}", after in "[a-z .\"]{0,12}", cut in 0usize..200, way in 0usize..12,
        ) {
            use base64::Engine as _;
            use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
            let secrets = Secrets::new("ws://h/", &[("Authorization".to_owned(), format!("Bearer {secret}"))], &[]);
            let escape = |digits: fn(u32) -> String| secret.chars().map(|c| digits(u32::from(c))).collect::<String>();
            let hex = |between: &str| secret.bytes().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(between);
            let shown = match way {
                0 => secret.clone(),
                1 => format!("Bearer {secret}"),
                2 => STANDARD.encode(&secret),
                3 => STANDARD.encode(format!("Bearer {secret}")),
                4 => URL_SAFE_NO_PAD.encode(format!("x{secret}y")),
                5 => STANDARD.encode(format!("xy{secret}")),
                6 => hex(""),
                7 => hex(" ").to_uppercase(),
                8 => escape(|c| format!("\\u{c:04x}")),
                9 => escape(|c| format!("%{c:02X}")),
                10 => secret.to_ascii_uppercase(),
                _ => Value::from(secret.as_str()).to_string(),
            };
            let text = secrets.text(format!("{before}{shown}{after}"));
            proptest::prop_assert!(text.contains(MASK), "{way}: {shown} in {text}");
            // Of base64, the characters that hold bits of others may stay.
            let core = &shown[(shown.len() / 4)..(shown.len() - shown.len() / 4)];
            proptest::prop_assert!(!text.contains(core), "{way}: {shown} in {text}");
            // Bytes that are cut, wherever.
            let whole = format!("{before}{shown}");
            let end = before.len() + 4 + cut % (shown.len() - 3);
            if way < 2 || way == 6 || way == 10 {
                let text = secrets.text(whole[..end.min(whole.len())].to_owned());
                proptest::prop_assert!(text.ends_with(MASK), "{way}: {whole} cut at {end}: {text}");
            }
            let payload = Payload::Binary(format!("{before}{shown}{after}").into_bytes().into());
            let event = Event { at: std::time::Duration::ZERO, case: None, client: "a".into(), dir: crate::trace::Direction::Recv, payload };
            if !matches!(way, 8 | 9 | 11) {
                let Payload::Binary(bytes) = secrets.event(event).payload else { unreachable!() };
                proptest::prop_assert!(String::from_utf8_lossy(&bytes).contains(MASK), "{way}: {shown}");
            }
        }
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
