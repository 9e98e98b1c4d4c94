//! A reply repeats a value of its request.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory, bytes_of};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::same;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of the open requests.
#[derive(Clone)]
pub(super) struct Echo {
    check: Check,
    rule: Arc<rule::Echo>,
    request: Matcher,
    reply: Matcher,
    ids: Keys,
    open: BoundedMap<(Value, u64)>,
}

impl Echo {
    pub fn new(rule: &rule::Echo, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            request: b.pattern(&rule.request)?,
            reply: b.pattern(&rule.reply)?,
            ids: Keys::new(Some(&rule.id), b)?,
            rule: Arc::new(rule.clone()),
            open: BoundedMap::default(),
        })
    }
}

impl Monitor for Echo {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let asks = seen.is(&self.request);
        let Some(id) = self.ids.id(seen, Part::begins(asks)) else { return };
        if asks && let Some(asked) = self.rule.asked.get(seen.body) {
            let bytes = bytes_of(&asked);
            self.open.insert(seen.conn.0, Some(&id), (asked.into_owned(), seen.event), bytes);
        } else if seen.is(&self.reply)
            && let Some((asked, event)) = self.open.remove(seen.conn.0, Some(&id))
        {
            tally.exercise(&self.rule.decides);
            let told = self.rule.told.get(seen.body);
            if told.as_deref().is_some_and(|told| same(told, &asked)) {
                return;
            }
            let shown = told.as_deref().map_or_else(|| "missing".to_owned(), crate::protocol::shorten);
            let message = format!(
                "{} is {shown}, but the request says {}",
                self.rule.told,
                crate::protocol::shorten(&asked)
            );
            if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
                violation.related = Some(event);
                violation.expected = Some(asked);
                violation.actual = told.map(Cow::into_owned);
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.ids.closed(conn);
        self.open.leave(conn.0);
    }

    fn memory(&self) -> Memory {
        self.open.memory() + self.ids.memory()
    }
}
