//! `frameproof init`.

mod like;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use self::like::Like;
use super::source::quote;
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
/// Folders that the protocol's must not be.
const RESERVED: [&str; 2] = ["scenarios", "reports"];

/// Write a small protocol of your own to start from, or a copy of one that ships: a protocol folder, scenarios, a configuration.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// The folder to write to; it is created if necessary. No file is overwritten.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Copy this shipped protocol with all its scenarios.
    #[arg(long, value_name = "PROTOCOL")]
    from: Option<String>,
    /// Write a protocol of this kind, with one server in Python and one in JavaScript, targets that launch them, and mutants.
    #[arg(long, value_name = "KIND", conflicts_with_all = ["from", "url"])]
    like: Option<Like>,
    /// The name of the protocol: lower case, digits and hyphens [default: mychat, that of the copied one, or the kind].
    #[arg(long)]
    name: Option<String>,
    /// The URL of your server.
    #[arg(long, default_value = "ws://127.0.0.1:8765/ws")]
    url: String,
}

impl Init {
    pub fn run(self) -> Result<Exit, Failure> {
        let copied = self.from.as_deref().map(Protocol::embedded_files).transpose()?;
        let default = self.from.as_deref().or(self.like.map(Like::name)).unwrap_or("mychat");
        let name = self.name.as_deref().unwrap_or(default);
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(fits) || RESERVED.contains(&name) {
            let hint = "lower case, digits and hyphens, such as my-chat";
            return Err(usage(format!("`{name}` cannot be a protocol's name"), hint));
        }
        if self.url.contains(['"', '\\'])
            || !(self.url.starts_with("ws://") || self.url.starts_with("wss://"))
        {
            return Err(usage(format!("`{}` is not a WebSocket URL", self.url), "ws://127.0.0.1:8765/ws"));
        }
        // Scenario templates look the same and are not for us: only the configuration is filled in.
        let like = self.like.map(Like::files);
        let config = like.as_ref().map_or(CONFIG, |files| files.config);
        let config = config.replace("{{name}}", name).replace("{{url}}", &self.url);
        let mut files = vec![("frameproof.toml".to_owned(), config.as_str())];
        match (copied, &like) {
            (None, Some(like)) => {
                files.extend(like.protocol.map(|(file, text)| (format!("{name}/{file}"), text)));
                files.extend(like.others.map(|(file, text)| (file.to_owned(), text)));
            }
            (None, None) => {
                files.extend(PROTOCOL.map(|(file, text)| (format!("{name}/{file}"), text)));
                files.push(("scenarios/first.yaml".to_owned(), SCENARIO));
            }
            (Some(documents), _) => {
                files.extend(documents.map(|(file, text)| (format!("{name}/{file}"), text)));
                let scenarios = embedded_files(self.from.as_deref().unwrap_or(name)).into_iter();
                files.extend(scenarios.map(|(path, text)| {
                    (format!("scenarios/{}", path.rsplit('/').next().unwrap_or(path)), text)
                }));
            }
        }
        let files: Vec<(PathBuf, &str)> =
            files.into_iter().map(|(path, text)| (self.folder.join(path), text)).collect();
        // A link to nothing is there, too: whatever is written to it is made where it leads.
        if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
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
        if self.like.is_some() {
            let cd = if here {
                String::new()
            } else {
                format!("  cd {}\n", quote(&self.folder.to_string_lossy()))
            };
            writeln!(out, "\n{}", like::NEXT.replace("{cd}", &cd))?;
            return Ok(Exit::Passed);
        }
        let place = if here { String::new() } else { format!(" in {}", self.folder.display()) };
        writeln!(
            out,
            "\nStart your server at {}, then run `frameproof run`{}.\ndocs/protocols.md explains each part.",
            self.url, place
        )?;
        Ok(Exit::Passed)
    }
}
