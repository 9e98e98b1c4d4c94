//! What failures have in common: signatures, groups, and what the server did meanwhile.

pub(crate) mod activity;
pub(crate) mod groups;
pub(crate) mod model_calls;
pub(crate) mod model_use;
pub(crate) mod signature;
