//! Who serves a case: a server elsewhere, the reference server, or one that is launched, restarted and ended.

pub(crate) mod crashes;
pub(crate) mod handle;
pub(crate) mod lease;
pub(crate) mod pool;
pub(crate) mod probe;
pub(crate) mod serve;
