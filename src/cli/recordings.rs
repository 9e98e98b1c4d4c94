//! Two recordings, for `frameproof diff`.

use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::reports::{Besides, Reports};
use super::source::{Filter, Source};
use super::{Failure, unreadable, unwritable, usage};
use crate::check::RulesetPair;
use crate::exit::Exit;
use crate::frame::{Limits, Pointer, parse_batch, parse_text};
use crate::protocol::{LoadOptions, Protocol};
use crate::recording::compare::compare;
use crate::recording::entry::{ReadError, Reading, Recording};
use crate::recording::places::Places;
use crate::report::{file, html, recordings};
use crate::scenario::LoadedCase;
use crate::trace::{Payload, Reader};

/// Frames that are looked at to see of which protocol a recording is.
const LOOKED_AT: usize = 2_000;
const LINE: &str = "`frameproof schema trace` describes a line; of a recording that is still being written, the last may be cut off";

/// How two recordings are compared.
#[derive(Debug, Args)]
pub(super) struct Recordings {
    /// Recordings: their protocol, a shipped one's name or a folder. Default: the shipped one whose messages they have.
    #[arg(long, value_name = "NAME|PATH")]
    protocol: Option<String>,
    /// Recordings: JSON Merge Patches on the protocol.
    #[arg(long, value_name = "FILE")]
    overlay: Vec<PathBuf>,
    /// Recordings: the dialect of the recorded servers. Default: the document's own.
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// Recordings: a place whose values are not compared, for example `/usage/ms`; `/0` stands for any element of a list. May be repeated.
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<Pointer>,
    /// Recordings: the largest number of differences shown.
    #[arg(long, value_name = "N", default_value_t = 50)]
    show: usize,
    /// Recordings: write one page of HTML, with both side by side.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the page also where a symbolic link leads out of the working folder.
    #[arg(long)]
    follow_links: bool,
}

impl Recordings {
    /// Refuses what two runs cannot take.
    pub fn refuse(&self) -> Result<(), Failure> {
        let given = [
            ("--protocol", self.protocol.is_some()),
            ("--overlay", !self.overlay.is_empty()),
            ("--dialect", self.dialect.is_some()),
            ("--ignore", !self.ignore.is_empty()),
            ("--html", self.html.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                let message = format!("{flag} is for two recordings, and these are no recordings");
                Err(usage(message, "a recording is what `frameproof run --trace FILE` writes"))
            }
            None => Ok(()),
        }
    }

    /// Compares them.
    pub fn compare(&self, before: &Path, after: &Path, quiet: bool) -> Result<Exit, Failure> {
        let reports =
            Reports { html: self.html.clone(), follow_links: self.follow_links, ..Reports::default() };
        let read = [before.to_owned(), after.to_owned()];
        reports.settle("diff", &Besides { read: read.iter().collect(), ..Besides::default() })?;
        let (protocol, cases) = self.protocol(before, after)?;
        let places = Places::of(&protocol, &self.ignore);
        let rules = RulesetPair::compile(&protocol, None)?;
        // What a shipped case breaks on purpose is not judged in its recording either.
        let suspended = |id: &str| {
            let case = cases.iter().find(|case| case.id == id);
            case.map(|case| case.case.suspend.clone()).unwrap_or_default()
        };
        let reading = Reading { protocol: &protocol, rules: &rules, places: &places, suspended: &suspended };
        let (one, other) = (recording(before, &reading)?, recording(after, &reading)?);
        for (path, recording) in [(before, &one), (after, &other)] {
            check_known(path, recording, &protocol)?;
        }
        let found = compare(&one, &other, &places);
        if let Some(path) = &self.html {
            let names = (before.display().to_string(), after.display().to_string());
            let title = format!("{} {}", protocol.title, protocol.version);
            let page = html::recordings(&found, &title, (&names.0, &names.1));
            file::write_atomically(path, &page).map_err(unwritable)?;
        }
        let mut out = anstream::stdout().lock();
        recordings::show(&found, quiet, self.show, &mut out)?;
        out.flush()?;
        Ok(if found.differs() { Exit::Failed } else { Exit::Passed })
    }

    /// The protocol of both, with its cases.
    fn protocol(&self, before: &Path, after: &Path) -> Result<(Arc<Protocol>, Vec<LoadedCase>), Failure> {
        let given = match &self.protocol {
            Some(given) => given.clone(),
            None => self.known(before, after)?.to_owned(),
        };
        let folder = PathBuf::from(&given);
        let is_folder = !Source::is_embedded(&given) && folder.is_dir();
        let mut source = Source {
            name: (!is_folder).then_some(given),
            protocol: is_folder.then_some(folder),
            overlay: self.overlay.clone(),
            dialect: self.dialect.clone(),
            ..Source::default()
        };
        let protocol = source.protocol(&mut Filter::default())?;
        let cases = source.cases(&protocol)?;
        Ok((protocol, cases))
    }

    /// The shipped protocol that both speak.
    fn known(&self, before: &Path, after: &Path) -> Result<&'static str, Failure> {
        let names = Protocol::embedded_names();
        let loaded = names.iter().map(|name| Protocol::embedded(name, &LoadOptions::default()));
        let protocols = loaded.collect::<Result<Vec<_>, _>>()?;
        let spoken = |path: &Path| {
            let at = spoken(path, &protocols)?;
            at.map(|at| names[at]).ok_or_else(|| {
                let message = format!("{}: no shipped protocol has its messages", path.display());
                usage(message, "--protocol PATH names the folder of yours")
            })
        };
        let (one, other) = (spoken(before)?, spoken(after)?);
        if one == other {
            return Ok(one);
        }
        let message =
            format!("{} is a recording of {one}, {} one of {other}", before.display(), after.display());
        Err(usage(
            message,
            "give two recordings of the same protocol; --protocol names it, if this is not so",
        ))
    }
}

fn open(path: &Path) -> Result<BufReader<std::fs::File>, Failure> {
    crate::input::open(path).map(BufReader::new).map_err(|error| unreadable(path, &error))
}

fn recording(path: &Path, reading: &Reading<'_>) -> Result<Recording, Failure> {
    reading.read(&path.display().to_string(), open(path)?).map_err(|error| match error {
        ReadError::Line(_) => usage(error, LINE),
        ReadError::Empty(_) => usage(error, "is the file complete?"),
        ReadError::TooLong { .. } => usage(error, "compare a part: the lines of a case, or of a while"),
    })
}

/// Which of these protocols has at least half of the messages.
fn spoken(path: &Path, protocols: &[Arc<Protocol>]) -> Result<Option<usize>, Failure> {
    let mut total = 0;
    let mut known = vec![0; protocols.len()];
    let bounds = Limits::default();
    for event in Reader::new(&path.display().to_string(), open(path)?).take(LOOKED_AT) {
        let event = event.map_err(|error| usage(error, LINE))?;
        let Payload::Text(text) = &event.payload else { continue };
        let is_known = |protocol: &Arc<Protocol>| {
            let Ok(found) = protocol.messages_in(text, event.dir, &bounds) else { return false };
            let known =
                |body: &Value| protocol.message_of(body, event.dir).is_some() || protocol.is_reply(body);
            found.into_vec().iter().all(known)
        };
        // What is no JSON is no protocol's.
        total += usize::from(parse_text(text, &bounds).is_ok() || parse_batch(text, &bounds).is_ok());
        for (protocol, known) in protocols.iter().zip(&mut known) {
            *known += usize::from(is_known(protocol));
        }
    }
    let best = known.iter().enumerate().max_by_key(|(at, known)| (**known, std::cmp::Reverse(*at)));
    Ok(best.filter(|(_, known)| **known > 0 && **known * 2 >= total).map(|(at, _)| at))
}

/// Refuses what is hardly of this protocol.
fn check_known(path: &Path, recording: &Recording, protocol: &Protocol) -> Result<(), Failure> {
    let (total, known) = recording.known;
    if total == 0 || known * 2 >= total {
        return Ok(());
    }
    let message = format!("{}: {known} of {total} messages are {}'s", path.display(), protocol.name);
    Err(usage(message, "give two recordings of the same protocol; --protocol and --dialect say which"))
}
