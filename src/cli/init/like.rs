//! `frameproof init --like`: protocols of three kinds, each with two servers to try it on.

use clap::ValueEnum;

/// A kind of protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Like {
    /// Client and server greet each other; then the server answers each message in turn.
    Greeting,
    /// JSON-RPC 2.0: requests with an id, progress notifications, answers.
    Rpc,
    /// Concurrent subscriptions, each with its own id; mistakes close the connection.
    Subscriptions,
}

macro_rules! text {
    ($kind:literal, $($file:literal),+) => {
        include_str!(concat!("../../../templates/like/", $kind, "/", $($file),+))
    };
}
macro_rules! files {
    ($kind:literal, $scenarios:literal) => {
        Files {
            config: text!($kind, "frameproof.toml"),
            protocol: [
                ("asyncapi.yaml", text!($kind, "protocol/asyncapi.yaml")),
                ("requirements.yaml", text!($kind, "protocol/requirements.yaml")),
            ],
            others: [
                (concat!("scenarios/", $scenarios), text!($kind, "scenarios/", $scenarios)),
                ("server.py", text!($kind, "server.py")),
                ("server.mjs", text!($kind, "server.mjs")),
                ("package.json", include_str!("../../../templates/like/package.json")),
            ],
        }
    };
}

/// What is written: names and texts.
pub(super) struct Files {
    /// `frameproof.toml`.
    pub config: &'static str,
    /// In the protocol's folder.
    pub protocol: [(&'static str, &'static str); 2],
    /// Beside it.
    pub others: [(&'static str, &'static str); 4],
}

impl Like {
    /// The name of the protocol, unless another one is given.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greeting => "greeting",
            Self::Rpc => "rpc",
            Self::Subscriptions => "subscriptions",
        }
    }

    pub fn files(self) -> Files {
        match self {
            Self::Greeting => files!("greeting", "conversation.yaml"),
            Self::Rpc => files!("rpc", "calls.yaml"),
            Self::Subscriptions => files!("subscriptions", "subscriptions.yaml"),
        }
    }
}

/// What to do next; each line with two blanks before it is a command.
pub(super) const NEXT: &str = "\
Two servers of this protocol stand beside it, in Python and in JavaScript. Try the protocol on them:
{cd}  python3 -m pip install websockets
  frameproof run --target python
  frameproof fuzz --target python --time 5s
  frameproof selftest --target python
  npm install
  frameproof run --target javascript
Then change the protocol to yours, and `command` and `url` in frameproof.toml to those of your server. docs/protocols.md explains each part.";
