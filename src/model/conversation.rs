//! The conversation that a request carries, and which response of which cue it asks for.

use std::collections::HashSet;

use super::record::CueState;
use crate::cue::{self, Cue, Step};
use crate::text::beginning;

/// The longest pause that a cue may ask for, in milliseconds: longer than any client waits.
const LONGEST_PAUSE_MS: u64 = 600_000;
/// What is kept of the text of a result, in bytes: a cue may ask for it several times.
const OUTPUT: usize = 64 << 10;
/// How much longer a response may become by what is put into its texts, in bytes.
const FILLED: usize = 4 << 20;

/// One entry of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// Text of the user.
    User(String),
    /// Something that the model said, with the ids of the tools it called.
    Model(Vec<String>),
    /// Results of calls.
    Results(Vec<Output>),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    pub call: String,
    /// Its text, of at most [`OUTPUT`] bytes.
    pub text: String,
}

impl Output {
    pub fn new(call: String, mut text: String) -> Self {
        text.truncate(beginning(&text, OUTPUT).len());
        Self { call, text }
    }
}

/// A conversation, oldest entry first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Conversation {
    pub entries: Vec<Entry>,
    /// It goes on from a response that is not among the entries.
    pub continued: bool,
}

/// What to play.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub steps: Vec<Step>,
    pub cue: CueState,
    /// Which response it is, from 0.
    pub index: usize,
    /// The user message that decided it.
    pub text: String,
}

impl Conversation {
    /// The response that is asked for: of the newest user message with a cue, as many as the model has answered since.
    ///
    /// What the model says between two messages of others is one answer, in however many messages a client keeps it. Past
    /// the last response it says nothing; but a newer user message without a cue that has not been answered yet is a turn
    /// of its own, which gets `ok`.
    pub fn part(&self) -> Part {
        let users = || self.entries.iter().enumerate().rev();
        let cued = users().find_map(|(at, entry)| match entry {
            Entry::User(text) => newest_cue(text).map(|cue| (at, text, cue)),
            _ => None,
        });
        let newest = users().find_map(|(at, entry)| match entry {
            Entry::User(text) => Some((at, text.as_str())),
            _ => None,
        });
        if let Some((at, text, from_cue)) = cued {
            let cue = Cue::find(from_cue).ok().flatten();
            let mut responses = cue::responses(from_cue);
            let mut state = if cue.is_some() { CueState::Found } else { CueState::Bad };
            if let Some(reason) = cue.as_ref().and_then(unplayable) {
                responses = vec![vec![say(&format!("cue error: {reason}"))]];
                state = CueState::Bad;
            }
            let index = self.answers_after(at);
            let unanswered = newest.filter(|(newest, _)| *newest > at && self.answers_after(*newest) == 0);
            if index < responses.len() || unanswered.is_none() {
                let mut steps = responses.into_iter().nth(index).unwrap_or_default();
                self.fill(&mut steps, at, text);
                return Part { steps, cue: state, index, text: text.to_owned() };
            }
        }
        let (at, text) = newest.unwrap_or((0, ""));
        let index = self.answers_after(at);
        let steps = if index == 0 { vec![say("ok")] } else { Vec::new() };
        Part { steps, cue: CueState::None, index, text: text.to_owned() }
    }

    /// Puts in what the calls since the entry `at` have returned, and what the user said. Texts for which that is too much stay
    /// as they are: a client may ask for it very often.
    fn fill(&self, steps: &mut [Step], at: usize, text: &str) {
        let chunks = steps.iter_mut().filter_map(|step| match step {
            Step::Say { say, .. } => Some(say),
            _ => None,
        });
        let chunks = chunks.flatten().map(|chunk| (cue::blanks(chunk), chunk));
        let mut chunks = chunks.filter(|(blanks, _)| *blanks != (0, 0)).peekable();
        if chunks.peek().is_none() {
            return;
        }
        let outputs = self.entries.iter().skip(at).filter_map(|entry| match entry {
            Entry::Results(outputs) => Some(outputs),
            _ => None,
        });
        let results = outputs.flatten().map(|output| output.text.as_str()).collect::<Vec<_>>().join("; ");
        let said = cue::without(text);
        let mut room = FILLED;
        for ((of_results, of_text), chunk) in chunks {
            let longer =
                of_results.saturating_mul(results.len()).saturating_add(of_text.saturating_mul(said.len()));
            if let Some(left) = room.checked_sub(longer) {
                room = left;
                *chunk = cue::fill(chunk, &results, &said);
            }
        }
    }

    fn answers_after(&self, at: usize) -> usize {
        let after = self.entries.get(at..).unwrap_or_default();
        let is_model = |entry: &Entry| matches!(entry, Entry::Model(_));
        let begins = after.windows(2).filter(|pair| !is_model(&pair[0]) && is_model(&pair[1])).count();
        begins + usize::from(after.first().is_some_and(is_model))
    }

    /// What providers refuse: a call without a result before the conversation goes on, or a result without its call.
    pub fn dangling(&self) -> Option<Dangling> {
        let mut open: Vec<&str> = Vec::new();
        let mut known: HashSet<&str> = HashSet::new();
        let mut before_was_model = false;
        for entry in &self.entries {
            match entry {
                Entry::Model(calls) => {
                    if !before_was_model && let Some(call) = open.first() {
                        return Some(Dangling::Call((*call).to_owned()));
                    }
                    open.extend(calls.iter().map(String::as_str));
                    known.extend(calls.iter().map(String::as_str));
                    before_was_model = true;
                }
                Entry::Results(results) => {
                    let unknown = results.iter().find(|result| !known.contains(result.call.as_str()));
                    if let Some(result) = unknown.filter(|_| !self.continued) {
                        return Some(Dangling::Result(result.call.clone()));
                    }
                    open.retain(|call| !results.iter().any(|result| result.call == *call));
                    before_was_model = false;
                }
                Entry::User(_) => before_was_model = false,
            }
        }
        open.first().map(|call| Dangling::Call((*call).to_owned()))
    }
}

/// A call or a result that stands alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dangling {
    /// A call of this id has no result.
    Call(String),
    /// There was no call with this result's id.
    Result(String),
}

/// A text from its last cue on: what a text repeats of earlier turns comes first.
pub(super) fn newest_cue(text: &str) -> Option<&str> {
    text.rfind(cue::OPEN).and_then(|from| text.get(from..))
}

fn say(text: &str) -> Step {
    Step::Say { say: vec![text.to_owned()], every_ms: None }
}

/// Why a cue that decodes cannot be played.
fn unplayable(cue: &Cue) -> Option<String> {
    cue.turn.iter().find_map(|step| match step {
        Step::Pause { pause_ms: ms }
        | Step::Say { every_ms: Some(ms), .. }
        | Step::Think { every_ms: Some(ms), .. }
            if *ms > LONGEST_PAUSE_MS =>
        {
            Some(format!("a pause of {ms} ms; the longest is {LONGEST_PAUSE_MS}"))
        }
        Step::Fail { fail } if !(400..600).contains(&fail.status) => {
            Some(format!("fail with status {}, which is not an error", fail.status))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::{Call, Fail};

    fn user(text: &str) -> Entry {
        Entry::User(text.to_owned())
    }

    fn called(ids: &[&str]) -> Entry {
        Entry::Model(ids.iter().map(ToString::to_string).collect())
    }

    fn results(ids: &[&str]) -> Entry {
        let output = |id: &&str| Output::new((*id).to_owned(), format!("of {id}"));
        Entry::Results(ids.iter().map(output).collect())
    }

    #[test]
    fn a_text_may_repeat_what_tools_returned_and_what_was_said() {
        let cue = Cue::new(vec![
            call("a"),
            call("b"),
            say("<<results>>."),
            call("c"),
            say("“<<text>>”: <<results>>"),
        ]);
        let mut entries =
            vec![results(&["0"]), user(&format!("é and {} more", cue.encode())), called(&["1", "2"])];
        entries.extend([results(&["1", "2"]), user("a reminder")]);
        assert_eq!(part(&entries).steps, [say("of 1; of 2."), call("c")]);
        entries.extend([called(&["3"]), results(&["3"])]);
        assert_eq!(part(&entries).steps, [say("“é and  more”: of 1; of 2; of 3")]);
        let long = Output::new(String::new(), "é".repeat(OUTPUT));
        assert_eq!(long.text.len(), OUTPUT);
        let often = Step::Say {
            say: vec!["<<results>>".repeat(FILLED / OUTPUT + 1), "<<results>>".to_owned()],
            every_ms: None,
        };
        let cue = Cue::new(vec![call("a"), often]);
        let entries = [user(&cue.encode()), called(&[""]), Entry::Results(vec![long.clone()])];
        let steps = part(&entries).steps;
        let [Step::Say { say, .. }] = &steps[..] else { panic!("{steps:?}") };
        assert!(say[0].starts_with("<<results>>") && say[1] == long.text, "the first would be too long");
    }

    fn part(entries: &[Entry]) -> Part {
        Conversation { entries: entries.to_vec(), continued: false }.part()
    }

    fn call(name: &str) -> Step {
        Step::Call { call: Call { name: name.into(), args: serde_json::Map::new() } }
    }

    #[test]
    fn counts_answers_since_the_newest_cue() {
        let old = Cue::new(vec![say("old")]).encode();
        let new = Cue::new(vec![call("a"), say("b"), call("c"), call("d"), say("e")]).encode();
        let mut entries = vec![user(&format!("x {old}")), called(&[]), user(&format!("{old} then {new} y"))];
        assert_eq!(part(&entries).steps, [call("a")]);
        entries.extend([called(&["1"]), results(&["1"])]);
        assert_eq!(part(&entries).steps, [say("b"), call("c"), call("d")]);
        // One answer in three messages, and a note that the server puts in by itself.
        entries.extend([
            called(&[]),
            called(&["2"]),
            called(&["3"]),
            results(&["2", "3"]),
            user("a reminder"),
        ]);
        assert_eq!((part(&entries).steps, part(&entries).index), (vec![say("e")], 2));
        entries.push(called(&[]));
        assert_eq!(part(&entries).steps, []);
        entries.push(user("and now?"));
        assert_eq!((part(&entries).steps, part(&entries).cue), (vec![say("ok")], CueState::None));
        entries.push(called(&[]));
        assert_eq!(part(&entries).steps, []);
    }

    #[test]
    fn plain_text_gets_ok_and_bad_cues_their_error() {
        assert_eq!(part(&[user("hello")]).steps, [say("ok")]);
        assert_eq!(part(&[]).steps, [say("ok")]);
        assert_eq!(part(&[user("hello"), called(&[])]).steps, []);
        let text = |part: Part| match &part.steps[..] {
            [Step::Say { say, .. }] if part.cue == CueState::Bad => say.concat(),
            other => panic!("{other:?}"),
        };
        assert!(text(part(&[user("[[cue:%%]]")])).starts_with("cue error: "));
        let long = Cue::new(vec![Step::Pause { pause_ms: 600_001 }]).encode();
        assert_eq!(text(part(&[user(&long)])), "cue error: a pause of 600001 ms; the longest is 600000");
        let fail = Step::Fail { fail: Fail { status: 200, ..Fail::default() } };
        assert_eq!(
            text(part(&[user(&Cue::new(vec![fail]).encode())])),
            "cue error: fail with status 200, which is not an error"
        );
    }

    #[test]
    fn finds_calls_and_results_that_stand_alone() {
        let dangling =
            |entries: &[Entry]| Conversation { entries: entries.to_vec(), continued: false }.dangling();
        assert_eq!(dangling(&[user("u"), called(&["a", "b"]), results(&["a"]), results(&["b"])]), None);
        assert_eq!(dangling(&[called(&["a"]), called(&["b"]), results(&["b", "a"]), called(&[])]), None);
        assert_eq!(
            dangling(&[called(&["a", "b"]), results(&["a"]), user("go on")]),
            Some(Dangling::Call("b".into()))
        );
        assert_eq!(
            dangling(&[called(&["a"]), user("go on"), called(&[]), results(&["a"])]),
            Some(Dangling::Call("a".into()))
        );
        assert_eq!(dangling(&[user("u"), results(&["x"])]), Some(Dangling::Result("x".into())));
        let continued = Conversation { entries: vec![results(&["x"])], continued: true };
        assert_eq!(continued.dangling(), None);
    }
}
