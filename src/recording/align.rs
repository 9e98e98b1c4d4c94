//! What belongs together in two streams.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use similar::DiffOp;
use similar::algorithms::{Capture, Replace, myers};

use super::entry::{Entry, Stream};

/// A frame of the first stream and one of the second, by their numbers: one of them may be missing.
pub(super) type Pair = (Option<usize>, Option<usize>);

/// Pairs two streams, in order: what is the same but for ids and times, and between that what has the same type.
pub(super) fn pairs(before: &Stream, after: &Stream) -> Vec<Pair> {
    let mut numbers = HashMap::new();
    let whole = |said: &Entry| (said.way, said.kind.clone(), said.skeleton.clone());
    let one = numbered(before, &mut numbers, whole);
    let other = numbered(after, &mut numbers, whole);
    let mut numbers = HashMap::new();
    let kind = |said: &Entry| (said.way, said.kind.clone());
    let kinds = (numbered(before, &mut numbers, kind), numbered(after, &mut numbers, kind));
    let mut found = Vec::new();
    for op in ops(&one, &other) {
        match op {
            DiffOp::Equal { .. } => found.extend(both(op.old_range(), op.new_range())),
            _ => {
                let (old, new) = (op.old_range(), op.new_range());
                for inner in ops(&kinds.0[old.clone()], &kinds.1[new.clone()]) {
                    let shift = |range: Range<usize>, by: usize| range.start + by..range.end + by;
                    let (old, new) =
                        (shift(inner.old_range(), old.start), shift(inner.new_range(), new.start));
                    match inner {
                        DiffOp::Equal { .. } => found.extend(both(old, new)),
                        _ => {
                            found.extend(old.map(|at| (Some(at), None)));
                            found.extend(new.map(|at| (None, Some(at))));
                        }
                    }
                }
            }
        }
    }
    found
}

fn both(old: Range<usize>, new: Range<usize>) -> impl Iterator<Item = Pair> {
    old.zip(new).map(|(old, new)| (Some(old), Some(new)))
}

/// A number for each frame: the same for what is the same.
fn numbered<K: std::hash::Hash + Eq>(
    stream: &Stream,
    numbers: &mut HashMap<K, usize>,
    of: impl Fn(&Entry) -> K,
) -> Vec<usize> {
    let number = |said: &Arc<Entry>| {
        let next = numbers.len();
        *numbers.entry(of(said)).or_insert(next)
    };
    stream.iter().map(number).collect()
}

fn ops(old: &[usize], new: &[usize]) -> Vec<DiffOp> {
    let mut found = Replace::new(Capture::new());
    let Ok(()) = myers::diff_deadline_raw(&mut found, old, 0..old.len(), new, 0..new.len(), None);
    found.into_inner().into_ops()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::event::Way;
    use serde_json::Value;
    use std::time::Duration;

    /// A stream of messages, written `type text`.
    fn stream(words: &[&str]) -> Stream {
        let said = |word: &&str| {
            Arc::new(Entry {
                at: Duration::ZERO,
                way: Way::ToClient,
                kind: word.split(' ').next().unwrap_or_default().to_owned(),
                body: Value::Null,
                pieces: 1,
                connection: 0,
                skeleton: (*word).to_owned(),
            })
        };
        words.iter().map(said).collect()
    }

    #[test]
    fn what_is_the_same_is_paired_before_what_is_alike() {
        let found = pairs(&stream(&["a 1", "b 1", "b 2", "c"]), &stream(&["a 2", "b 2", "c", "d"]));
        let expected =
            [(Some(0), Some(0)), (Some(1), None), (Some(2), Some(1)), (Some(3), Some(2)), (None, Some(3))];
        assert_eq!(found, expected);
        assert_eq!(pairs(&stream(&[]), &stream(&["a"])), [(None, Some(0))]);
    }
}
