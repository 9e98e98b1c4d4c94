//! Which part the messages of a protocol play, compiled.

use std::sync::Arc;

use crate::frame::Pointer;
use crate::protocol::{Matcher, Protocol};
use crate::run::case::diagnose::Manners;
use crate::source::Diagnostics;

/// The parts that messages play.
pub(crate) struct Roles {
    /// Messages that name their client's session, and where.
    pub session_ids: Vec<(Matcher, Pointer)>,
    /// Messages of a log that clients resume, and their ids.
    pub log: Option<(Matcher, Pointer)>,
    pub turn_end: Arc<Matcher>,
    /// The protocol's errors, where it has such a message.
    pub errors: Option<Matcher>,
    pub manners: Manners,
}

impl Roles {
    /// # Errors
    /// A pattern that does not compile (found when the protocol is loaded, too).
    pub fn of(protocol: &Protocol) -> Result<Self, Diagnostics> {
        let extension = &protocol.extension;
        let ids = extension.session.id.iter();
        let compiled = |on, at: &Pointer| Ok::<_, Diagnostics>((Matcher::new(on, protocol)?, at.clone()));
        let log = extension.log.as_ref().map(|log| compiled(&log.on, &log.id));
        let errors = extension.errors.as_ref().map(|errors| Matcher::new(&errors.on, protocol));
        Ok(Self {
            session_ids: ids.map(|place| compiled(&place.on, &place.at)).collect::<Result<_, _>>()?,
            log: log.transpose()?,
            turn_end: Arc::new(Matcher::new(&extension.turn.end, protocol)?),
            errors: errors.transpose()?,
            manners: Manners::of(protocol),
        })
    }
}
