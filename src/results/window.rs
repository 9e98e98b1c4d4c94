//! Windows of time that stood for a barrier.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A window of time in which something did not come, where no barrier proves that it never does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Line of the step in the scenario file, from 1; none: the end of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// How long it was, in milliseconds.
    pub ms: u64,
    /// The server had to be silent for so long; else it is the `window` of a step.
    pub silence: bool,
}

/// Silences that are together as long as this make a run slow.
const LONG: Duration = Duration::from_secs(10);

/// What the report of a run says of windows of silence.
const HINT: &str = "what did not come is known in some cases by a silence of the server only, for no barrier of the protocol proves it: a \
                        server that answers more slowly passes where it should fail; --quiet-period sets another length, and `windows` of \
                        the cases in --json and --junit says where";

/// The same, with how long all of them were together, where that is worth telling.
pub fn hint(all: Duration) -> String {
    match all >= LONG {
        true => format!(
            "{HINT}. The cases waited for {} s in such silences: for a server that answers sooner, a shorter --quiet-period saves most of it",
            all.as_secs()
        ),
        false => HINT.to_owned(),
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: ")?,
            None => f.write_str("end of the case: ")?,
        }
        write!(f, "{} ms", self.ms)?;
        if self.silence { f.write_str(" of silence") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silences_that_take_long_are_told_with_what_would_help() {
        let (short, long) = (hint(LONG - Duration::from_millis(1)), hint(LONG + Duration::from_millis(700)));
        assert!(!short.contains("saves most of it"), "{short}");
        let told = "The cases waited for 10 s in such silences: for a server that answers sooner, a shorter --quiet-period saves most of it";
        assert!(long.starts_with(&short) && long.ends_with(told), "{long}");
    }
}
