//! How often a message comes between two others.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;

use super::key::{Keys, Part};
use super::{End, Monitor, MonitorBuilder, Observation, Pace};
use crate::check::Violation;
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of the stretches, by connection and key, and which connections are exempt. A stretch that is forgotten is not judged.
#[derive(Clone)]
pub(super) struct Existence {
    bounds: Bounds,
    of: Matcher,
    from: Matcher,
    to: Matcher,
    with: Option<Matcher>,
    without: Option<Matcher>,
    unless: Option<Matcher>,
    keys: Keys,
    stretches: BoundedMap<Stretch>,
    /// Connections that `unless` came on.
    exempt: FxHashSet<Conn>,
}

/// What a stretch is judged by.
#[derive(Clone)]
struct Bounds {
    check: Check,
    within: Option<Duration>,
    rule: Arc<rule::Existence>,
}

#[derive(Clone, Default)]
struct Stretch {
    began: u64,
    ended: Option<u64>,
    since: Duration,
    /// How many there are, if what may have been late counts.
    count: u32,
    /// How many came in time for sure.
    sure: u32,
    with: bool,
    without: bool,
    /// It has been reported: nothing more is.
    judged: bool,
}

/// What a message means for a stretch.
struct Seen {
    event: u64,
    at: Duration,
    pace: Pace,
    of: bool,
    to: bool,
    with: bool,
    without: bool,
}

impl Stretch {
    fn take(&mut self, seen: &Seen, bounds: &Bounds, tally: &mut Tally) {
        if seen.of {
            let (longest, shortest) =
                bounds.within.map_or((Duration::MAX, Duration::MAX), |time| seen.pace.late_after(time));
            let passed = seen.at.saturating_sub(self.since);
            self.count = self.count.saturating_add(u32::from(passed <= longest));
            self.sure = self.sure.saturating_add(u32::from(passed <= shortest));
        }
        self.with |= seen.with;
        self.without |= seen.without;
        if seen.to {
            self.ended = Some(seen.event);
        }
        if bounds.is_over(self) {
            bounds.judge(self, tally);
            self.judged = true;
        }
    }
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
            bounds: Bounds {
                check: b.check.clone(),
                within: b.time(rule.within.as_ref())?,
                rule: Arc::new(rule.clone()),
            },
            keys: Keys::new(rule.key.as_ref(), b)?,
            stretches: BoundedMap::default(),
            exempt: FxHashSet::default(),
        })
    }
}

impl Bounds {
    /// Whether it is a stretch that the rule is about and more came than may come: nothing can mend that.
    fn is_over(&self, stretch: &Stretch) -> bool {
        self.concerns(stretch) && self.rule.max.is_some_and(|most| stretch.sure > most)
    }

    fn concerns(&self, stretch: &Stretch) -> bool {
        let with = self.rule.with.is_none() || stretch.with;
        stretch.ended.is_some() && with && !stretch.without && !stretch.judged
    }

    /// Judges a stretch to which nothing is added any more, or one that is over its bound.
    fn judge(&self, stretch: &Stretch, tally: &mut Tally) {
        let Some(ended) = stretch.ended.filter(|_| self.concerns(stretch)) else { return };
        tally.exercise(&self.rule.decides);
        let over = self.is_over(stretch);
        let count = if over { stretch.sure } else { stretch.count };
        if over || count < self.rule.min {
            let wanted = match (self.rule.min, self.rule.max) {
                (min, Some(max)) if min == max => format!("{min}"),
                (0, Some(max)) => format!("at most {max}"),
                (min, None) => format!("at least {min}"),
                (min, Some(max)) => format!("{min} to {max}"),
            };
            let time = self.within.map(|time| format!(" within {time:?}")).unwrap_or_default();
            let message = format!("it came {count} times{time} between two events that allow {wanted}");
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
        let from = seen.is(&self.from);
        let key = self.keys.of(seen, Part::begins(from));
        let (place, key) = (seen.conn.0, key.as_deref());
        // Of which stretch it is, nobody can tell.
        let nameless = key.is_none() && self.keys.are_distinguished();
        if from && !nameless && !self.exempt.contains(&seen.conn) {
            let next = Stretch { began: seen.event, since: seen.at, ..Stretch::default() };
            if let Some(last) = self.stretches.insert(place, key, next, 0) {
                self.bounds.judge(&last, tally);
            }
        }
        let seen = Seen {
            event: seen.event,
            at: seen.at,
            pace: seen.pace,
            of: seen.is(&self.of) && !nameless,
            to: seen.is(&self.to),
            with: seen.is_any(self.with.as_ref()),
            without: seen.is_any(self.without.as_ref()),
        };
        if nameless {
            self.stretches.each(place).for_each(|stretch| stretch.take(&seen, &self.bounds, tally));
        } else if let Some(stretch) = self.stretches.get(place, key) {
            stretch.take(&seen, &self.bounds, tally);
        }
    }

    fn closed(&mut self, conn: Conn, tally: &mut Tally) {
        self.exempt.remove(&conn);
        self.keys.closed(conn);
        // What lacks may have been under way, for it may come shortly after the end.
        let stretches = self.stretches.take(conn.0).map(|(_, stretch)| stretch);
        for stretch in stretches.filter(|stretch| stretch.count >= self.bounds.rule.min) {
            self.bounds.judge(&stretch, tally);
        }
    }

    fn is_owed(&self, end: &End<'_>) -> bool {
        let lacks = |stretch: &Stretch| self.bounds.concerns(stretch) && stretch.count < self.bounds.rule.min;
        self.bounds.within.is_none()
            && self.stretches.iter().any(|(.., stretch)| end.owes(stretch.began) && lacks(stretch))
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        for (.., stretch) in self.stretches.iter() {
            if (end.settled && end.owes(stretch.began)) || stretch.count >= self.bounds.rule.min {
                self.bounds.judge(stretch, tally);
            }
        }
    }

    fn memory(&self) -> Memory {
        self.stretches.memory() + self.keys.memory()
    }
}
