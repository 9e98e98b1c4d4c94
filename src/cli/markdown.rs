//! `frameproof markdown`: the tables of the documentation, made from what the program itself goes by. Hidden: it is for
//! docs/, where a test compares each table with what this prints.

use std::io::Write;

use clap::{Args, CommandFactory, ValueEnum};
use serde_json::Value;

use super::{Arguments, Failure};
use crate::exit::{self, Exit};
use crate::report::table::Table;
use crate::scenario::verbs;
use crate::source::schema_of;
use crate::target::TargetConfig;

/// Print a table of the documentation.
#[derive(Debug, Args)]
pub(super) struct Markdown {
    #[arg(value_enum)]
    of: Of,
    /// Of `keys`: the file, and one of its objects.
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// The exit codes and what they mean.
    ExitCodes,
    /// The subcommands with their arguments and options.
    Commands,
    /// The kinds of monitor.
    Monitors,
    /// A section for each kind of monitor, with examples.
    MonitorPages,
    /// The verbs of a step, and their modifiers.
    Verbs,
    /// The keys of an object of a YAML file.
    Keys,
    /// The keys of `[target.NAME]`.
    Target,
    /// The keys of frameproof.toml outside of targets.
    Config,
}

impl Markdown {
    pub fn run(self) -> Result<Exit, Failure> {
        let text = match self.of {
            Of::ExitCodes => exit_codes(),
            Of::Commands => commands(),
            Of::Monitors => monitors(),
            Of::MonitorPages => super::monitors::pages()?,
            Of::Verbs => verbs::documentation(),
            Of::Keys => {
                let name = |index: usize| self.names.get(index).map(String::as_str);
                super::key_tables::table(name(0).unwrap_or_default(), name(1))?
            }
            Of::Target => keys(&schema_of::<TargetConfig>()),
            Of::Config => keys(&schema_of::<super::config::Config>()),
        };
        write!(anstream::stdout(), "{text}")?;
        Ok(Exit::Passed)
    }
}

fn exit_codes() -> String {
    let mut table = Table::new(["exit code", "`run`", "`doctor`", "`fuzz`", "`explore`"]);
    for exit in Exit::ALL {
        let meaning = |command| exit.meaning(command).unwrap_or("-").to_owned();
        table.row([
            exit.code().to_string(),
            meaning(exit::Command::Run),
            meaning(exit::Command::Doctor),
            meaning(exit::Command::Fuzz),
            meaning(exit::Command::Explore),
        ]);
    }
    table.markdown()
}

/// A section for each subcommand: what it does, how it is called, and a table of its arguments.
fn commands() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut text = String::new();
    for command in root.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        text += &format!("### `{}`\n\n{about}.\n\n```text\n{usage}\n```\n\n", command.get_name());
        let mut table = Table::new(["argument", "meaning"]);
        for argument in
            command.get_arguments().filter(|one| !matches!(one.get_id().as_str(), "help" | "color"))
        {
            table.row([cell(&spelling(argument)), cell(&meaning(argument))]);
        }
        text += &table.markdown();
        text.push('\n');
    }
    text
}

/// `-j`, `--jobs <N>`.
fn spelling(argument: &clap::Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    if argument.is_positional() {
        return format!("`{value}`");
    }
    let takes_value = argument.get_action().takes_values();
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let long = argument.get_long().unwrap_or_default();
    if takes_value { format!("{short}`--{long} {value}`") } else { format!("{short}`--{long}`") }
}

/// The help of an argument in one paragraph, with its default and its possible values.
fn meaning(argument: &clap::Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let values: Vec<_> =
        argument.get_possible_values().iter().map(|one| format!("`{}`", one.get_name())).collect();
    if argument.get_action().takes_values() && !values.is_empty() {
        text += &format!(". One of {}", values.join(", "));
    }
    if let [default] = argument.get_default_values()
        && argument.get_action().takes_values()
    {
        text += &format!(". Default: `{}`", default.to_string_lossy());
    }
    text
}

fn monitors() -> String {
    let mut table = Table::new(["monitor", "the property", "parameters", "optional"]);
    for kind in super::monitors::kinds() {
        let list = |required: bool| {
            let names = kind.parameters.iter().filter(|one| one.required == required);
            names.map(|one| format!("`{}`", one.name)).collect::<Vec<_>>().join(", ")
        };
        table.row([format!("`{}`", kind.name), cell(&kind.property), list(true), list(false)]);
    }
    table.markdown()
}

/// The properties of an object, with their descriptions.
fn keys(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut table = Table::new(["key", "meaning"]);
    for (name, property) in properties.into_iter().flatten() {
        table.row([format!("`{name}`"), cell(described(property))]);
    }
    table.markdown()
}

fn described(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or_default()
}

/// A text as it may stand in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
