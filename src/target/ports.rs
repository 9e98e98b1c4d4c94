//! The ports of a target: fixed ones, and free ones that are chosen for it.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use super::error::LaunchError;
use super::spec::Spec;

/// Free ports are taken from here, as far as the system gives none of these by itself: below it, well-known services listen.
const CHOSEN: Range<u16> = 15_000..32_768;
/// What is tried of them before the system is asked for a port.
const TRIES: u16 = 64;

/// The target's ports, free ones chosen; a fixed one that is taken is an error.
pub(super) fn ports(spec: &Spec) -> Result<Vec<(String, u16)>, LaunchError> {
    let mut found = Vec::new();
    // Held until all are chosen, so that no two are the same.
    let mut held = Vec::new();
    for (name, port) in &spec.ports {
        if !spec.is_launched() {
            found.push((name.clone(), *port));
            continue;
        }
        let listener = match port {
            0 => free_port(),
            port => TcpListener::bind((Ipv4Addr::LOCALHOST, *port)),
        };
        let listener = listener.map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse if *port != 0 => LaunchError::PortInUse(*port),
            _ => LaunchError::system(&format!("port {port} cannot be used"), &error),
        })?;
        let system = |error: std::io::Error| LaunchError::system("no free port", &error);
        found.push((name.clone(), listener.local_addr().map_err(system)?.port()));
        held.push(listener);
    }
    drop(held);
    if spec.is_launched()
        && let Some(port) = local_port(&spec.url)
        && let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        && error.kind() == std::io::ErrorKind::AddrInUse
    {
        return Err(LaunchError::PortInUse(port));
    }
    Ok(found)
}

/// A port that nobody listens on. The server binds it only after it was released here. Until then the system could give it to a connection, or
/// to whoever asks for any port: so it is none of those that the system gives.
fn free_port() -> std::io::Result<TcpListener> {
    let given = given_by_the_system();
    let ports: Vec<u16> = CHOSEN.filter(|port| !given.contains(port)).collect();
    let first = RandomState::new().hash_one(0) as usize;
    let tried =
        (0..usize::from(TRIES).min(ports.len())).map(|step| ports[(first.wrapping_add(step)) % ports.len()]);
    let mut bound = tried.filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    bound.next().map_or_else(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)), Ok)
}

/// The ports that the system gives to connections, and to listeners that ask for any.
fn given_by_the_system() -> Range<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) => first..u16::saturating_add(last, 1),
        // As RFC 6335 and the systems without that file have it.
        _ => 49_152..u16::MAX,
    }
}

/// The port of a URL on this machine that stands there as a number.
fn local_port(url: &str) -> Option<u16> {
    let (_, rest) = url.split_once("://")?;
    let (host, port) = rest.split(['/', '?']).next()?.rsplit_once(':')?;
    let local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    port.parse().ok().filter(|port| local && *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_is_none_that_the_system_gives() {
        let given = given_by_the_system();
        assert!(given.start < given.end, "{given:?}");
        let held: Vec<TcpListener> = (0..40).map(|_| free_port().expect("a free port")).collect();
        let mut ports: Vec<u16> =
            held.iter().map(|one| one.local_addr().expect("an address").port()).collect();
        if given.start >= CHOSEN.end {
            assert!(ports.iter().all(|port| CHOSEN.contains(port) && !given.contains(port)), "{ports:?}");
        }
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), held.len());
    }
}
