//! A target that runs: launched, ready, set up; restarted and stopped.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use super::config::{Per, Ready};
use super::error::{LaunchError, LaunchFailure};
use super::last_error::last_error;
use super::log::{Log, capture};
use super::ports::ports;
use super::process::{Exited, Running};
use super::setup::{answers, call, fill};
use super::spec::{Spec, Vars};
use crate::results::death::Death;
use crate::shortage;
use crate::trace::Payload;
use crate::wire::{Endpoint, Link, LinkMode, Trust};

/// How often it is tried whether a server is ready. There is no event for that.
const POLL: Duration = Duration::from_millis(20);
/// Longest single try.
const TRY: Duration = Duration::from_secs(2);
/// Lines of output that an error brings along.
const TAIL: usize = 20;
/// The first lines of what a process wrote before its end.
const HEAD: usize = 8;
/// Lines of a dead process's output in which its last words are looked for: a backtrace may be long.
const LAST_LINES: usize = 2000;
/// Longest frame that is taken as a sign of life, in bytes.
const MAX_FRAME: usize = 16 << 20;

/// A process whose readiness is waited for.
struct Awaited {
    name: String,
    /// When it was started.
    since: Instant,
    /// The start deadline.
    until: Instant,
}

/// A target that is ready. Dropping it kills what was launched.
pub struct Instance {
    spec: Arc<Spec>,
    /// Whose signature counts where its URLs are `wss://` and `https://`.
    trust: Trust,
    /// What the protocol has every client send in its upgrade request, unless the target says otherwise.
    upgrade: Vec<(String, String)>,
    vars: Mutex<Vars>,
    log: Log,
    scratch: tempfile::TempDir,
    running: AsyncMutex<Vec<Running>>,
    /// Why it is not alive any more.
    death: Mutex<Option<Death>>,
}

impl Instance {
    /// Launches a target (or, if it has no processes, takes it as it is) and waits until it is ready and set up.
    /// `model`: the scripted model's address; `upgrade`: headers of the protocol's clients, for a probe that connects.
    ///
    /// # Errors
    /// See [`LaunchError`]; nothing is left running then.
    pub async fn launch(
        spec: &Arc<Spec>,
        model: Option<&str>,
        trust: &Trust,
        upgrade: Vec<(String, String)>,
    ) -> Result<Arc<Self>, LaunchFailure> {
        let system = |error: std::io::Error| LaunchError::system("no scratch folder", &error);
        let scratch = spec.groups.scratch().map_err(system)?;
        let mut vars = Vars::new();
        vars.insert("scratch".into(), scratch.path().display().to_string());
        vars.extend(model.map(|model| ("model".to_owned(), model.to_owned())));
        for (name, port) in ports(spec)? {
            vars.insert(name, port.to_string());
        }
        let instance = Self {
            spec: Arc::clone(spec),
            trust: trust.clone(),
            upgrade,
            vars: Mutex::new(vars),
            log: Log::default(),
            scratch,
            running: AsyncMutex::default(),
            death: Mutex::default(),
        };
        let started = match instance.start().await {
            Ok(()) => instance.set_up(Per::Launch, None).await.map(|_| ()),
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            let output = instance.log.incident(HEAD, TAIL);
            instance.stop().await;
            return Err(LaunchFailure { error, output });
        }
        Ok(Arc::new(instance))
    }

    /// The target.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// What its processes write.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Its own folder.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    fn vars(&self) -> Vars {
        self.vars.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// URL and headers for a session's clients; `session`: what its set-up calls found.
    ///
    /// # Errors
    /// A template that lacks a variable.
    pub fn address(&self, session: &Vars) -> Result<(String, Vec<(String, String)>), LaunchError> {
        let mut vars = self.vars();
        vars.extend(session.clone());
        let headers = self.spec.headers.iter().map(|(name, value)| Ok((name.clone(), fill(value, &vars)?)));
        Ok((fill(&self.spec.url, &vars)?, headers.collect::<Result<_, LaunchError>>()?))
    }

    /// The URL for reports: what only sessions know is left as a word.
    pub fn shown_url(&self) -> String {
        let vars = self.vars();
        fill(&loose(&self.spec.url, &vars), &vars).unwrap_or_else(|_| self.spec.url.clone())
    }

    /// Does the set-up calls for a new session. Empty, if there are none.
    ///
    /// # Errors
    /// [`LaunchError::Setup`].
    pub async fn new_session(&self) -> Result<Vars, LaunchError> {
        self.set_up(Per::Session, None).await
    }

    async fn set_up(&self, per: Per, until: Option<Instant>) -> Result<Vars, LaunchError> {
        let mut vars = self.vars();
        let known = vars.clone();
        for one in self.spec.setup.iter().filter(|one| one.per == per) {
            let deadline = until
                .map_or(self.spec.patience.start, |until| until.saturating_duration_since(Instant::now()));
            call(one, &mut vars, deadline.max(POLL), &self.trust).await?;
        }
        let found: Vars = vars.into_iter().filter(|(name, value)| known.get(name) != Some(value)).collect();
        if per == Per::Launch {
            self.vars.lock().unwrap_or_else(PoisonError::into_inner).extend(found.clone());
        }
        Ok(found)
    }

    /// Why it is not alive any more; none: it is, or it was not launched by us.
    pub async fn died(&self) -> Option<Death> {
        if let Some(death) = self.death.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Some(death);
        }
        let running = self.running.lock().await;
        let last = running.len().saturating_sub(1);
        // A process before the last may have done its work and ended.
        let (process, exit) = running.iter().enumerate().find_map(|(index, process)| {
            let exit = process.exit().filter(|exit| index == last || !exit.success)?;
            Some((process, exit))
        })?;
        process.was_read().await;
        let lines = self.log.tail_of(&process.name, process.since, LAST_LINES);
        let lines: Vec<(bool, &str)> = lines.iter().map(|line| (line.error, line.text.as_str())).collect();
        let dead =
            Death { process: process.name.to_string(), end: exit.how.clone(), words: last_error(&lines) };
        *self.death.lock().unwrap_or_else(PoisonError::into_inner) = Some(dead.clone());
        Some(dead)
    }

    /// Memory that its processes, with all that they started, have resident, in bytes. None: nothing runs, or the system does
    /// not tell.
    pub async fn memory(&self) -> Option<u64> {
        let running = self.running.lock().await;
        let all: Vec<u64> = running.iter().filter_map(Running::memory).collect();
        (!all.is_empty()).then(|| all.iter().sum())
    }

    /// Waits a little for a death that has shown itself elsewhere already.
    pub async fn died_within(&self, patience: Duration) -> Option<Death> {
        let until = Instant::now() + patience;
        loop {
            let died = self.died().await;
            if died.is_some() || Instant::now() > until || !self.spec.is_launched() {
                return died;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills its processes and starts them again on the same ports and in the same scratch folder.
    ///
    /// # Errors
    /// As [`Instance::launch`].
    pub async fn restart(&self) -> Result<(), LaunchError> {
        let running = std::mem::take(&mut *self.running.lock().await);
        for process in running.into_iter().rev() {
            process.kill().await;
        }
        self.start().await
    }

    /// Ends its processes: SIGTERM to all, and after the target's stop deadline SIGKILL.
    pub async fn stop(&self) {
        let running = std::mem::take(&mut *self.running.lock().await);
        running.iter().for_each(Running::terminate);
        for process in running.into_iter().rev() {
            process.finish(self.spec.patience.stop).await;
        }
    }

    async fn start(&self) -> Result<(), LaunchError> {
        let until = Instant::now() + self.spec.patience.start;
        let last = self.spec.processes.len().saturating_sub(1);
        for (index, process) in self.spec.processes.iter().enumerate() {
            let (vars, patience) = (self.vars(), self.spec.patience.start);
            let started = Running::start(process, &vars, &self.log, &self.spec.groups, patience).await?;
            let ready = match (&process.ready, &self.spec.ready) {
                (Some(ready), _) => Some(ready.clone()),
                (None, Some(ready)) if index == last => Some(ready.clone()),
                (None, _) => None,
            };
            // Kept first: whatever happens now, it is ended.
            self.running.lock().await.push(started);
            if ready.is_some() || index == last {
                self.wait_until_ready(index, ready, until).await?;
            }
        }
        Ok(())
    }

    async fn wait_until_ready(
        &self,
        index: usize,
        ready: Option<Ready>,
        until: Instant,
    ) -> Result<(), LaunchError> {
        let (name, since, exited) = {
            let running = self.running.lock().await;
            let Some(process) = running.get(index) else { return Ok(()) };
            (process.name.clone(), process.since, process.watch())
        };
        let wanted = self.wanted(ready.as_ref())?;
        let ready = ready.unwrap_or_else(|| Ready { tcp: wanted.1.clone(), ..Ready::default() });
        let process = Awaited { name, since, until };
        self.probed(&process, &ready, wanted.0, exited.clone()).await?;
        if ready.log.is_none() || index + 1 < self.spec.processes.len() {
            return Ok(());
        }
        // A server may say that it is ready a moment before it listens. Where that is may be for set-up calls to tell.
        let url = &self.spec.url;
        let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next());
        if fill(authority.unwrap_or(url), &self.vars()).is_err() {
            return Ok(());
        }
        let (words, address) = self.wanted(None)?;
        let wanted = format!("its output said that it is ready, but {words}");
        self.probed(&process, &Ready { tcp: address, ..Ready::default() }, wanted, exited).await
    }

    /// Waits until a probe succeeds, the process ends, or the start deadline has passed.
    async fn probed(
        &self,
        process: &Awaited,
        ready: &Ready,
        wanted: String,
        exited: Exited,
    ) -> Result<(), LaunchError> {
        let Awaited { name, until, .. } = process;
        tokio::select! {
            found = tokio::time::timeout_at((*until).into(), self.probe(process, ready)) => match found {
                Ok(found) => found,
                Err(_) => Err(LaunchError::NotReady { process: name.clone(), wanted, within: self.spec.patience.start }),
            },
            exit = Running::end_of(exited) => Err(LaunchError::Exited { process: name.clone(), how: exit.how }),
        }
    }

    /// What is waited for, in words; and the address of the URL.
    fn wanted(&self, ready: Option<&Ready>) -> Result<(String, Option<String>), LaunchError> {
        let vars = self.vars();
        let Some(ready) = ready else {
            let url = fill(&loose(&self.spec.url, &vars), &vars)?;
            let address = Endpoint {
                url,
                headers: Vec::new(),
                max_message: 0,
                deadline: TRY,
                trust: Trust::default(),
                mutation: None,
            }
            .address()?;
            return Ok((format!("nothing listens on {address}"), Some(address)));
        };
        let words = match ready {
            Ready { tcp: Some(address), .. } => format!("nothing listens on {}", fill(address, &vars)?),
            Ready { http: Some(url), .. } => {
                format!("GET {} is not answered with a status from 200 to 399", fill(url, &vars)?)
            }
            Ready { log: Some(text), .. } => format!("no line of its output has `{text}`"),
            Ready { .. } => "its URL yields no first frame".to_owned(),
        };
        Ok((words, None))
    }

    /// Returns once the process is ready.
    async fn probe(&self, process: &Awaited, ready: &Ready) -> Result<(), LaunchError> {
        let vars = self.vars();
        if let Some(pattern) = &ready.log {
            // What is known already is text, what is not is to be found.
            let known = vars.iter().fold(pattern.clone(), |text, (name, value)| {
                if self.learned(name) { text } else { text.replace(&format!("{{{{{name}}}}}"), value) }
            });
            let found = self.log.wait(&process.name, process.since, |line| capture(&known, line)).await;
            self.vars.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
            return Ok(());
        }
        loop {
            let is_ready = if let Some(address) = &ready.tcp {
                let address = fill(address, &vars)?;
                let tried = tokio::time::timeout(TRY, tokio::net::TcpStream::connect(&address)).await;
                if let Ok(Err(error)) = &tried {
                    shortage::note(error);
                }
                matches!(tried, Ok(Ok(_)))
            } else if let Some(url) = &ready.http {
                answers(&fill(url, &vars)?, TRY, &self.trust).await
            } else {
                self.first_frame(process.until).await?
            };
            if is_ready {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Whether a variable is one that a log line tells: a restarted server may tell another.
    fn learned(&self, name: &str) -> bool {
        let place = format!("{{{{{name}}}}}");
        let ready = self.spec.processes.iter().map(|process| &process.ready).chain([&self.spec.ready]);
        let told = ready.flatten().any(|ready| ready.log.as_ref().is_some_and(|log| log.contains(&place)));
        told && !self.spec.ports.iter().any(|(port, _)| port == name)
    }

    async fn first_frame(&self, until: Instant) -> Result<bool, LaunchError> {
        // A session needs the server: while that is not there, neither is a session.
        let Ok(session) = self.set_up(Per::Session, Some(until)).await else { return Ok(false) };
        let (url, headers) = self.address(&session)?;
        let url = url.replace(['{', '}'], "");
        let endpoint = Endpoint {
            url,
            headers,
            max_message: MAX_FRAME,
            deadline: TRY,
            trust: self.trust.clone(),
            mutation: None,
        }
        .with_defaults(&self.upgrade);
        let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
        let opened = Link::open(&endpoint, 0, sender, LinkMode::Messages).await;
        let Ok(_link) = opened else { return Ok(false) };
        let frame = async {
            while let Some(incoming) = receiver.recv().await {
                if matches!(incoming.payload, Payload::Text(_) | Payload::Binary(_)) {
                    return true;
                }
            }
            false
        };
        Ok(tokio::time::timeout(TRY, frame).await.unwrap_or(false))
    }
}

/// The URL without what only sessions know: for its host and port that does not matter.
fn loose(url: &str, vars: &Vars) -> String {
    let names = crate::template::names(&url.into());
    let unknown = names.iter().filter(|name| !vars.contains_key(*name));
    unknown.fold(url.to_owned(), |url, name| url.replace(&format!("{{{{{name}}}}}"), "session"))
}
