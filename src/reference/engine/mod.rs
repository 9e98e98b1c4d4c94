//! What the dialects share: sessions by id, turns and their cancels, the clients of a session, the notes tools, and how a
//! server is asked for its defect, when that strikes, and its styles.
//!
//! A dialect says how all this looks on its wire, and where its defects strike.

mod behaviour;
pub(super) mod clients;
pub(super) mod notes;
mod sessions;
mod trigger;
mod turn;

pub(super) use behaviour::{Behaviour, Named, Setup};
pub(super) use sessions::Sessions;
pub(super) use trigger::Happening;
pub use trigger::Trigger;
pub(super) use turn::{Agent, Cancel, Cancelled, Canceller, Chunk, Speech};
