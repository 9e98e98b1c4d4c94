//! How often a message comes between two others.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: one stretch a connection, and which of them are exempt.
#[derive(Clone)]
pub(super) struct Existence {
    bounds: Bounds,
    of: Matcher,
    from: Matcher,
    to: Matcher,
    with: Option<Matcher>,
    without: Option<Matcher>,
    unless: Option<Matcher>,
    stretches: FxHashMap<Conn, Stretch>,
    /// Connections that `unless` came on.
    exempt: FxHashSet<Conn>,
}

/// What a stretch is judged by.
#[derive(Clone)]
struct Bounds {
    check: Check,
    rule: Arc<rule::Existence>,
}

#[derive(Clone, Default)]
struct Stretch {
    began: u64,
    ended: Option<u64>,
    count: u32,
    with: bool,
    without: bool,
    /// It has been reported: nothing more is.
    judged: bool,
}

impl Existence {
    pub fn new(rule: &rule::Existence, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            of: b.pattern(&rule.of)?,
            from: b.pattern(&rule.from)?,
            to: b.pattern(&rule.to)?,
            with: b.optional(rule.with.as_ref())?,
            without: b.optional(rule.without.as_ref())?,
            unless: b.optional(rule.unless.as_ref())?,
            bounds: Bounds { check: b.check.clone(), rule: Arc::new(rule.clone()) },
            stretches: FxHashMap::default(),
            exempt: FxHashSet::default(),
        })
    }
}

impl Bounds {
    /// Whether it is a stretch that the rule is about and more came than may come: nothing can mend that.
    fn is_over(&self, stretch: &Stretch) -> bool {
        self.concerns(stretch) && self.rule.max.is_some_and(|most| stretch.count > most)
    }

    fn concerns(&self, stretch: &Stretch) -> bool {
        let with = self.rule.with.is_none() || stretch.with;
        stretch.ended.is_some() && with && !stretch.without && !stretch.judged
    }

    /// Judges a stretch to which nothing is added any more, or one that is over its bound.
    fn judge(&self, stretch: &Stretch, tally: &mut Tally) {
        let Some(ended) = stretch.ended.filter(|_| self.concerns(stretch)) else { return };
        tally.exercise(&self.rule.decides);
        let count = stretch.count;
        if count < self.rule.min || self.is_over(stretch) {
            let wanted = match (self.rule.min, self.rule.max) {
                (min, Some(max)) if min == max => format!("{min}"),
                (0, Some(max)) => format!("at most {max}"),
                (min, None) => format!("at least {min}"),
                (min, Some(max)) => format!("{min} to {max}"),
            };
            let message = format!("it came {count} times between two events that allow {wanted}");
            tally.push(Violation {
                event: Some(ended),
                related: Some(stretch.began),
                ..Violation::new(&self.check, &self.rule.decides, message)
            });
        }
    }
}

impl Monitor for Existence {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        if seen.is_any(self.unless.as_ref()) {
            self.exempt.insert(seen.conn);
        }
        if seen.is(&self.from) && !self.exempt.contains(&seen.conn) {
            let next = Stretch { began: seen.event, ..Stretch::default() };
            if let Some(last) = self.stretches.insert(seen.conn, next) {
                self.bounds.judge(&last, tally);
            }
        }
        let (of, to) = (seen.is(&self.of), seen.is(&self.to));
        let (with, without) = (seen.is_any(self.with.as_ref()), seen.is_any(self.without.as_ref()));
        let Some(stretch) = self.stretches.get_mut(&seen.conn) else { return };
        stretch.count = stretch.count.saturating_add(u32::from(of));
        stretch.with |= with;
        stretch.without |= without;
        if to {
            stretch.ended = Some(seen.event);
        }
        if self.bounds.is_over(stretch) {
            self.bounds.judge(stretch, tally);
            stretch.judged = true;
        }
    }

    fn closed(&mut self, conn: Conn, tally: &mut Tally) {
        self.exempt.remove(&conn);
        // What lacks may have been under way, for it may come shortly after the end.
        if let Some(stretch) =
            self.stretches.remove(&conn).filter(|stretch| stretch.count >= self.bounds.rule.min)
        {
            self.bounds.judge(&stretch, tally);
        }
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        for stretch in std::mem::take(&mut self.stretches).values() {
            if end.settled || stretch.count >= self.bounds.rule.min {
                self.bounds.judge(stretch, tally);
            }
        }
    }
}
