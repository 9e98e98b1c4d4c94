//! How a launched server's death is told, and which deaths are the same.

use super::last_words::LastWords;

/// What stands between how a process ended and a line of its output that may have nothing to do with it.
const PERHAPS: &str = "; the last error in its output";
/// Endings of source files' names, by which a place is known.
const SOURCES: &[&str] = &[
    "rs", "py", "go", "js", "mjs", "cjs", "ts", "tsx", "java", "kt", "c", "cc", "cpp", "cxx", "h", "hpp",
    "rb", "php", "cs", "ex", "exs", "erl", "swift", "scala", "zig", "ml", "hs", "lua", "dart",
];

/// How a death is told: which process, how it ended, and its last words.
pub(super) fn told(process: &str, end: &str, words: Option<&LastWords>) -> String {
    let words = words.map(|LastWords { text, certain }| {
        let perhaps = if *certain { "" } else { PERHAPS };
        format!("{perhaps}: {text}")
    });
    format!("process `{process}` {end}{}", words.unwrap_or_default())
}

/// What makes a death the one that it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Death<'h> {
    /// How the process ended.
    pub end: &'h str,
    /// What it said of that; empty: nothing that is certain.
    pub words: &'h str,
}

impl<'h> Death<'h> {
    /// Of what [`super::Instance::died`] tells. A line of output that need not have to do with the death is left out.
    pub fn of(how: &'h str) -> Self {
        // The name is the user's own, and stands in backquotes.
        let after = how.find("` ").map_or(0, |at| at + 2);
        let (end, words) = how[after..].find(": ").map_or((how, ""), |at| how.split_at(after + at));
        match end.strip_suffix(PERHAPS) {
            Some(end) => Self { end, words: "" },
            None => Self { end, words: words.trim_start_matches(": ") },
        }
    }
}

impl Death<'_> {
    /// The place in its sources, as `FILE:LINE`.
    pub fn place(&self) -> Option<String> {
        place(self.words)
    }

    /// As text: how the process ended, and the place in its sources that it named; if it named none, what it said, as `plain` leaves it.
    pub fn kind(&self, plain: impl Fn(&str) -> String) -> String {
        match self.place() {
            Some(place) => format!("{} at {place}", self.end),
            None if self.words.is_empty() => self.end.to_owned(),
            None => format!("{}: {}", self.end, plain(self.words)),
        }
    }
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
    fn a_death_is_its_end_and_what_is_certain() {
        let words =
            |certain| LastWords { text: "error: no; the last error in its output: x".to_owned(), certain };
        for (words, expected) in [
            (None, ""),
            (Some(words(true)), "error: no; the last error in its output: x"),
            (Some(words(false)), ""),
        ] {
            let how = told("a: 2", "exited with status 3", words.as_ref());
            let death = Death { end: "process `a: 2` exited with status 3", words: expected };
            assert_eq!(Death::of(&how), death, "{how}");
        }
        assert_eq!(Death::of("is gone"), Death { end: "is gone", words: "" });
    }
}
