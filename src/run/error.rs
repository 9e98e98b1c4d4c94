//! Why a run cannot begin, and what to do about it.

use std::path::Path;

use crate::reference;
use crate::results::redact::Secrets;
use crate::run::{RunOptions, Target};
use crate::shortage::{self, Shortage};
use crate::source::Diagnostics;
use crate::target::{LaunchError, LaunchFailure};
use crate::wire::ConnectError;

/// Why a run cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The reference server does not start.
    #[error(transparent)]
    Reference(#[from] reference::StartError),
    /// The target cannot be reached.
    #[error("the target cannot be tested: {0}")]
    Target(#[from] ConnectError),
    /// The target does not start, or cannot be set up.
    #[error("target cannot be tested: {0}")]
    Launch(#[from] LaunchFailure),
    /// The protocol cannot be judged by.
    #[error(transparent)]
    Protocol(#[from] Diagnostics),
    /// This machine has no more of something.
    #[error("{0}")]
    Shortage(Shortage),
    /// Stopped before the first case.
    #[error("interrupted before the first case")]
    Interrupted,
    /// The trace cannot be written.
    #[error("the trace cannot be written to {path}: {error}")]
    Trace {
        /// Where to.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
}

impl RunError {
    /// What to do about it, for this target; empty: nothing to say.
    pub fn advice(&self, target: &Target) -> String {
        match self {
            Self::Target(error) => connect(error, target),
            Self::Launch(failure) => match &failure.error {
                LaunchError::Connect(error) => connect(error, target),
                error => error.hint().to_owned(),
            },
            Self::Trace { .. } => {
                "the trace is written to a temporary file in the same folder and renamed".to_owned()
            }
            Self::Shortage(shortage) => shortage.advice().to_owned(),
            Self::Reference(_) | Self::Protocol(_) | Self::Interrupted => String::new(),
        }
    }

    /// Whether it is for want of something that this machine lacks, and not of the server's or the user's making.
    pub fn is_shortage(&self) -> bool {
        let connect = |error: &ConnectError| matches!(error, ConnectError::Shortage(_));
        match self {
            Self::Shortage(_) => true,
            Self::Target(error) => connect(error),
            Self::Launch(failure) => match &failure.error {
                LaunchError::Connect(error) => connect(error),
                error => matches!(error, LaunchError::Shortage(_)),
            },
            _ => false,
        }
    }

    /// Whether it is the configuration that is wrong, and not the server.
    pub fn is_misconfigured(&self) -> bool {
        let error = match self {
            Self::Target(error) => error,
            Self::Launch(failure) => match &failure.error {
                LaunchError::Connect(error) => error,
                LaunchError::Template { .. } => return true,
                _ => return false,
            },
            _ => return false,
        };
        matches!(error, ConnectError::BadUrl { .. })
    }

    pub(crate) fn no_trace(options: &RunOptions, error: std::io::Error) -> Self {
        let path = options.kept.trace.as_deref().unwrap_or(Path::new("")).display().to_string();
        Self::Trace { path, error: std::io::Error::new(error.kind(), shortage::describe(&error)) }
    }

    /// The same without secrets: a server that refuses may quote what it was sent.
    pub(crate) fn redacted(self, secrets: &Secrets) -> Self {
        match self {
            Self::Target(error) => Self::Target(error.masked(&|text| secrets.text(text))),
            Self::Launch(LaunchFailure { error, mut output }) => {
                output.iter_mut().for_each(|line| line.text = secrets.text(std::mem::take(&mut line.text)));
                Self::Launch(LaunchFailure { error: error.masked(&|text| secrets.text(text)), output })
            }
            other => other,
        }
    }
}

/// What to do about a connection that does not come about.
fn connect(error: &ConnectError, target: &Target) -> String {
    let name = match target {
        Target::Configured(spec) => Some(spec.name.as_str()),
        _ => None,
    };
    let url = match name {
        Some(name) => format!("`url` of [target.{name}]"),
        None => "--url (`url` in frameproof.toml)".to_owned(),
    };
    let slow = match name {
        Some(name) => format!("`timeout-scale = 3` in [target.{name}]"),
        None => "--timeout-scale 3".to_owned(),
    };
    match error {
        ConnectError::Shortage(shortage) => shortage.advice().to_owned(),
        ConnectError::Http { status: 401 | 403, .. } => match name {
            Some(name) => format!(
                "give the server's credentials, in [target.{name}]: bearer = \"env:TOKEN\", or header = [\"Name: env:VARIABLE\"]"
            ),
            None => "give the server's credentials: --header 'Authorization: env:TOKEN'".to_owned(),
        },
        ConnectError::Http { status: 404, .. } => format!("is the path of {url} right?"),
        ConnectError::Http { status: 300..=399, .. } => {
            format!("redirects are not followed: is {url} right?")
        }
        ConnectError::Http { .. } => {
            format!("is {url} right, and does the server accept WebSocket connections there?")
        }
        ConnectError::BadUrl { .. } => {
            "a URL looks like ws://127.0.0.1:8765/ws, with {…} as in the protocol's address".to_owned()
        }
        ConnectError::Tls(_) => {
            "--ca-file FILE trusts a private certificate authority, whose certificate is in this PEM file; a \
             server certificate needs basicConstraints CA:FALSE and the host in subjectAltName"
                .to_owned()
        }
        ConnectError::NotWebSocket(_) => {
            "something answers there, but not a WebSocket server: are port and path right?".to_owned()
        }
        ConnectError::Unanswered(_) => format!(
            "something listens there and sends nothing: is it the right port, does it expect TLS (`wss://`), or does its handler \
             hang before the upgrade? A server that needs longer: {slow}"
        ),
        ConnectError::Unsecured(_) => format!(
            "something listens there and answers no TLS: is it a `ws://` server, or the wrong port? A server that needs longer: {slow}"
        ),
        ConnectError::Silence(_) => {
            format!("is the address right, and does a firewall let it through? A server far away: {slow}")
        }
        _ => match target {
            Target::Configured(spec) if spec.is_launched() => format!("is {url} where the server listens?"),
            _ => format!("start the server first, or correct {url}"),
        },
    }
}
