//! The scripted language model: an HTTP endpoint that speaks the providers' own APIs and plays the cue in the newest
//! user text.
//!
//! A server under test is pointed at it instead of at a provider, and then says and calls what the scenario wants. It
//! keeps nothing between requests: which response comes next is counted from the conversation that each request carries
//! (see [`crate::cue`] and `docs/model.md`), so retries, replays and any number of sessions at once are safe.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let model = frameproof::model::start(frameproof::model::Options::default()).await?;
//! println!("OPENAI_BASE_URL={}/v1 ANTHROPIC_BASE_URL={}", model.url(), model.url());
//! model.stop().await;
//! # Ok(())
//! # }
//! ```

mod api;
mod chat;
mod completions;
mod conversation;
mod dialects;
mod embeddings;
mod error;
mod hangs;
mod messages;
mod play;
mod record;
mod reply;
mod request;
mod responses;
mod server;
mod service;

pub use hangs::{CaseHangs, Hangs};
pub use record::{Asked, CueState, Ended, Ending, Observer, Record};
pub use server::{Model, Options, StartError, start};
