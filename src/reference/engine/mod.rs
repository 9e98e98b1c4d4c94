//! What the dialects share: sessions by id, turns and their cancels, the clients of a session, the notes tools.
//!
//! A dialect says how all this looks on its wire, and where its defects strike.

pub(super) mod clients;
pub(super) mod notes;
mod sessions;
mod turn;

pub(super) use sessions::Sessions;
pub(super) use turn::{Agent, Cancel, Cancelled, Canceller, Chunk, Speech};
