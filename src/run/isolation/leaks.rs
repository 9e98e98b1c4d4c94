//! What one case's clients say, and another case's client hears: leaks, looked for while cases run side by side.
//!
//! Only what frameproof made up itself counts: UUIDs, and the cues of turns. No server says them by chance, and whoever else makes
//! up the same owns it as well. So does what the server gives to one session alone, where two cases are given it: the session's id,
//! and what the protocol says of messages (`session.marks`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::clip;
use crate::results::Check;
use crate::results::cause::{Cause, LeakKind, Statement};
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::isolation::markers::marks;

/// Marks that are kept; what is beyond is not looked for.
const MOST: usize = 65_536;
/// Owners of a mark. Of one that has more it is not known who they all are.
const OWNERS: usize = 100;
/// Leaks that are kept of a case, and that a message shows.
const LISTED: usize = 100;
const SHOWN: usize = 3;
/// Shortest session id, in bytes, that nobody gives twice by chance.
const SHORTEST: usize = 12;
/// A client of a case that runs.
#[derive(Debug, Clone)]
struct Client {
    /// The run of the case: it may run several times.
    run: u64,
    case: String,
    name: String,
    /// The server process.
    server_id: usize,
}

/// A frame that came to a client of another case.
#[derive(Debug, Clone)]
pub(crate) struct Leak {
    belongs_to: Client,
    came_to: Client,
    /// Its index in the wire log of the case that it came to.
    frame: u64,
    text: String,
    /// It bears the id of a session that the other one has already.
    given: bool,
}

impl Leak {
    fn kind(&self) -> LeakKind {
        if self.given { LeakKind::Session } else { LeakKind::Frame }
    }
}

/// A run that is under way.
#[derive(Debug)]
struct Bystander {
    server_id: usize,
    /// Of which kind the last leak was on its server since it began, whoever it was between.
    near: Option<LeakKind>,
    /// The marks that the server has given to its clients: to which first, and in which frame of the wire log.
    given: HashMap<String, (Client, u64)>,
}

/// What the cases of a run have said that nobody else says, and what of it others received.
#[derive(Debug, Default)]
pub struct LeakDetector(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    runs: u64,
    /// The runs of cases that are under way.
    running: HashMap<u64, Bystander>,
    /// Who said it; several cases may play one script.
    marks: HashMap<String, Vec<Client>>,
    /// What a run received of others, by its number.
    received: HashMap<u64, Vec<Leak>>,
    /// What a run under way lost to others, by its number.
    lost: HashMap<u64, Vec<Leak>>,
}

impl LeakDetector {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of a case begins, on a server that others use as well: `server_id` tells such servers apart.
    pub(crate) fn begin(self: &Arc<Self>, case: &str, server_id: usize) -> LeakProbe {
        let mut inner = self.lock();
        inner.runs += 1;
        let run = inner.runs;
        inner.running.insert(run, Bystander { server_id, near: None, given: HashMap::new() });
        LeakProbe { all: Arc::clone(self), run, case: case.to_owned(), server_id }
    }
}

/// What one run of a case says and hears.
#[derive(Debug)]
pub(crate) struct LeakProbe {
    all: Arc<LeakDetector>,
    run: u64,
    case: String,
    server_id: usize,
}

impl LeakProbe {
    fn client(&self, name: &str) -> Client {
        Client { run: self.run, case: self.case.clone(), name: name.to_owned(), server_id: self.server_id }
    }

    /// A client is about to say a text, or one was made up for it: the UUIDs and cues in it are its own.
    pub fn note_sent(&self, client: &str, text: &str) {
        let found = marks(text);
        if !found.is_empty() {
            let mut inner = self.all.lock();
            found.into_iter().for_each(|mark| inner.own(mark, self.client(client)));
        }
    }

    /// A client hears a text.
    pub fn note_received(&self, client: &str, frame: u64, text: &str) {
        let found = marks(text);
        if found.is_empty() {
            return;
        }
        let mut inner = self.all.lock();
        if let Some(belongs_to) = found.iter().find_map(|mark| inner.foreign(mark, self)) {
            let (came_to, text) = (self.client(client), clip(text));
            inner.leak(Leak { belongs_to, came_to, frame, text, given: false });
        }
    }

    /// The server tells a client, which has not asked for it, in which session it is.
    pub fn joins(&self, client: &str, frame: u64, session: &str, text: &str) {
        if session.len() < SHORTEST {
            return;
        }
        let mut inner = self.all.lock();
        if let Some(belongs_to) = inner.foreign(session, self) {
            let (came_to, text) = (self.client(client), clip(text));
            inner.leak(Leak { belongs_to, came_to, frame, text, given: true });
        }
        inner.own(session, self.client(client));
    }

    /// A client receives a value that the server gives to the clients of one session. To whom it was due where those of two cases
    /// receive it, nobody can know: both have received something foreign. Only UUIDs count: each session may have a counter.
    pub fn note_mark(&self, client: &str, frame: u64, value: &str, text: &str) {
        let Some(mark) = marks(value).first().copied() else { return };
        let here = (self.client(client), frame);
        let mut inner = self.all.lock();
        // An answer may have an id of the client's.
        if inner.marks.get(mark).is_some_and(|owners| owners.iter().any(|owner| owner.run == self.run)) {
            return;
        }
        let Some(own) = inner.running.get_mut(&self.run) else { return };
        if own.given.contains_key(mark) || own.given.len() >= MOST {
            return;
        }
        own.given.insert(mark.to_owned(), here.clone());
        let others = inner
            .running
            .iter()
            .filter(|(run, other)| **run != self.run && other.server_id == self.server_id);
        let there = others.filter_map(|(run, other)| Some((run, other.given.get(mark)?)));
        let Some(there) = there.min_by_key(|(run, _)| **run).map(|(_, given)| given.clone()) else { return };
        for ((belongs_to, _), (came_to, frame)) in [(&there, &here), (&here, &there)] {
            let (belongs_to, came_to) = (belongs_to.clone(), came_to.clone());
            inner.leak(Leak { belongs_to, came_to, frame: *frame, text: clip(text), given: false });
        }
    }

    /// Replaces failures that a leak explains, where this run received another, or waited in vain for what another received, by one
    /// that names both; which kind it is. What the run found before it received anything foreign stands. `ids`: the requirements that
    /// a leak breaks; where there are none it is a warning, and the case is to run again alone.
    pub fn attribute(&self, failures: &mut Vec<Failure>, ids: &[String]) -> Option<LeakKind> {
        let (received, lost) = self.take();
        let waited = |failure: &Failure| matches!(failure.cause, Some(Cause::Silence(_)));
        let first = received.first().map(|leak| leak.frame);
        let leaks = match first {
            Some(_) => received,
            // Others received it: only what it waited for in vain can be missing for that.
            None if failures.iter().any(waited) => lost,
            None => return None,
        };
        // What was lost may have gone to somebody who did not listen any more. Where no requirement is at stake it is tried again.
        let near = if ids.is_empty() { self.near() } else { None };
        let kind = leaks.first().map(Leak::kind).or(near)?;
        failures.retain(|failure| match first {
            Some(first) => !failure.frames.is_empty() && failure.frames.iter().all(|frame| *frame < first),
            None => !waited(failure),
        });
        // Whatever else is wrong, that is why.
        failures.iter_mut().for_each(|failure| failure.cause = None);
        let logged = if first.is_some() { LoggedIn::OwnCase } else { LoggedIn::OtherCase };
        failures.insert(0, failure(kind, &leaks, logged, ids));
        Some(kind)
    }

    /// Of which kind a leak between any cases was while this run was under way.
    fn near(&self) -> Option<LeakKind> {
        self.all.lock().running.get(&self.run)?.near
    }

    /// What this run received of others, and lost to them, so far.
    pub fn take(&self) -> (Vec<Leak>, Vec<Leak>) {
        let mut inner = self.all.lock();
        let received = inner.received.remove(&self.run).unwrap_or_default();
        (received, inner.lost.remove(&self.run).unwrap_or_default())
    }
}

impl Drop for LeakProbe {
    fn drop(&mut self) {
        let mut inner = self.all.lock();
        inner.running.remove(&self.run);
        inner.received.remove(&self.run);
        inner.lost.remove(&self.run);
    }
}

/// Whether a case is to run again alone: it met others, on a server whose protocol does not forbid that.
pub(crate) fn is_disturbed(report: &CaseReport) -> bool {
    report.failures.iter().any(|failure| failure.check == Check::Leak && failure.verdict == Verdict::Warned)
}

/// Adds what the first run of a case met to the report of the one that it had alone.
pub(crate) fn warn(mut report: CaseReport, first: CaseReport, strict: bool) -> CaseReport {
    report.failures.extend(first.failures.into_iter().filter(|failure| failure.check == Check::Leak));
    report.verdict = report.verdict.max(if strict { Verdict::Failed } else { Verdict::Warned });
    report.cause = report.cause.take().or(first.cause);
    report
}

/// Where the frames of leaks are logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoggedIn {
    /// The case that is reported.
    OwnCase,
    OtherCase,
}

/// What is reported of leaks.
fn failure(kind: LeakKind, leaks: &[Leak], logged: LoggedIn, ids: &[String]) -> Failure {
    let owed = !ids.is_empty();
    let told = leaks.iter().take(SHOWN).map(|leak| {
        let Leak { belongs_to, came_to, frame, text, given } = leak;
        let (came, other) = ((&came_to.name, &came_to.case), (&belongs_to.name, &belongs_to.case));
        // The wire log of a run that is done again is not kept.
        let shown = if owed { format!("(frame {frame} there, {text})") } else { format!("({text})") };
        if *given {
            format!("`{}` in {} is in the session of `{}` in {} {shown}", came.0, came.1, other.0, other.1)
        } else {
            format!("a frame of `{}` in {} came to `{}` in {} {shown}", other.0, other.1, came.0, came.1)
        }
    });
    let mut told: Vec<String> = told.collect();
    if told.is_empty() {
        told.push("the sessions of other cases were mixed up while this case timed out".to_owned());
    }
    let more = leaks.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let listed = leaks.iter().map(|leak| {
        serde_json::json!({
            "frame": leak.frame, "came_to": leak.came_to.name, "case": leak.came_to.case,
            "belongs_to": leak.belongs_to.name, "of": leak.belongs_to.case, "text": leak.text,
        })
    });
    let (verdict, done) = if owed {
        (Verdict::Failed, "The remaining cases run")
    } else {
        (Verdict::Warned, "No requirement forbids it: this case was run again, and the remaining cases run")
    };
    let message = format!(
        "{}: {}{more}. {done} one after the other now; `sessions = 1` in the target's table, or --jobs 1, declares that this is \
         intended",
        Cause::Leak(kind),
        told.join("; ")
    );
    Failure::new(Check::Leak, verdict, Statement::because(message, Cause::Leak(kind)))
        .breaking(ids)
        .with_values(None, Some(listed.collect()))
        .shown_by(leaks.iter().filter(|_| logged == LoggedIn::OwnCase && owed).map(|leak| leak.frame))
}

impl Inner {
    fn own(&mut self, mark: &str, client: Client) {
        if !self.marks.contains_key(mark) && self.marks.len() >= MOST {
            return;
        }
        let owners = self.marks.entry(mark.to_owned()).or_default();
        if owners.iter().all(|owner| owner.run != client.run) && owners.len() < OWNERS {
            owners.push(client);
        }
    }

    /// The last owner of a mark that runs beside a case, on the same server, if none of the owners is the case itself. Another
    /// server may give the same ids, and of one that has ended a server may tell whom it likes: it disturbs nobody.
    fn foreign(&self, mark: &str, probe: &LeakProbe) -> Option<Client> {
        let owners = self.marks.get(mark)?;
        let own = owners.len() >= OWNERS || owners.iter().any(|owner| owner.run == probe.run);
        let beside =
            |owner: &&Client| owner.server_id == probe.server_id && self.running.contains_key(&owner.run);
        if own { None } else { owners.iter().rev().find(beside).cloned() }
    }

    fn leak(&mut self, leak: Leak) {
        let push = |list: &mut Vec<Leak>| {
            // That it is a session's id says more than that it came.
            list.retain(|known| {
                !leak.given || (known.came_to.run, known.frame) != (leak.came_to.run, leak.frame)
            });
            if list.len() < LISTED {
                list.push(leak.clone());
            }
        };
        for run in self.running.values_mut().filter(|run| run.server_id == leak.came_to.server_id) {
            run.near = Some(leak.kind());
        }
        push(self.lost.entry(leak.belongs_to.run).or_default());
        push(self.received.entry(leak.came_to.run).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::cause::{LastRequest, WaitFailure};

    const UUID: &str = "0b8c1a52-5c3f-4a52-9a57-3f6c2a1d9e11";

    /// A case that waited in vain, and one that something else was wrong with, seen in these frames.
    fn silent_failures() -> Vec<Failure> {
        let silence = WaitFailure::Mute(LastRequest::Nothing);
        let failure = Statement::in_silence("it did not come", silence);
        vec![Failure::new(Check::Step, Verdict::Failed, failure)]
    }

    fn wrong(message: &str, frames: Vec<u64>) -> Vec<Failure> {
        vec![Failure::new(Check::Step, Verdict::Failed, message).shown_by(frames)]
    }

    fn messages(failures: &[Failure]) -> Vec<&str> {
        failures.iter().map(|failure| failure.message.as_str()).collect()
    }

    #[test]
    fn both_cases_are_named_and_others_are_left_alone() {
        let all = Arc::new(LeakDetector::default());
        let probe = |case: &str| all.begin(case, 0);
        let (one, two, three) = (probe("f/one"), probe("f/two"), probe("f/three"));
        one.note_sent("alice", UUID);
        one.note_sent("alice", "[[cue:same]]");
        two.note_sent("bob", "[[cue:same]]");
        one.note_received("carol", 3, UUID);
        two.note_received("bob", 4, "[[cue:same]]");
        assert!(two.attribute(&mut silent_failures(), &[]).is_none(), "a case's own marks are no leak");
        two.note_received("bob", 7, UUID);
        assert!(three.attribute(&mut silent_failures(), &["A-1".to_owned()]).is_none());
        assert!(three.attribute(&mut wrong("x", vec![1]), &[]).is_none());
        // Who knows to whom the answer went that never came.
        let mut failures = silent_failures();
        assert_eq!(three.attribute(&mut failures, &[]), Some(LeakKind::Frame));
        assert!(
            messages(&failures)[0]
                .contains("the sessions of other cases were mixed up while this case timed out"),
            "{failures:?}"
        );
        let later = all.begin("f/later", 0);
        assert!(later.attribute(&mut silent_failures(), &[]).is_none(), "nothing happened since it began");
        // What stood before the leak was found by the case itself.
        for (mut failures, stands) in [(Vec::new(), 0), (wrong("x", vec![9]), 0), (wrong("x", vec![2, 3]), 1)]
        {
            two.note_received("bob", 7, UUID);
            assert!(two.attribute(&mut failures, &["A-1".to_owned()]).is_some());
            assert_eq!(failures.len(), 1 + stands);
            assert_eq!(failures[0].requirements, ["A-1"]);
            assert_eq!(failures[0].frames.first(), Some(&7));
            let told = messages(&failures)[0];
            assert!(
                told.contains("a frame of `alice` in f/one came to `bob` in f/two (frame 7 there"),
                "{told}"
            );
        }
        // The other one has lost something only if it waited for it.
        assert!(one.attribute(&mut Vec::new(), &[]).is_none());
        two.note_received("bob", 7, UUID);
        assert!(one.attribute(&mut wrong("x", vec![1]), &[]).is_none());
        two.note_received("bob", 7, UUID);
        let mut failures = silent_failures();
        assert_eq!(one.attribute(&mut failures, &[]), Some(LeakKind::Frame));
        assert!(failures[0].frames.is_empty());
    }

    #[test]
    fn one_session_for_two_cases_is_a_leak() {
        let all = Arc::new(LeakDetector::default());
        let (one, two, far) = (all.begin("f/one", 1), all.begin("f/two", 1), all.begin("f/far", 2));
        for (probe, session) in [(&one, "lobby"), (&two, "lobby"), (&one, UUID), (&one, UUID)] {
            probe.joins("alice", 0, session, session);
        }
        assert!(one.attribute(&mut silent_failures(), &[]).is_none());
        assert!(two.attribute(&mut silent_failures(), &[]).is_none());
        // Another server may give the same ids.
        far.joins("alice", 1, UUID, UUID);
        assert!(far.attribute(&mut silent_failures(), &[]).is_none());
        drop(far);
        two.note_received("alice", 1, UUID);
        two.joins("alice", 1, UUID, UUID);
        let mut failures = Vec::new();
        let kind = two.attribute(&mut failures, &["A-1".to_owned()]);
        let told = messages(&failures)[0];
        assert_eq!(kind, Some(LeakKind::Session));
        assert!(told.contains("`alice` in f/two is in the session of `alice` in f/one"), "{told}");
        assert!(!told.contains("came to"), "no frame came over: {told}");
        // Once all that were in it have ended, its id may be given again.
        drop((one, two));
        let last = all.begin("f/last", 1);
        last.joins("alice", 1, UUID, UUID);
        assert!(last.attribute(&mut silent_failures(), &[]).is_none());
    }

    #[test]
    fn one_message_for_two_cases_is_a_leak_of_both() {
        let all = Arc::new(LeakDetector::default());
        let (one, two, far) = (all.begin("f/one", 1), all.begin("f/two", 1), all.begin("f/far", 2));
        for (probe, id) in
            [(&one, UUID), (&one, UUID), (&far, UUID), (&one, "m-000000000001"), (&two, "m-000000000001")]
        {
            probe.note_mark("alice", 3, id, "{}");
        }
        for probe in [&one, &two, &far] {
            assert!(probe.attribute(&mut silent_failures(), &[]).is_none());
        }
        two.note_mark("bob", 5, UUID, "{}");
        for (probe, from, told) in [
            (&one, 3, "a frame of `bob` in f/two came to `alice` in f/one (frame 3 there"),
            (&two, 5, "a frame of `alice` in f/one came to `bob` in f/two (frame 5 there"),
        ] {
            let mut failures = wrong("before", vec![1]);
            failures.extend(wrong("behind", vec![from]));
            assert_eq!(probe.attribute(&mut failures, &["A-1".to_owned()]), Some(LeakKind::Frame));
            assert!(messages(&failures)[0].contains(told), "{failures:?}");
            assert_eq!(messages(&failures)[1..], ["before"]);
        }
    }

    #[test]
    fn an_id_that_both_cases_have_said_is_no_leak() {
        let all = Arc::new(LeakDetector::default());
        let (one, two) = (all.begin("f/one", 1), all.begin("f/two", 1));
        for (probe, client) in [(&one, "alice"), (&two, "bob")] {
            probe.note_sent(client, &format!(r#"{{"id":"{UUID}"}}"#));
            probe.note_mark(client, 3, UUID, "{}");
        }
        for probe in [&one, &two] {
            assert!(probe.attribute(&mut silent_failures(), &[]).is_none());
        }
    }

    #[test]
    fn who_has_ended_or_has_another_server_is_not_disturbed() {
        let all = Arc::new(LeakDetector::default());
        let (one, two, far) = (all.begin("f/one", 1), all.begin("f/two", 1), all.begin("f/far", 2));
        one.note_sent("alice", UUID);
        far.note_received("alice", 1, UUID);
        assert!(far.attribute(&mut Vec::new(), &[]).is_none());
        drop(one);
        two.note_received("bob", 1, UUID);
        assert!(two.attribute(&mut Vec::new(), &[]).is_none());
    }

    #[test]
    fn what_no_requirement_forbids_is_a_warning_of_a_case_that_runs_again() {
        let all = Arc::new(LeakDetector::default());
        let (one, two) = (all.begin("f/one", 1), all.begin("f/two", 1));
        for (ids, disturbed) in [(vec!["A-1".to_owned()], false), (vec![], true)] {
            one.note_sent("alice", UUID);
            two.note_received("bob", 1, UUID);
            let mut failures = wrong("x", vec![9]);
            let cause = two.attribute(&mut failures, &ids).map(Cause::Leak);
            let first = CaseReport { failures, cause, ..CaseReport::default() };
            assert_eq!(is_disturbed(&first), disturbed);
            for (strict, verdict) in [(false, Verdict::Warned), (true, Verdict::Failed)] {
                let report = CaseReport { verdict: Verdict::Passed, ..CaseReport::default() };
                let report = warn(report, first.clone(), strict);
                assert_eq!((report.verdict, report.failures.len()), (verdict, 1));
                assert_eq!(report.cause, Some(Cause::Leak(LeakKind::Frame)));
            }
        }
    }
}
