//! WebSocket clients: connecting, limits, and how a connection fails.

mod connect;
mod connection;

pub use connect::{ConnectError, Endpoint, shown};
pub use connection::{Connection, Incoming};
