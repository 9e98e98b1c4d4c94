//! `frameproof model`.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::Args;

use super::admission::Admission;
use super::reports::Reports;
use super::{Failure, report_shortage, runtime, usage};
use crate::exit::Exit;
use crate::model::{self, Observer, Options, Record};

/// What a newcomer needs besides the options.
const HELP: &str = "\
It speaks OpenAI's Chat Completions and Responses and Anthropic's Messages, takes any model name and any key, and plays the \
cue `[[cue:…]]` in the newest user text; a text without one gets `ok`. It prints its base URL and runs until Ctrl-C or SIGTERM. \
Point the server under test to it; with `--listen 127.0.0.1:8766`:

  OPENAI_BASE_URL=http://127.0.0.1:8766/v1 OPENAI_API_KEY=any
  ANTHROPIC_BASE_URL=http://127.0.0.1:8766 ANTHROPIC_API_KEY=any

More in docs/model.md.";

/// Start the scripted language model.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Model {
    /// The address to listen on; port 0 uses a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    #[command(flatten)]
    admission: Admission,
    /// Write each request and its end as a line of JSON, without headers and keys.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the log also where a symbolic link leads out of the working folder.
    #[arg(long)]
    follow_links: bool,
}

impl Model {
    pub fn run(self) -> Result<Exit, Failure> {
        if let Some(path) = &self.log {
            Reports { follow_links: self.follow_links, ..Reports::default() }.check_links(path)?;
        }
        let observer = self.log.map(log).transpose()?;
        let (guard, most) = (Some(self.admission.guard()), self.admission.most());
        let options = Options { listen: self.listen, observer, guard, most, hangs: None };
        let mut out = anstream::stdout();
        runtime()?.block_on(async {
            let started = model::start(options).await;
            let model =
                started.map_err(|error| usage(error, "port 0 takes a free one: --listen 127.0.0.1:0"))?;
            writeln!(out, "{}", model.url())?;
            out.flush()?;
            let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                () = report_shortage() => {}
            }
            model.stop().await;
            Ok(Exit::Passed)
        })
    }
}

/// An observer that writes to this file.
fn log(path: PathBuf) -> Result<Observer, Failure> {
    let file = File::create(&path)
        .map_err(|error| usage(format!("{} cannot be written: {error}", path.display()), "check the path"))?;
    let file = Mutex::new(Some(file));
    Ok(Arc::new(move |record: &Record| {
        let Ok(mut file) = file.lock() else { return };
        // A record is plain data, which always serialises.
        let line = serde_json::to_string(record).unwrap_or_default();
        if let Some(Err(error)) = file.as_mut().map(|file| writeln!(file, "{line}")) {
            // Once: what follows would fail, too.
            *file = None;
            let _ = writeln!(anstream::stderr(), "{} cannot be written any more: {error}", path.display());
        }
    }))
}
