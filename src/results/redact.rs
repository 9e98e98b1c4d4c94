//! Secrets of the user's, kept out of everything that is written: a server may echo what it was sent.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::results::event::CaseReport;
use crate::results::secret::{Needle, places};
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
        let places = if self.0.is_empty() { Vec::new() } else { places(&self.0, text.as_bytes()) };
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
        let places = places(&self.0, bytes);
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
        // It may quote the server.
        event.why = event.why.map(|why| self.text(why.to_string()).into());
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
    fn a_word_that_begins_like_a_secret_is_shown() {
        let secrets = Secrets::new("ws://h/", &[], &["state-of-affairs".to_owned()]);
        for text in ["State", "- expect: State"] {
            assert_eq!(secrets.text(text.to_owned()), text);
        }
        assert_eq!(secrets.text("State…".to_owned()), "[redacted]…");
        assert!(secrets.text(format!("{} state", "x".repeat(80))).ends_with(" [redacted]"));
    }

    /// A secret as servers, proxies and libraries write it.
    fn spelt(secret: &str, way: usize) -> String {
        use base64::Engine as _;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        let units = |digits: fn(u16) -> String| secret.encode_utf16().map(digits).collect::<String>();
        let bytes = |digits: fn(u8) -> String| secret.bytes().map(digits).collect::<String>();
        let quoted = |text: &str| Value::from(text).to_string();
        let hex =
            |between: &str| secret.bytes().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(between);
        match way {
            0 => secret.to_owned(),
            1 => format!("Bearer {secret}"),
            2 => STANDARD.encode(secret),
            3 => STANDARD.encode(format!("Bearer {secret}")),
            4 => URL_SAFE_NO_PAD.encode(format!("x{secret}y")),
            5 => STANDARD.encode(format!("xy{secret}")),
            6 => hex(""),
            7 => hex(" ").to_uppercase(),
            8 => units(|c| format!("\\u{c:04x}")),
            9 => bytes(|c| format!("%{c:02X}")),
            10 => secret.to_ascii_uppercase(),
            11 => quoted(secret),
            // As some write a slash, and as it stands in a query.
            12 => STANDARD.encode(secret).replace('/', "\\/"),
            13 => STANDARD.encode(secret).replace('/', "%2F").replace('+', "%2b").replace('=', "%3D"),
            // Quoted by who quotes it.
            14 => quoted(&quoted(secret)),
            15 => quoted(&units(|c| format!("\\u{c:04X}"))),
            16 => bytes(|c| format!("%25{c:02x}")),
            17 => quoted(&bytes(|c| format!("%{c:02x}"))),
            // In lines.
            18 => STANDARD
                .encode(secret)
                .as_bytes()
                .chunks(16)
                .map(String::from_utf8_lossy)
                .collect::<Vec<_>>()
                .join("\r\n"),
            19 => quoted(&spelt(secret, 18)),
            20 => {
                let rest = quoted(&secret[1..]);
                format!("\\u{:04x}{}", secret.as_bytes()[0], &rest[1..rest.len() - 1])
            }
            _ => hex(":"),
        }
    }
    /// How many ways there are.
    const WAYS: usize = 22;

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { rng_seed: proptest::test_runner::RngSeed::Fixed(1), cases: 1500, ..Default::default() })]
        #[test]
        fn no_encoding_of_a_secret_is_shown(
            secret in "[!-~][!-~éЖ😀]{7,40}", before in "[a-z .\"]{0,12}", after in "[a-z .\"]{0,12}", cut in 0usize..200, way in 0..WAYS,
        ) {
            let secrets = Secrets::new("ws://h/", &[("Authorization".to_owned(), format!("Bearer {secret}"))], &[]);
            let shown = spelt(&secret, way);
            let text = secrets.text(format!("{before}{shown}{after}"));
            proptest::prop_assert!(text.contains(MASK), "{way}: {shown} in {text}");
            // Of base64, the characters that hold bits of others may stay.
            let middle = |at: usize| (at..shown.len()).find(|at| shown.is_char_boundary(*at)).unwrap_or(shown.len());
            let core = &shown[middle(shown.len() / 4)..middle(shown.len() - shown.len() / 4)];
            proptest::prop_assert!(!text.contains(core), "{way}: {shown} in {text}");
            // Text that is cut, wherever: with a mark behind it or without.
            let whole = format!("{before}{shown}");
            // Six characters of the secret in the longest way.
            let end = (before.len() + 80 + cut).min(whole.len());
            let end = (0..=end).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or(0);
            for mark in ["", "…", "… (+17 bytes)"] {
                let text = secrets.text(format!("{}{mark}", &whole[..end]));
                proptest::prop_assert!(text.contains(MASK), "{way}: {whole} cut at {end}: {text}");
                let (from, until) = (middle(shown.len() / 4), middle((end - before.len()) * 3 / 4));
                let rest = shown.get(from..until).filter(|rest| rest.len() >= 12);
                proptest::prop_assert!(rest.is_none_or(|rest| !text.contains(rest)), "{way}: {whole} cut at {end}: {text}");
            }
            let payload = Payload::Binary(format!("{before}{shown}{after}").into_bytes().into());
            let event = Event { at: std::time::Duration::ZERO, case: None, client: "a".into(), dir: crate::trace::Direction::Recv, payload, why: None };
            let Payload::Binary(bytes) = secrets.event(event).payload else { unreachable!() };
            proptest::prop_assert!(String::from_utf8_lossy(&bytes).contains(MASK), "{way}: {shown}");
        }
    }

    /// A long text is looked through in pieces.
    #[test]
    fn a_secret_is_found_wherever_a_long_text_has_it() {
        let secret = "a/long\"secretЖ";
        let secrets = Secrets::new("ws://h/", &[], &[secret.to_owned()]);
        for before in (65_000..66_000).step_by(7).chain([0, 131_071, 200_000]) {
            for way in [0, 8, 15] {
                let text = secrets.text(format!(
                    "{}{}{}",
                    "x".repeat(before),
                    spelt(secret, way),
                    "y".repeat(70_000)
                ));
                assert!(
                    text.contains(MASK) && text.len() < before + 70_030,
                    "{before}, {way}: {}",
                    text.len()
                );
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
