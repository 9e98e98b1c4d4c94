//! WebSocket clients, and the TCP side of servers and relays: connecting, accepting, limits, raw frames, and how a connection fails.

pub mod accept;
mod ahead;
mod connect;
pub mod frame;
pub mod guard;
pub mod http;
mod incoming;
mod link;
mod messages;
mod raw;
pub mod relay;
mod room;
mod tls;

pub(crate) use connect::READ_BUFFER;
pub use connect::{ConnectError, Endpoint, SubProtocol, named_status, shown};
pub use incoming::Incoming;
pub use link::{Link, LinkMode};
pub use messages::{Breach, Messages, Writer};
pub use raw::{RawConnection, Standing};
pub use tls::{Trust, TrustError};
