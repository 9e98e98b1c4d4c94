//! `frameproof init`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, usage};
use crate::report::file::write_atomically;

/// The files, with their places; `{{name}}` is the protocol's folder.
const FILES: [(&str, &str); 4] = [
    ("frameproof.toml", include_str!("../../templates/init/frameproof.toml")),
    ("{{name}}/asyncapi.yaml", include_str!("../../templates/init/protocol/asyncapi.yaml")),
    ("{{name}}/requirements.yaml", include_str!("../../templates/init/protocol/requirements.yaml")),
    ("scenarios/first.yaml", include_str!("../../templates/init/scenarios/first.yaml")),
];

/// Write a small protocol of your own to start from: a protocol folder, scenarios, a configuration.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// The folder to write to; it is made if need be. No file of it is overwritten.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// What the protocol is called: lower case, digits and hyphens.
    #[arg(long, default_value = "mychat")]
    name: String,
    /// Where your server listens.
    #[arg(long, default_value = "ws://127.0.0.1:8765/ws")]
    url: String,
}

impl Init {
    pub fn run(self) -> Result<u8, Failure> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(fits) || self.name == "scenarios" {
            let hint = "lower case, digits and hyphens, such as my-chat";
            return Err(usage(format!("`{}` cannot be a protocol's name", self.name), hint));
        }
        if self.url.contains(['"', '\\'])
            || !(self.url.starts_with("ws://") || self.url.starts_with("wss://"))
        {
            return Err(usage(format!("`{}` is no WebSocket URL", self.url), "ws://127.0.0.1:8765/ws"));
        }
        let fill = |text: &str| text.replace("{{name}}", &self.name).replace("{{url}}", &self.url);
        let files = FILES.map(|(path, text)| (self.folder.join(fill(path)), text));
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            let hint = "choose another folder, or move the file away";
            return Err(usage(format!("{} exists, and nothing is overwritten", path.display()), hint));
        }
        let mut out = anstream::stdout();
        for (path, text) in files {
            // Scenario templates look the same and are not for us: only the configuration is filled in.
            let is_config = path.extension().is_some_and(|extension| extension == "toml");
            let text = if is_config { fill(text) } else { text.to_owned() };
            write_atomically(&path, &text).map_err(|error| usage(error, "take another folder"))?;
            writeln!(out, "wrote {}", path.display())?;
        }
        writeln!(
            out,
            "\nStart your server at {}, then run `frameproof run` in {}.\ndocs/protocols.md explains each part.",
            self.url,
            self.folder.display()
        )?;
        Ok(0)
    }
}
