//! What every campaign checks: each oracle with its name and what it asks of the server.

use std::fmt;

/// One thing that every campaign asks of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Oracle {
    /// The connection stays usable after an input.
    Alive,
    /// The connection ends as RFC 6455 asks.
    Framing,
    /// An invalid command is answered with the protocol's error.
    Refused,
    /// A refused command changes no state.
    StateKept,
    /// A turn afterwards on the same connection.
    CleanTurn,
    /// A turn afterwards on a fresh connection.
    FreshConnection,
    /// The session that runs alongside.
    OtherSession,
    /// What was sent in one session does not reach another.
    Isolated,
    /// Schemas of received frames.
    Schema,
    /// Received frames are JSON objects.
    Frame,
    /// Received frames are messages of the protocol.
    Message,
    /// Received replies belong to a request.
    Reply,
    /// Monitors of the protocol.
    Invariant,
    /// Limits on frames and bytes.
    Limit,
    /// Memory of a launched server.
    Memory,
    /// Answers within a sequence of commands.
    Sequence,
    /// What happens before the first input.
    Setup,
    /// The server runs and accepts connections.
    Target,
}

impl Oracle {
    /// Every oracle, in the order of reports.
    pub const ALL: [Self; 18] = [
        Self::Alive,
        Self::Framing,
        Self::Refused,
        Self::StateKept,
        Self::CleanTurn,
        Self::FreshConnection,
        Self::OtherSession,
        Self::Isolated,
        Self::Schema,
        Self::Frame,
        Self::Message,
        Self::Reply,
        Self::Invariant,
        Self::Limit,
        Self::Memory,
        Self::Sequence,
        Self::Setup,
        Self::Target,
    ];

    /// Its name in reports and in the names of findings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Framing => "framing",
            Self::Refused => "refused",
            Self::StateKept => "state-kept",
            Self::CleanTurn => "clean-turn",
            Self::FreshConnection => "fresh-connection",
            Self::OtherSession => "other-session",
            Self::Isolated => "isolated",
            Self::Schema => "schema",
            Self::Frame => "frame",
            Self::Message => "message",
            Self::Reply => "reply",
            Self::Invariant => "invariant",
            Self::Limit => "limit",
            Self::Memory => "memory",
            Self::Sequence => "sequence",
            Self::Setup => "setup",
            Self::Target => "target",
        }
    }

    /// What it asks, as the title of a test case.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Alive => "The connection survives whatever a client sends",
            Self::Framing => "A connection ends properly after a violation of RFC 6455, and only then",
            Self::Refused => "An invalid command is answered with the protocol's error",
            Self::StateKept => "A refused command changes no state",
            Self::CleanTurn => "A clean turn succeeds afterwards on the same connection",
            Self::FreshConnection => "A clean turn succeeds afterwards on a fresh connection",
            Self::OtherSession => "Another session that runs at the same time is not affected",
            Self::Isolated => "No message of another session is received",
            Self::Schema => "Every frame of the server satisfies its schema",
            Self::Frame => "Every frame of the server is a JSON object",
            Self::Message => "Every frame of the server is a message of the protocol",
            Self::Reply => "Every reply of the server answers a request",
            Self::Invariant => "Every monitor of the protocol holds",
            Self::Limit => "The server stays within the limits on frames and bytes",
            Self::Memory => "The memory of a launched server does not grow without bound",
            Self::Sequence => "A sequence of commands is answered in time",
            Self::Setup => "Connections open and states are entered before the first input",
            Self::Target => "The server is alive",
        }
    }

    /// Whether a received frame alone shows the failure, whatever the inputs were and whatever became of the connection.
    pub const fn is_about_a_frame(self) -> bool {
        matches!(self, Self::Schema | Self::Message | Self::Frame | Self::Reply | Self::Invariant)
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_oracle_is_reported_once_under_a_name_of_its_own() {
        let all: BTreeSet<Oracle> = Oracle::ALL.into_iter().collect();
        let names: BTreeSet<&str> = Oracle::ALL.into_iter().map(Oracle::name).collect();
        let titles: BTreeSet<&str> = Oracle::ALL.into_iter().map(Oracle::about).collect();
        assert_eq!((all.len(), names.len(), titles.len()), (18, 18, 18));
    }
}
