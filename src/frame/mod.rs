//! The frame parser: the bytes of one WebSocket message in, one JSON object out.
//!
//! No I/O, no protocol knowledge, no panic on any input. Production, the fuzz targets and the
//! benchmarks call the same [`parse`].

mod cost;
mod error;
mod memory_estimate;
mod parse;
mod pointer;
pub(crate) mod respell;
mod shown;

pub(crate) use cost::cost;
pub use error::{FrameError, Place};
pub(crate) use parse::name_of;
pub(crate) use parse::parse_within;
pub use parse::{Limits, parse, parse_text};
pub use parse::{MAX_BATCH, parse_batch};
pub use pointer::Pointer;
pub(crate) use pointer::field;
pub(crate) use shown::json_within;
