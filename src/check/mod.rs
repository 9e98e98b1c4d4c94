//! Monitors over a trace: one pass, bounded memory, no I/O.
//!
//! [`Judge`] takes the events of one case (or of one recording) in order, parses each received frame,
//! validates it against its message's schema and shows it to the monitors that its type concerns. A
//! requirement is *exercised* when something could have broken it; a [`Violation`] names the requirements
//! that an event broke.

mod absence;
mod agreement;
mod bracket;
mod cadence;
mod concatenation;
mod constant;
mod correlation;
mod dialogue;
mod echo;
mod evidence;
mod existence;
mod frame_rules;
mod history;
mod increasing;
mod increments;
mod judge;
#[cfg(test)]
mod memory;
mod monitor;
mod monitors;
mod precedence;
mod projection;
mod replay;
mod replies;
mod response;
mod series;
mod states;
#[cfg(test)]
mod tests;
mod unique;
mod verdict;
mod window;

pub(crate) use evidence::evidence;
pub use judge::{Judge, Judged};
pub(crate) use monitor::counter;
pub use verdict::{Exercised, Limit, Outcome, Violation};
pub(crate) use verdict::{after_uuid, essence, excused, same};
