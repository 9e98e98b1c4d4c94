//! `--offer`: what a server has and does not announce.

use std::sync::Arc;

use super::{Failure, did_you_mean, usage};
use crate::protocol::Protocol;

/// A protocol with what the server is said to offer.
pub(super) fn offering(mut protocol: Arc<Protocol>, names: &[String]) -> Result<Arc<Protocol>, Failure> {
    for name in names {
        let known = &protocol.extension.capabilities;
        let open =
            || known.iter().filter(|(_, known)| known.announced.is_none()).map(|(name, _)| name.as_str());
        if known.get(name).is_none_or(|known| known.announced.is_some()) {
            let message = match known.contains_key(name) {
                true => format!("the server announces `{name}` itself, if it has it"),
                false => format!("there is no capability `{name}`"),
            };
            let there = || match open().collect::<Vec<_>>()[..] {
                [] => "the protocol has none that could be offered".to_owned(),
                ref names => format!("there are {}", names.join(", ")),
            };
            return Err(usage(message, &did_you_mean(name, open(), there)));
        }
        // Nobody else has it yet.
        if let Some(protocol) = Arc::get_mut(&mut protocol) {
            protocol.offer(name);
        }
    }
    Ok(protocol)
}
