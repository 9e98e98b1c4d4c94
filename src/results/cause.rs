//! Why something failed, as data; and the sentences that tell it. Whoever decides by a cause asks for the value: the sentences are for
//! people, and are composed here alone.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::results::death::Death;
use crate::trace::End;

/// What was sent last of what does not belong to an opening.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LastRequest {
    /// Nothing was.
    Nothing,
    /// It names no type.
    Unnamed,
    /// A message of this type.
    Of(String),
}

/// What the server did while something was waited for in vain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WaitFailure {
    /// The end of the connection was waited for.
    NotEnded,
    /// Nothing ever came on this connection.
    Mute(LastRequest),
    /// Nothing came that does not belong to the opening.
    SinceOpening(LastRequest),
    /// Nothing came since this was sent last.
    NotAnswered(LastRequest),
    /// A turn began and did not end; the type of the last frame.
    TurnNotEnded(Option<String>),
    /// Frames came, only not this one: the server is not silent at all. The type of the last.
    OtherFrames(Option<String>),
}

impl fmt::Display for WaitFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = |f: &mut fmt::Formatter<'_>, words: &str, last: &Option<String>| {
            last.as_ref().map_or(Ok(()), |last| write!(f, "{words} `{last}`"))
        };
        let unanswered = |f: &mut fmt::Formatter<'_>, asked: &LastRequest| {
            f.write_str("has not answered the last message")?;
            if let LastRequest::Of(kind) = asked { write!(f, ", `{kind}`") } else { Ok(()) }
        };
        match self {
            Self::NotEnded => f.write_str("has not ended the connection"),
            Self::Mute(_) => f.write_str("has sent nothing on this connection"),
            Self::SinceOpening(LastRequest::Nothing) => f.write_str("has sent nothing since the opening"),
            Self::SinceOpening(asked) => {
                unanswered(f, asked)?;
                f.write_str(", and has sent nothing since the opening")
            }
            Self::NotAnswered(asked) => unanswered(f, asked),
            Self::TurnNotEnded(kind) => {
                f.write_str("has started the turn and not ended it")?;
                last(f, "; the last frame was", kind)
            }
            Self::OtherFrames(kind) => {
                f.write_str("has sent other frames")?;
                last(f, "; the last was", kind)
            }
        }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionEnd {
    /// Of the close frame.
    pub code: Option<u16>,
    /// Other than by a close frame.
    pub how: Option<End>,
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.code, self.how) {
            (Some(code), _) => return write!(f, "the server closed the connection with code {code}"),
            (None, None | Some(End::Closed)) => "the server closed the connection without a code",
            (None, Some(End::Eof)) => "the server ended the TCP stream without a close frame",
            (None, Some(End::Reset)) => "the connection was reset",
            (None, Some(End::Protocol)) => "the server sent bytes that are not a WebSocket frame",
            (None, Some(End::TooLong)) => "the server sent a message longer than the limit",
            (None, Some(End::Dropped)) => "the connection was cut by this client",
        })
    }
}

/// How one client came to know what is another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeakKind {
    /// A frame came over.
    Frame,
    /// Both were given one session.
    Session,
}

/// Why something failed: one failure, a case, or many cases in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Something was waited for in vain.
    Silence(WaitFailure),
    /// The connection ended where the server had something else to do, behind what was sent last.
    ConnectionEnded(ConnectionEnd, LastRequest),
    /// Something came that a step forbids.
    Forbidden,
    /// No answer to messages of this type ever came, in one way or another.
    Unanswered(String),
    /// In the whole run the server has said nothing.
    NothingSaid,
    /// In the whole run the server has said nothing beyond openings.
    OnlyOpenings,
    /// In the whole run the server has ended no turn.
    NoTurnEnded,
    /// The connection was accepted, and its upgrade was not answered in time.
    UpgradeUnanswered,
    /// The launched server died.
    ServerDied(Death),
    /// Clients are not kept apart.
    Leak(LeakKind),
    /// The case was not run: the server sends nothing.
    NotRun,
    /// What a sentence tells: why an opening failed, or what a report that was read again says.
    Told(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silence(silence) => return silence.fmt(f),
            Self::ConnectionEnded(end, LastRequest::Of(kind)) => return write!(f, "{end} after `{kind}`"),
            Self::ConnectionEnded(end, LastRequest::Nothing) => {
                return write!(f, "{end} before any message was sent to it");
            }
            Self::ConnectionEnded(end, LastRequest::Unnamed) => return end.fmt(f),
            Self::Unanswered(kind) => return write!(f, "has not answered `{kind}`"),
            Self::ServerDied(death) => return write!(f, "the server died while this case ran: {death}"),
            Self::Told(text) => text,
            Self::Forbidden => "a message that is not allowed came",
            Self::NothingSaid => "the server has sent nothing on any connection",
            Self::OnlyOpenings => "the server has sent nothing on any connection after the opening",
            Self::NoTurnEnded => "the server has ended no turn on any connection",
            Self::UpgradeUnanswered => "the server accepts TCP connections and does not answer the upgrade",
            Self::Leak(LeakKind::Frame) => {
                "a message for one case's client reaches another's: the server does not isolate clients"
            }
            Self::Leak(LeakKind::Session) => {
                "cases that run at the same time get the same session id: the server does not isolate clients"
            }
            Self::NotRun => "not run: the server sends nothing",
        })
    }
}

/// Reports write a cause as text.
impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Of a report that is read again only the text is known.
impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Told)
    }
}

impl Cause {
    /// How the server died, if that is it.
    pub fn death(&self) -> Option<&Death> {
        if let Self::ServerDied(death) = self { Some(death) } else { None }
    }

    /// With its texts as `mask` leaves them.
    #[must_use]
    pub(crate) fn masked(self, mask: &impl Fn(String) -> String) -> Self {
        let last = |asked: LastRequest| match asked {
            LastRequest::Of(kind) => LastRequest::Of(mask(kind)),
            other => other,
        };
        match self {
            Self::Silence(silence) => Self::Silence(match silence {
                WaitFailure::Mute(asked) => WaitFailure::Mute(last(asked)),
                WaitFailure::SinceOpening(asked) => WaitFailure::SinceOpening(last(asked)),
                WaitFailure::NotAnswered(asked) => WaitFailure::NotAnswered(last(asked)),
                WaitFailure::TurnNotEnded(kind) => WaitFailure::TurnNotEnded(kind.map(mask)),
                WaitFailure::OtherFrames(kind) => WaitFailure::OtherFrames(kind.map(mask)),
                WaitFailure::NotEnded => WaitFailure::NotEnded,
            }),
            Self::ConnectionEnded(end, asked) => Self::ConnectionEnded(end, last(asked)),
            Self::Unanswered(kind) => Self::Unanswered(mask(kind)),
            Self::ServerDied(death) => Self::ServerDied(death.masked(mask)),
            Self::Told(text) => Self::Told(mask(text)),
            other @ (Self::Forbidden
            | Self::NothingSaid
            | Self::OnlyOpenings
            | Self::NoTurnEnded
            | Self::UpgradeUnanswered
            | Self::Leak(_)
            | Self::NotRun) => other,
        }
    }
}

/// What is wrong, in a sentence, and why, where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The whole sentence.
    pub message: String,
    /// Why.
    pub cause: Option<Cause>,
    /// The part of the message that tells what is wrong, where another part tells what the server did meanwhile.
    pub(crate) core: Option<String>,
}

impl Statement {
    /// What is wrong, with a cause that the sentence tells already.
    pub fn because(message: impl Into<String>, cause: Cause) -> Self {
        Self { message: message.into(), cause: Some(cause), core: None }
    }

    /// What was waited for in vain, and what the server did meanwhile.
    pub fn in_silence(what: impl Into<String>, silence: WaitFailure) -> Self {
        let what = what.into();
        Self {
            message: format!("{what}: the server {silence}"),
            cause: Some(Cause::Silence(silence)),
            core: Some(what),
        }
    }
}

impl Statement {
    /// The same with something to say behind it, which does not change what is wrong.
    #[must_use]
    pub fn noting(mut self, note: &str) -> Self {
        if !note.is_empty() {
            self.core.get_or_insert_with(|| self.message.clone());
            self.message += note;
        }
        self
    }
}

impl From<String> for Statement {
    fn from(message: String) -> Self {
        Self { message, cause: None, core: None }
    }
}

impl From<&str> for Statement {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_keeps_what_is_wrong_apart_from_why() {
        let silence = WaitFailure::OtherFrames(Some("delta".to_owned()));
        let statement = Statement::in_silence("`end` did not come", silence.clone());
        assert_eq!(
            statement.message,
            "`end` did not come: the server has sent other frames; the last was `delta`"
        );
        assert_eq!(statement.cause, Some(Cause::Silence(silence)));
        assert_eq!(statement.core.as_deref(), Some("`end` did not come"));
    }

    #[test]
    fn reports_write_a_cause_as_its_sentence_and_keep_no_secret() {
        let ended = Cause::ConnectionEnded(
            ConnectionEnd { code: Some(1000), how: None },
            LastRequest::Of("hunter22".to_owned()),
        );
        let masked = ended.masked(&|text: String| text.replace("hunter22", "***"));
        let text = serde_json::to_value(&masked).expect("text");
        assert_eq!(text, "the server closed the connection with code 1000 after `***`");
        let read: Cause = serde_json::from_value(text.clone()).expect("a cause");
        assert_eq!(serde_json::to_value(&read).expect("text"), text);
    }
}
