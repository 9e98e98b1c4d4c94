//! `frameproof watch`: the loop of somebody who mends a server.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use globset::{Glob, GlobSet, GlobSetBuilder};
use notify::{EventKind, RecursiveMode, Watcher};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch::Receiver;

use super::run::Run;
use super::signals::stop_on_signal;
use super::{Failure, harness, out, report, runtime, usage};
use crate::exit::Exit;
use crate::report::escape::terminal;
use crate::results::event::{RunEvent, Verdict};
use crate::target::Groups;

/// An editor writes a file in several steps, and a build many files: what changes within this time of each other is one change.
const TOGETHER: Duration = Duration::from_millis(150);
/// Folders that hold what is made, not what is written.
const MADE: [&str; 8] = [".git", ".venv", "__pycache__", "dist", "node_modules", "reports", "target", "venv"];
/// Failed cases that are run first; where more have failed, everything is run.
const FIRST: usize = 300;
/// Runs that were cut short by a change of the same file, behind which it is not looked at any more: the server itself writes it.
const OFTEN: u32 = 3;

/// Run the suite again whenever a file changes, the failed cases first.
#[derive(Debug, Args)]
pub(super) struct Watch {
    #[command(flatten)]
    run: Run,
    /// A file or folder to watch; may be repeated. Default: the folder of frameproof.toml, or the working folder.
    #[arg(long, value_name = "PATH")]
    path: Vec<PathBuf>,
    /// Ignore changes of these files: globs of paths below the watched folders, such as `data/**`. May be repeated. Always
    /// ignored: .git, node_modules, target, reports and the like.
    #[arg(long, value_name = "GLOB")]
    ignore: Vec<Glob>,
}

/// What ended a run, or the wait for a change.
enum Ended {
    Done(ExitStatus),
    Changed(BTreeSet<PathBuf>),
    Stopped,
}

impl Watch {
    pub fn run(self) -> Result<Exit, Failure> {
        if self.run.list {
            return Err(usage("--list does not go with watch", "frameproof run --list lists the cases"));
        }
        let paths = self.paths()?;
        let mut ignored = GlobSetBuilder::new();
        for glob in &self.ignore {
            ignored.add(glob.clone());
        }
        let ignored = ignored.build().map_err(|error| usage(error, "--ignore takes a glob"))?;
        let (send, changes) = unbounded_channel();
        let reports: Vec<PathBuf> =
            self.run.outputs().filter_map(|path| std::path::absolute(path).ok()).collect();
        let roots = paths.clone();
        let seen = move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            if matches!(event.kind, EventKind::Access(_)) {
                return;
            }
            let paths = event.paths.into_iter();
            for path in paths.filter(|path| !is_made(path, &roots, &ignored) && !reports.contains(path)) {
                // Whoever listens may be gone.
                let _ = send.send(path);
            }
        };
        let cannot = |error: notify::Error| harness(format!("files cannot be watched: {error}"), "");
        let mut watcher = notify::recommended_watcher(seen).map_err(cannot)?;
        for path in &paths {
            watcher.watch(path, RecursiveMode::Recursive).map_err(|error| {
                usage(
                    format!("{} cannot be watched: {error}", path.display()),
                    "--path takes a file or folder",
                )
            })?;
        }
        let groups = Groups::default();
        let folder = groups.scratch().map_err(|error| harness(error, "no temporary folder can be made"))?;
        let events = self.run.events().map_or_else(|| folder.path().join("events.jsonl"), Path::to_owned);
        let runtime = runtime()?;
        let session = Session {
            own: self.run.events().is_none(),
            events,
            strict: self.run.is_strict(),
            changes,
            stopped: stop_on_signal(&runtime, None),
            groups,
        };
        runtime.block_on(session.go(&paths, self.run.is_filtered()))
    }

    /// What to watch.
    fn paths(&self) -> Result<Vec<PathBuf>, Failure> {
        let config = self.run.config().and_then(Path::parent).filter(|folder| *folder != Path::new(""));
        let default = config.unwrap_or(Path::new(".")).to_owned();
        let named = if self.path.is_empty() { vec![default] } else { self.path.clone() };
        let real = named
            .iter()
            .map(|path| std::fs::canonicalize(path).map_err(|error| super::unreadable(path, &error)));
        real.collect()
    }
}

/// Whether a path is something that is made, or is said to mean nothing.
fn is_made(path: &Path, roots: &[PathBuf], ignored: &GlobSet) -> bool {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    let made = |part: std::path::Component<'_>| MADE.iter().any(|name| part.as_os_str() == *name);
    below.components().any(made) || ignored.is_match(below)
}

/// One loop.
struct Session {
    /// Where each run tells what became of its cases.
    events: PathBuf,
    /// The file is ours: the runs have to be told of it.
    own: bool,
    strict: bool,
    changes: UnboundedReceiver<PathBuf>,
    stopped: Receiver<bool>,
    /// The run that is on: it does not outlive this process.
    groups: Groups,
}

impl Session {
    /// Runs and waits until a signal comes. `chosen`: the command line says which cases are run.
    async fn go(mut self, paths: &[PathBuf], chosen: bool) -> Result<Exit, Failure> {
        let mut failed: Vec<String> = Vec::new();
        let mut cut: HashMap<PathBuf, u32> = HashMap::new();
        let mut changed = BTreeSet::new();
        loop {
            self.heading(paths, &changed, failed.len())?;
            let again = !failed.is_empty() && !chosen && failed.len() <= FIRST;
            let only: &[String] = if again { &failed } else { &[] };
            let mut ended = self.once(only, &cut).await?;
            if let (Ended::Done(status), true) = (&ended, again)
                && status.success()
            {
                writeln!(out(), "\nWhat failed passes now; all cases:\n")?;
                ended = self.once(&[], &cut).await?;
            }
            changed = match ended {
                Ended::Stopped => return Ok(Exit::Interrupted),
                Ended::Changed(paths) => {
                    paths.iter().for_each(|path| *cut.entry(path.clone()).or_default() += 1);
                    for path in paths.iter().filter(|path| cut.get(*path) == Some(&OFTEN)) {
                        let name = path.display().to_string();
                        writeln!(
                            out(),
                            "\n{} changes in each run: it is ignored from now on (--ignore)",
                            terminal(&name)
                        )?;
                    }
                    paths
                }
                Ended::Done(_) => {
                    cut.retain(|_, count| *count >= OFTEN);
                    failed = self.failed();
                    writeln!(out(), "\nwaiting for a change …")?;
                    match self.change(&cut).await {
                        Some(paths) => paths,
                        None => return Ok(Exit::Interrupted),
                    }
                }
            };
        }
    }

    /// The screen anew, and why.
    fn heading(&self, paths: &[PathBuf], changed: &BTreeSet<PathBuf>, failed: usize) -> Result<(), Failure> {
        if std::io::stdout().is_terminal() {
            let mut screen = std::io::stdout();
            screen.write_all(b"\x1b[2J\x1b[3J\x1b[H").and_then(|()| screen.flush())?;
        }
        let name = |path: &PathBuf| terminal(&path.display().to_string()).into_owned();
        let mut out = out();
        // Editors write to a file beside the one that they then put in its place.
        match changed.iter().max_by_key(|path| path.exists()) {
            None => writeln!(out, "watching {}\n", paths.iter().map(name).collect::<Vec<_>>().join(", "))?,
            Some(one) => {
                let below = paths.iter().find_map(|root| one.strip_prefix(root).ok()).unwrap_or(one);
                let more = changed.len() - 1;
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let before = if failed > 0 { format!("; {failed} failed before") } else { String::new() };
                writeln!(out, "{}{more} changed{before}\n", name(&below.to_owned()))?;
            }
        }
        Ok(out.flush()?)
    }

    /// One run: to its end, or to the first change.
    async fn once(&mut self, only: &[String], cut: &HashMap<PathBuf, u32>) -> Result<Ended, Failure> {
        let mut child = self.start(only)?;
        // It has not been waited for, so it has an id.
        let leader = child.id().unwrap_or_default();
        self.groups.add(leader);
        let ended = tokio::select! {
            status = child.wait() => {
                self.groups.remove(leader);
                return Ok(Ended::Done(status?));
            }
            changed = self.change(cut) => changed.map_or(Ended::Stopped, Ended::Changed),
        };
        // It ends its server and what it has begun to write.
        if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            // Gone already, then.
            let _ = kill_process(pid, Signal::TERM);
        }
        let waited = child.wait().await;
        self.groups.remove(leader);
        waited?;
        Ok(ended)
    }

    fn start(&self, only: &[String]) -> Result<Child, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("run").args(own_arguments(std::env::args_os()));
        if self.own {
            command.arg("--json").arg(&self.events);
        }
        command.args(only.iter().map(|case| format!("--case={case}"))).kill_on_drop(true);
        // What a terminal signals is passed on in order; what it cannot is ended by the supervisor.
        command.process_group(0);
        command.spawn().map_err(|error| harness(format!("frameproof cannot be started: {error}"), ""))
    }

    /// The next change, with what changes together with it. None: a signal has come.
    async fn change(&mut self, cut: &HashMap<PathBuf, u32>) -> Option<BTreeSet<PathBuf>> {
        let own = |path: &PathBuf| cut.get(path).is_some_and(|count| *count >= OFTEN);
        let mut changed = BTreeSet::new();
        loop {
            let more = async {
                let next = self.changes.recv();
                if changed.is_empty() {
                    next.await
                } else {
                    tokio::time::timeout(TOGETHER, next).await.ok().flatten()
                }
            };
            tokio::select! {
                path = more => match path {
                    Some(path) if own(&path) => {}
                    Some(path) => drop(changed.insert(path)),
                    None => return (!changed.is_empty()).then_some(changed),
                },
                // An error is as good as a signal: nobody would tell of one.
                _ = self.stopped.changed() => return None,
            }
        }
    }

    /// The cases that went wrong in the last run.
    fn failed(&self) -> Vec<String> {
        let Ok(events) = report::read(&self.events) else { return Vec::new() };
        let wrong = |verdict| {
            matches!(verdict, Verdict::Failed | Verdict::Error) || (self.strict && verdict == Verdict::Warned)
        };
        let cases = events.into_iter().filter_map(|event| match event {
            RunEvent::CaseFinished(case) if wrong(case.verdict) => Some(case.case),
            _ => None,
        });
        cases.collect::<BTreeSet<String>>().into_iter().collect()
    }
}

/// The arguments that are those of `run`: without what comes before, and without our own options.
fn own_arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut rest = all.skip_while(|word| word != "watch").skip(1);
    let mut kept = Vec::new();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        if text == "--path" || text == "--ignore" {
            rest.next();
        } else if !text.starts_with("--path=") && !text.starts_with("--ignore=") {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gets_its_own_arguments() {
        let words =
            ["frameproof", "watch", "approval", "--path", "src", "--target", "mine", "--ignore=*.db", "-v"];
        let own = own_arguments(words.into_iter().map(OsString::from));
        assert_eq!(own, ["approval", "--target", "mine", "-v"]);
    }

    #[test]
    fn what_is_made_is_no_change() {
        let roots = [PathBuf::from("/a/target/b")];
        let mut ignored = GlobSetBuilder::new();
        ignored.add(Glob::new("data/**").expect("a glob"));
        let ignored = ignored.build().expect("globs");
        let made = |path: &str| is_made(Path::new(path), &roots, &ignored);
        assert!(made("/a/target/b/node_modules/x.js") && made("/a/target/b/data/x"));
        assert!(!made("/a/target/b/src/x.rs") && !made("/a/target/b/x"));
    }
}
