//! Plain prompts in place of cues: what a server is told that cannot be pointed at the scripted model.

use globset::{Glob, GlobMatcher};

/// Prompts by glob over cases. Empty: cues are played.
#[derive(Debug, Clone, Default)]
pub struct Prompts(Vec<(GlobMatcher, String)>);

impl Prompts {
    /// Reads them.
    ///
    /// # Errors
    /// The glob that is none, and why.
    pub fn new<'p>(
        prompts: impl IntoIterator<Item = (&'p String, &'p String)>,
    ) -> Result<Self, (String, String)> {
        let compile = |(glob, text): (&'p String, &'p String)| match Glob::new(glob) {
            Ok(compiled) => Ok((compiled.compile_matcher(), text.clone())),
            Err(error) => Err((glob.clone(), error.kind().to_string())),
        };
        prompts.into_iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// The prompt for a case's turn.
    pub(crate) fn of(&self, case: &str, turn: Option<&str>) -> Option<&str> {
        let id = turn.map_or_else(|| case.to_owned(), |turn| format!("{case}.{turn}"));
        self.0.iter().find(|(glob, _)| glob.is_match(&id)).map(|(_, text)| text.as_str())
    }

    /// Whether the prompt for a case's turn was given to this very turn: whoever does that knows what the case is about.
    pub(crate) fn names(&self, case: &str, turn: Option<&str>) -> bool {
        let id = turn.map_or_else(|| case.to_owned(), |turn| format!("{case}.{turn}"));
        let first = self.0.iter().find(|(glob, _)| glob.is_match(&id));
        first.is_some_and(|(glob, _)| glob.glob().glob() == id)
    }

    /// Whether there are none.
    pub(crate) fn is_default(&self) -> bool {
        self.is_empty()
    }

    /// Whether cues are played.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_glob_counts() {
        let list = [("a/*".to_owned(), "one".to_owned()), ("*".to_owned(), "two".to_owned())];
        let prompts = Prompts::new(list.iter().map(|(glob, text)| (glob, text))).expect("globs");
        assert_eq!(prompts.of("a/b", None), Some("one"));
        assert_eq!(prompts.of("c/d", Some("second")), Some("two"));
        assert!(Prompts::new([(&"[".to_owned(), &String::new())]).is_err());
    }
}
