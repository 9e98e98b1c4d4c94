//! Ids that the server has told, for commands that refer to them: `{{seen.NAME}}`.

use serde_json::Value;

use crate::protocol::Roles;
use crate::run::case::client::Received;
use crate::trace::Direction;

/// Ids kept of one name; more push the oldest but one out.
const KEPT: usize = 64;

/// The ids of a running case.
#[derive(Debug, Default)]
pub(crate) struct ServerIds {
    /// Name, client, value; oldest first.
    ids: Vec<(String, String, Value)>,
}

impl ServerIds {
    /// Takes what a message tells.
    pub fn learn(&mut self, roles: &Roles, client: &str, received: &Received) {
        for (name, (on, at)) in &roles.seen {
            if !on.matches(received.message, Direction::Recv, &received.body) {
                continue;
            }
            let Some(value) = at.get(&received.body).filter(|value| !value.is_null()) else { continue };
            let known = |(of, who, id): &(String, String, Value)| of == name && who == client && id == value;
            if self.ids.iter().any(known) {
                continue;
            }
            if self.ids.iter().filter(|(of, ..)| of == name).count() >= KEPT
                && let Some(second) =
                    self.ids.iter().enumerate().filter(|(_, (of, ..))| of == name).map(|(at, _)| at).nth(1)
            {
                self.ids.remove(second);
            }
            self.ids.push((name.clone(), client.to_owned(), value.clone()));
        }
    }

    /// `NAME`: the newest; `NAME.first`: the oldest; `NAME.own`: the newest of the client that asks; `NAME.CLIENT`: the
    /// newest that a client saw. What nobody told is a text that says so: commands with it are as good a test.
    pub fn value(&self, name: &str, current: &str) -> Option<Value> {
        let (name, which) = name.split_once('.').map_or((name, None), |(name, which)| (name, Some(which)));
        let mut all = self.ids.iter().filter(|(of, ..)| of == name);
        let found = match which {
            None => all.next_back(),
            Some("first") => all.next(),
            Some("own") => all.rfind(|(_, who, _)| who == current),
            Some(client) => all.rfind(|(_, who, _)| who == client),
        };
        Some(found.map_or_else(|| Value::from(format!("no-{name}")), |(_, _, id)| id.clone()))
    }
}
