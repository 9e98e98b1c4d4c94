//! Crashes of launched servers: which of them are the same.

use super::text::without_values;
use crate::results::death::Death;
use crate::text::normalize;

/// What is left of a crash (``process `NAME` exited with status 3: LAST WORDS``) without all that may differ from one to the next: how
/// the process ended, and the place in its sources that it named; if it named none, its last words without ids and values. What it
/// logged before need not have to do with its crash, and is no part of it.
pub(super) fn signature(how: &Death) -> String {
    let signature = how.kind(|words| without_values(&normalize(words)));
    // What is in brackets is the mutations.
    signature.replace('[', "(").replace(']', ")").chars().take(200).collect()
}

/// Whether a signature says more of a crash than how the process ended.
pub(super) fn has_words(signature: &str) -> bool {
    signature.find("` ").is_some_and(|at| signature[at..].contains(" at ") || signature[at..].contains(": "))
}

/// Whether a crash of this signature may be the `wanted` one, whose last words are not always known: others may have written after it.
pub(super) fn is_of(signature: &str, wanted: &str) -> bool {
    let more = signature.strip_prefix(wanted).filter(|_| !has_words(wanted));
    signature == wanted || more.is_some_and(|more| more.starts_with(" at ") || more.starts_with(": "))
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
        let died = |words: &str| signature(&crash(3, words, true));
        assert_eq!(died(""), "process `mine 2` exited with status 3");
        assert_eq!(
            died("panicked at /build/7/src/a.rs:10:5: no name for 8c1"),
            "process `mine 2` exited with status 3 at a.rs:10"
        );
        assert_ne!(died("panicked at src/a.rs:10:5: x"), died("panicked at src/a.rs:11:5: x"));
        assert_ne!(died(""), signature(&crash(4, "", true)));
        assert_eq!(died("TypeError: no (at file:///srv/a.js:3:9)"), died("TypeError: yes (at a.js:3:1)"));
        // Without a place: ids, numbers and quoted text make no difference, words do.
        let same = [
            "fatal: message 6f1c2a34-0b1d-4c5e-8f90-aabbccddeeff has no route [1]",
            "fatal: message 00000000-0000-4000-8000-000000000001 has no route [22]",
        ];
        assert_eq!(died(same[0]), died(same[1]));
        assert_eq!(died("fatal: `a` is at 10.0.0.1:80"), died("fatal: `b` is at 10.0.0.2:8123"));
        assert_ne!(died("fatal: no route"), died("fatal: no memory"));
        assert!(has_words(&died(same[0])) && has_words(&died("x a.js:3")) && !has_words(&died("")));
        assert!(!died(same[0]).contains(" ["));
        // A line of a log is no part of it.
        let logged = signature(&crash(3, "ERROR rejected frame: x at a.js:3", false));
        assert_eq!(logged, died(""));
        assert!(is_of(&died(same[0]), &logged) && is_of(&died("x a.js:3"), &died("")));
        assert!(!is_of(&died(""), &died(same[0])) && !is_of(&died("no"), &died("yes")));
        assert!(!is_of("process `a` exited with status 31: x", "process `a` exited with status 3"));
        assert!(died(&"é: `".repeat(1000)).chars().count() <= 200);
    }
}
