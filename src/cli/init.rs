//! `frameproof init`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, usage};
use crate::exit::Exit;
use crate::protocol::Protocol;
use crate::report::file::write_atomically;
use crate::scenario::embedded_files;

const CONFIG: &str = include_str!("../../templates/init/frameproof.toml");
const PROTOCOL: [(&str, &str); 2] = [
    ("asyncapi.yaml", include_str!("../../templates/init/protocol/asyncapi.yaml")),
    ("requirements.yaml", include_str!("../../templates/init/protocol/requirements.yaml")),
];
const SCENARIO: &str = include_str!("../../templates/init/scenarios/first.yaml");

/// Write a small protocol of your own to start from, or a copy of one that ships: a protocol folder, scenarios, a configuration.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// The folder to write to; it is created if necessary. No file is overwritten.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Copy this shipped protocol with all its scenarios.
    #[arg(long, value_name = "PROTOCOL")]
    from: Option<String>,
    /// The name of the protocol: lower case, digits and hyphens [default: mychat, or that of the copied one].
    #[arg(long)]
    name: Option<String>,
    /// The URL of your server.
    #[arg(long, default_value = "ws://127.0.0.1:8765/ws")]
    url: String,
}

impl Init {
    pub fn run(self) -> Result<Exit, Failure> {
        let copied = self.from.as_deref().map(Protocol::embedded_files).transpose()?;
        let name = self.name.as_deref().or(self.from.as_deref()).unwrap_or("mychat");
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(fits) || name == "scenarios" {
            let hint = "lower case, digits and hyphens, such as my-chat";
            return Err(usage(format!("`{name}` cannot be a protocol's name"), hint));
        }
        if self.url.contains(['"', '\\'])
            || !(self.url.starts_with("ws://") || self.url.starts_with("wss://"))
        {
            return Err(usage(format!("`{}` is not a WebSocket URL", self.url), "ws://127.0.0.1:8765/ws"));
        }
        // Scenario templates look the same and are not for us: only the configuration is filled in.
        let config = CONFIG.replace("{{name}}", name).replace("{{url}}", &self.url);
        let mut files = vec![("frameproof.toml".to_owned(), config.as_str())];
        match copied {
            None => {
                files.extend(PROTOCOL.map(|(file, text)| (format!("{name}/{file}"), text)));
                files.push(("scenarios/first.yaml".to_owned(), SCENARIO));
            }
            Some(documents) => {
                files.extend(documents.map(|(file, text)| (format!("{name}/{file}"), text)));
                let scenarios = embedded_files(self.from.as_deref().unwrap_or(name)).into_iter();
                files.extend(scenarios.map(|(path, text)| {
                    (format!("scenarios/{}", path.rsplit('/').next().unwrap_or(path)), text)
                }));
            }
        }
        let files: Vec<(PathBuf, &str)> =
            files.into_iter().map(|(path, text)| (self.folder.join(path), text)).collect();
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            let hint = "choose another folder, or move the file away";
            return Err(usage(format!("{} exists, and nothing is overwritten", path.display()), hint));
        }
        let mut out = super::out();
        for (path, text) in files {
            write_atomically(&path, text).map_err(|error| usage(error, "choose another folder"))?;
            writeln!(out, "wrote {}", path.display())?;
        }
        // The folder in which the command stands needs no name.
        let here = self.folder.components().all(|part| part == std::path::Component::CurDir);
        let place = if here { String::new() } else { format!(" in {}", self.folder.display()) };
        writeln!(
            out,
            "\nStart your server at {}, then run `frameproof run`{}.\ndocs/protocols.md explains each part.",
            self.url, place
        )?;
        Ok(Exit::Passed)
    }
}
