//! WebSocket clients: connecting, limits, and how a connection fails.

mod connect;
mod connection;

pub use connect::{ConnectError, Endpoint};
pub use connection::{Connection, Incoming};
