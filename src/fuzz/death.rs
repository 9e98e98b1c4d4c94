//! Deaths of launched servers: which of them are the same.

use super::finding::normal;
use crate::check::essence;

/// Endings of source files' names, by which a place is known.
const SOURCES: &[&str] = &[
    "rs", "py", "go", "js", "mjs", "cjs", "ts", "tsx", "java", "kt", "c", "cc", "cpp", "cxx", "h", "hpp",
    "rb", "php", "cs", "ex", "exs", "erl", "swift", "scala", "zig", "ml", "hs", "lua", "dart",
];

/// What is left of a death (``process `NAME` exited with status 3: LAST WORDS``) when all is taken out that may differ from one to the next: how
/// the process ended, and the place in its sources that its last words name; where they name none, the words without ids and values.
pub fn shape(how: &str) -> String {
    // The name is the user's own, and stands in backquotes.
    let after = how.find("` ").map_or(0, |at| at + 2);
    let end = how[after..].find(": ").map_or(how.len(), |at| after + at);
    let (end, words) = (&how[..end], how[end..].trim_start_matches(": "));
    let shape = match place(words) {
        Some(place) => format!("{end} at {place}"),
        None if words.is_empty() => end.to_owned(),
        None => format!("{end}: {}", normal(&essence(words))),
    };
    // What stands in brackets tells mutations.
    shape.replace('[', "(").replace(']', ")").chars().take(200).collect()
}

/// Whether a shape tells more of a death than how the process ended.
pub fn has_words(shape: &str) -> bool {
    shape.find("` ").is_some_and(|at| shape[at..].contains(" at ") || shape[at..].contains(": "))
}

/// The first `FILE:LINE` of a text.
fn place(text: &str) -> Option<String> {
    let apart = |c: char| c.is_whitespace() || "()<>,;'\"`".contains(c);
    text.split(apart).find_map(|word| {
        let mut colons = word.match_indices(':').map(|(at, _)| at);
        colons.find_map(|at| {
            let (file, rest) = word.split_at(at);
            let (_, ending) = file.rsplit_once('.')?;
            let line: String = rest[1..].chars().take_while(char::is_ascii_digit).collect();
            let known = SOURCES.contains(&ending) && !line.is_empty();
            // Where it was built may be another folder each time.
            known.then(|| format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_told_apart_by_their_end_and_place() {
        let died = |words: &str| shape(&format!("process `mine 2` exited with status 3{words}"));
        assert_eq!(died(""), "process `mine 2` exited with status 3");
        assert_eq!(
            died(": panicked at /build/7/src/a.rs:10:5: no name for 8c1"),
            "process `mine 2` exited with status 3 at a.rs:10"
        );
        assert_ne!(died(": panicked at src/a.rs:10:5: x"), died(": panicked at src/a.rs:11:5: x"));
        assert_ne!(died(""), shape("process `mine 2` exited with status 4"));
        assert_eq!(died(": TypeError: no (at file:///srv/a.js:3:9)"), died(": TypeError: yes (at a.js:3:1)"));
        // Without a place: ids, numbers and quoted text make no difference, words do.
        let same = [
            ": fatal: message 6f1c2a34-0b1d-4c5e-8f90-aabbccddeeff has no route [1]",
            ": fatal: message 00000000-0000-4000-8000-000000000001 has no route [22]",
        ];
        assert_eq!(died(same[0]), died(same[1]));
        assert_eq!(died(": fatal: `a` is at 10.0.0.1:80"), died(": fatal: `b` is at 10.0.0.2:8123"));
        assert_ne!(died(": fatal: no route"), died(": fatal: no memory"));
        assert!(has_words(&died(same[0])) && has_words(&died(": x a.js:3")) && !has_words(&died("")));
        assert!(!died(same[0]).contains(" ["));
        assert!(shape(&"é: `".repeat(1000)).chars().count() <= 200);
    }
}
