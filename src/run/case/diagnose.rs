//! Which silence it was that a wait ended in: servers hang in a few ways, and each is told apart.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::protocol::Protocol;
use crate::protocol::extension::Exchange;
use crate::results::event::{Verdict, WireLine};
use crate::run::case::interpreter::{Outcome, Runner};
use crate::run::case::log::CONNECTED;
use crate::run::case::wait::Wanted;
use crate::run::triage::activity::Extent;
use crate::trace::Direction;

/// What cases share that have failed before the server has said a word.
pub(crate) const NOTHING: &str = "the server has said nothing on any connection";
/// What they share where it has spoken in openings only.
pub(crate) const OPENINGS: &str = "the server has said nothing on any connection beyond the opening";

/// What they share where a turn began and none has ever ended.
const NO_END: &str = "the server has ended no turn on any connection";

/// What stands between a sentence about a wait in vain and the silence.
pub(crate) const SERVER: &str = ": the server ";

/// What was sent last of what does not belong to an opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// It names no type.
    Something,
    /// A message of this type.
    Of(String),
}

/// What the server did while something was waited for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The end of the connection was waited for.
    NotEnded,
    /// Nothing ever came on this connection.
    Mute(Asked),
    /// Nothing came that does not belong to the opening.
    SinceOpening(Asked),
    /// Nothing came since this was sent last.
    NotAnswered(Asked),
    /// A turn began and did not end; the type of the last frame.
    TurnNotEnded(Option<String>),
    /// Frames came, only not this one: the server is not silent at all. The type of the last.
    OtherFrames(Option<String>),
    /// The connection ended, in this way, behind what was sent last.
    Ended(String, Asked),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = |f: &mut fmt::Formatter<'_>, words: &str, last: &Option<String>| {
            last.as_ref().map_or(Ok(()), |last| write!(f, "{words} `{last}`"))
        };
        let unanswered = |f: &mut fmt::Formatter<'_>, asked: &Asked| {
            f.write_str("has not answered what was sent last")?;
            if let Asked::Of(kind) = asked { write!(f, ", `{kind}`") } else { Ok(()) }
        };
        match self {
            Self::NotEnded => f.write_str("has not ended the connection"),
            Self::Mute(_) => f.write_str("has said nothing on this connection"),
            Self::SinceOpening(Asked::Nothing) => f.write_str("has said nothing since the opening"),
            Self::SinceOpening(asked) => {
                unanswered(f, asked)?;
                f.write_str(", and has said nothing since the opening")
            }
            Self::NotAnswered(asked) => unanswered(f, asked),
            Self::TurnNotEnded(kind) => {
                f.write_str("has begun the turn and not ended it")?;
                last(f, "; the last frame was", kind)
            }
            Self::OtherFrames(kind) => {
                f.write_str("has sent other frames")?;
                last(f, "; the last was", kind)
            }
            Self::Ended(how, _) => f.write_str(how),
        }
    }
}

impl Silence {
    /// What cases that end in it share, if it is reason enough to tell them together, in a run in which so much was heard.
    /// Whoever waits for different things of a server that talks has found different things; one that never says anything,
    /// or nothing beyond openings, has one defect, whatever it is asked.
    fn shared(&self, heard: Extent) -> Option<String> {
        if let Self::Ended(how, asked) = self {
            return match asked {
                Asked::Of(kind) => Some(format!("{how} behind `{kind}`")),
                Asked::Nothing => Some(format!("{how} before it was asked anything")),
                Asked::Something => None,
            };
        }
        let talks = matches!(self, Self::TurnNotEnded(_) | Self::OtherFrames(_));
        match (heard, self) {
            (Extent::Nothing, _) if !talks => Some(NOTHING.to_owned()),
            (Extent::Openings, _) if !talks => Some(OPENINGS.to_owned()),
            (Extent::Nothing | Extent::Openings | Extent::Answers, Self::TurnNotEnded(_)) => {
                Some(NO_END.to_owned())
            }
            (_, Self::OtherFrames(_) | Self::Ended(..)) => None,
            (_, Self::Mute(asked) | Self::SinceOpening(asked) | Self::NotAnswered(asked)) => match asked {
                Asked::Nothing => Some(self.to_string()),
                Asked::Something => None,
                Asked::Of(kind) => Some(format!("has not answered `{kind}`")),
            },
            (_, Self::NotEnded | Self::TurnNotEnded(_)) => Some(self.to_string()),
        }
    }
}

/// Why many cases can fail for one reason: the silence that the first failure ended in, if it did. A warning counts where
/// there is nothing worse.
pub(crate) fn cause(outcome: &Outcome, heard: Extent) -> Option<String> {
    let failures = &outcome.failures;
    let failed = failures.iter().find(|failure| failure.verdict == Verdict::Failed).or(failures.first())?;
    let mut silences = outcome.silences.iter();
    let (_, silence) = silences.find(|(sentence, _)| failed.message.starts_with(sentence))?;
    silence.shared(heard)
}

/// What a protocol says at which occasion: indices of message types.
#[derive(Debug, Default)]
pub(crate) struct Manners {
    /// Sent in openings.
    opening: Vec<usize>,
    /// Come in openings.
    greeting: Vec<usize>,
    /// Answer what is no turn: openings, barriers, queries.
    aside: Vec<usize>,
    /// Begins a turn.
    start: Option<usize>,
}

impl Manners {
    pub fn of(protocol: &Protocol) -> Self {
        let extension = &protocol.extension;
        let sends = |steps: &[Exchange]| -> Vec<usize> {
            let sent = steps.iter().filter_map(|step| step.send.as_ref());
            sent.filter_map(|body| protocol.message_of(body, Direction::Send)).collect()
        };
        let answers = |steps: &[Exchange]| -> Vec<usize> {
            let names =
                steps.iter().filter_map(|step| step.expect.as_ref()).flat_map(|names| names.as_slice());
            names.filter_map(|name| protocol.index_of(name, Direction::Recv)).collect()
        };
        let openings = || extension.openings.values();
        let greeting: Vec<usize> = openings().flat_map(|steps| answers(steps)).collect();
        let mut aside = greeting.clone();
        aside.extend(answers(extension.barrier.as_deref().unwrap_or_default()));
        aside.extend(extension.state.iter().flat_map(|state| answers(&state.query)));
        aside.extend(answers(&extension.turn.before));
        let start = protocol.message_of(&extension.turn.start, Direction::Send);
        Self { opening: openings().flat_map(|steps| sends(steps)).collect(), greeting, aside, start }
    }

    /// Whether what was sent belongs to an opening.
    pub fn opens(&self, message: Option<usize>) -> bool {
        message.is_some_and(|message| self.opening.contains(&message))
    }

    /// Whether what came looks like a part of an opening.
    pub fn greets(&self, message: Option<usize>) -> bool {
        message.is_some_and(|message| self.greeting.contains(&message))
    }
}

/// What a line of the wire log was found to be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    pub message: Option<usize>,
    /// It asks or says something: what no library sends by itself.
    pub word: bool,
    /// It ends a turn.
    pub ends: bool,
    /// It refuses something.
    pub error: bool,
}

/// What was waited for.
#[derive(Debug, Clone, Copy, Default)]
struct Awaited<'w> {
    /// The connection's end, and nothing else.
    close: bool,
    turn_end: bool,
    messages: &'w [usize],
    /// The opening was done before.
    opened: bool,
    /// For how long, and until when, in milliseconds.
    waited: f64,
    now: f64,
}

impl Runner<'_> {
    /// The sentence about what `client` waited for in vain, `waited` long, with what the server did meanwhile.
    pub(crate) fn in_vain(&mut self, client: &str, wanted: &Wanted, waited: Duration) -> String {
        let sentence = match wanted.label.contains(" or ") {
            true => format!("neither {} came within {waited:.1?}", wanted.label.replace(" or ", " nor ")),
            false => format!("{} did not come within {waited:.1?}", wanted.label),
        };
        let awaited = Awaited {
            close: wanted.is_only_close(),
            turn_end: wanted.is_for_turn_end(),
            messages: wanted.messages(),
            waited: waited.as_secs_f64() * 1e3,
            ..Awaited::default()
        };
        self.told_silence(client, &sentence, awaited)
    }

    /// A sentence about what a client waited for in vain that was no message, or no certain one.
    pub(crate) fn nothing_came(&mut self, client: &str, sentence: &str, turn_end: bool) -> String {
        self.told_silence(client, sentence, Awaited { turn_end, ..Awaited::default() })
    }

    /// What a client has sent last on its connection that belongs to no opening.
    pub(crate) fn asked(&self, client: &str) -> Asked {
        let own = self.log.wire.iter().zip(&self.log.marks).rev().filter(|(line, _)| line.client == client);
        let mut own = own.take_while(|(line, _)| line.dir != "--" || !line.text.starts_with(CONNECTED));
        match own.find(|(line, mark)| asks(line, **mark, &self.cx.roles.manners)) {
            None => Asked::Nothing,
            Some((line, mark)) => kind(&self.cx.protocol, line, *mark).map_or(Asked::Something, Asked::Of),
        }
    }

    fn told_silence(&mut self, client: &str, sentence: &str, awaited: Awaited<'_>) -> String {
        let opened = self.conns.clients.get(client).is_some_and(|client| client.opened);
        let awaited = Awaited { opened, now: self.log.start.elapsed().as_secs_f64() * 1e3, ..awaited };
        let lines = self.log.wire.iter().zip(&self.log.marks).filter(|(line, _)| line.client == client);
        let lines: Vec<(&WireLine, Mark)> = lines.map(|(line, mark)| (line, *mark)).collect();
        let kind = |line: &WireLine, mark: Mark| kind(&self.cx.protocol, line, mark);
        let silence = silence(&lines, &self.cx.roles.manners, awaited, &kind);
        let sentence = format!("{sentence}{SERVER}{silence}");
        self.verdict.silences.push((sentence.clone(), silence));
        sentence
    }
}

/// Whether a client says what belongs to no opening.
fn asks(line: &WireLine, mark: Mark, manners: &Manners) -> bool {
    line.dir == "->" && mark.word && !manners.opens(mark.message)
}

/// What these frames of a client's say of the server. A frame that may come at any time says nothing, unless its type is one of
/// those awaited: whoever waits for it has heard from the server.
fn silence(
    own: &[(&WireLine, Mark)],
    manners: &Manners,
    awaited: Awaited<'_>,
    kind: &dyn Fn(&WireLine, Mark) -> Option<String>,
) -> Silence {
    let connected = own.iter().rposition(|(line, _)| line.dir == "--").map_or(0, |at| at + 1);
    let lines = &own[connected..];
    let is = |list: &[usize], mark: Mark| mark.message.is_some_and(|message| list.contains(&message));
    let came = |(line, mark): &(&WireLine, Mark)| {
        line.dir == "<-" && mark.word && (!line.ambient || is(awaited.messages, *mark))
    };
    let name = |at: usize| kind(lines[at].0, lines[at].1);
    let sent = |(line, mark): &(&WireLine, Mark)| line.dir == "->" && mark.word;
    let asks = |(line, mark): &(&WireLine, Mark)| asks(line, *mark, manners);
    let asked = match lines.iter().rposition(asks) {
        None => Asked::Nothing,
        Some(at) => name(at).map_or(Asked::Something, Asked::Of),
    };
    // What comes before the first question belongs to the opening, if it looks like it.
    let first = lines.iter().position(asks).unwrap_or(lines.len());
    let greets = |at: usize| at < first && manners.greets(lines[at].1.message);
    let came: Vec<usize> = (0..lines.len()).filter(|at| came(&lines[*at])).collect();
    let beyond = came.iter().any(|at| !greets(*at));
    let last = came.last().copied();
    if last.is_none() {
        return if awaited.close && asked == Asked::Nothing {
            Silence::NotEnded
        } else {
            Silence::Mute(asked)
        };
    }
    if !beyond && (asked != Asked::Nothing || (awaited.opened && !awaited.close)) {
        return Silence::SinceOpening(asked);
    }
    if awaited.close {
        return Silence::NotEnded;
    }
    let started = lines.iter().rposition(|(line, mark)| {
        line.dir == "->" && mark.message.is_some() && mark.message == manners.start
    });
    let turn = came.iter().filter(|at| started.is_some_and(|started| **at > started)).map(|at| lines[*at].1);
    let turn: Vec<Mark> = turn.collect();
    let begun = turn.iter().any(|mark| !mark.error && !is(&manners.aside, *mark));
    let over = turn.iter().any(|mark| mark.ends);
    // A server that goes on talking in the turn has not fallen silent in it.
    let quiet = last.is_some_and(|at| awaited.now - lines[at].0.ms > awaited.waited / 2.0);
    if begun && !over && (awaited.turn_end || quiet) {
        return Silence::TurnNotEnded(last.and_then(name));
    }
    match lines.iter().rposition(sent) {
        Some(at) if last.is_none_or(|last| last < at) => {
            Silence::NotAnswered(name(at).map_or(Asked::Something, Asked::Of))
        }
        _ => Silence::OtherFrames(last.and_then(name)),
    }
}

/// The type of a frame, as the protocol calls it or as the frame says.
fn kind(protocol: &Protocol, line: &WireLine, mark: Mark) -> Option<String> {
    if let Some(message) = mark.message.and_then(|message| protocol.messages.get(message)) {
        return Some(message.name.clone());
    }
    let body: Value = serde_json::from_str(&line.text).ok()?;
    protocol.type_of(&body).map(str::to_owned)
}

#[cfg(test)]
mod tests;
