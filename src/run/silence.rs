//! Which silence it was that a wait ended in: servers hang in a few ways, and each is told apart.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::case::{Outcome, Runner};
use super::event::{Verdict, WireLine};
use super::heard::Extent;
use super::waits::Wanted;
use crate::protocol::Protocol;
use crate::protocol::extension::Exchange;
use crate::trace::Direction;

/// What cases share that have failed before the server has said a word.
pub(super) const NOTHING: &str = "the server has said nothing on any connection";
/// What they share where it has spoken in openings only.
const OPENINGS: &str = "the server has said nothing on any connection beyond the opening";

/// What they share where a turn began and none has ever ended.
const NO_END: &str = "the server has ended no turn on any connection";

/// What stands between a sentence about a wait in vain and the silence.
pub(super) const SERVER: &str = ": the server ";

/// What was sent last of what does not belong to an opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    /// It names no type.
    Something,
    /// A message of this type.
    Of(String),
}

/// What the server did while something was waited for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
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
        }
    }
}

impl Silence {
    /// What cases that end in it share, if it is reason enough to tell them together, in a run in which so much was heard.
    /// Whoever waits for different things of a server that talks has found different things; one that never says anything,
    /// or nothing beyond openings, has one defect, whatever it is asked.
    fn shared(&self, heard: Extent) -> Option<String> {
        let talks = matches!(self, Self::TurnNotEnded(_) | Self::OtherFrames(_));
        match (heard, self) {
            (Extent::Nothing, _) if !talks => Some(NOTHING.to_owned()),
            (Extent::Openings, _) if !talks => Some(OPENINGS.to_owned()),
            (Extent::Nothing | Extent::Openings | Extent::Answers, Self::TurnNotEnded(_)) => {
                Some(NO_END.to_owned())
            }
            (_, Self::OtherFrames(_)) => None,
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
pub(super) fn cause(outcome: &Outcome, heard: Extent) -> Option<String> {
    let failures = &outcome.failures;
    let failed = failures.iter().find(|failure| failure.verdict == Verdict::Failed).or(failures.first())?;
    let mut silences = outcome.silences.iter();
    let (_, silence) = silences.find(|(sentence, _)| failed.message.starts_with(sentence))?;
    silence.shared(heard)
}

/// What a protocol says at which occasion: indices of message types.
#[derive(Debug, Default)]
pub(super) struct Manners {
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
pub(super) struct Mark {
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
    pub(super) fn in_vain(&mut self, client: &str, wanted: &Wanted, waited: Duration) -> String {
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
    pub(super) fn nothing_came(&mut self, client: &str, sentence: &str, turn_end: bool) -> String {
        self.told_silence(client, sentence, Awaited { turn_end, ..Awaited::default() })
    }

    fn told_silence(&mut self, client: &str, sentence: &str, awaited: Awaited<'_>) -> String {
        let opened = self.clients.get(client).is_some_and(|client| client.opened);
        let awaited = Awaited { opened, now: self.start.elapsed().as_secs_f64() * 1e3, ..awaited };
        let lines = self.outcome.wire.iter().zip(&self.marks).filter(|(line, _)| line.client == client);
        let lines: Vec<(&WireLine, Mark)> = lines.map(|(line, mark)| (line, *mark)).collect();
        let kind = |line: &WireLine, mark: Mark| kind(&self.protocol, line, mark);
        let silence = silence(&lines, &self.manners, awaited, &kind);
        let sentence = format!("{sentence}{SERVER}{silence}");
        self.outcome.silences.push((sentence.clone(), silence));
        sentence
    }
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
    let asks = |line: &(&WireLine, Mark)| sent(line) && !manners.opens(line.1.message);
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
        let mute = [("turn-end did not come", Silence::Mute(Asked::Nothing))];
        let told = "turn-end did not come (with n = 2)";
        for (failures, expected) in [
            (&[][..], None),
            (&[(Verdict::Failed, told)], Some("has said nothing on this connection")),
            (&[(Verdict::Warned, told)], Some("has said nothing on this connection")),
            (&[(Verdict::Warned, told), (Verdict::Failed, "wrong")], None),
            (&[(Verdict::Failed, "wrong"), (Verdict::Failed, told)], None),
            (&[(Verdict::Failed, "x: the server has said nothing on this connection")], None),
        ] {
            let found = cause(&outcome(&mute, failures), Extent::Answers);
            assert_eq!(found.as_deref(), expected, "{failures:?}");
        }
    }

    #[test]
    fn only_silence_is_shared_and_more_of_it_where_nobody_has_heard_more() {
        let of = |kind: &str| Asked::Of(kind.to_owned());
        let answers = |silence: &Silence| silence.shared(Extent::Turns);
        let hangs = |kind: &str| Silence::TurnNotEnded(Some(kind.to_owned()));
        assert_ne!(answers(&hangs("delta")), answers(&hangs("tool")));
        assert_eq!(hangs("delta").shared(Extent::Answers), hangs("tool").shared(Extent::Answers));
        assert_eq!(answers(&Silence::OtherFrames(None)), None);
        assert_eq!(answers(&Silence::NotAnswered(Asked::Something)), None);
        assert_eq!(answers(&Silence::NotAnswered(of("send"))), answers(&Silence::SinceOpening(of("send"))));
        assert_ne!(answers(&Silence::NotAnswered(of("send"))), answers(&Silence::NotAnswered(of("abort"))));
        assert!(answers(&Silence::NotEnded).is_some());
        for (heard, expected) in [(Extent::Nothing, NOTHING), (Extent::Openings, OPENINGS)] {
            for silence in [Silence::NotEnded, Silence::Mute(of("x")), Silence::NotAnswered(Asked::Something)]
            {
                assert_eq!(silence.shared(heard).as_deref(), Some(expected), "{silence:?}");
            }
            assert_eq!(Silence::OtherFrames(None).shared(heard), None);
        }
    }

    /// Types of the protocol of these tests.
    const KINDS: [&str; 9] = ["hello", "welcome", "ask", "start", "delta", "end", "beat", "tick", "refused"];

    fn index(kind: &str) -> Option<usize> {
        KINDS.iter().position(|known| *known == kind)
    }

    /// `->ask`, `<-delta`, `--`: a line of a wire log, each ten milliseconds behind the one before.
    fn lines(words: &str) -> Vec<(WireLine, Mark)> {
        let of = |(at, word): (usize, &str)| {
            let (dir, kind) = word.split_at(2);
            let line = WireLine {
                index: at as u64,
                ms: at as f64 * 10.0,
                client: "alice".to_owned(),
                dir: dir.to_owned(),
                text: String::new(),
                ambient: matches!(kind, "beat" | "tick"),
                cut: 0,
            };
            let word = !matches!(kind, "pong" | "close");
            (line, Mark { message: index(kind), word, ends: kind == "end", error: kind == "refused" })
        };
        words.split(' ').enumerate().map(of).collect()
    }

    fn judged(words: &str, awaited: Awaited<'_>) -> Silence {
        let lines = lines(words);
        let lines: Vec<(&WireLine, Mark)> = lines.iter().map(|(line, mark)| (line, *mark)).collect();
        let some = |kind: &str| index(kind).into_iter().collect::<Vec<_>>();
        let (opening, greeting) = (some("hello"), some("welcome"));
        let manners = Manners { opening, aside: greeting.clone(), greeting, start: index("start") };
        let kind = |_: &WireLine, mark: Mark| mark.message.map(|message| KINDS[message].to_owned());
        silence(&lines, &manners, Awaited { now: 5000.0, waited: 5000.0, ..awaited }, &kind)
    }

    #[test]
    fn silences_are_told_apart() {
        let of = |kind: &str| Asked::Of(kind.to_owned());
        let some = |kind: &str| Some(kind.to_owned());
        for (words, opened, expected) in [
            ("-- ->hello", false, Silence::Mute(Asked::Nothing)),
            ("-- ->ask", false, Silence::Mute(of("ask"))),
            ("-- ->?", false, Silence::Mute(Asked::Something)),
            ("-- ->? <-pong", false, Silence::Mute(Asked::Something)),
            // Another connection's frames are gone with it.
            ("-- <-delta -- ->ask <-beat", false, Silence::Mute(of("ask"))),
            // In the opening, and behind it.
            ("-- ->hello <-welcome", false, Silence::OtherFrames(some("welcome"))),
            ("-- ->hello <-welcome", true, Silence::SinceOpening(Asked::Nothing)),
            ("-- ->hello <-welcome <-delta", true, Silence::OtherFrames(some("delta"))),
            ("-- ->hello <-welcome ->ask", true, Silence::SinceOpening(of("ask"))),
            ("-- ->hello <-welcome ->ask <-beat", true, Silence::SinceOpening(of("ask"))),
            // What came before what was sent last is no answer to it.
            ("-- ->hello <-welcome ->ask <-delta ->ask", true, Silence::NotAnswered(of("ask"))),
            ("-- ->hello <-welcome ->ask <-delta ->?", true, Silence::NotAnswered(Asked::Something)),
            ("-- ->hello <-welcome ->ask <-delta", true, Silence::OtherFrames(some("delta"))),
            // A turn begins with a frame of it: neither with a refusal nor with what answers something else.
            ("-- ->hello <-welcome ->start <-delta", true, Silence::TurnNotEnded(some("delta"))),
            ("-- ->hello <-welcome ->start <-delta ->ask", true, Silence::TurnNotEnded(some("delta"))),
            ("-- ->hello <-welcome ->start <-refused", true, Silence::OtherFrames(some("refused"))),
            ("-- ->hello <-welcome ->start <-welcome", true, Silence::OtherFrames(some("welcome"))),
            ("-- ->hello <-welcome ->start <-delta <-end", true, Silence::OtherFrames(some("end"))),
            ("-- ->start <-delta <-end ->ask", false, Silence::NotAnswered(of("ask"))),
        ] {
            assert_eq!(judged(words, Awaited { opened, ..Awaited::default() }), expected, "{words}");
        }
    }

    #[test]
    fn what_is_awaited_counts() {
        let of = |kind: &str| Asked::Of(kind.to_owned());
        let some = |kind: &str| Some(kind.to_owned());
        let beat = index("beat").into_iter().collect::<Vec<_>>();
        // Ambient frames count where they are awaited.
        let awaited = Awaited { messages: &beat, ..Awaited::default() };
        assert_eq!(judged("-- ->ask <-beat", awaited), Silence::OtherFrames(some("beat")));
        assert_eq!(judged("-- ->ask <-tick", awaited), Silence::Mute(of("ask")));
        assert_eq!(judged("-- ->ask <-delta <-beat ->ask", awaited), Silence::NotAnswered(of("ask")));
        // The connection's end: of a server that has never said anything, that is what is told.
        let close = Awaited { close: true, opened: true, ..Awaited::default() };
        assert_eq!(judged("-- ->ask", close), Silence::Mute(of("ask")));
        assert_eq!(judged("--", close), Silence::NotEnded);
        assert_eq!(judged("-- ->hello <-welcome", close), Silence::NotEnded);
        assert_eq!(judged("-- <-welcome ->close", close), Silence::NotEnded);
        assert_eq!(judged("-- ->ask <-delta", close), Silence::NotEnded);
        // A turn that goes on is not silent: only its end is missing.
        let late = "-- ->start <-delta ".to_owned() + &"<-delta ".repeat(400) + "<-delta";
        let end = Awaited { turn_end: true, ..Awaited::default() };
        assert_eq!(judged(&late, end), Silence::TurnNotEnded(some("delta")));
        assert_eq!(judged(&late, Awaited::default()), Silence::OtherFrames(some("delta")));
    }
}
