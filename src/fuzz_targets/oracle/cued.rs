//! What a turn says.

use super::keys::Keys;
use super::{Compile, Finding, Item, Items};
use crate::cue;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;

struct Cued<'i> {
    items: &'i Items,
    late: bool,
    anywhere: bool,
    each_response: bool,
    prompt: (Matcher, Pointer),
    piece: (Matcher, Pointer),
    over: Matcher,
    unsure: Vec<Matcher>,
    begins: Keys,
    follows: Keys,
}

/// What has become of a turn.
struct Turn {
    /// What is still to come; none: nobody knows.
    rest: Option<String>,
    doubted: bool,
    /// Where it broke the rule.
    broken: Option<u64>,
    /// The messages that end it, on any connection.
    ends: Vec<usize>,
}

impl Cued<'_> {
    fn prompt(&self, item: &Item) -> Option<String> {
        item.text(&self.prompt.1).filter(|_| item.is(&self.prompt.0)).map(str::to_owned)
    }

    fn same_session(&self, one: usize, other: usize) -> bool {
        self.anywhere || self.items.all[one].session == self.items.all[other].session
    }

    /// Whether what follows has the key of a prompt.
    fn is_of(&self, prompt: usize, other: usize) -> bool {
        let key = self.begins.of(&self.items.all[prompt]);
        self.same_session(prompt, other) && self.follows.of(&self.items.all[other]) == key
    }

    fn prompt_before(&self, prompt: usize) -> Option<usize> {
        let key = self.begins.of(&self.items.all[prompt]);
        (0..prompt).rev().find(|other| {
            let item = &self.items.all[*other];
            self.same_session(prompt, *other) && self.prompt(item).is_some() && self.begins.of(item) == key
        })
    }

    fn prompt_after(&self, prompt: usize) -> usize {
        let after = (prompt + 1..self.items.all.len()).find(|other| {
            self.prompt(&self.items.all[*other]).is_some() && self.prompt_before(*other) == Some(prompt)
        });
        after.unwrap_or(self.items.all.len())
    }

    /// Whether a turn with these ends is over for whoever sends the next prompt.
    fn is_over(&self, ends: &[usize], prompt: usize, next: usize) -> bool {
        let conn = |at: usize| self.items.all[at].conn;
        let of_asker = ends.iter().find(|at| conn(**at) == conn(prompt));
        ends.iter().any(|at| conn(*at) == conn(next))
            || of_asker.is_some_and(|at| self.items.all[*at].opened <= conn(next))
    }

    fn turn(&self, prompt: usize) -> Turn {
        let next = self.prompt_after(prompt);
        let asker = self.items.all[prompt].conn;
        let (mut clear, mut is_clean) = (true, true);
        if let Some(before) = self.prompt_before(prompt) {
            let turn = self.turn(before);
            is_clean = !self.late || turn.rest.is_some_and(|rest| rest.is_empty());
            clear = (is_clean || turn.doubted) && self.is_over(&turn.ends, before, prompt);
            is_clean &= !turn.doubted;
        }
        let text = self.prompt(&self.items.all[prompt]).unwrap_or_default();
        let script = if clear { cue::script(&text) } else { None };
        let ends = script.as_ref().is_some_and(|script| script.ends);
        let whole = script.as_ref().map(|script| script.text.clone());
        let mut turn = Turn { rest: whole.clone(), doubted: false, broken: None, ends: Vec::new() };
        let mut is_over = false;
        // The prompt itself may be a piece or an end; a prompt that casts doubt does so on the turn before.
        for at in prompt..=next.min(self.items.all.len() - 1) {
            let item = &self.items.all[at];
            let casts_doubt = self.unsure.iter().any(|pattern| item.is(pattern));
            turn.doubted |= at > prompt && casts_doubt && self.same_session(prompt, at);
            if at == next {
                break;
            }
            if !self.is_of(prompt, at) {
                continue;
            }
            let is_asker = item.conn == asker;
            if is_asker && item.is(&self.piece.0) && item.text(&self.piece.1).is_none() {
                turn.rest = None;
            }
            let judged = is_asker && !turn.doubted && (self.late || !is_over);
            if let (true, Some(rest), Some(piece)) =
                (judged, &turn.rest, item.text(&self.piece.1).filter(|_| item.is(&self.piece.0)))
            {
                let begun = turn.rest != whole;
                turn.rest = match rest.strip_prefix(piece) {
                    Some(rest) => Some(rest.to_owned()),
                    None => {
                        let ends_as_it_begins =
                            (1..=rest.len()).filter_map(|length| rest.get(..length)).any(|start| {
                                start.chars().count() > 1
                                    && piece.len() > start.len()
                                    && piece.ends_with(start)
                            });
                        let lossy: String = rest
                            .chars()
                            .zip(piece.chars())
                            .map(|(whole, one)| if "?\u{fffd}".contains(one) { one } else { whole })
                            .collect();
                        let is_related = rest.contains(piece) || ends_as_it_begins || lossy == piece;
                        if begun || (is_clean && is_related) {
                            turn.broken = Some(item.event);
                        }
                        None
                    }
                };
            }
            let calls = turn
                .rest
                .as_ref()
                .zip(script.as_ref())
                .is_some_and(|(rest, script)| script.calls_at(script.text.len() - rest.len()));
            if !item.is(&self.over) || (self.each_response && calls) {
                continue;
            }
            turn.ends.push(at);
            if is_asker && !is_over {
                is_over = true;
                let begun = turn.rest != whole;
                let is_short = turn.rest.as_ref().is_some_and(|rest| !rest.is_empty());
                if begun && !calls && is_short && ends && !self.late && !turn.doubted {
                    turn.broken = Some(item.event);
                    turn.rest = None;
                }
            }
        }
        turn
    }
}

pub(super) fn cued(rule: &rule::Cued, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let side = |begins| Keys::optional(rule.key.as_ref(), c, items, |_| begins);
    let cued = Cued {
        items,
        late: rule.late,
        anywhere: rule.anywhere,
        each_response: rule.each_response,
        prompt: c.place(&rule.prompt),
        piece: c.place(&rule.piece),
        over: c.pattern(&rule.over),
        unsure: rule.unsure.iter().map(|pattern| c.pattern(pattern)).collect(),
        begins: side(true),
        follows: side(false),
    };
    let prompts = items.iter().filter(|(_, item)| cued.prompt(item).is_some());
    let mut broken: Vec<u64> = prompts.filter_map(|(index, _)| cued.turn(index).broken).collect();
    broken.sort_unstable();
    broken.into_iter().map(|event| (Some(event), rule.decides.clone())).collect()
}
