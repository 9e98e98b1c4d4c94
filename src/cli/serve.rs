//! `frameproof serve`.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;

use super::admission::Admission;
use super::{Failure, harness, report_shortage, runtime, usage};
use crate::exit::Exit;
use crate::reference::{self, StartError, Trigger, Variant};

/// Start a reference server.
///
/// If the protocol's document names a path, other paths are answered with 404. If its address is `/`, every path is accepted.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The protocol.
    name: String,
    /// The address to listen on; port 0 uses a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    #[command(flatten)]
    admission: Admission,
    /// The fault that the server has, `NAME` or `NAME@TRIGGER`; `--list-faults` shows them, `--list-triggers` the triggers.
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// Legal styles that the server has, separated by commas; `--list-styles` shows them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    style: Vec<String>,
    /// Use this dialect of the protocol instead of the document's spelling.
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// List the faults, and start nothing.
    #[arg(long)]
    list_faults: bool,
    /// List the triggers of faults, and start nothing.
    #[arg(long)]
    list_triggers: bool,
    /// List the legal styles, and start nothing.
    #[arg(long)]
    list_styles: bool,
}

impl Serve {
    pub fn run(self) -> Result<Exit, Failure> {
        let mut out = super::out();
        if self.list_faults || self.list_triggers || self.list_styles {
            if !reference::names().contains(&self.name.as_str()) {
                return Err(cannot_start(&StartError::UnknownProtocol(self.name)));
            }
            return self.list(&mut out);
        }
        let variant = Variant { fault: self.fault, styles: self.style, ..Variant::default() };
        let options = reference::Options {
            listen: self.listen,
            variant,
            dialect: self.dialect,
            guard: Some(self.admission.guard()),
            most: self.admission.most(),
        };
        runtime()?.block_on(async {
            let mut server =
                reference::start(&self.name, &options).await.map_err(|error| cannot_start(&error))?;
            writeln!(out, "{}", server.url())?;
            out.flush()?;
            let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                () = report_shortage() => {}
                () = server.ended() => {
                    return Err(harness("the fault has ended the server", "start it again"));
                }
            }
            server.stop().await;
            Ok(Exit::Passed)
        })
    }
}

impl Serve {
    fn list(&self, out: &mut impl Write) -> Result<Exit, Failure> {
        let mut rows: Vec<(&str, &str, Option<&[&str]>)> = Vec::new();
        let styles = reference::styles(&self.name);
        if self.list_faults {
            let faults = reference::faults(&self.name).iter().copied();
            let faults = faults.chain(reference::fuzz_faults(&self.name));
            rows.extend(faults.map(|fault| (fault.name, fault.title, Some(fault.violates))));
        }
        if self.list_triggers {
            rows.extend(Trigger::ALL.iter().map(|(_, name, what)| (*name, *what, None)));
        }
        if self.list_styles {
            rows.extend(styles.iter().map(|style| (style.name, style.what, Some(style.allowed_by))));
        }
        let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        for (name, what, ids) in rows {
            let ids = ids.map_or_else(String::new, |ids| format!("  [{}]", ids.join(" ")));
            writeln!(out, "{name:<width$}  {what}{ids}")?;
        }
        Ok(Exit::Passed)
    }
}

/// Why a reference server does not start.
pub(super) fn cannot_start(error: &StartError) -> Failure {
    match error {
        StartError::Listen { .. } => harness(error, "port 0 takes a free one: --listen 127.0.0.1:0"),
        StartError::UnknownProtocol(_) => usage(error, "test your own server with run --url"),
        StartError::UnknownFault { near: Some(near), .. }
        | StartError::UnknownStyle { near: Some(near), .. }
        | StartError::UnknownTrigger { near: Some(near), .. }
        | StartError::UnknownDialect { near: Some(near), .. } => {
            usage(error, &format!("did you mean `{near}`?"))
        }
        StartError::UnknownDialect { .. } => {
            usage(error, "leave --dialect out: it spells as the document does")
        }
        StartError::UnknownStyle { .. } => usage(error, "`frameproof serve NAME --list-styles` lists them"),
        StartError::UnknownTrigger { .. } => {
            let names: Vec<&str> = Trigger::ALL.iter().map(|(_, name, _)| *name).collect();
            usage(error, &format!("there are {}", names.join(", ")))
        }
        StartError::FixedTrigger(_) => usage(error, "leave `@` and what follows out"),
        StartError::ClashingStyles(..) => usage(error, "leave one of them out"),
        StartError::UnknownFault { .. } => usage(error, "`frameproof serve NAME --list-faults` lists them"),
    }
}
