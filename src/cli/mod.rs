//! The command line: one file a subcommand. Arguments in, exit code out; no logic.

mod admission;
mod cannot;
mod check;
mod completions;
mod config;
mod config_check;
mod diff;
mod doctor;
mod explain;
mod explore;
mod fuzz;
mod header;
mod init;
mod key_tables;
mod lint;
mod list;
mod man;
mod markdown;
mod merge;
mod model;
mod monitors;
mod mutants;
mod offer;
mod preambles;
mod reading;
mod recordings;
mod report;
mod reports;
mod run;
mod run_explore;
mod runtime;
mod schema;
mod screen;
mod selftest;
mod serve;
mod server;
mod shard;
mod side_by_side;
mod signals;
mod source;
mod subject;
mod supervise;
mod target;
mod watch;

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use self::runtime::runtime;
use crate::exit::{self, Exit};
use crate::report::escape::{Safe, styled};
use crate::shortage::{self, Reads, Shortage};
use crate::source::{Diagnostic, Diagnostics};

/// Everything that ends a command early.
#[derive(Debug)]
enum Failure {
    /// Usage, configuration or scenario error: [`Exit::Usage`].
    Usage(Diagnostics),
    /// Target unreachable or harness error: [`Exit::Harness`].
    Harness(Diagnostics),
    /// Nothing selected: [`Exit::Nothing`].
    Nothing(Diagnostics),
    /// This machine lacks something, which was noted: [`Exit::Harness`].
    Shortage,
    /// Ended by a signal before there was anything to report: [`Exit::Interrupted`].
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
        shortage::note(&error);
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

/// The hint for a word that is not known: the one that was perhaps meant, or else where the known ones stand.
fn did_you_mean<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    match crate::source::nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise(),
    }
}

fn usage(message: impl Display, hint: &str) -> Failure {
    Failure::Usage(diagnostic(message, hint).into())
}

fn unwritable(error: String) -> Failure {
    usage(error, "reports are written to a temporary file beside their place and renamed")
}

fn harness(message: impl Display, hint: &str) -> Failure {
    Failure::Harness(diagnostic(message, hint).into())
}

fn nothing(message: impl Display, hint: &str) -> Failure {
    Failure::Nothing(diagnostic(format!("nothing selected: {message}"), hint).into())
}

/// Standard output for plain text, whoever wrote it.
fn out() -> Safe<anstream::AutoStream<std::io::Stdout>> {
    Safe::new(anstream::stdout())
}

/// Tells on standard error what is worth knowing and no error.
fn print_notes(notes: Vec<Diagnostic>) {
    if !notes.is_empty() {
        let color = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
        // Nothing is left to do when standard error is gone.
        let _ = writeln!(anstream::stderr(), "{}\n", styled(&Diagnostics(notes).render(color)));
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

/// What a newcomer tries first, and the exit codes.
fn first_steps() -> String {
    let steps = [
        ("frameproof run", "the suites of all protocols against their built-in reference servers"),
        (
            "frameproof run PROTOCOL --url ws://127.0.0.1:8765/ws",
            "the suite of one protocol against your server",
        ),
        ("frameproof doctor --target mine", "check a server of frameproof.toml step by step"),
        ("frameproof init my-chat", "a protocol of your own, to start from"),
    ];
    let mut text = "First steps:\n".to_owned();
    for (command, about) in steps {
        text += &format!("  {command}\n      {about}\n");
    }
    text + "\n" + &exit::help(exit::Command::Run)
}

/// Conformance tests for agent-over-WebSocket protocols.
#[derive(Debug, Parser)]
#[command(name = "frameproof", version, max_term_width = 100, after_long_help = first_steps())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Color,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a protocol's suite against your server or its reference server.
    Run(Box<run::Run>),
    /// Run the suite again whenever a file changes, the failed cases first.
    Watch(Box<watch::Watch>),
    /// Check a server step by step and report what is missing.
    Doctor(Box<doctor::Doctor>),
    /// Fuzz a server with inputs from the protocol's schemas; findings are scenarios.
    Fuzz(Box<fuzz::Fuzz>),
    /// Explore a server with long valid conversations; findings are scenarios.
    Explore(Box<explore::Explore>),
    /// List protocols, cases, or requirements and what decides them.
    List(list::List),
    /// Look for cases that prove less than they seem to.
    Lint(lint::Lint),
    /// Explain a requirement, an ambiguity, a case or a kind of monitor.
    Explain(explain::Explain),
    /// Start a reference server, correct or with a fault.
    Serve(serve::Serve),
    /// Start the scripted language model, which a server under test uses in place of its provider.
    Model(model::Model),
    /// Test the suite itself: run it against every fault of the reference server.
    Selftest(Box<selftest::Selftest>),
    /// Judge a recorded trace.
    Check(check::Check),
    /// Print a run that `run --json` wrote, or write its reports.
    Report(report::Report),
    /// Merge the shards of a run: one verdict, one set of reports.
    Merge(merge::Merge),
    /// Compare two runs, or two recordings.
    Diff(diff::Diff),
    /// Write a small protocol with scenarios, to start from.
    Init(init::Init),
    /// Print a JSON Schema for editors.
    Schema(schema::Schema),
    /// Print a shell's completions.
    Completions(completions::Completions),
    /// Print the manual page, or write that of each subcommand.
    Man(man::Man),
    /// Print a table of the documentation.
    #[command(hide = true)]
    Markdown(markdown::Markdown),
    /// End launched servers when frameproof is gone.
    #[command(hide = true)]
    Supervise(supervise::Supervise),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            // It quotes what was given.
            let told = styled(&error.render().ansi().to_string());
            let _ = write!(anstream::stderr(), "{told}");
            return ExitCode::from(Exit::Usage.code());
        }
        Err(help) => help.exit(),
    };
    shortage::survive_long_files();
    supervise::offer();
    match arguments.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    let reads = match &arguments.command {
        Command::Check(_) | Command::Report(_) | Command::Merge(_) | Command::Diff(_) => {
            Some(Reads::Recordings)
        }
        Command::List(command) => Some(command.reads()),
        Command::Lint(_) => Some(Reads::Documents(crate::input::DOCUMENT)),
        _ => None,
    };
    if let Some(reads) = reads {
        shortage::end_when_memory_is_short(Exit::Harness.code(), reads, report_lack);
    }
    let result = match arguments.command {
        Command::Run(command) => command.run(),
        Command::Watch(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Fuzz(command) => command.run(),
        Command::Explore(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Lint(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Model(command) => command.run(),
        Command::Selftest(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Merge(command) => command.run(),
        Command::Diff(command) => command.run(),
        Command::Init(command) => command.run(),
        Command::Schema(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::Markdown(command) => command.run(),
        Command::Supervise(command) => command.run(),
    };
    let (errors, exit) = match result {
        Ok(exit) => return ExitCode::from(exit.code()),
        Err(Failure::BrokenPipe) => return ExitCode::SUCCESS,
        Err(Failure::Usage(errors)) => (errors, Exit::Usage),
        Err(Failure::Harness(errors)) => (errors, Exit::Harness),
        Err(Failure::Nothing(errors)) => (errors, Exit::Nothing),
        Err(Failure::Shortage) => (Diagnostics(Vec::new()), Exit::Harness),
        Err(Failure::Interrupted) => {
            (Diagnostic::new("interrupted before the first case").into(), Exit::Interrupted)
        }
    };
    let (errors, exit) = with_shortage(errors, exit);
    let color = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    // Nothing is left to do when standard error is gone, too.
    let _ = writeln!(anstream::stderr(), "{}", styled(&errors.render(color)));
    ExitCode::from(exit.code())
}

/// What failed for want of something is no mistake of the user's, whatever it looks like.
fn with_shortage(mut errors: Diagnostics, exit: Exit) -> (Diagnostics, Exit) {
    let Some(shortage) = shortage::seen() else { return (errors, exit) };
    errors.0.push(Diagnostic::new(shortage.to_string()).hint(shortage.advice()));
    (errors, Exit::Harness)
}

/// Says what this process lacks, and what to do about it.
fn report_lack(shortage: Shortage) {
    let errors = Diagnostics::from(Diagnostic::new(shortage.to_string()).hint(shortage.advice()));
    let color = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let _ = writeln!(anstream::stderr(), "{}", styled(&errors.render(color)));
}

/// Says once that a server which goes on lacks something.
async fn report_shortage() {
    let shortage = shortage::came().await;
    let what = match shortage {
        Shortage::Descriptors => {
            "connections wait until others end; `ulimit -n 4096` before the start allows more"
        }
        other => other.advice(),
    };
    let _ = writeln!(anstream::stderr(), "warning: {shortage}; {what}");
    std::future::pending::<()>().await;
}
