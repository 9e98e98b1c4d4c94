//! One run of one case: the interpreter of its steps, its clients, and what they saw.

pub(crate) mod capabilities;
pub(crate) mod client;
pub(crate) mod connect;
pub(crate) mod connections;
pub(crate) mod context;
pub(crate) mod diagnose;
pub(crate) mod environment;
pub(crate) mod exchange;
pub(crate) mod execute;
pub(crate) mod fail;
pub(crate) mod holding;
pub(crate) mod interpreter;
pub(crate) mod log;
pub(crate) mod loosen;
pub(crate) mod outcome;
pub(crate) mod patience;
pub(crate) mod receive;
pub(crate) mod server_ids;
pub(crate) mod settle;
pub(crate) mod steps;
pub(crate) mod teardown;
pub(crate) mod unanswered;
pub(crate) mod variables;
pub(crate) mod verbs;
pub(crate) mod verdict;
pub(crate) mod wait;
