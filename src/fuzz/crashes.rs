//! Crashes of launched servers: which of them are the same.

use std::fmt;

use crate::results::death::{Death, DeathDetail, DeathKind};
use crate::synthesis::text::without_values;
use crate::text::normalize;

/// Longest signature, in characters.
const MAX_SIGNATURE: usize = 200;

/// What is left of a crash (``process `NAME` exited with status 3: LAST WORDS``) without all that may differ from one to the next: how
/// the process ended, and the place in its sources that it named; if it named none, its last words without ids and values. What it
/// logged before need not have to do with its crash, and is no part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrashKind(DeathKind);

impl CrashKind {
    pub(super) fn of(how: &Death) -> Self {
        let DeathKind { ending, detail } = how.kind(|words| without_values(&normalize(words)));
        let ending = plain(&ending, MAX_SIGNATURE);
        let left = MAX_SIGNATURE.saturating_sub(ending.chars().count() + " at ".len());
        let detail = detail.map(|detail| match detail {
            DeathDetail::Place(place) => DeathDetail::Place(plain(&place, left)),
            DeathDetail::Words(words) => DeathDetail::Words(plain(&words, left)),
        });
        Self(DeathKind { ending, detail })
    }

    /// Whether it says more of a crash than how the process ended.
    pub(super) fn has_words(&self) -> bool {
        self.0.detail.is_some()
    }

    /// Whether a crash of this kind may be the `wanted` one, whose last words are not always known: others may have written after it.
    pub(super) fn is_of(&self, wanted: &Self) -> bool {
        self.0.ending == wanted.0.ending && (!wanted.has_words() || self == wanted)
    }
}

impl fmt::Display for CrashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// So much of a text, without square brackets: what is in brackets is the mutations.
fn plain(text: &str, most: usize) -> String {
    text.replace('[', "(").replace(']', ")").chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::death::LastWords;

    #[test]
    fn crashes_are_distinguished_by_their_end_and_place() {
        let crash = |status: u8, words: &str, certain| Death {
            process: "mine 2".to_owned(),
            end: format!("exited with status {status}"),
            words: (!words.is_empty()).then(|| LastWords { text: words.to_owned(), certain }),
        };
        let kind = |status, words: &str, certain| CrashKind::of(&crash(status, words, certain));
        let died = |words: &str| kind(3, words, true);
        assert_eq!(died("").to_string(), "process `mine 2` exited with status 3");
        assert_eq!(
            died("panicked at /build/7/src/a.rs:10:5: no name for 8c1").to_string(),
            "process `mine 2` exited with status 3 at a.rs:10"
        );
        assert_ne!(died("panicked at src/a.rs:10:5: x"), died("panicked at src/a.rs:11:5: x"));
        assert_ne!(died(""), kind(4, "", true));
        assert_eq!(died("TypeError: no (at file:///srv/a.js:3:9)"), died("TypeError: yes (at a.js:3:1)"));
        // Without a place: ids, numbers and quoted text make no difference, words do.
        let same = [
            "fatal: message 6f1c2a34-0b1d-4c5e-8f90-aabbccddeeff has no route [1]",
            "fatal: message 00000000-0000-4000-8000-000000000001 has no route [22]",
        ];
        assert_eq!(died(same[0]), died(same[1]));
        assert_eq!(died("fatal: `a` is at 10.0.0.1:80"), died("fatal: `b` is at 10.0.0.2:8123"));
        assert_ne!(died("fatal: no route"), died("fatal: no memory"));
        assert!(died(same[0]).has_words() && died("x a.js:3").has_words() && !died("").has_words());
        assert!(!died(same[0]).to_string().contains(" ["));
        // A line of a log is no part of it.
        let logged = kind(3, "ERROR rejected frame: x at a.js:3", false);
        assert_eq!(logged, died(""));
        assert!(died(same[0]).is_of(&logged) && died("x a.js:3").is_of(&died("")));
        assert!(!died("").is_of(&died(same[0])) && !died("no").is_of(&died("yes")));
        assert!(!kind(31, "x", true).is_of(&died("")));
        assert!(died(&"é: `".repeat(1000)).to_string().chars().count() <= MAX_SIGNATURE);
    }
}
