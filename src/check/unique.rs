//! An id is used for one thing only.

use rustc_hash::FxHashMap;

use super::monitor::{Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// How many values are remembered; past that the monitor forgets all and starts anew.
const WINDOW: usize = 65_536;

/// Memory: the last values, at most [`WINDOW`].
pub(super) struct Unique {
    name: String,
    decides: Vec<String>,
    on: Matcher,
    at: Pointer,
    identity: Option<Pointer>,
    values: FxHashMap<(u32, String), (String, u64)>,
}

impl Unique {
    pub fn new(rule: &rule::Unique, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            decides: rule.decides.clone(),
            on: b.pattern(&rule.on)?,
            at: rule.at.clone(),
            identity: rule.identity.clone(),
            values: FxHashMap::default(),
        })
    }
}

impl Monitor for Unique {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        if !seen.is(&self.on) {
            return;
        }
        let Some(value) = self.at.get(seen.body).filter(|value| !value.is_null()).map(key_text) else {
            return;
        };
        let (place, identity) = match &self.identity {
            Some(at) => match at.get(seen.body) {
                Some(identity) => (seen.session.0, key_text(identity)),
                None => return,
            },
            None => (seen.conn.0, seen.event.to_string()),
        };
        findings.exercise(&self.decides);
        match self.values.get(&(place, value.clone())) {
            Some((first, event)) if *first != identity => {
                let (event, message) = (*event, format!("{} {value:?} is used a second time", self.at));
                if let Some(violation) = findings.broken(&self.name, &self.decides, seen.event, message) {
                    violation.related = Some(event);
                }
            }
            Some(_) => {}
            None => {
                if self.values.len() >= WINDOW {
                    self.values.clear();
                }
                self.values.insert((place, value), (identity, seen.event));
            }
        }
    }
}
