//! A reply repeats a value of its request.

use serde_json::Value;

use super::monitor::{Conn, Findings, Monitor, Seen};
use super::monitors::Builder;
use super::window::{Memory, Window, bytes_of};
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of the open requests.
pub(super) struct Echo {
    check: Check,
    rule: rule::Echo,
    request: Matcher,
    reply: Matcher,
    open: Window<(Value, u64)>,
}

impl Echo {
    pub fn new(rule: &rule::Echo, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            request: b.pattern(&rule.request)?,
            reply: b.pattern(&rule.reply)?,
            rule: rule.clone(),
            open: Window::default(),
        })
    }
}

impl Monitor for Echo {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let Some(id) = self.rule.id.get(seen.body).map(Value::to_string) else { return };
        if seen.is(&self.request)
            && let Some(asked) = self.rule.asked.get(seen.body)
        {
            self.open.insert(seen.conn.0, Some(&id), (asked.clone(), seen.event), bytes_of(asked));
        } else if seen.is(&self.reply)
            && let Some((asked, event)) = self.open.remove(seen.conn.0, Some(&id))
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
            if let Some(violation) = findings.broken(&self.check, &self.rule.decides, seen.event, message) {
                violation.related = Some(event);
                violation.expected = Some(asked);
                violation.actual = told.cloned();
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        self.open.leave(conn.0);
    }

    fn memory(&self) -> Memory {
        self.open.memory()
    }
}
