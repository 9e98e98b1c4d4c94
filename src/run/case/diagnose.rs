//! Which silence it was that a wait ended in: servers hang in a few ways, and each is told apart.

use serde_json::Value;

use crate::protocol::{Protocol, Roles};
use crate::results::cause::{Cause, LastRequest, WaitFailure};
use crate::results::event::{Verdict, Way};
use crate::run::case::log::LogEntry;
use crate::run::case::outcome::CaseOutcome;
use crate::run::triage::activity::ActivityLevel;

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

/// Whether a client says what belongs to no opening. What it sends by itself asks for nothing.
pub(super) fn asks(entry: &LogEntry, roles: &Roles) -> bool {
    says(entry) && !entry.messages().all(|message| roles.opens(message))
}

/// Whether a client says something as the case has it, and not by itself.
fn says(entry: &LogEntry) -> bool {
    entry.line.way == Way::ToServer && entry.word && !entry.line.automatic
}

/// What these frames of a client's say of the server. A frame that may come at any time says nothing, unless its type is one of
/// those awaited: whoever waits for it has heard from the server.
pub(super) fn silence(
    own: &[&LogEntry],
    roles: &Roles,
    awaited: Awaited<'_>,
    kind: &dyn Fn(&LogEntry) -> Option<String>,
) -> WaitFailure {
    let connected = own.iter().rposition(|entry| entry.line.way == Way::Connection).map_or(0, |at| at + 1);
    let entries = &own[connected..];
    let is = |list: &[usize], message: Option<usize>| message.is_some_and(|message| list.contains(&message));
    let came = |entry: &LogEntry| {
        let counts = !entry.line.ambient || entry.messages().any(|message| is(awaited.messages, message));
        entry.line.way == Way::ToClient && entry.word && counts
    };
    let name = |at: usize| kind(entries[at]);
    let asked = match entries.iter().rposition(|entry| asks(entry, roles)) {
        None => LastRequest::Nothing,
        Some(at) => name(at).map_or(LastRequest::Unnamed, LastRequest::Of),
    };
    let came: Vec<usize> = (0..entries.len()).filter(|at| came(entries[*at])).collect();
    // What comes before the first question belongs to the opening, if it looks like it; and so does the first that looks like it, if that
    // question was sent right behind the opening.
    let first = entries.iter().position(|entry| asks(entry, roles)).unwrap_or(entries.len());
    let greeting = |at: usize| entries[at].messages().all(|message| roles.greets(message));
    let opens = entries[..first].iter().any(|entry| says(entry));
    let greeted = came.iter().copied().find(|at| greeting(*at)).filter(|_| opens);
    let greets = |at: usize| greeting(at) && (at < first || Some(at) == greeted);
    let beyond = came.iter().any(|at| !greets(*at));
    let Some(last) = came.last().copied() else {
        return if awaited.close && asked == LastRequest::Nothing {
            WaitFailure::NotEnded
        } else {
            WaitFailure::Mute(asked)
        };
    };
    if !beyond && (asked != LastRequest::Nothing || (awaited.opened && !awaited.close)) {
        return WaitFailure::SinceOpening(asked);
    }
    if awaited.close {
        return WaitFailure::NotEnded;
    }
    // What makes clients answer by themselves tells little, where there is more.
    let telling: Vec<usize> = came.into_iter().filter(|at| !entries[*at].line.automatic).collect();
    let heard = telling.last().copied();
    let starts = |entry: &&LogEntry| {
        let mut known = entry.messages().filter(Option::is_some);
        entry.line.way == Way::ToServer && known.any(|message| message == roles.turn_start)
    };
    let started = entries.iter().rposition(starts);
    let turn = telling.iter().filter(|at| started.is_some_and(|started| **at > started));
    let turn: Vec<&LogEntry> = turn.map(|at| entries[*at]).collect();
    let part = |entry: &LogEntry| entry.part.unwrap_or_default();
    let is_aside = |entry: &LogEntry| entry.messages().all(|message| is(&roles.aside, message));
    let begun = turn.iter().any(|entry| !part(entry).refuses && !is_aside(entry));
    let over = turn.iter().any(|entry| part(entry).ends_turn);
    // A server that goes on talking in the turn has not fallen silent in it.
    let quiet = |at: usize| awaited.now - entries[at].line.ms > awaited.waited / 2.0;
    if let Some(heard) = heard.filter(|heard| begun && !over && (awaited.turn_end || quiet(*heard))) {
        return WaitFailure::TurnNotEnded(name(heard));
    }
    match entries.iter().rposition(|entry| says(entry)) {
        Some(at) if heard.is_some_and(|heard| heard < at) => {
            WaitFailure::NotAnswered(name(at).map_or(LastRequest::Unnamed, LastRequest::Of))
        }
        _ => WaitFailure::OtherFrames(name(heard.unwrap_or(last))),
    }
}

/// The type of a frame, as the protocol calls it or as the frame says. Of a batch, the type of its first message that neither belongs to
/// an opening nor may come at any time, if there is one.
pub(super) fn kind(protocol: &Protocol, entry: &LogEntry) -> Option<String> {
    let roles = protocol.roles();
    let telling = |message: &usize| !roles.opens(Some(*message)) && !roles.is_ambient(*message);
    let first = entry.messages().flatten().find(telling).or_else(|| entry.messages().flatten().next());
    if let Some(message) = first.and_then(|message| protocol.messages.get(message)) {
        return Some(message.name.clone());
    }
    let body: Value = serde_json::from_str(&entry.line.text).ok()?;
    protocol.type_of(&body).map(str::to_owned)
}

#[cfg(test)]
mod tests;
