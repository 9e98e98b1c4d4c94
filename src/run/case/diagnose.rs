//! Which silence it was that a wait ended in: servers hang in a few ways, and each is told apart.

use serde_json::Value;

use crate::protocol::Protocol;
use crate::protocol::extension::Exchange;
use crate::results::cause::{Cause, LastRequest, WaitFailure};
use crate::results::event::{Verdict, Way, WireLine};
use crate::run::case::outcome::CaseOutcome;
use crate::run::triage::activity::ActivityLevel;
use crate::trace::Direction;

/// What cases that fail for this cause share, if it is reason enough to tell them together, in a run in which so much was heard.
/// Whoever waits for different things of a server that talks has found different things; one that never says anything,
/// or nothing beyond openings, has one defect, whatever it is asked.
fn shared(cause: &Cause, heard: ActivityLevel) -> Option<Cause> {
    let silence = match cause {
        Cause::Silence(silence) => silence,
        Cause::ConnectionEnded(_, LastRequest::Unnamed) | Cause::Forbidden => return None,
        other => return Some(other.clone()),
    };
    let talks = matches!(silence, WaitFailure::TurnNotEnded(_) | WaitFailure::OtherFrames(_));
    match (heard, silence) {
        (ActivityLevel::Nothing, _) if !talks => Some(Cause::NothingSaid),
        (ActivityLevel::Openings, _) if !talks => Some(Cause::OnlyOpenings),
        (
            ActivityLevel::Nothing | ActivityLevel::Openings | ActivityLevel::Answers,
            WaitFailure::TurnNotEnded(_),
        ) => Some(Cause::NoTurnEnded),
        (_, WaitFailure::OtherFrames(_)) => None,
        (
            _,
            WaitFailure::Mute(asked) | WaitFailure::SinceOpening(asked) | WaitFailure::NotAnswered(asked),
        ) => match asked {
            LastRequest::Nothing => Some(cause.clone()),
            LastRequest::Unnamed => None,
            LastRequest::Of(kind) => Some(Cause::Unanswered(kind.clone())),
        },
        (_, WaitFailure::NotEnded | WaitFailure::TurnNotEnded(_)) => Some(cause.clone()),
    }
}

/// Why many cases can fail for one reason: the cause of the first failure, if many can have it. A warning counts where there is nothing
/// worse.
pub(crate) fn cause(outcome: &CaseOutcome, heard: ActivityLevel) -> Option<Cause> {
    let failures = &outcome.failures;
    let failed = failures.iter().find(|failure| failure.verdict == Verdict::Failed).or(failures.first())?;
    shared(failed.cause.as_ref()?, heard)
}

/// What a protocol says at which occasion: indices of message types.
#[derive(Debug, Default)]
pub(crate) struct Manners {
    /// Sent in openings.
    openings: Vec<usize>,
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
        Self { openings: openings().flat_map(|steps| sends(steps)).collect(), greeting, aside, start }
    }

    /// Whether what was sent belongs to an opening.
    pub fn opens(&self, message: Option<usize>) -> bool {
        message.is_some_and(|message| self.openings.contains(&message))
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
    /// It tells of a new connection.
    pub connected: bool,
}

/// What was waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Awaited<'w> {
    /// The connection's end, and nothing else.
    pub close: bool,
    pub turn_end: bool,
    pub messages: &'w [usize],
    /// The opening was done before.
    pub opened: bool,
    /// For how long, and until when, in milliseconds.
    pub waited: f64,
    pub now: f64,
}

/// Whether a client says what belongs to no opening.
pub(super) fn asks(line: &WireLine, mark: Mark, manners: &Manners) -> bool {
    line.way == Way::ToServer && mark.word && !manners.opens(mark.message)
}

/// What these frames of a client's say of the server. A frame that may come at any time says nothing, unless its type is one of
/// those awaited: whoever waits for it has heard from the server.
pub(super) fn silence(
    own: &[(&WireLine, Mark)],
    manners: &Manners,
    awaited: Awaited<'_>,
    kind: &dyn Fn(&WireLine, Mark) -> Option<String>,
) -> WaitFailure {
    let connected = own.iter().rposition(|(line, _)| line.way == Way::Connection).map_or(0, |at| at + 1);
    let lines = &own[connected..];
    let is = |list: &[usize], mark: Mark| mark.message.is_some_and(|message| list.contains(&message));
    let came = |(line, mark): &(&WireLine, Mark)| {
        line.way == Way::ToClient && mark.word && (!line.ambient || is(awaited.messages, *mark))
    };
    let name = |at: usize| kind(lines[at].0, lines[at].1);
    let sent = |(line, mark): &(&WireLine, Mark)| line.way == Way::ToServer && mark.word;
    let asks = |(line, mark): &(&WireLine, Mark)| asks(line, *mark, manners);
    let asked = match lines.iter().rposition(asks) {
        None => LastRequest::Nothing,
        Some(at) => name(at).map_or(LastRequest::Unnamed, LastRequest::Of),
    };
    // What comes before the first question belongs to the opening, if it looks like it.
    let first = lines.iter().position(asks).unwrap_or(lines.len());
    let greets = |at: usize| at < first && manners.greets(lines[at].1.message);
    let came: Vec<usize> = (0..lines.len()).filter(|at| came(&lines[*at])).collect();
    let beyond = came.iter().any(|at| !greets(*at));
    let last = came.last().copied();
    if last.is_none() {
        return if awaited.close && asked == LastRequest::Nothing {
            WaitFailure::NotEnded
        } else {
            WaitFailure::Mute(asked)
        };
    }
    if !beyond && (asked != LastRequest::Nothing || (awaited.opened && !awaited.close)) {
        return WaitFailure::SinceOpening(asked);
    }
    if awaited.close {
        return WaitFailure::NotEnded;
    }
    let started = lines.iter().rposition(|(line, mark)| {
        line.way == Way::ToServer && mark.message.is_some() && mark.message == manners.start
    });
    let turn = came.iter().filter(|at| started.is_some_and(|started| **at > started)).map(|at| lines[*at].1);
    let turn: Vec<Mark> = turn.collect();
    let begun = turn.iter().any(|mark| !mark.error && !is(&manners.aside, *mark));
    let over = turn.iter().any(|mark| mark.ends);
    // A server that goes on talking in the turn has not fallen silent in it.
    let quiet = last.is_some_and(|at| awaited.now - lines[at].0.ms > awaited.waited / 2.0);
    if begun && !over && (awaited.turn_end || quiet) {
        return WaitFailure::TurnNotEnded(last.and_then(name));
    }
    match lines.iter().rposition(sent) {
        Some(at) if last.is_none_or(|last| last < at) => {
            WaitFailure::NotAnswered(name(at).map_or(LastRequest::Unnamed, LastRequest::Of))
        }
        _ => WaitFailure::OtherFrames(last.and_then(name)),
    }
}

/// The type of a frame, as the protocol calls it or as the frame says.
pub(super) fn kind(protocol: &Protocol, line: &WireLine, mark: Mark) -> Option<String> {
    if let Some(message) = mark.message.and_then(|message| protocol.messages.get(message)) {
        return Some(message.name.clone());
    }
    let body: Value = serde_json::from_str(&line.text).ok()?;
    protocol.type_of(&body).map(str::to_owned)
}

#[cfg(test)]
mod tests;
