//! A message comes as often as announced.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::{Monitor, MonitorBuilder, Observation};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::counter_as;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// What a busy machine may add to a gap: servers on two cores with a load of ten were seen to stall for half a second.
const SLACK: Duration = Duration::from_millis(900);

/// Memory: one time a connection.
#[derive(Clone)]
pub(super) struct Cadence {
    check: Check,
    rule: Arc<rule::Cadence>,
    on: Matcher,
    last: FxHashMap<Conn, (Duration, u64)>,
}

impl Cadence {
    pub fn new(rule: &rule::Cadence, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            on: b.pattern(&rule.message)?,
            rule: Arc::new(rule.clone()),
            last: FxHashMap::default(),
        })
    }
}

impl Monitor for Cadence {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        if !seen.is(&self.on) {
            return;
        }
        let Some(period) = self.rule.period.get(seen.body).and_then(counter_as) else { return };
        let Some((last, event)) = self.last.insert(seen.conn, (seen.at, seen.event)) else { return };
        tally.exercise(&self.rule.decides);
        let gap = seen.at.saturating_sub(last);
        let period = Duration::from_millis(period);
        // As numbers, which do not overflow: the period is the server's to say, the factor the protocol file's.
        let longest = period.as_secs_f64() * self.rule.factor.max(1.0);
        let slack = SLACK + seen.pace.slack();
        if gap.as_secs_f64() > longest && gap > period.saturating_add(slack) {
            let message = format!("{gap:.0?} after the last one, but {period:?} was announced");
            if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
                violation.related = Some(event);
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.last.remove(&conn);
    }
}
