//! Texts cut between characters, and compared without what differs from case to case.

pub(crate) mod safe;

use std::time::Duration;

/// The beginning of a text within so many bytes: it ends between two characters.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The first of these names, at most so many, and how many more there are: `a, b and 3 more`.
pub(crate) fn listed(names: impl ExactSizeIterator<Item = impl AsRef<str>>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let mut text = String::new();
    for (index, name) in names.take(most).enumerate() {
        text += if index > 0 { ", " } else { "" };
        text += name.as_ref();
    }
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// The escape with which a JSON string goes on: in how many bytes it is written, and the character. `slash`: how a backslash is written, twice
/// in JSON that is a string of JSON.
pub(crate) fn json_escape(text: &[u8], slash: &[u8]) -> Option<(usize, char)> {
    let code = text.strip_prefix(slash)?;
    let unit = |code: &[u8]| {
        let digits = code.strip_prefix(b"u")?.get(..4)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (short, long) = (slash.len() + 1, slash.len() + 5);
    let known = match code.first()? {
        b'u' => {
            let first = unit(code)?;
            if let Some(c) = char::from_u32(first.into()) {
                return Some((long, c));
            }
            let second = unit(code.get(5..)?.strip_prefix(slash)?)?;
            return Some((2 * long, char::decode_utf16([first, second]).next()?.ok()?));
        }
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        other @ (b'"' | b'/') => char::from(*other),
        _ => return code.starts_with(slash).then_some((2 * slash.len(), '\\')),
    };
    Some((short, known))
}

/// Whether a byte may be in a token of HTTP, such as the name of a header (RFC 9110, 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether this is a token of HTTP.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// A length of time for people: `0.5s`, `45s`, `4m10s`, `2h05m`.
pub(crate) fn length_of_time(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60);
    match seconds {
        0..10 => format!("{:.1}s", time.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        _ => format!("{hours}h{:02}m", minutes % 60),
    }
}

/// Two messages are about the same but for ids and places in them.
pub(crate) fn same(one: &str, other: &str) -> bool {
    normalize(one) == normalize(other)
}

/// A message without what differs from case to case: UUIDs, and words with a digit in them, which are numbers and ids.
pub(crate) fn normalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_uuid(rest) {
            out.push('#');
            rest = after;
            continue;
        }
        let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length.max(first.len_utf8()));
        let is_id = word.chars().any(|c| c.is_ascii_digit());
        out.push_str(if is_id { "#" } else { word });
        rest = after;
    }
    out
}

/// What follows the UUID that a text begins with.
pub(crate) fn after_uuid(text: &str) -> Option<&str> {
    let uuid = text.get(..36)?;
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    uuid.bytes().enumerate().all(fits).then(|| &text[36..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        for (most, expected) in [(0, ""), (1, "a"), (2, "a"), (3, "aé"), (4, "aéb"), (9, "aéb")] {
            assert_eq!(beginning("aéb", most), expected, "{most}");
        }
    }

    #[test]
    fn names_that_are_not_listed_are_counted() {
        let names = ["a", "b", "c"];
        for (most, expected) in [(1, "a and 2 more"), (2, "a, b and 1 more"), (3, "a, b, c"), (4, "a, b, c")]
        {
            assert_eq!(listed(names.iter(), most), expected, "{most}");
        }
    }

    #[test]
    fn lengths_of_time_are_short() {
        for (seconds, expected) in [
            (0.04, "0.0s"),
            (0.5, "0.5s"),
            (59.6, "1m00s"),
            (45.0, "45s"),
            (250.0, "4m10s"),
            (3599.0, "59m59s"),
            (7500.0, "2h05m"),
        ] {
            assert_eq!(length_of_time(Duration::from_secs_f64(seconds)), expected);
        }
    }

    #[test]
    fn messages_are_the_same_but_for_ids() {
        for (one, other, expected) in [
            ("line 3 of 5", "line 12 of 5", true),
            (
                "call approval-abcdabcd-abcd-abcd-abcd-abcdabcdabcd",
                "call approval-00000000-0000-0000-0000-000000000000",
                true,
            ),
            ("call_1 came", "call_2 came", true),
            ("5.0s", "250.0ms", true),
            ("welcome did not come", "snapshot did not come", false),
            ("ü 1", "ü 2", true),
            ("", "", true),
        ] {
            assert_eq!(same(one, other), expected, "{one} | {other}");
        }
    }
}
