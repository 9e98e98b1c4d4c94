//! What a turn says is what the cue in its prompt has the model say.

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::cue::{self, Script};
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Connections of a session of which it is known that they saw a turn's end.
const CONNECTIONS: usize = 64;

/// Memory: a window of the newest turn for each key of each session, with all that it is to say.
#[derive(Clone)]
pub(super) struct Cued {
    check: Check,
    decides: Vec<String>,
    late: bool,
    anywhere: bool,
    each_response: bool,
    prompt: (Matcher, Pointer),
    piece: (Matcher, Pointer),
    over: Matcher,
    unsure: Vec<Matcher>,
    keys: Keys,
    turns: BoundedMap<Turn>,
    /// How often something came in a session after which its turns are not judged.
    doubts: BoundedMap<u64>,
}

/// A turn that was begun.
#[derive(Clone)]
struct Turn {
    asker: Conn,
    /// What it is to say; none: that is not known.
    script: Option<Script>,
    /// Nothing of the turn before can still come.
    is_clean: bool,
    /// How much of it has come, in bytes.
    said: usize,
    /// How many connections had been opened when its end came to the asker.
    ended: Option<u32>,
    /// Who has seen the end.
    over_on: Vec<Conn>,
    doubts: u64,
}

impl Turn {
    fn is_complete(&self) -> bool {
        self.script.as_ref().is_some_and(|script| self.said == script.text.len())
    }

    /// Whether a call follows what has come of its text.
    fn goes_on(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.calls_at(self.said))
    }

    /// Whether its end came to a connection, or before that was opened.
    fn is_over_for(&self, conn: Conn) -> bool {
        self.over_on.contains(&conn) || self.ended.is_some_and(|opened| opened <= conn.0)
    }
}

impl Cued {
    pub fn new(rule: &rule::Cued, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            decides: rule.decides.clone(),
            late: rule.late,
            anywhere: rule.anywhere,
            each_response: rule.each_response,
            prompt: b.place(&rule.prompt)?,
            piece: b.place(&rule.piece)?,
            over: b.pattern(&rule.over)?,
            unsure: rule.unsure.iter().map(|pattern| b.pattern(pattern)).collect::<Result<_, _>>()?,
            keys: Keys::new(rule.key.as_ref(), b)?,
            turns: BoundedMap::default(),
            doubts: BoundedMap::default(),
        })
    }

    /// What a turn belongs to, and how often doubt was cast on it.
    fn place(&mut self, seen: &Observation<'_>) -> (u32, u64) {
        let place = if self.anywhere { 0 } else { seen.session.id.0 };
        (place, self.doubts.get(place, None).copied().unwrap_or_default())
    }

    fn begin(&mut self, seen: &Observation<'_>, text: &str, key: Option<&str>) {
        let (place, doubts) = self.place(seen);
        let (clear, is_clean) = match self.turns.get(place, key) {
            None => (!self.turns.may_have_forgotten(place), true),
            // Where text may come behind the end, it is known to be whole, or not to come.
            Some(before) => {
                let is_doubted = before.doubts != doubts;
                let is_clean = !self.late || before.is_complete();
                ((is_clean || is_doubted) && before.is_over_for(seen.conn), is_clean && !is_doubted)
            }
        };
        let script = if clear { cue::script(text) } else { None };
        let bytes = script.as_ref().map_or(0, Script::bytes) + size_of::<Turn>();
        let turn =
            Turn { asker: seen.conn, script, is_clean, said: 0, ended: None, over_on: Vec::new(), doubts };
        self.turns.insert(place, key, turn, bytes);
    }

    /// A piece of text.
    fn say(&mut self, seen: &Observation<'_>, piece: &str, key: Option<&str>, tally: &mut Tally) {
        let ((place, doubts), late) = (self.place(seen), self.late);
        let Some(turn) = self.turns.get(place, key) else { return };
        let is_due = late || turn.ended.is_none();
        if turn.asker != seen.conn || turn.doubts != doubts || !is_due || piece.is_empty() {
            return;
        }
        let Some(script) = &turn.script else { return };
        let rest = script.text.get(turn.said..).unwrap_or_default();
        if rest.starts_with(piece) {
            turn.said += piece.len();
            tally.exercise(&self.decides);
            return;
        }
        // A model that says something else from the beginning was told something else.
        if turn.said > 0 || (turn.is_clean && is_related(piece, &script.text)) {
            let message = "the text is not what the model says".to_owned();
            if let Some(violation) = tally.broken(&self.check, &self.decides, seen.event, message) {
                violation.expected = Some(rest.into());
                violation.actual = Some(piece.into());
            }
        }
        turn.script = None;
    }

    /// A piece without a text, which breaks other rules: nobody knows what it would say.
    fn misspell(&mut self, seen: &Observation<'_>, key: Option<&str>) {
        let (place, _) = self.place(seen);
        if let Some(turn) = self.turns.get(place, key)
            && turn.asker == seen.conn
        {
            turn.script = None;
        }
    }

    fn end(&mut self, seen: &Observation<'_>, key: Option<&str>, tally: &mut Tally) {
        let ((place, doubts), late, each_response) = (self.place(seen), self.late, self.each_response);
        let Some(turn) = self.turns.get(place, key) else { return };
        let goes_on = turn.goes_on();
        if each_response && goes_on {
            return;
        }
        if turn.over_on.len() < CONNECTIONS && !turn.over_on.contains(&seen.conn) {
            turn.over_on.push(seen.conn);
        }
        if turn.asker != seen.conn || turn.ended.is_some() {
            return;
        }
        turn.ended = Some(seen.opened);
        // Where it ends before a call, or behind it, or in silence, other rules say what is missing.
        let begun = turn.script.as_ref().filter(|_| turn.said > 0 && !goes_on && turn.doubts == doubts);
        if let Some(script) = begun.filter(|script| !late && script.ends && turn.said < script.text.len()) {
            let message = "the turn has ended before all that the model says has come".to_owned();
            if let Some(violation) = tally.broken(&self.check, &self.decides, seen.event, message) {
                violation.expected = script.text.get(turn.said..).map(Into::into);
            }
            turn.script = None;
        }
    }
}

/// Whether a first piece is of a text all the same: its beginning is missing, something stands before it, or characters are lost.
fn is_related(piece: &str, text: &str) -> bool {
    // A letter alone proves nothing.
    let begins = |at: usize| {
        piece.get(at..).is_some_and(|rest| rest.chars().nth(1).is_some() && text.starts_with(rest))
    };
    text.contains(piece) || (1..piece.len()).any(begins) || has_lost_characters(piece, text)
}

/// Whether a piece is the beginning of a text but for characters that an encoding could not express.
fn has_lost_characters(piece: &str, text: &str) -> bool {
    let mut rest = text.chars();
    piece.chars().all(|one| rest.next().is_some_and(|other| one == other || matches!(one, '?' | '\u{fffd}')))
}

impl Monitor for Cued {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let (begins, follows) = (self.keys.of(seen, Part::Begins), self.keys.of(seen, Part::Follows));
        if self.unsure.iter().any(|pattern| seen.is(pattern)) {
            let (place, doubts) = self.place(seen);
            self.doubts.insert(place, None, doubts + 1, 0);
        }
        let text = |at: &Pointer| at.get(seen.body).and_then(serde_json::Value::as_str);
        if seen.is(&self.prompt.0)
            && let Some(text) = text(&self.prompt.1)
        {
            self.begin(seen, text, begins.as_deref());
        }
        if seen.is(&self.piece.0) {
            match text(&self.piece.1) {
                Some(piece) => self.say(seen, piece, follows.as_deref(), tally),
                None => self.misspell(seen, follows.as_deref()),
            }
        }
        if seen.is(&self.over) {
            self.end(seen, follows.as_deref(), tally);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
    }

    fn memory(&self) -> Memory {
        self.turns.memory() + self.doubts.memory() + self.keys.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::is_related;

    #[test]
    fn a_text_without_its_beginning_or_behind_another_is_known() {
        for (piece, related) in [
            ("two", true),
            ("beforeone", true),
            ("before on", true),
            ("ok", false),
            ("zero", false),
            ("éo", false),
            ("o\u{fffd}e", true),
            ("???", true),
            ("????????", false),
        ] {
            assert_eq!(is_related(piece, "one two"), related, "{piece}");
        }
    }
}
