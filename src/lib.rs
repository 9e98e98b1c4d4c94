//! frameproof: a conformance test harness and fuzzer for agent-over-WebSocket protocols.
//!
//! The layers, from the lowest up; each imports only from those before it:
//! [`source`], [`frame`] and [`output`], [`trace`], [`protocol`], [`check`], [`wire`], [`mod@reference`], [`model`], [`scenario`],
//! [`run`], [`synthesis`], [`doctor`], [`selftest`], [`fuzz`], [`explore`], [`recording`], [`report`], [`cli`]. `docs/architecture.md` describes how they fit together.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod check;
pub mod cli;
pub mod cue;
pub mod doctor;
pub mod exit;
pub mod explore;
pub mod frame;
pub mod fuzz;
#[doc(hidden)]
pub mod fuzz_targets;
pub(crate) mod input;
pub mod model;
pub mod output;
pub mod protocol;
pub mod recording;
pub mod reference;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod selftest;
pub mod shortage;
pub mod source;
pub mod synthesis;
pub mod target;
pub mod template;
pub(crate) mod text;
pub mod trace;
pub mod wire;
