//! Servers and files that mean harm, against the real binary: each is a row of a table, and what it costs is measured.

mod admission;
mod files;
mod findings;
mod launched;
#[cfg(target_os = "linux")]
mod loading;
mod process;
mod secrets;
mod served;
mod server;
mod shortage;
mod signals;
mod slow;
mod survivors;
mod text;
mod wire;
