//! The command line: one file a subcommand. Arguments in, exit code out; no logic.

mod check;
mod config;
mod doctor;
mod explain;
mod fuzz;
mod header;
mod init;
mod list;
mod model;
mod places;
mod report;
mod run;
mod schema;
mod selftest;
mod serve;
mod server;
mod source;
mod target;

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::source::{Diagnostic, Diagnostics};

/// Everything that ends a command early.
#[derive(Debug)]
enum Failure {
    /// Usage, configuration or scenario error: exit code 2.
    Usage(Diagnostics),
    /// Target unreachable or harness error: exit code 3.
    Harness(Diagnostics),
    /// Nothing selected: exit code 4.
    Nothing(Diagnostics),
    /// Ended by a signal before there was anything to report: exit code 130.
    Interrupted,
    /// The reader of our output is gone, which is no failure.
    BrokenPipe,
}

impl From<Diagnostics> for Failure {
    fn from(errors: Diagnostics) -> Self {
        Self::Usage(errors)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            harness(format!("the output cannot be written: {error}"), "")
        }
    }
}

/// A message with advice; empty advice is left out.
fn diagnostic(message: impl Display, hint: &str) -> Diagnostic {
    let diagnostic = Diagnostic::new(message.to_string());
    if hint.is_empty() { diagnostic } else { diagnostic.hint(hint) }
}

fn usage(message: impl Display, hint: &str) -> Failure {
    Failure::Usage(diagnostic(message, hint).into())
}

fn harness(message: impl Display, hint: &str) -> Failure {
    Failure::Harness(diagnostic(message, hint).into())
}

fn nothing(message: impl Display, hint: &str) -> Failure {
    Failure::Nothing(diagnostic(format!("nothing selected: {message}"), hint).into())
}

/// Tells on standard error what is worth knowing and no error.
fn tell(notes: Vec<Diagnostic>) {
    if !notes.is_empty() {
        let color = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
        // Nothing is left to do when standard error is gone.
        let _ = writeln!(anstream::stderr(), "{}\n", Diagnostics(notes).render(color));
    }
}

/// Columns of the terminal that standard output goes to; `None`: it goes elsewhere.
fn width() -> Option<usize> {
    let out = std::io::stdout();
    let size = std::io::IsTerminal::is_terminal(&out).then(|| terminal_size::terminal_size_of(out)).flatten();
    size.map(|(terminal_size::Width(width), _)| usize::from(width))
}

/// An input file that cannot be opened.
fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    usage(format!("{} cannot be read: {error}", path.display()), "check the path and its permissions")
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Conformance tests for agent-over-WebSocket protocols.
///
/// Exit codes: 0 conformant; 1 not conformant, or a stale baseline entry; 2 usage, configuration or scenario error; 3 target
/// unreachable or harness error; 4 nothing selected, or no case judged; 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "frameproof", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Color,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a protocol's suite against its reference server or a server of yours.
    Run(Box<run::Run>),
    /// Walk through a server of yours step by step and say what is missing.
    Doctor(Box<doctor::Doctor>),
    /// Fuzz a server: inputs from the protocol's schemas, findings as scenarios.
    Fuzz(Box<fuzz::Fuzz>),
    /// List cases, or requirements and what decides them.
    List(list::List),
    /// Explain a requirement: text, source, reading, what decides it, which faults break it.
    Explain(explain::Explain),
    /// Start a reference server, correct or with a fault.
    Serve(serve::Serve),
    /// Start the scripted language model, for a server under test to talk to.
    Model(model::Model),
    /// Prove the suite: run it against every fault of the reference server.
    Selftest(selftest::Selftest),
    /// Judge a recorded trace.
    Check(check::Check),
    /// Make console output or JUnit XML from a file that `run --json` wrote.
    Report(report::Report),
    /// Write a small protocol of your own to start from.
    Init(init::Init),
    /// Print a JSON Schema for editors.
    Schema(schema::Schema),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    let result = match arguments.command {
        Command::Run(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Fuzz(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Model(command) => command.run(),
        Command::Selftest(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Init(command) => command.run(),
        Command::Schema(command) => command.run(),
    };
    let (errors, code) = match result {
        Ok(code) => return ExitCode::from(code),
        Err(Failure::BrokenPipe) => return ExitCode::SUCCESS,
        Err(Failure::Usage(errors)) => (errors, 2),
        Err(Failure::Harness(errors)) => (errors, 3),
        Err(Failure::Nothing(errors)) => (errors, 4),
        Err(Failure::Interrupted) => (Diagnostic::new("interrupted before the first case").into(), 130),
    };
    let color = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    // Nothing is left to do when standard error is gone, too.
    let _ = writeln!(anstream::stderr(), "{}", errors.render(color));
    ExitCode::from(code)
}

/// A runtime for commands that talk to a network.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| harness(format!("no runtime: {error}"), ""))
}
