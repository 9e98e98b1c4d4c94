//! `frameproof serve`.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;

use super::{Failure, harness, runtime, usage};
use crate::reference::{self, StartError};

/// Start a reference server.
///
/// Where the protocol's document says at which path, another one is answered with 404; where its address is `/`, the path is left open
/// and any will do.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The protocol.
    name: String,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The fault to have; `--list-faults` shows them.
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// How to spell the protocol's messages, where servers are known to do it otherwise than the document.
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// List the faults, and start nothing.
    #[arg(long)]
    list_faults: bool,
}

impl Serve {
    pub fn run(self) -> Result<u8, Failure> {
        let mut out = anstream::stdout();
        if self.list_faults {
            if !reference::names().contains(&self.name.as_str()) {
                return Err(cannot_start(&StartError::UnknownProtocol(self.name)));
            }
            let mut faults = reference::faults(&self.name).to_vec();
            faults.extend(reference::fuzz_faults(&self.name));
            let width = faults.iter().map(|fault| fault.name.len()).max().unwrap_or(0);
            for fault in faults {
                writeln!(out, "{:<width$}  {}  [{}]", fault.name, fault.title, fault.violates.join(" "))?;
            }
            return Ok(0);
        }
        let options = reference::Options { listen: self.listen, fault: self.fault, dialect: self.dialect };
        runtime()?.block_on(async {
            let mut server =
                reference::start(&self.name, &options).await.map_err(|error| cannot_start(&error))?;
            writeln!(out, "{}", server.url())?;
            out.flush()?;
            let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                () = server.ended() => {
                    return Err(harness("the server has died of its fault", "start it again"));
                }
            }
            server.stop().await;
            Ok(0)
        })
    }
}

/// Why a reference server does not start.
pub(super) fn cannot_start(error: &StartError) -> Failure {
    match error {
        StartError::Listen { .. } => harness(error, "port 0 takes a free one: --listen 127.0.0.1:0"),
        StartError::UnknownProtocol(_) => usage(error, "test a server of your own with run --url"),
        StartError::UnknownFault { near: Some(near), .. }
        | StartError::UnknownDialect { near: Some(near), .. } => {
            usage(error, &format!("did you mean `{near}`?"))
        }
        StartError::UnknownDialect { .. } => {
            usage(error, "leave --dialect out: it spells as the document does")
        }
        StartError::UnknownFault { .. } => usage(error, "`frameproof serve NAME --list-faults` lists them"),
    }
}
