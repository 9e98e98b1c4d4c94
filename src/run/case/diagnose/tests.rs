//! Silences told apart.

use super::*;
use crate::results::Check;
use crate::results::cause::Statement;
use crate::results::event::{Failure, FrameRecord};
use crate::run::case::log::Part;

#[test]
fn the_cause_is_that_of_the_first_failure() {
    let mute = || WaitFailure::Mute(LastRequest::Nothing);
    let silent =
        |verdict| Failure::new(Check::Step, verdict, Statement::in_silence("turn-end did not come", mute()));
    let wrong = || Failure::new(Check::Step, Verdict::Failed, "wrong");
    // The same words without the cause are no silence, and a silence is one in whichever words.
    let mut worded = silent(Verdict::Failed);
    let same = Failure::new(Check::Step, Verdict::Failed, worded.message.as_str());
    worded.message = "in other words".to_owned();
    let expected = Some(Cause::Silence(mute()));
    for (failures, expected) in [
        (vec![], None),
        (vec![silent(Verdict::Failed)], expected.clone()),
        (vec![silent(Verdict::Warned)], expected.clone()),
        (vec![worded], expected),
        (vec![silent(Verdict::Warned), wrong()], None),
        (vec![wrong(), silent(Verdict::Failed)], None),
        (vec![same], None),
    ] {
        let outcome = CaseOutcome { failures, ..CaseOutcome::default() };
        assert_eq!(cause(&outcome, ActivityLevel::Answers), expected, "{:?}", outcome.failures);
    }
}

#[test]
fn only_silence_is_shared_and_more_of_it_where_nobody_has_heard_more() {
    let of = |kind: &str| LastRequest::Of(kind.to_owned());
    let shared = |silence: WaitFailure, heard| shared(&Cause::Silence(silence), heard);
    let answers = |silence: WaitFailure| shared(silence, ActivityLevel::Turns);
    let hangs = |kind: &str| WaitFailure::TurnNotEnded(Some(kind.to_owned()));
    assert_ne!(answers(hangs("delta")), answers(hangs("tool")));
    assert_eq!(shared(hangs("delta"), ActivityLevel::Answers), shared(hangs("tool"), ActivityLevel::Answers));
    assert_eq!(answers(WaitFailure::OtherFrames(None)), None);
    assert_eq!(answers(WaitFailure::NotAnswered(LastRequest::Unnamed)), None);
    let asked = |kind: &str| answers(WaitFailure::NotAnswered(of(kind)));
    assert_eq!(asked("send"), answers(WaitFailure::SinceOpening(of("send"))));
    assert_ne!(asked("send"), asked("abort"));
    assert!(answers(WaitFailure::NotEnded).is_some());
    for (heard, expected) in
        [(ActivityLevel::Nothing, Cause::NothingSaid), (ActivityLevel::Openings, Cause::OnlyOpenings)]
    {
        for silence in [
            WaitFailure::NotEnded,
            WaitFailure::Mute(of("x")),
            WaitFailure::NotAnswered(LastRequest::Unnamed),
        ] {
            assert_eq!(shared(silence.clone(), heard), Some(expected.clone()), "{silence:?}");
        }
        assert_eq!(shared(WaitFailure::OtherFrames(None), heard), None);
    }
}

/// Types of the protocol of these tests.
const KINDS: [&str; 9] = ["hello", "welcome", "ask", "start", "delta", "end", "beat", "tick", "refused"];

fn index(kind: &str) -> Option<usize> {
    KINDS.iter().position(|known| *known == kind)
}

/// `->ask`, `<-delta`, `->hello+ask` (a batch), `->refused!` (automatic), `--`: a log, each entry ten milliseconds behind the one before.
fn entries(words: &str) -> Vec<LogEntry> {
    let of = |(at, word): (usize, &str)| {
        let (way, kind) = word.split_at(2);
        let (is_automatic, kind) = (kind.ends_with('!'), kind.trim_end_matches('!'));
        let way = match way {
            "->" => Way::ToServer,
            "<-" => Way::ToClient,
            _ => Way::Connection,
        };
        let line = FrameRecord {
            index: at as u64,
            ms: at as f64 * 10.0,
            client: "alice".to_owned(),
            way,
            kind: None,
            text: String::new(),
            ambient: kind.split('+').all(|kind| matches!(kind, "beat" | "tick")),
            automatic: is_automatic,
            cut: 0,
            states: Vec::new(),
        };
        let word = !matches!(kind, "pong" | "close");
        let has = |wanted: &str| kind.split('+').any(|kind| kind == wanted);
        let part = Some(Part { ends_turn: has("end"), refuses: has("refused"), ambient: line.ambient });
        let batch = if kind.contains('+') { kind.split('+').map(index).collect() } else { Box::default() };
        LogEntry { line, message: index(kind), batch, word, asks: Vec::new(), connected: false, part }
    };
    words.split(' ').enumerate().map(of).collect()
}

fn judged(words: &str, awaited: Awaited<'_>) -> WaitFailure {
    let entries = entries(words);
    let entries: Vec<&LogEntry> = entries.iter().collect();
    let some = |kind: &str| index(kind).into_iter().collect::<Vec<_>>();
    let mut roles = Roles::default();
    (roles.opening, roles.greeting) = (some("hello"), some("welcome"));
    (roles.aside, roles.turn_start) = (roles.greeting.clone(), index("start"));
    let kind = |entry: &LogEntry| entry.messages().flatten().last().map(|message| KINDS[message].to_owned());
    silence(&entries, &roles, Awaited { now: 5000.0, waited: 5000.0, ..awaited }, &kind)
}

#[test]
fn silences_are_told_apart() {
    let of = |kind: &str| LastRequest::Of(kind.to_owned());
    let some = |kind: &str| Some(kind.to_owned());
    for (words, opened, expected) in [
        ("-- ->hello", false, WaitFailure::Mute(LastRequest::Nothing)),
        ("-- ->ask", false, WaitFailure::Mute(of("ask"))),
        ("-- ->?", false, WaitFailure::Mute(LastRequest::Unnamed)),
        ("-- ->? <-pong", false, WaitFailure::Mute(LastRequest::Unnamed)),
        // Another connection's frames are gone with it.
        ("-- <-delta -- ->ask <-beat", false, WaitFailure::Mute(of("ask"))),
        // In the opening, and behind it.
        ("-- ->hello <-welcome", false, WaitFailure::OtherFrames(some("welcome"))),
        ("-- ->hello <-welcome", true, WaitFailure::SinceOpening(LastRequest::Nothing)),
        ("-- ->hello <-welcome <-delta", true, WaitFailure::OtherFrames(some("delta"))),
        ("-- ->hello <-welcome ->ask", true, WaitFailure::SinceOpening(of("ask"))),
        ("-- ->hello <-welcome ->ask <-beat", true, WaitFailure::SinceOpening(of("ask"))),
        // A question right behind the opening, before that is answered.
        ("-- ->hello ->ask <-welcome", true, WaitFailure::SinceOpening(of("ask"))),
        ("-- ->hello ->ask <-welcome <-delta", true, WaitFailure::OtherFrames(some("delta"))),
        ("-- ->ask <-welcome", false, WaitFailure::OtherFrames(some("welcome"))),
        // A batch asks, answers and begins a turn with any of its messages; it may come at any time only with all of them.
        ("-- ->hello+ask", false, WaitFailure::Mute(of("ask"))),
        ("-- ->hello <-welcome ->ask <-beat+tick", true, WaitFailure::SinceOpening(of("ask"))),
        ("-- ->hello <-welcome ->ask <-delta+beat", true, WaitFailure::OtherFrames(some("beat"))),
        ("-- ->hello <-welcome+delta", true, WaitFailure::OtherFrames(some("delta"))),
        ("-- ->hello <-welcome ->start+ask <-delta", true, WaitFailure::TurnNotEnded(some("delta"))),
        ("-- ->hello <-welcome ->start <-delta <-end+beat", true, WaitFailure::OtherFrames(some("beat"))),
        // What came before what was sent last is no answer to it.
        ("-- ->hello <-welcome ->ask <-delta ->ask", true, WaitFailure::NotAnswered(of("ask"))),
        ("-- ->hello <-welcome ->ask <-delta ->?", true, WaitFailure::NotAnswered(LastRequest::Unnamed)),
        ("-- ->hello <-welcome ->ask <-delta", true, WaitFailure::OtherFrames(some("delta"))),
        // A turn begins with a frame of it: neither with a refusal nor with what answers something else.
        ("-- ->hello <-welcome ->start <-delta", true, WaitFailure::TurnNotEnded(some("delta"))),
        ("-- ->hello <-welcome ->start <-delta ->ask", true, WaitFailure::TurnNotEnded(some("delta"))),
        ("-- ->hello <-welcome ->start <-refused", true, WaitFailure::OtherFrames(some("refused"))),
        ("-- ->hello <-welcome ->start <-welcome", true, WaitFailure::OtherFrames(some("welcome"))),
        ("-- ->hello <-welcome ->start <-delta <-end", true, WaitFailure::OtherFrames(some("end"))),
        ("-- ->start <-delta <-end ->ask", false, WaitFailure::NotAnswered(of("ask"))),
    ] {
        assert_eq!(judged(words, Awaited { opened, ..Awaited::default() }), expected, "{words}");
    }
}

#[test]
fn what_is_awaited_counts() {
    let of = |kind: &str| LastRequest::Of(kind.to_owned());
    let some = |kind: &str| Some(kind.to_owned());
    let beat = index("beat").into_iter().collect::<Vec<_>>();
    // Ambient frames count where they are awaited.
    let awaited = Awaited { messages: &beat, ..Awaited::default() };
    assert_eq!(judged("-- ->ask <-beat", awaited), WaitFailure::OtherFrames(some("beat")));
    assert_eq!(judged("-- ->ask <-tick", awaited), WaitFailure::Mute(of("ask")));
    assert_eq!(judged("-- ->ask <-delta <-beat ->ask", awaited), WaitFailure::NotAnswered(of("ask")));
    // The connection's end: of a server that has never said anything, that is what is told.
    let close = Awaited { close: true, opened: true, ..Awaited::default() };
    assert_eq!(judged("-- ->ask", close), WaitFailure::Mute(of("ask")));
    assert_eq!(judged("--", close), WaitFailure::NotEnded);
    assert_eq!(judged("-- ->hello <-welcome", close), WaitFailure::NotEnded);
    assert_eq!(judged("-- <-welcome ->close", close), WaitFailure::NotEnded);
    assert_eq!(judged("-- ->ask <-delta", close), WaitFailure::NotEnded);
    // A turn that goes on is not silent: only its end is missing.
    let late = "-- ->start <-delta ".to_owned() + &"<-delta ".repeat(400) + "<-delta";
    let end = Awaited { turn_end: true, ..Awaited::default() };
    assert_eq!(judged(&late, end), WaitFailure::TurnNotEnded(some("delta")));
    assert_eq!(judged(&late, Awaited::default()), WaitFailure::OtherFrames(some("delta")));
}

#[test]
fn what_clients_send_by_themselves_needs_no_answer() {
    let of = |kind: &str| LastRequest::Of(kind.to_owned());
    let some = |kind: &str| Some(kind.to_owned());
    for (words, opened, expected) in [
        ("-- ->hello <-welcome ->ask <-beat ->refused!", true, WaitFailure::SinceOpening(of("ask"))),
        ("-- ->ask <-delta <-beat ->refused!", false, WaitFailure::OtherFrames(some("delta"))),
        ("-- ->ask <-delta ->ask <-beat ->refused!", false, WaitFailure::NotAnswered(of("ask"))),
        // The server's part is no answer, either, whatever it is called.
        ("-- ->ask <-delta ->ask <-delta! ->refused!", false, WaitFailure::NotAnswered(of("ask"))),
        ("-- ->start <-delta <-refused! ->refused!", false, WaitFailure::TurnNotEnded(some("delta"))),
        // It is something, where nothing else has come.
        ("-- <-delta! ->refused!", false, WaitFailure::OtherFrames(some("delta"))),
    ] {
        let found = judged(words, Awaited { opened, ..Awaited::default() });
        assert_eq!(found, expected, "{words}");
    }
}
