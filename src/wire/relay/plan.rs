//! What a relay is to do with what it has seen.

use std::time::Duration;

use super::Way;

/// One thing to do on one side of a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write bytes, at once.
    Write(Vec<u8>),
    /// Do nothing for some time.
    Wait(Duration),
    /// Hang up this half of the connection.
    End,
    /// Cut the whole connection.
    Cut,
}

/// What is to be done, by side and in order.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) to_server: Vec<Action>,
    pub(super) to_client: Vec<Action>,
    hangs: [bool; 2],
}

impl Plan {
    fn side(&mut self, way: Way) -> &mut Vec<Action> {
        match way {
            Way::ToServer => &mut self.to_server,
            Way::ToClient => &mut self.to_client,
        }
    }

    /// Writes bytes, together with those that were planned right before.
    pub fn write(&mut self, way: Way, bytes: Vec<u8>) {
        match self.side(way).last_mut() {
            Some(Action::Write(before)) => before.extend(bytes),
            _ => self.write_alone(way, bytes),
        }
    }

    /// Writes bytes by themselves.
    pub fn write_alone(&mut self, way: Way, bytes: Vec<u8>) {
        self.side(way).push(Action::Write(bytes));
    }

    /// Waits before what is planned next for a side.
    pub fn wait(&mut self, way: Way, time: Duration) {
        self.side(way).push(Action::Wait(time));
    }

    /// Hangs up one half, after what is planned already. What comes the other way still passes.
    pub fn end(&mut self, way: Way) {
        self.side(way).push(Action::End);
    }

    /// Cuts the connection.
    pub fn cut(&mut self) {
        self.to_server.push(Action::Cut);
        self.to_client.push(Action::Cut);
    }

    /// Reads nothing more from the side that sends this way.
    pub fn hang(&mut self, way: Way) {
        self.hangs[way as usize] = true;
    }

    pub(super) fn hangs(&self, way: Way) -> bool {
        self.hangs[way as usize]
    }

    /// Everything that is to be written on a side.
    pub fn written(&self, way: Way) -> Vec<u8> {
        let actions = match way {
            Way::ToServer => &self.to_server,
            Way::ToClient => &self.to_client,
        };
        let bytes = actions.iter().filter_map(|action| match action {
            Action::Write(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        bytes.flatten().copied().collect()
    }
}
