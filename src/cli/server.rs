//! The server that `run` and `fuzz` are about, and its pace.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::config::{Config, Quiet, Scale};
use super::source::quote;
use super::target::Chosen;
use super::{Failure, header, usage};
use crate::reference::Variant;
use crate::run::Target;
use crate::wire::{Endpoint, Trust, shown};

/// Which server, and its pace.
#[derive(Debug, Default, Args)]
pub(super) struct Server {
    /// The server to test, `ws://…` or `wss://…`; `env:VARIABLE` takes a URL with secrets from the environment. Default: the
    /// configuration's `url` or its only target; otherwise the built-in reference server.
    #[arg(long)]
    pub url: Option<String>,
    /// Test the reference server, even if the configuration names another one.
    #[arg(long, conflicts_with_all = ["url", "target"])]
    pub reference: bool,
    /// Test the reference server with one of its faults, `NAME` or `NAME@TRIGGER`.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "target"])]
    pub fault: Option<String>,
    /// Test the reference server with these legal styles, separated by commas; `serve NAME --list-styles` shows them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["url", "target"])]
    pub style: Vec<String>,
    /// A header of the upgrade request, `Name: value`; `Name: env:VARIABLE` takes the value from the environment. May
    /// be repeated. Values are never shown.
    #[arg(long, value_name = "HEADER")]
    pub header: Vec<String>,
    /// A PEM file with certificate authorities to trust in addition to the usual ones, for `wss://`.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Multiplies every deadline: 2 for a slow machine. Below 1 the time in which a late effect would be seen is shorter, too. Default: 1.
    #[arg(long, value_name = "FACTOR")]
    pub timeout_scale: Option<Scale>,
    /// The silence that ends a turn in protocols without a final message: `500ms`, `2s`. Default: the protocol's.
    #[arg(long, value_name = "TIME")]
    pub quiet_period: Option<Quiet>,
    /// What the configuration has filled in.
    #[arg(skip)]
    filled: Filled,
}

/// What a configuration has filled in, and will fill in when the command is given again.
#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    url: bool,
    header: bool,
}

impl Server {
    /// Whether the command line, or the configuration without a target, says which server.
    pub fn is_named(&self, config: &Config) -> bool {
        self.url.is_some()
            || self.fault.is_some()
            || !self.style.is_empty()
            || self.reference
            || config.url.is_some()
    }

    /// Fills in what the command line leaves open. `same`: the configuration is about the protocol that is tested.
    pub fn fill(&mut self, config: &Config, chosen: Option<&Chosen>, same: bool) {
        if let Some(Chosen { config: own, .. }) = chosen {
            self.timeout_scale = self.timeout_scale.or(own.timeout_scale.map(Scale));
            self.quiet_period = self.quiet_period.or(own.quiet_period.map(|time| Quiet(time.0)));
        }
        if same {
            let open = self.fault.is_none() && self.style.is_empty() && !self.reference && chosen.is_none();
            if self.url.is_none() && open {
                self.url.clone_from(&config.url);
                self.filled.url = true;
            }
            if self.header.is_empty() {
                self.header.clone_from(&config.header);
                self.filled.header = true;
            }
        }
        self.ca_file = self.ca_file.take().or_else(|| config.ca_file.clone());
        self.timeout_scale = self.timeout_scale.or(config.timeout_scale);
        self.quiet_period = self.quiet_period.or(config.quiet_period);
    }

    /// The chosen target, the URL, or the built-in reference server.
    ///
    /// # Errors
    /// A URL or a header that is none.
    pub fn target(&self, chosen: Option<&Chosen>) -> Result<Target, Failure> {
        if let Some(chosen) = chosen {
            return Ok(Target::Configured(Arc::clone(&chosen.spec)));
        }
        let headers = self.header.iter().map(|text| header::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let Some(url) = &self.url else {
            let variant =
                Variant { fault: self.fault.clone(), styles: self.style.clone(), ..Variant::default() };
            return Ok(Target::Reference(variant));
        };
        let url = &header::of_environment("--url", url)?;
        let endpoint = Endpoint {
            url: url.clone(),
            headers: headers.clone(),
            max_message: 0,
            deadline: Duration::ZERO,
            trust: Trust::default(),
            mutation: None,
        };
        endpoint.check().map_err(|error| usage(error, "a URL looks like ws://127.0.0.1:8765/ws"))?;
        Ok(Target::Url { url: url.clone(), headers })
    }
}

impl Server {
    /// The arguments that say where it is, to be given again. In place of a secret they name a variable of the environment.
    pub fn place(&self) -> String {
        let mut text = String::new();
        match &self.url {
            Some(url) if shown(url) == *url || url.starts_with(header::ENVIRONMENT) => {
                text += &format!(" --url {}", quote(url));
            }
            // Its secrets are to be given again.
            Some(_) if !self.filled.url => text += " --url env:FRAMEPROOF_URL",
            _ => {}
        }
        if self.reference {
            text += " --reference";
        }
        if let Some(fault) = &self.fault {
            text += &format!(" --fault {}", quote(fault));
        }
        if !self.style.is_empty() {
            text += &format!(" --style {}", quote(&self.style.join(",")));
        }
        let given = self.header.iter().filter(|_| !self.filled.header);
        for header in given {
            text += &format!(" --header {}", quote(&header::redacted(header)));
        }
        if let Some(path) = &self.ca_file {
            text += &format!(" --ca-file {}", quote(&path.display().to_string()));
        }
        text
    }

    /// The arguments that say how long it is waited for.
    pub fn patience(&self) -> String {
        let scale = self.timeout_scale.map(|scale| format!(" --timeout-scale {}", scale.0));
        let quiet = self.quiet_period.map(|quiet| format!(" --quiet-period {}ms", quiet.0.as_millis()));
        scale.into_iter().chain(quiet).collect()
    }
}

/// Whose signature counts: that of the usual authorities, and of those in the file.
pub(super) fn trust(file: Option<&Path>) -> Result<Trust, Failure> {
    let read = file.map(Trust::with_file).transpose();
    let hint = "--ca-file takes a PEM file: the certificate of the authority that signed the server's";
    Ok(read.map_err(|error| usage(error, hint))?.unwrap_or_default())
}
