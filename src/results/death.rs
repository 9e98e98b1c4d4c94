//! How a launched server died, and which deaths are the same.

use std::fmt;

/// What stands between how a process ended and a line of its output that may have nothing to do with it.
const PERHAPS: &str = "; the last error in its output";
/// Endings of source files' names, by which a place is known.
const SOURCES: &[&str] = &[
    "rs", "py", "go", "js", "mjs", "cjs", "ts", "tsx", "java", "kt", "c", "cc", "cpp", "cxx", "h", "hpp",
    "rb", "php", "cs", "ex", "exs", "erl", "swift", "scala", "zig", "ml", "hs", "lua", "dart",
];

/// What a process said last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LastWords {
    /// In one line.
    pub text: String,
    /// It is what a language says of its own end, and nothing was logged behind it. Else it is the last error that was logged, which
    /// need not have to do with the end.
    pub certain: bool,
}

/// The end of a launched server's process. As text: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Death {
    /// The process's name.
    pub process: String,
    /// How it ended: `exited with status 3`.
    pub end: String,
    /// What it said last.
    pub words: Option<LastWords>,
}

/// What deaths that are the same have in common. As text: a phrase.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeathKind {
    /// How which process ended.
    pub ending: String,
    /// What it said of its end; none: nothing, as far as is certain.
    pub detail: Option<DeathDetail>,
}

/// What a process said of its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeathDetail {
    /// Where in its sources: `a.rs:10`.
    Place(String),
    /// In its words.
    Words(String),
}

impl fmt::Display for DeathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ending)?;
        match &self.detail {
            None => Ok(()),
            Some(DeathDetail::Place(place)) => write!(f, " at {place}"),
            Some(DeathDetail::Words(words)) => write!(f, ": {words}"),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ending())?;
        let Some(LastWords { text, certain }) = &self.words else { return Ok(()) };
        write!(f, "{}: {text}", if *certain { "" } else { PERHAPS })
    }
}

impl Death {
    /// How which process ended.
    pub fn ending(&self) -> String {
        format!("process `{}` {}", self.process, self.end)
    }

    /// What it said of its end, if that is certain.
    fn certain_words(&self) -> Option<&str> {
        self.words.as_ref().filter(|words| words.certain).map(|words| words.text.as_str())
    }

    /// What it has in common with deaths that are the same: how the process ended, and the place in its sources that it named; if it named
    /// none, what it said, as `plain` leaves it. A line of output that need not have to do with the death is left out.
    pub fn kind(&self, plain: impl Fn(&str) -> String) -> DeathKind {
        let detail = self.certain_words().map(|words| match place(words) {
            Some(place) => DeathDetail::Place(place),
            None => DeathDetail::Words(plain(words)),
        });
        DeathKind { ending: self.ending(), detail }
    }

    /// With its texts as `mask` leaves them.
    #[must_use]
    pub(crate) fn masked(self, mask: &impl Fn(String) -> String) -> Self {
        let words = self.words.map(|words| LastWords { text: mask(words.text), ..words });
        Self { process: mask(self.process), end: mask(self.end), words }
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
        let words = |text: &str, certain| Some(LastWords { text: text.to_owned(), certain });
        for (words, told, kind) in [
            (None, "", ""),
            (words("error: no", true), ": error: no", ": ERROR: NO"),
            (words("error: no", false), "; the last error in its output: error: no", ""),
            (words("no (at /srv/a.js:3:9)", true), ": no (at /srv/a.js:3:9)", " at a.js:3"),
        ] {
            let death = Death { process: "a: 2".to_owned(), end: "exited with status 3".to_owned(), words };
            let ending = "process `a: 2` exited with status 3";
            assert_eq!(death.to_string(), format!("{ending}{told}"));
            assert_eq!(death.kind(|words| words.to_uppercase()).to_string(), format!("{ending}{kind}"));
        }
    }
}
