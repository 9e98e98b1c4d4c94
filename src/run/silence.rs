//! Which silence it was that a wait ended in: servers hang in a few ways, and each is told apart.

use super::case::Runner;
use super::event::{Failure, Verdict, WireLine};

/// How the sentence about a wait in vain goes on.
const MARK: &str = ": the server ";

/// Why many cases can fail for one reason: the silence that a failure ended in, if it did.
pub(super) fn cause(failures: &[Failure]) -> Option<String> {
    let failed = failures.iter().find(|failure| failure.verdict == Verdict::Failed)?;
    let (wait, how) = failed.message.split_once(MARK)?;
    wait.contains("did not come within").then(|| how.to_owned())
}

impl Runner<'_> {
    /// What the server did while `client` waited, as the end of a sentence. `close`: the end of the connection was waited for;
    /// `turn_end`: the end of a turn.
    pub(super) fn silence_told(&self, client: &str, close: bool, turn_end: bool) -> String {
        let own = self.outcome.wire.iter().filter(|line| line.client == client);
        let own: Vec<&WireLine> = own.collect();
        let opened = own.iter().rposition(|line| line.dir == "--").map_or(0, |at| at + 1);
        let lines = &own[opened..];
        let came =
            |lines: &[&WireLine]| lines.iter().filter(|line| line.dir == "<-" && !line.ambient).count();
        let asked = lines.iter().rposition(|line| line.dir == "->");
        let since = came(&lines[asked.map_or(0, |at| at + 1)..]);
        let how = match (came(lines), since) {
            _ if close => "has not ended the connection".to_owned(),
            (0, _) => "has said nothing on this connection".to_owned(),
            (_, 0) if asked.is_some() => "has not answered what was sent last".to_owned(),
            (_, _) if turn_end => {
                let last = lines.iter().rev().find(|line| line.dir == "<-" && !line.ambient);
                let kind = last.and_then(|line| self.kind(&line.text)).unwrap_or_default();
                format!("has begun the turn and not ended it; the last frame was {kind}")
                    .trim_end()
                    .to_owned()
            }
            _ => "has sent other frames".to_owned(),
        };
        format!("{MARK}{how}")
    }

    /// The type that a frame names.
    fn kind(&self, text: &str) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(text).ok()?;
        let kind = self.protocol.extension.discriminator.get(&body)?.as_str()?.to_owned();
        Some(format!("`{kind}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_that_of_a_failed_wait() {
        let failure = |verdict, message: &str| Failure {
            requirements: Vec::new(),
            verdict,
            check: "step".to_owned(),
            message: message.to_owned(),
            step: None,
            expected: None,
            actual: None,
            frames: Vec::new(),
        };
        let silent = "turn-end did not come within 5.0s: the server has said nothing on this connection";
        for (failures, expected) in [
            (vec![], None),
            (vec![failure(Verdict::Failed, silent)], Some("has said nothing on this connection")),
            (vec![failure(Verdict::Warned, silent)], None),
            (vec![failure(Verdict::Failed, "wrong"), failure(Verdict::Failed, silent)], None),
            (vec![failure(Verdict::Failed, "x: the server is red")], None),
        ] {
            assert_eq!(cause(&failures).as_deref(), expected);
        }
    }
}
