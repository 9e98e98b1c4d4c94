//! A list of items, and the events that each showed one: how they are compared without keeping them.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde_json::Value;

use crate::check::hashing::{Volatile, content_hash};
use crate::check::monitor::Observation;
use crate::frame::Pointer;

/// Longest list of items that is remembered; of a longer one the end is compared.
pub(super) const MAX_ITEMS: usize = 4096;

/// How the items of a list are compared with their events.
#[derive(Clone)]
pub(super) struct ItemComparison {
    /// What need not be the same, and what is joined.
    apart: Volatile,
    join: Option<Pointer>,
}

/// The items that events have shown, the newest last.
#[derive(Clone, Default)]
pub(super) struct Items(VecDeque<Item>);

#[derive(Clone)]
struct Item {
    /// Of what must be the same.
    hash: u64,
    /// Of what is joined.
    text: Option<TextHash>,
    event: u64,
}

/// The hash of a text: that of two texts in a row follows from theirs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct TextHash {
    sum: u64,
    bytes: usize,
}

impl TextHash {
    /// Odd, so that every byte counts.
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

    fn followed_by(self, text: &str) -> Self {
        let step = |sum: u64, byte: &u8| sum.wrapping_mul(Self::BASE).wrapping_add(u64::from(*byte) + 1);
        Self { sum: text.as_bytes().iter().fold(self.sum, step), bytes: self.bytes + text.len() }
    }

    fn ends(self, text: &str) -> bool {
        let end = text.len().checked_sub(self.bytes).and_then(|start| text.get(start..));
        end.is_some_and(|end| self == Self::default().followed_by(end))
    }
}

impl ItemComparison {
    pub fn new(drop: &[Pointer], join: Option<&Pointer>) -> Self {
        let apart: Vec<Pointer> = drop.iter().chain(join).cloned().collect();
        Self { apart: Volatile::new(&apart), join: join.cloned() }
    }

    fn text<'v>(&self, item: &'v Value) -> Option<&'v str> {
        self.join.as_ref()?.get(item)?.as_str()
    }
}

impl Items {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// An event shows one more.
    pub fn push(&mut self, comparison: &mut ItemComparison, seen: &Observation<'_>) {
        let hash = comparison.apart.hash_without(seen.history.fields(), seen.body);
        let text = comparison.text(seen.body);
        if let (Some(text), Some(last)) = (text, self.0.back_mut())
            && last.hash == hash
            && let Some(before) = last.text
        {
            last.text = Some(before.followed_by(text));
            last.event = seen.event;
            return;
        }
        self.0.push_back(Item {
            hash,
            text: text.map(|text| TextHash::default().followed_by(text)),
            event: seen.event,
        });
        if self.0.len() > MAX_ITEMS {
            self.0.pop_front();
        }
    }

    /// Where a shown list that should end with these items does not: the index of the wrong one, or none for a list that is too
    /// short, and the event that showed the item. Of a text that others than the first may have begun the end is enough.
    pub fn mismatch(&self, list: &[Value], comparison: &ItemComparison) -> Option<(Option<usize>, u64)> {
        // Where nothing is joined each event has shown an item, and what is before those need not be looked at.
        let from = if comparison.join.is_none() { list.len().saturating_sub(self.0.len()) } else { 0 };
        let shown = shown(list, from, comparison);
        let Some(before) = shown.len().checked_sub(self.0.len()) else {
            return self.0.get(shown.len()).map(|item| (None, item.event));
        };
        let wrong = shown[before..].iter().zip(&self.0).enumerate().find(|(at, (shown, item))| {
            let alike = match (&shown.text, item.text) {
                (Some(text), Some(end)) if *at == 0 => end.ends(text),
                (Some(text), Some(whole)) => whole == TextHash::default().followed_by(text),
                (text, item) => text.is_none() == item.is_none(),
            };
            shown.hash != item.hash || !alike
        });
        wrong.map(|(_, (shown, item))| (Some(shown.at), item.event))
    }
}

/// An item of a list, with its neighbours that belong to it.
struct Shown<'l> {
    at: usize,
    hash: u64,
    text: Option<Cow<'l, str>>,
}

/// The items from an index on.
fn shown<'l>(list: &'l [Value], from: usize, comparison: &ItemComparison) -> Vec<Shown<'l>> {
    let mut shown: Vec<Shown<'_>> = Vec::with_capacity(list.len() - from);
    for (at, item) in list.iter().enumerate().skip(from) {
        let hash = content_hash(item, &comparison.apart.keys);
        let text = comparison.text(item);
        match (text, shown.last_mut()) {
            (Some(text), Some(Shown { hash: last, text: Some(before), .. })) if *last == hash => {
                before.to_mut().push_str(text);
            }
            _ => shown.push(Shown { at, hash, text: text.map(Cow::Borrowed) }),
        }
    }
    shown
}
