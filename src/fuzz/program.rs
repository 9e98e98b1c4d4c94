//! A fuzzed case as it is made, stored and shrunk.

use serde::{Deserialize, Serialize};

use super::input::{Action, Input, Obligation};

/// The client whose messages are mutated.
pub const ALICE: &str = "alice";
/// A second client, of the same session where there is such a thing.
pub const BOB: &str = "bob";
/// The client of another session that must not notice.
pub const BYSTANDER: &str = "witness";
/// How much memory a repeated program may take, in MiB.
pub const GROWTH: u32 = 12;
/// The state after the opening, before anything else was sent.
pub const OPENED: &str = "opened";

/// A fuzzed case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Program {
    /// The state in which it begins, as `fuzzing.states` calls it; none: after the opening.
    #[serde(default)]
    pub state: Option<String>,
    /// What is done.
    pub inputs: Vec<Input>,
    /// Afterwards a turn on the same connection.
    #[serde(rename = "own")]
    pub clean_turn_after: bool,
    /// Afterwards a turn on a fresh connection.
    #[serde(rename = "fresh")]
    pub fresh_connection_after: bool,
    /// Another session runs alongside.
    #[serde(rename = "witness")]
    pub bystander: bool,
    /// The state in which the other session waits.
    #[serde(default, rename = "witness-state")]
    pub bystander_state: Option<String>,
    /// How often it is done; where it has inputs, the launched server's memory may grow by [`GROWTH`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
}

impl Program {
    /// Whether every input is one that the server must refuse.
    pub fn all_refused(&self) -> bool {
        !self.inputs.is_empty()
            && self.inputs.iter().all(|input| matches!(input.obligation, Obligation::Refuse { .. }))
    }

    /// The state in which it begins.
    pub fn state_name(&self) -> &str {
        self.state.as_deref().unwrap_or(OPENED)
    }

    /// The program without what is asked afterwards and without the other session.
    pub fn bare(&self) -> Self {
        Self {
            clean_turn_after: false,
            fresh_connection_after: false,
            bystander: false,
            bystander_state: None,
            ..self.clone()
        }
    }

    /// Its inputs so many times, and nothing asked afterwards.
    pub fn repeated(&self, times: u32) -> Self {
        Self { repeat: Some(times), ..self.bare() }
    }

    /// Its size: shrinking makes it less.
    pub fn size(&self) -> usize {
        let inputs = self.inputs.iter().map(|input| match &input.action {
            Action::Text(text) => text.len() + 1,
            Action::Send(value) => value.to_string().len(),
            Action::Steps(steps) => steps.iter().map(|step| step.to_string().len()).sum(),
        });
        let circumstances = [
            self.clean_turn_after,
            self.fresh_connection_after,
            self.bystander,
            self.state.is_some(),
            self.bystander_state.is_some(),
        ];
        let circumstances = circumstances.iter().filter(|present| **present).count();
        inputs.map(|size| size + 100).sum::<usize>() + circumstances * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stored_programs_keep_their_keys() {
        let stored = json!({
            "state": "running", "own": true, "fresh": false, "witness": true, "witness-state": "waiting", "repeat": 3,
            "inputs": [{ "client": "alice", "action": { "text": "x" }, "command": "text", "mutation": "bom", "duty": "survive" }],
        });
        let program: Program = serde_json::from_value(stored.clone()).expect("a program");
        assert!(program.clean_turn_after && program.bystander && !program.fresh_connection_after);
        assert_eq!(json!(program), stored);
    }
}
