//! Texts that come in pieces.

use std::collections::VecDeque;

use serde_json::Value;

use super::history::same;
use super::keys::Keys;
use super::{Compile, Finding, Item, Items, whole};
use crate::protocol::is_subset;
use crate::protocol::rules as rule;

pub(super) fn concatenation(rule: &rule::Concatenation, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (piece, whole) = (c.place(&rule.piece), c.place(&rule.whole));
    let side = |begins| Keys::optional(rule.key.as_ref(), c, items, |_| begins);
    let (of_piece, of_whole) = (side(true), side(false));
    let whole_of = |item: &Item| {
        let text = item.text(&whole.1).filter(|_| item.is(&whole.0))?.to_owned();
        Some((of_whole.of(item), text))
    };
    let piece_of = |item: &Item| {
        let text = item.text(&piece.1).filter(|_| item.is(&piece.0))?.to_owned();
        Some((of_piece.of(item), text))
    };
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some((own, text)) = whole_of(item) else { continue };
        let since = items
            .before_on_conn(index)
            .find(|(_, other)| whole_of(other).is_some_and(|(key, _)| key == own))
            .map_or(0, |(at, _)| at + 1);
        let pieces_of = |items: &[Item]| -> Vec<(usize, String)> {
            let pieces = items.iter().filter_map(|other| Some((other, piece_of(other)?)));
            pieces.filter(|(_, (key, _))| *key == own).map(|(other, (_, text))| (other.index, text)).collect()
        };
        let pieces: Vec<(usize, String)> = pieces_of(&items.all[since..=index])
            .into_iter()
            .filter(|(at, _)| items.all[*at].conn == item.conn)
            .collect();
        let Some(first) = pieces.first().map(|(at, _)| &items.all[*at]) else { continue };
        let before = pieces_of(&items.all[..first.index]).into_iter().map(|(at, _)| &items.all[at]);
        let mut before = before.filter(|other| other.session == first.session).peekable();
        let unknown = first.unwatched || (first.late && before.peek().is_none());
        let joined_late = unknown || before.any(|other| other.opened <= item.conn);
        let joined: String = pieces.into_iter().map(|(_, text)| text).collect();
        let parts = |text: &str| -> Vec<String> {
            text.split('\n').map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        let unlike = match rule.loose {
            true => {
                let within = |some: &str, other: &str| parts(some).iter().all(|line| !other.contains(line));
                !parts(&joined).is_empty() && within(&joined, &text) && within(&text, &joined)
            }
            false => joined != text,
        };
        if unlike && !(joined_late && text.ends_with(&joined)) {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}

pub(super) fn increments(rule: &rule::Increments, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    let keys = Keys::new(&rule.key, c, items, |_| false);
    let piece =
        |item: &Item| Some((keys.of(item)?, item.text(&rule.at).filter(|_| item.is(&on))?.to_owned()));
    let mut found = Vec::new();
    for (index, item) in items.iter() {
        let Some((own, _)) = piece(item) else { continue };
        let of_own =
            |other: &&Item| other.conn == item.conn && piece(other).is_some_and(|(key, _)| key == own);
        // The last piece speaks for the text.
        if items.all[index + 1..].iter().any(|other| of_own(&other)) {
            continue;
        }
        let texts = items.all.iter().filter(of_own).filter_map(|other| Some(piece(other)?.1));
        // Leading empty pieces tell nothing.
        let begun: Vec<String> = texts.skip_while(String::is_empty).collect();
        let repeats =
            begun.windows(2).all(|pair| pair[1].len() > pair[0].len() && pair[1].starts_with(&pair[0]));
        // Two repetitions, of eight bytes at least.
        if repeats && begun.len() >= 3 && begun[begun.len() - 2].len() >= 8 {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}

/// A piece of a value.
#[derive(Clone)]
struct Piece {
    event: u64,
    part: u64,
    total: u64,
    text: String,
    same: Vec<Value>,
}

pub(super) fn series(rule: &rule::Series, c: &Compile<'_>, items: &Items, settled: bool) -> Vec<Finding> {
    let on = c.pattern(&rule.message);
    let keys = Keys::new(&rule.key, c, items, |_| false);
    let piece = |item: &Item| {
        let number = |at| item.get(at).and_then(whole).and_then(|whole| u64::try_from(whole).ok());
        let same = rule.same.iter().map(|at| item.get(at).cloned().unwrap_or_default()).collect();
        let (part, total) = (number(&rule.part)?, number(&rule.total)?);
        let text = item.text(&rule.text).filter(|_| item.is(&on))?.to_owned();
        Some((keys.of(item)?, Piece { event: item.event, part, total, text, same }))
    };
    let mut found = Vec::new();
    let mut done: Vec<(usize, String)> = Vec::new();
    for item in &items.all {
        let Some((key, _)) = piece(item) else { continue };
        if done.contains(&(item.conn, key.clone())) {
            continue;
        }
        done.push((item.conn, key.clone()));
        let all = items.all.iter().filter(|other| other.conn == item.conn).filter_map(piece);
        let pieces: Vec<Piece> = all.filter(|(other, _)| *other == key).map(|(_, piece)| piece).collect();
        values(rule, &pieces, settled && items.is_open(item.conn), &mut found);
    }
    found
}

/// The pieces of one key, value after value.
fn values(rule: &rule::Series, pieces: &[Piece], to_the_end: bool, found: &mut Vec<Finding>) {
    let mut begin = 0;
    for end in 0..pieces.len() {
        let (group, newest) = (&pieces[begin..=end], &pieces[end]);
        let (first, before) = (&pieces[begin], &pieces[begin..end]);
        let has = |part: u64| group.iter().any(|piece| piece.part == part);
        let twice = before.iter().any(|piece| piece.part == newest.part);
        let belongs = newest.same.iter().zip(&first.same).all(|(new, first)| same(new, first));
        if !belongs || newest.part > first.total || twice || (has(0) && has(first.total)) {
            found.push((Some(newest.event), rule.complete.clone()));
            // Of what is broken nothing more can be said, to the end of the connection.
            return;
        }
        if group.len() as u64 == first.total {
            let mut sorted = group.to_vec();
            sorted.sort_by_key(|piece| piece.part);
            let text: String = sorted.into_iter().map(|piece| piece.text).collect();
            if serde_json::from_str::<Value>(&text).is_err() {
                found.push((Some(newest.event), rule.json.clone()));
            }
            begin = end + 1;
        }
    }
    if to_the_end && begin < pieces.len() {
        found.push((Some(pieces[begin].event), rule.complete.clone()));
    }
}

pub(super) fn dialogue(rule: &rule::Dialogue, c: &Compile<'_>, items: &Items) -> Vec<Finding> {
    let (history, question, piece) = (c.place(&rule.history), c.place(&rule.question), c.place(&rule.piece));
    let over = c.pattern(&rule.over);
    let unsure: Vec<_> = rule.unsure.iter().map(|pattern| c.pattern(pattern)).collect();
    let request = rule.request.as_ref().map(|pattern| c.pattern(pattern));
    let requests = |item: &Item| request.as_ref().is_some_and(|pattern| item.is(pattern));
    let asks = |item: &Item| item.text(&question.1).filter(|_| item.is(&question.0)).map(str::to_owned);
    let says = |item: &Item| item.text(&piece.1).filter(|_| item.is(&piece.0)).map(str::to_owned);
    let mut found = Vec::new();
    for (index, item) in items.iter().filter(|(_, item)| item.is(&history.0)) {
        let Some(list) = item.get(&history.1).and_then(Value::as_array) else { continue };
        let on_conn: Vec<&Item> =
            items.all[..=index].iter().filter(|other| other.conn == item.conn).collect();
        let doubtful = |item: &Item| unsure.iter().any(|pattern| item.is(pattern));
        if doubtful(item) {
            continue;
        }
        let mut said: Vec<(String, String)> = Vec::new();
        // How many answers must end until it is known again what was said, where it is not.
        let mut doubt: Option<usize> = None;
        let mut open = false;
        // How it was whenever a history was asked for that has not come, where that is known.
        let mut asked: VecDeque<Option<(usize, bool)>> = VecDeque::new();
        for other in &on_conn[..on_conn.len() - 1] {
            let text = asks(other).filter(|_| !doubtful(other));
            let interrupts = text.is_some() && doubt.is_none() && open;
            if doubtful(other) || interrupts {
                doubt = if interrupts { Some(2) } else { doubt.or(Some(usize::from(open))) };
                open = false;
                said.clear();
                asked.iter_mut().for_each(|known| *known = None);
            } else if let Some(text) = text {
                match &mut doubt {
                    Some(questions) => *questions += 1,
                    None => {
                        open = true;
                        said.push((text, String::new()));
                    }
                }
            } else if let (Some(text), false) = (says(other), said.is_empty()) {
                said.iter_mut().last().into_iter().for_each(|(_, answer)| answer.push_str(&text));
            } else if other.is(&over) {
                open = false;
                doubt =
                    doubt.filter(|questions| *questions != 1).map(|questions| questions.saturating_sub(1));
            } else if requests(other) {
                asked.push_back(doubt.is_none().then_some((said.len(), open)));
            } else if other.is(&history.0) {
                asked.pop_front();
            }
        }
        // What is a question, a piece, an end or a request itself is taken as that.
        let other_part = asks(item).is_some()
            || (says(item).is_some() && !said.is_empty())
            || item.is(&over)
            || requests(item);
        let known = asked.pop_front().unwrap_or(doubt.is_none().then_some((said.len(), open)));
        let Some((before, was_open)) = known else { continue };
        let shown = shown(rule, list);
        // It is that of some time between the request and now.
        let at_first = || is_shown(&said[..before], was_open, &shown);
        let later = || (before + 1..=said.len()).any(|count| is_shown(&said[..count], true, &shown));
        let ended = || {
            let count = said.len() - usize::from(open);
            (before..=count).any(|count| is_shown(&said[..count], false, &shown))
        };
        let agrees = at_first() || later() || ended();
        if !other_part && before > 0 && !agrees {
            found.push((Some(item.event), rule.decides.clone()));
        }
    }
    found
}

fn shown(rule: &rule::Dialogue, list: &[Value]) -> Vec<(String, String)> {
    let text =
        |element: &Value| rule.text.get(element).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_question = |element: &&Value| is_subset(&rule.asked, element);
    let begins = list.iter().enumerate().filter(|(_, element)| is_question(element)).map(|(at, _)| at);
    begins
        .map(|at| {
            let rest = list[at + 1..].iter().take_while(|element| !is_question(element));
            let answer: String =
                rest.filter(|element| is_subset(&rule.answered, element)).map(text).collect();
            (text(&list[at]), answer)
        })
        .collect()
}

/// Whether a shown history ends with what was said; a last answer that is not over may be there in part or not at all.
fn is_shown(said: &[(String, String)], open: bool, shown: &[(String, String)]) -> bool {
    let Some(((question, answer), finished)) = said.split_last().filter(|_| open) else {
        return shown.ends_with(said);
    };
    let in_part = shown.split_last().is_some_and(|((asked, part), before)| {
        asked == question
            && (answer.starts_with(part.as_str()) || part.starts_with(answer))
            && before.ends_with(finished)
    });
    let names_it = shown.last().is_some_and(|(asked, _)| asked == question);
    in_part || (shown.ends_with(finished) && (!names_it || !finished.is_empty()))
}
