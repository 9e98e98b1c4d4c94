//! Servers and files that mean harm, against the real binary: each is a row of a table, and what it costs is measured.

mod files;
mod findings;
mod process;
mod server;
mod signals;
mod survivors;
mod text;
mod wire;
