//! The reports of a run, of a campaign, or of recorded events.

use std::cell::LazyCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{Failure, unwritable, usage};
use crate::output::Output;
use crate::report::annotations::{self, Places};
use crate::report::{file, html, json, junit, markdown};
use crate::results::event::RunEvent;
use crate::results::recorded::Recorded;
use crate::shortage;

/// GitLab's report of code quality, by its usual name.
const CODE_QUALITY: &str = "gl-code-quality-report.json";

/// Which reports, and where they go.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Reports {
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the events as JSON lines, from which every other report can be made.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write one page of HTML, with a sequence diagram of each failure.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a summary in Markdown.
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Write all of these to a folder: NAME.junit.xml, NAME.jsonl, NAME.html and NAME.md.
    #[arg(long, value_name = "DIR")]
    pub report_dir: Option<PathBuf>,
    /// Mark failures where this CI shows them: annotations and the job's summary on GitHub, a report of code quality
    /// (gl-code-quality-report.json) on GitLab.
    #[arg(long, value_name = "CI")]
    pub annotations: Option<Annotations>,
    /// Write reports, traces, baselines, findings and corpora also where a symbolic link leads out of the working folder.
    #[arg(long)]
    pub follow_links: bool,
}

/// Which cases show their frames.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct Frames {
    /// Which frames --html and --json contain: those of the failed cases, or of all.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    html_frames: Which,
}

/// The cases that show their frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Those in which something is wrong.
    #[default]
    Failed,
    /// All.
    All,
}

impl Frames {
    /// Whether those of passed cases are wanted, too.
    pub fn are_all(self) -> bool {
        self.html_frames == Which::All
    }
}

/// What a command reads and writes besides its reports.
#[derive(Default)]
pub(super) struct Besides<'p> {
    /// What it reads, and must not overwrite.
    pub read: Vec<&'p PathBuf>,
    /// What else it writes.
    pub written: Vec<&'p PathBuf>,
    /// Where reports go that nobody has asked for.
    pub usual: Option<&'p Path>,
}

/// Whose marks to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Annotations {
    /// GitHub's or GitLab's, if their environment variables are set.
    Auto,
    /// Workflow commands, and the file that GITHUB_STEP_SUMMARY names.
    Github,
    /// A report of code quality.
    Gitlab,
}

impl Annotations {
    /// Which, in this environment.
    fn found(self) -> Option<Self> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| value == "true");
        match self {
            Self::Auto if is_set("GITHUB_ACTIONS") => Some(Self::Github),
            Self::Auto if is_set("GITLAB_CI") => Some(Self::Gitlab),
            Self::Auto => None,
            named => Some(named),
        }
    }
}

impl Reports {
    /// Says where each goes: by this name, where they go to a folder and are not said to go elsewhere.
    ///
    /// # Errors
    /// One would overwrite another, or what the command reads or writes besides; or there is no place for one: rather now than
    /// when the work is done.
    pub fn settle(mut self, name: &str, besides: &Besides<'_>) -> Result<Self, Failure> {
        if let Some(folder) = self.report_dir.clone() {
            self.summary.get_or_insert_with(|| folder.join(format!("{name}.md")));
            self.usual(&folder, name);
        }
        if let Some(folder) = besides.usual {
            self.usual(folder, name);
        }
        let written = || besides.written.iter().copied();
        check_distinct(besides.read.iter().copied(), self.paths().chain(written()))?;
        let quality = self.code_quality();
        self.paths().chain(&quality).chain(written()).try_for_each(|path| self.check_place(path))?;
        Ok(self)
    }

    /// Whether there are any.
    pub fn are_wanted(&self) -> bool {
        self.paths().next().is_some() || self.annotations.is_some()
    }

    /// Refuses reports that would overwrite what is read, as far as the command line names them.
    pub fn check_distinct<'p>(&'p self, read: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), Failure> {
        check_distinct(read, self.paths())
    }

    /// Writes what a program, CI and a person read to this folder, unless it is said to go elsewhere.
    fn usual(&mut self, folder: &Path, name: &str) {
        self.junit.get_or_insert_with(|| folder.join(format!("{name}.junit.xml")));
        self.json.get_or_insert_with(|| folder.join(format!("{name}.jsonl")));
        self.html.get_or_insert_with(|| folder.join(format!("{name}.html")));
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.junit, &self.json, &self.html, &self.summary].into_iter().flatten()
    }

    /// Whether something can be written here.
    fn check_place(&self, path: &Path) -> Result<(), Failure> {
        self.check_links(path)?;
        file::check_writable(path).map_err(unwritable)
    }

    /// That a file or folder is where its path says, unless it may be anywhere.
    pub fn check_links(&self, path: &Path) -> Result<(), Failure> {
        if self.follow_links { Ok(()) } else { file::check_links(path).map_err(leading_out) }
    }

    /// Where the report of code quality goes, if there is to be one.
    fn code_quality(&self) -> Option<PathBuf> {
        let wanted = self.annotations.and_then(Annotations::found) == Some(Annotations::Gitlab);
        wanted.then(|| self.report_dir.as_deref().unwrap_or(Path::new("")).join(CODE_QUALITY))
    }

    /// The file of events, to be written as they happen. [`Self::write`] does not write it any more.
    pub fn events_file(&mut self) -> EventsFile {
        let path = self.json.take();
        let output = path.as_deref().map(Output::create).transpose();
        EventsFile { path: path.unwrap_or_default(), output }
    }

    /// Writes them. `failure`: what it means that some cannot be written.
    pub fn write(
        &self,
        events: &(impl Recorded + ?Sized),
        failure: impl Fn(String) -> Failure,
    ) -> Result<(), Failure> {
        failed(self.write_each(events), failure)
    }

    /// Writes them, and says which cannot be written: that keeps no other from it.
    pub fn write_each(&self, events: &(impl Recorded + ?Sized)) -> Vec<String> {
        let in_pieces = |path: &Option<PathBuf>, write: &dyn Fn(&mut dyn Write) -> Result<(), String>| {
            path.as_ref().map_or(Ok(()), |path| file::write_in_pieces(path, write))
        };
        // What is ordered by causes, and not case by case: it needs all events at once.
        let bounded = LazyCell::new(|| events.bounded());
        let all = || bounded.as_deref().map_err(String::clone);
        let at_once = |path: &Option<PathBuf>, render: &dyn Fn(&[RunEvent]) -> String| {
            let Some(path) = path else { return Ok(()) };
            file::write_atomically(path, &render(all()?))
        };
        let annotated = || match self.annotations.and_then(Annotations::found) {
            Some(Annotations::Github) => github(all()?),
            _ => Ok(()),
        };
        let written = [
            in_pieces(&self.junit, &|out| junit::write(events, out)),
            in_pieces(&self.json, &|out| json::write(events, out)),
            at_once(&self.html, &html::render),
            at_once(&self.summary, &markdown::render),
            at_once(&self.code_quality(), &|events| annotations::gitlab(events, &places("CI_PROJECT_DIR"))),
            annotated(),
        ];
        written.into_iter().filter_map(Result::err).collect()
    }
}

/// The failure that this comes to, if there are errors.
pub(super) fn failed(errors: Vec<String>, failure: impl Fn(String) -> Failure) -> Result<(), Failure> {
    if errors.is_empty() { Ok(()) } else { Err(failure(errors.join("; "))) }
}

/// Events on their way to a file, however many there are. It is in its place once it is finished.
pub(super) struct EventsFile {
    path: PathBuf,
    /// None: no such file is wanted. An error: it could not be written to its end.
    output: std::io::Result<Option<Output>>,
}

impl EventsFile {
    /// Adds an event. Whether that was possible is told at the end.
    pub fn add(&mut self, event: &RunEvent) {
        if let Ok(Some(output)) = &mut self.output
            && let Err(error) = output.write_all((json::line(event) + "\n").as_bytes())
        {
            self.output = Err(error);
        }
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// The path and the reason.
    pub fn finish(self) -> Result<(), String> {
        let finished = self.output.and_then(|output| output.map_or(Ok(()), Output::finish));
        finished.map_err(|error| {
            format!("{} cannot be written: {}", self.path.display(), shortage::describe(&error))
        })
    }
}

fn leading_out(error: String) -> Failure {
    usage(
        error,
        "name the target of the link, or remove the link: files of untrusted authors may contain links to any place",
    )
}

/// Refuses to write over what is read, and to write two things to one file.
fn check_distinct<'p>(
    inputs: impl IntoIterator<Item = &'p PathBuf>,
    outputs: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Failure> {
    let place = |path: &PathBuf| std::fs::canonicalize(path).ok().or_else(|| std::path::absolute(path).ok());
    // What is no file, such as /dev/null, takes as much as it is given.
    let is_file = |path: &&PathBuf| std::fs::metadata(path).map_or(true, |found| found.is_file());
    let mut known: Vec<Option<PathBuf>> = inputs.into_iter().filter(is_file).map(place).collect();
    for path in outputs.into_iter().filter(is_file) {
        let own = place(path);
        if known.contains(&own) {
            let message = format!("{} would be overwritten", path.display());
            return Err(usage(message, "it is named twice: give each report a file of its own"));
        }
        known.push(own);
    }
    Ok(())
}

/// Prints the commands that GitHub's runner obeys, and adds to the job's summary if there is one.
fn github(events: &[RunEvent]) -> Result<(), String> {
    let marks = annotations::github(events, &places("GITHUB_WORKSPACE"));
    // As they are: they hold nothing of a server's that a runner would obey.
    let mut out = std::io::stdout();
    let shown = out.write_all(marks.as_bytes()).and_then(|()| out.flush());
    shown.map_err(|error| format!("the annotations cannot be written: {error}"))?;
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let added = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(markdown::render(events).as_bytes()));
    added.map_err(|error| {
        format!("the job's summary ({}) cannot be written: {error}", Path::new(&path).display())
    })
}

/// What can be marked from here. `root`: the environment variable that names the repository's folder.
fn places(root: &str) -> Places {
    let here = std::env::current_dir().unwrap_or_default();
    let root = std::env::var_os(root).map(PathBuf::from);
    let folder = root.and_then(|root| here.strip_prefix(root).ok().map(Path::to_owned)).unwrap_or_default();
    let configuration = PathBuf::from("frameproof.toml");
    Places { folder, configuration: configuration.exists().then_some(configuration) }
}
