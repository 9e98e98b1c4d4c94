//! Every integration test, as one program: forty would be linked forty times. A file of tests is a module of this one, its name the
//! first part of its tests' names: `cargo test --test it cli::`. Tests run as threads of one process: none may change its
//! environment or current directory, and ports are always chosen by the system.

mod agents;
mod baselines;
mod captures;
mod cli;
mod close_events;
mod config_errors;
mod dialects;
mod docs;
mod ends;
mod engine;
mod explore;
mod extending;
mod farewell;
mod fuzz_corpus;
mod fuzz_deaths;
mod fuzz_targets;
mod hostile;
mod junit;
mod layers;
mod live_fuzz;
mod model;
mod model_http;
mod model_sdks;
mod modifiers;
mod own_protocol;
mod protocols;
mod raw_frames;
mod reference;
mod run_options;
mod scenario_errors;
mod second_run;
mod sessions;
mod shards;
mod silence;
mod stories;
mod support;
mod target_doctor;
mod target_hurry;
mod target_launch;
mod target_sessions;
mod target_silence;
mod target_trouble;
mod tls;
mod waiting;
