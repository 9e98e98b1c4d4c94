//! Which silence it was that a wait ended in: servers hang in a few ways, and each is told apart.

use std::fmt;
use std::time::Duration;

use super::case::{Outcome, Runner};
use super::event::{Verdict, WireLine};
use super::waits::Wanted;
use crate::frame::Pointer;

/// What the server did while something was waited for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    /// The end of the connection was waited for.
    NotEnded,
    /// Nothing ever came on this connection.
    Mute,
    /// Nothing came since a message of this type was sent last; none: it names no type.
    NotAnswered(Option<String>),
    /// A turn began and did not end; the type of the last frame.
    TurnNotEnded(Option<String>),
    /// Frames came, only not this one: the server is not silent at all.
    OtherFrames,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnded => f.write_str("has not ended the connection"),
            Self::Mute => f.write_str("has said nothing on this connection"),
            Self::NotAnswered(_) => f.write_str("has not answered what was sent last"),
            Self::TurnNotEnded(last) => {
                f.write_str("has begun the turn and not ended it")?;
                last.as_ref().map_or(Ok(()), |last| write!(f, "; the last frame was `{last}`"))
            }
            Self::OtherFrames => f.write_str("has sent other frames"),
        }
    }
}

impl Silence {
    /// What cases that end in it share, if it is reason enough to tell them together: whoever waits for different things
    /// of a server that talks has found different things.
    fn shared(&self) -> Option<String> {
        match self {
            Self::NotEnded | Self::Mute | Self::TurnNotEnded(_) => Some(self.to_string()),
            Self::NotAnswered(sent) => sent.as_ref().map(|sent| format!("has not answered `{sent}`")),
            Self::OtherFrames => None,
        }
    }
}

/// Why many cases can fail for one reason: the silence that a failure ended in, if it did.
pub(super) fn cause(outcome: &Outcome) -> Option<String> {
    let failed = outcome.failures.iter().find(|failure| failure.verdict == Verdict::Failed)?;
    let mut silences = outcome.silences.iter();
    let (_, silence) = silences.find(|(sentence, _)| failed.message.starts_with(sentence))?;
    silence.shared()
}

impl Runner<'_> {
    /// The sentence about what `client` waited for in vain, `waited` long, with what the server did meanwhile.
    pub(super) fn in_vain(&mut self, client: &str, wanted: &Wanted, waited: Duration) -> String {
        let own = self.outcome.wire.iter().filter(|line| line.client == client);
        let silence = self.which_silence(&own.collect::<Vec<_>>(), wanted);
        let sentence = format!("{} did not come within {waited:.1?}: the server {silence}", wanted.label);
        self.outcome.silences.push((sentence.clone(), silence));
        sentence
    }

    fn which_silence(&self, own: &[&WireLine], wanted: &Wanted) -> Silence {
        let awaited: Vec<&str> = wanted.names(&self.protocol).collect();
        let kind = |text: &str| kind(&self.protocol.extension.discriminator, text);
        // Where something else would have done as well, it is no matter of the connection's end.
        let close = wanted.close && wanted.label == "close";
        silence(own, close, wanted.is_for_turn_end(), &awaited, &kind)
    }
}

/// What these frames of a client's say of the server. A frame that may come at any time says nothing, unless its type is one of
/// those `awaited`: whoever waits for it has heard from the server.
fn silence(
    own: &[&WireLine],
    close: bool,
    turn_end: bool,
    awaited: &[&str],
    kind: &dyn Fn(&str) -> Option<String>,
) -> Silence {
    let opened = own.iter().rposition(|line| line.dir == "--").map_or(0, |at| at + 1);
    let lines = &own[opened..];
    let counts = |line: &WireLine| {
        let wanted = || kind(&line.text).is_some_and(|kind| awaited.contains(&kind.as_str()));
        line.dir == "<-" && (!line.ambient || wanted())
    };
    let came = |lines: &[&WireLine]| lines.iter().filter(|line| counts(line)).count();
    let asked = lines.iter().rposition(|line| line.dir == "->");
    let since = came(&lines[asked.map_or(0, |at| at + 1)..]);
    match (came(lines), since, asked) {
        _ if close => Silence::NotEnded,
        (0, ..) => Silence::Mute,
        (_, 0, Some(at)) => Silence::NotAnswered(kind(&lines[at].text)),
        _ if turn_end && asked.is_some() => {
            let last = lines.iter().rev().find(|line| counts(line));
            Silence::TurnNotEnded(last.and_then(|line| kind(&line.text)))
        }
        _ => Silence::OtherFrames,
    }
}

/// The type that a frame names.
fn kind(discriminator: &Pointer, text: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(discriminator.get(&body)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::event::Failure;

    /// The outcome of a case in which these waits were in vain, and which failed with these messages.
    fn outcome(silences: &[(&str, Silence)], failures: &[(Verdict, &str)]) -> Outcome {
        let failure = |(verdict, message): &(Verdict, &str)| Failure {
            requirements: Vec::new(),
            verdict: *verdict,
            check: "step".to_owned(),
            message: (*message).to_owned(),
            step: None,
            expected: None,
            actual: None,
            frames: Vec::new(),
        };
        Outcome {
            silences: silences.iter().map(|(text, silence)| ((*text).to_owned(), silence.clone())).collect(),
            failures: failures.iter().map(failure).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn the_cause_is_that_of_the_first_failure() {
        let mute = [("turn-end did not come", Silence::Mute)];
        let told = "turn-end did not come (with n = 2)";
        for (failures, expected) in [
            (&[][..], None),
            (&[(Verdict::Failed, told)], Some("has said nothing on this connection")),
            (&[(Verdict::Warned, told)], None),
            (&[(Verdict::Failed, "wrong"), (Verdict::Failed, told)], None),
            (&[(Verdict::Failed, "x: the server has said nothing on this connection")], None),
        ] {
            assert_eq!(cause(&outcome(&mute, failures)).as_deref(), expected, "{failures:?}");
        }
    }

    #[test]
    fn only_silence_is_shared() {
        let of = |silence: Silence| cause(&outcome(&[("x", silence)], &[(Verdict::Failed, "x")]));
        let sent = |kind: &str| of(Silence::NotAnswered(Some(kind.to_owned())));
        assert_eq!(of(Silence::OtherFrames), None);
        assert_eq!(of(Silence::NotAnswered(None)), None);
        assert_eq!(sent("send"), sent("send"));
        assert_ne!(sent("send"), sent("abort"));
        assert!(sent("send").is_some() && of(Silence::NotEnded).is_some());
    }

    #[test]
    fn ambient_frames_count_where_they_are_awaited() {
        let line = |dir: &str, kind: &str, ambient| WireLine {
            index: 0,
            ms: 0.0,
            client: "alice".to_owned(),
            dir: dir.to_owned(),
            text: format!("{{\"type\":\"{kind}\"}}"),
            ambient,
            cut: 0,
        };
        let (opened, asked) = (line("--", "", false), line("->", "ask", false));
        let (hello, beat, tick) =
            (line("<-", "hello", false), line("<-", "beat", true), line("<-", "tick", true));
        let discriminator = Pointer::new("/type").expect("a pointer");
        let asked_in_vain = Silence::NotAnswered(Some("ask".to_owned()));
        for (lines, turn_end, awaited, expected) in [
            (&[&opened, &asked, &beat][..], false, &["hello"][..], Silence::Mute),
            (&[&opened, &asked, &beat], false, &["beat"], Silence::OtherFrames),
            (&[&opened, &asked, &beat], false, &["tick"], Silence::Mute),
            (&[&opened, &hello, &asked, &beat], false, &["hello"], asked_in_vain.clone()),
            (&[&opened, &hello, &asked, &beat, &tick], false, &["hello", "tick"], Silence::OtherFrames),
            // What came before what was sent last is no answer to it.
            (&[&opened, &hello, &beat, &asked], false, &["beat"], asked_in_vain.clone()),
            (&[&opened, &asked, &hello, &beat], true, &[], Silence::TurnNotEnded(Some("hello".to_owned()))),
            (
                &[&opened, &asked, &hello, &beat],
                true,
                &["beat"],
                Silence::TurnNotEnded(Some("beat".to_owned())),
            ),
            // Another connection's frames are gone with it.
            (&[&hello, &opened, &asked, &beat], false, &["hello"], Silence::Mute),
        ] {
            let found = silence(lines, false, turn_end, awaited, &|text| kind(&discriminator, text));
            assert_eq!(found, expected, "{lines:?} {awaited:?}");
        }
    }
}
