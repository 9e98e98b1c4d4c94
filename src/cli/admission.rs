//! Who may connect to a server that is started on the command line.

use clap::Args;

use crate::wire::guard::Guard;

/// Who may connect, and how many.
#[derive(Debug, Args)]
pub(super) struct Admission {
    /// Also serve web pages of this origin, such as `https://app.example`; `*`: of any origin. Pages of localhost are always
    /// served. May be repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Also serve clients that use this host name. Clients that use an IP address or localhost are always served. May be repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The largest number of connections at a time; further ones are answered with 503.
    #[arg(long, value_name = "N", default_value = "512")]
    max_connections: std::num::NonZeroU16,
}

impl Admission {
    pub fn guard(&self) -> Guard {
        Guard { hosts: self.allow_host.clone(), origins: self.allow_origin.clone() }
    }

    pub fn most(&self) -> usize {
        usize::from(self.max_connections.get())
    }
}
