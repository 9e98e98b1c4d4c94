use std::sync::Arc;

use super::*;
use crate::protocol::{LoadOptions, Protocol};

fn turns() -> Vec<QueuedCase> {
    let protocol =
        Protocol::embedded(Protocol::embedded_names()[0], &LoadOptions::default()).expect("it loads");
    let cases = crate::scenario::embedded(&protocol).expect("they load");
    cases.into_iter().map(|case| (Arc::new(case), 0)).collect()
}

fn report(verdict: Verdict) -> CaseReport {
    CaseReport { verdict, ..CaseReport::default() }
}

/// A case that was not answered.
fn silent(verdict: Verdict, to: &str) -> CaseReport {
    CaseReport { cause: Some(Cause::Unanswered(to.to_owned())), ..report(verdict) }
}

fn frozen() -> CaseReport {
    let reason = Some("no HTTP answer".to_owned());
    CaseReport { cause: Some(Cause::UpgradeUnanswered), reason, ..report(Verdict::Error) }
}

const BESIDE: Circumstances = Circumstances {
    jobs: 4,
    late: Duration::ZERO,
    crowded_out: false,
    short: false,
    proven: false,
    overtaken: 0,
    foreign: true,
    answers: true,
};
const ALONE: Circumstances = Circumstances { jobs: 1, ..BESIDE };
const LATER: Circumstances = Circumstances { jobs: 1, late: LATE, ..BESIDE };
const HURRIED: Circumstances = Circumstances { short: true, answers: false, ..BESIDE };

/// What becomes of a run: its report, if it stands, or else whether the case is run again at once.
fn judged(
    held: &mut HeldCases,
    turn: &QueuedCase,
    report: CaseReport,
    seen: &Circumstances,
) -> Result<CaseReport, bool> {
    let key = (turn.0.id.clone(), turn.1);
    match held.reason(&key, &report, seen) {
        Some(why) => Err(held.hold(turn.clone(), report, why, seen.late).is_some()),
        None => Ok(held.settle(&key, report)),
    }
}

fn failures(report: &CaseReport) -> (Verdict, usize, usize) {
    (report.verdict, report.failures.len(), report.earlier.len())
}

#[test]
fn only_what_failed_late_is_run_again_and_not_for_ever() {
    let (turns, mut held) = (turns(), HeldCases::default());
    let soon = Circumstances { late: LATE / 2, ..LATER };
    assert!(judged(&mut held, &turns[0], report(Verdict::Failed), &soon).is_ok(), "in time");
    assert!(judged(&mut held, &turns[0], report(Verdict::Passed), &LATER).is_ok(), "passed");
    for _ in 0..LATE_TRIES {
        assert!(judged(&mut held, &turns[0], report(Verdict::Failed), &LATER).is_err_and(|now| now), "late");
    }
    let stands = judged(&mut held, &turns[0], report(Verdict::Failed), &LATER).expect("it stands");
    assert_eq!(failures(&stands), (Verdict::Failed, 0, 0));
    assert!(held.hints().is_empty() && held.rest().is_empty());
    // Many failures are not for want of time.
    let many = turns.iter().filter(|turn| judged(&mut held, turn, report(Verdict::Failed), &LATER).is_err());
    assert_eq!(many.count(), LATE_CASES - 1);
}

#[test]
fn what_was_warned_of_late_is_run_again_and_what_is_then_seen_counts() {
    let (turns, mut held) = (turns(), HeldCases::default());
    for verdict in [Verdict::Passed, Verdict::Warned, Verdict::Failed] {
        assert!(judged(&mut held, &turns[0], report(Verdict::Warned), &LATER).is_err_and(|now| now));
        let stands = judged(&mut held, &turns[0], report(verdict), &ALONE).expect("it stands");
        assert_eq!(failures(&stands), (verdict, 0, 0));
    }
    assert!(held.hints().is_empty() && held.rest().is_empty());
    // There is room for failures.
    let warned = |turn: &&QueuedCase| judged(&mut held, turn, report(Verdict::Warned), &LATER).is_err();
    assert_eq!(turns.iter().filter(warned).count(), LATE_CASES / 2 - 3);
    assert!(judged(&mut held, &turns[turns.len() - 1], report(Verdict::Failed), &LATER).is_err());
}

#[test]
fn what_passes_then_is_flaky_and_what_cannot_be_run_again_has_failed() {
    let (turns, mut held) = (turns(), HeldCases::default());
    let failure = Failure::new(Check::Step, Verdict::Failed, "it was told so".to_owned());
    let failed = || CaseReport { failures: vec![failure.clone()], ..report(Verdict::Failed) };
    for (then, stands) in [
        (Verdict::Error, (Verdict::Failed, 1, 0)),
        (Verdict::NotApplicable, (Verdict::Failed, 1, 0)),
        (Verdict::Passed, (Verdict::Flaky, 0, 1)),
    ] {
        assert!(judged(&mut held, &turns[0], failed(), &LATER).is_err());
        let report = judged(&mut held, &turns[0], report(then), &ALONE).expect("it stands");
        assert_eq!(failures(&report), stands, "{then:?}");
    }
    assert!(held.hints()[0].contains("by up to 40ms: a case that had failed passed"), "{:?}", held.hints());
    assert!(judged(&mut held, &turns[1], failed(), &LATER).is_err());
    assert_eq!(held.rest().len(), 1, "what was not run again is told");
}

#[test]
fn a_silence_under_load_is_a_verdict_once_it_was_shown_alone() {
    let (turns, mut held) = (turns(), HeldCases::default());
    let failed = |to| silent(Verdict::Failed, to);
    assert!(judged(&mut held, &turns[0], failed("a"), &ALONE).is_ok());
    assert!(judged(&mut held, &turns[0], silent(Verdict::Passed, "a"), &BESIDE).is_ok());
    assert!(judged(&mut held, &turns[0], failed("a"), &Circumstances { answers: false, ..BESIDE }).is_ok());
    for (at, to) in ["a", "b", "a", "a"].into_iter().enumerate() {
        assert_eq!(judged(&mut held, &turns[at], failed(to), &BESIDE).err(), Some(false), "later");
    }
    assert!(!held.is_urgent(), "the others come first");
    // It fails alone, too: the others of its kind stand.
    let mut stand = Vec::new();
    let mut run_next = |held: &mut HeldCases, verdict| {
        let next = held.next(&mut stand, false);
        let [turn] = next.as_slice() else { return Err(stand.len()) };
        assert!(held.is_urgent(), "it is alone");
        let of = held.held.values().find(|held| held.turn.0.id == turn.0.id).map(Held::kind);
        let to = of.expect("it is held").1.rsplit('`').nth(1).unwrap_or_default().to_owned();
        judged(held, turn, silent(verdict, &to), &ALONE).map_err(|_| 0).map(|report| (to, report))
    };
    let mut verdicts = BTreeMap::new();
    while let Ok((to, report)) =
        run_next(&mut held, if verdicts.is_empty() { Verdict::Failed } else { Verdict::Passed })
    {
        verdicts.insert(to, report.verdict);
    }
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert!(verdicts.values().any(|verdict| *verdict == Verdict::Flaky), "{verdicts:?}");
    assert!(held.rest().is_empty() && !held.is_urgent());
    assert!(
        held.hints()[0]
            .starts_with("a case that had failed by a silence of the server passed when run alone")
    );
}

#[test]
fn an_unanswered_upgrade_is_tried_alone_before_anything_else_begins() {
    let (turns, mut held) = (turns(), HeldCases::default());
    let mut stand = Vec::new();
    for turn in &turns[..2] {
        assert_eq!(judged(&mut held, turn, frozen(), &BESIDE).err(), Some(false));
    }
    assert!(judged(&mut held, &turns[2], silent(Verdict::Failed, "a"), &BESIDE).is_err());
    assert!(held.is_urgent());
    for _ in 0..2 {
        let next = held.next(&mut stand, false);
        assert_eq!(next.len(), 1);
        assert!(next[0].0.id != turns[2].0.id, "that is not urgent");
        let passed = judged(&mut held, &next[0], report(Verdict::Passed), &ALONE).expect("it stands");
        assert_eq!(failures(&passed), (Verdict::Flaky, 0, 1));
        assert_eq!(passed.earlier[0][0].message, "no HTTP answer");
    }
    assert!(!held.is_urgent() && stand.is_empty());
    assert!(held.hints()[0].contains("2 cases that had failed because the server did not answer an upgrade"));
    // A server that answers no upgrade at all is asked once more, and not by each case.
    for turn in &turns[3..6] {
        assert!(judged(&mut held, turn, frozen(), &BESIDE).is_err());
    }
    let mut held = HeldCases { held: held.held, ..HeldCases::default() };
    let next = held.next(&mut stand, true);
    assert_eq!((next.len(), stand.len()), (1, 0));
    assert_eq!(judged(&mut held, &next[0], frozen(), &ALONE).expect("it stands").verdict, Verdict::Error);
    assert_eq!(held.next(&mut stand, true)[0].0.id, turns[2].0.id);
    assert_eq!(stand.len(), 2);
}

#[test]
fn nothing_is_held_against_a_server_that_answers_later() {
    let (turns, mut held) = (turns(), HeldCases::default());
    let failed = |to: &str| silent(Verdict::Failed, to);
    let mut stand = Vec::new();
    assert!(judged(&mut held, &turns[0], report(Verdict::Passed), &HURRIED).is_ok());
    for (at, to) in ["a", "a", "b", "a"].into_iter().enumerate() {
        assert_eq!(judged(&mut held, &turns[at], failed(to), &HURRIED).err(), Some(false));
    }
    let kinds = held.next(&mut stand, false);
    assert!(kinds.len() == 2 && stand.is_empty() && !held.is_urgent(), "one of each kind, together");
    assert!(held.short().is_none());
    assert_eq!(held.released().len(), 2);
    for turn in &turns[..4] {
        let stands = judged(&mut held, turn, report(Verdict::Passed), &BESIDE).expect("it stands");
        assert_eq!(
            failures(&stands),
            (Verdict::Passed, 0, 0),
            "what was found in a hurry counts for nothing"
        );
    }
    assert!(held.rest().is_empty() && held.short().is_none());
    // However many kinds there are, patience has an end.
    let mut held = HeldCases::default();
    for (at, turn) in turns.iter().take(20).enumerate() {
        assert!(judged(&mut held, turn, failed(&"x".repeat(at + 1)), &HURRIED).is_err());
    }
    let kinds = held.next(&mut stand, false);
    assert_eq!((kinds.len(), stand.len()), (KINDS, 20 - KINDS));
    for turn in kinds {
        assert!(judged(&mut held, &turn, failed("x"), &ALONE).is_ok());
    }
    assert_eq!(held.short(), Some((20 - KINDS, KINDS)));
}

#[test]
fn what_was_found_before_a_run_was_given_up_stands() {
    let failure = |check: &Check, verdict| Failure::new(check.clone(), verdict, "no");
    let of = |verdict, failures, earlier| CaseReport { verdict, failures, earlier, ..CaseReport::default() };
    let limit = || failure(&Check::Limit, Verdict::Failed);
    let after = |first| failures(&carry_over(first, report(Verdict::Passed)));
    assert_eq!(after(of(Verdict::Failed, vec![limit()], Vec::new())), (Verdict::Passed, 0, 0));
    let warned = vec![failure(&Check::Message, Verdict::Warned), limit()];
    assert_eq!(after(of(Verdict::Failed, warned, Vec::new())), (Verdict::Warned, 1, 0));
    let tried = of(Verdict::Failed, vec![limit()], vec![vec![failure(&Check::Step, Verdict::Failed)]]);
    assert_eq!(after(tried), (Verdict::Flaky, 0, 1));
    let failed = vec![failure(&Check::Message, Verdict::Failed), limit()];
    assert_eq!(after(of(Verdict::Failed, failed, Vec::new())), (Verdict::Failed, 1, 0));
}

/// Cases that came later were served meanwhile: the server forgot this one. What a frame is does not depend on when it comes.
#[test]
fn what_neither_load_nor_lateness_explains_stands() {
    let (turns, mut held) = (turns(), HeldCases::default());
    let overtaken = Circumstances { overtaken: OVERTAKEN, late: LATE, ..BESIDE };
    let nearly = Circumstances { overtaken: OVERTAKEN - 1, ..BESIDE };
    assert!(judged(&mut held, &turns[0], silent(Verdict::Failed, "a"), &nearly).is_err());
    assert!(judged(&mut held, &turns[1], silent(Verdict::Failed, "b"), &overtaken).is_ok());
    let proven = Circumstances { proven: true, late: LATE, ..BESIDE };
    assert!(judged(&mut held, &turns[2], report(Verdict::Failed), &proven).is_ok());
    assert!(
        judged(&mut held, &turns[2], report(Verdict::Failed), &LATER).is_err(),
        "it may have come too late"
    );
}

#[test]
fn cases_count_as_later_ones_by_when_they_began() {
    let mut held = HeldCases::default();
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    [0, 5, 10, 20].into_iter().for_each(|ms| held.note_passed(at(ms)));
    assert_eq!((held.passed_since(at(5)), held.passed_since(at(20))), (2, 0));
    (0..LATELY as u64).for_each(|ms| held.note_passed(at(ms)));
    assert_eq!(held.passed.len(), LATELY);
}
