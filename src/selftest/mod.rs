//! How the judge is judged: the suite against every fault of a reference server, against faults under triggers, every legal
//! style, and mutants of the wire.

pub mod counts;
mod driver;
pub mod faults;
mod harmless;
mod reach;
pub mod report;
pub mod steps;
pub mod styles;
pub mod subject;
pub mod triggers;
pub mod wire;
