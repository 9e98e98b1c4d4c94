//! Why a target is not there.

use std::time::Duration;

use super::config::TargetConfig;
use super::log::Line;
use crate::shortage::{self, Shortage};
use crate::source::escape_token;
use crate::wire::ConnectError;

/// Why a server cannot be launched, or its sessions not set up.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LaunchError {
    /// The program cannot be started.
    #[error("`{program}` of process `{process}` cannot be started: {reason}")]
    NotStarted {
        /// The process.
        process: String,
        /// The program.
        program: String,
        /// The system's reason.
        reason: String,
    },
    /// It ended before it was ready.
    #[error("process `{process}` {how} before it was ready")]
    Exited {
        /// The process.
        process: String,
        /// Its exit status in words.
        how: String,
    },
    /// It did not become ready in time.
    #[error("process `{process}` was not ready within {within:?}: {wanted}")]
    NotReady {
        /// The process.
        process: String,
        /// What was waited for.
        wanted: String,
        /// How long.
        within: Duration,
    },
    /// A fixed port is taken.
    #[error("port {0} is in use already")]
    PortInUse(u16),
    /// This machine has no more of something that is needed to launch it.
    #[error("{0}")]
    Shortage(Shortage),
    /// No free port is left, or no folder can be made.
    #[error("{0}")]
    System(String),
    /// The scripted model does not start.
    #[error("the scripted model does not start: {0}")]
    Model(String),
    /// A set-up call failed.
    #[error("the set-up call {call} {reason}")]
    Setup {
        /// Method and URL.
        call: String,
        /// What is wrong with its answer.
        reason: String,
    },
    /// A template cannot be filled in.
    #[error("`{text}` cannot be filled in: {reason}")]
    Template {
        /// The template.
        text: String,
        /// What it lacks.
        reason: String,
    },
    /// It cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It was ready, and ended when the first client came.
    #[error("the server was ready, and ended at the first connection: {0}")]
    Fell(String),
    /// It died too often.
    #[error("{0}")]
    Dead(String),
}

impl LaunchError {
    /// What the system does not give us, and why.
    pub(super) fn system(what: &str, error: &std::io::Error) -> Self {
        shortage::note(error).map_or_else(|| Self::System(format!("{what}: {error}")), Self::Shortage)
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotStarted { .. } => {
                "the first word of `command` is looked up in PATH, or relative to `cwd` (or the folder of the file) if it has a slash"
            }
            Self::Exited { .. } => {
                "run the command by hand; the end of its output, if it wrote any, is shown. It runs in a scratch folder unless `cwd` says \
                 otherwise: `cwd = \".\"` is the folder of the file"
            }
            Self::NotReady { .. } => {
                "is `ready` (or the port of `url`) right? `start-timeout` gives it more time; the end of its output, if it wrote any, is shown"
            }
            Self::PortInUse(_) => {
                "end what listens there, or let frameproof choose: `ports = { port = 0 }`, `{{port}}` in url and command; \
                 --attach tests what is running"
            }
            Self::Shortage(shortage) => shortage.advice(),
            Self::System(_) | Self::Template { .. } => "",
            Self::Model(_) => "`model = \"127.0.0.1:0\"` takes a free port",
            Self::Setup { .. } => {
                "try the call with curl while the server runs; `status` and `save` say what is expected"
            }
            Self::Connect(_) => "is `url` right?",
            Self::Fell(_) => {
                "what does it do when a client connects? The end of its output, if it wrote any, is shown"
            }
            Self::Dead(_) => "run the case that it died in alone, with -v",
        }
    }

    /// Where in the target's table the cause is likely to stand, as a JSON Pointer.
    pub fn place(&self, config: &TargetConfig) -> Option<String> {
        let of_process = |name: &str, key: &str| {
            let index = config.process.iter().position(|process| process.name == name);
            index.map_or(format!("/{key}"), |index| format!("/process/{index}/{key}"))
        };
        let url = || Some("/url".to_owned());
        match self {
            Self::NotStarted { process, .. } | Self::Exited { process, .. } => {
                Some(of_process(process, "command"))
            }
            Self::NotReady { process, .. } => {
                let own = config.process.iter().any(|one| one.name == *process && one.ready.is_some());
                match own {
                    true => Some(of_process(process, "ready")),
                    false if config.ready.is_some() => Some("/ready".to_owned()),
                    false => url(),
                }
            }
            Self::PortInUse(port) => {
                let named = config.ports.iter().find(|(_, number)| *number == port);
                named.map_or_else(url, |(name, _)| Some(format!("/ports/{}", escape_token(name))))
            }
            Self::Model(_) => config.model.map(|_| "/model".to_owned()),
            Self::Setup { .. } if config.setup.len() == 1 => Some("/setup/0/url".to_owned()),
            Self::Setup { .. } => Some("/setup".to_owned()),
            Self::Connect(_) => url(),
            Self::Shortage(_) | Self::System(_) | Self::Template { .. } | Self::Fell(_) | Self::Dead(_) => {
                None
            }
        }
    }

    /// The same error with each of its texts passed through `mask`.
    #[must_use]
    pub fn masked(self, mask: &dyn Fn(String) -> String) -> Self {
        match self {
            Self::NotStarted { process, program, reason } => {
                Self::NotStarted { process, program: mask(program), reason: mask(reason) }
            }
            Self::NotReady { process, wanted, within } => {
                Self::NotReady { process, wanted: mask(wanted), within }
            }
            Self::System(text) => Self::System(mask(text)),
            Self::Model(text) => Self::Model(mask(text)),
            Self::Setup { call, reason } => Self::Setup { call: mask(call), reason: mask(reason) },
            Self::Template { text, reason } => Self::Template { text: mask(text), reason: mask(reason) },
            Self::Connect(error) => Self::Connect(error.masked(mask)),
            Self::Dead(text) => Self::Dead(mask(text)),
            // How it ended is told with its last words.
            Self::Exited { process, how } => Self::Exited { process, how: mask(how) },
            Self::Fell(text) => Self::Fell(mask(text)),
            other @ (Self::PortInUse(_) | Self::Shortage(_)) => other,
        }
    }
}

/// A [`LaunchError`] and the end of the output that came before it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct LaunchFailure {
    /// The error.
    pub error: LaunchError,
    /// The last lines of the processes.
    pub output: Vec<Line>,
}

impl From<LaunchError> for LaunchFailure {
    fn from(error: LaunchError) -> Self {
        Self { error, output: Vec::new() }
    }
}
