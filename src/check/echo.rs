//! A reply repeats a value of its request.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::monitor::{Conn, Findings, Monitor, Seen};
use super::monitors::Builder;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// How many requests of a connection are remembered; past that all are forgotten.
const WINDOW: usize = 4096;

/// Memory: the open requests of each connection, at most [`WINDOW`].
pub(super) struct Echo {
    name: String,
    rule: rule::Echo,
    request: Matcher,
    reply: Matcher,
    open: FxHashMap<Conn, FxHashMap<String, (Value, u64)>>,
}

impl Echo {
    pub fn new(rule: &rule::Echo, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            request: b.pattern(&rule.request)?,
            reply: b.pattern(&rule.reply)?,
            rule: rule.clone(),
            open: FxHashMap::default(),
        })
    }
}

impl Monitor for Echo {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let Some(id) = self.rule.id.get(seen.body).map(Value::to_string) else { return };
        if seen.is(&self.request)
            && let Some(asked) = self.rule.asked.get(seen.body)
        {
            let open = self.open.entry(seen.conn).or_default();
            if open.len() >= WINDOW {
                open.clear();
            }
            open.insert(id, (asked.clone(), seen.event));
        } else if seen.is(&self.reply)
            && let Some((asked, event)) = self.open.get_mut(&seen.conn).and_then(|open| open.remove(&id))
        {
            findings.exercise(&self.rule.decides);
            let told = self.rule.told.get(seen.body);
            if told == Some(&asked) {
                return;
            }
            let shown = told.map_or_else(|| "missing".to_owned(), crate::protocol::shorten);
            let message = format!(
                "{} is {shown}, but the request says {}",
                self.rule.told,
                crate::protocol::shorten(&asked)
            );
            if let Some(violation) = findings.broken(&self.name, &self.rule.decides, seen.event, message) {
                violation.related = Some(event);
                violation.expected = Some(asked);
                violation.actual = told.cloned();
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        self.open.remove(&conn);
    }
}
