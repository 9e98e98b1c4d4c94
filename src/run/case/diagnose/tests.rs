//! Silences told apart.

use super::*;
use crate::results::event::Failure;

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
        for silence in [Silence::NotEnded, Silence::Mute(of("x")), Silence::NotAnswered(Asked::Something)] {
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
