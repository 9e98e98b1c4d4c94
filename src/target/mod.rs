//! The server under test: launching it, waiting until it is ready, setting it up, keeping its output, stopping it.
//!
//! [`TargetConfig`] is `[target.NAME]` as it is written, [`Spec`] the same with the environment read and everything checked,
//! [`Instance`] a server that runs.

mod check;
mod config;
mod error;
mod group;
mod instance;
mod last_error;
mod log;
mod outburst;
mod ports;
mod process;
mod reader;
mod setup;
mod spawn;
mod spec;
mod supervisor;

pub use config::{
    Fresh, MutantConfig, Per, ProcessConfig, Ready, SetupConfig, TargetConfig, Time, ToolConfig,
};
pub use error::{LaunchError, LaunchFailure};
pub use group::Groups;
pub use instance::Instance;
pub use log::{Line, Log};
pub(crate) use log::{ends, left_out};
pub use spec::{Call, Process, Spec, SpecError, Vars};
pub use supervisor::{supervise, supervised_by};
