//! Where the clients of a session connect to.

use crate::protocol::Protocol;
use crate::protocol::extension::Join;
use crate::run::RunError;
use crate::target::{Instance, LaunchFailure, Vars};
use crate::wire::{ConnectError, Endpoint};

/// The endpoint of a session whose set-up calls found these variables.
pub(crate) fn session_endpoint(
    protocol: &Protocol,
    base: &Endpoint,
    instance: &Instance,
    vars: &Vars,
) -> Result<Endpoint, RunError> {
    let (mut url, headers) = instance.address(vars).map_err(LaunchFailure::from)?;
    // A set-up call may have made the session that the URL names.
    let named = matches!(&protocol.extension.session.join, Join::Parameter(name) if vars.contains_key(name));
    if !named {
        url = complete(protocol, &url)?;
    }
    Ok(Endpoint { url, headers, ..base.clone() })
}

/// A URL with what the protocol adds to it.
///
/// # Errors
/// It does not say where the session's id goes.
pub(crate) fn complete(protocol: &Protocol, url: &str) -> Result<String, ConnectError> {
    protocol.url_of(url).map_err(|place| {
        let reason = format!("the URL must say where the session's id goes: `{place}`");
        ConnectError::BadUrl { url: crate::wire::shown(url), reason }
    })
}
