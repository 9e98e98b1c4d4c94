//! Who serves the cases: a server started for the run, for a family, or for one case, or one that was there before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::model::{self, Model};
use crate::protocol::Protocol;
use crate::protocol::extension::Join;
use crate::reference;
use crate::results::death::Death;
use crate::run::address::{complete, session_endpoint};
use crate::run::case::environment::{CaseServer, Restarter};
use crate::run::server::handle::ServerHandle;
use crate::run::server::lease::{FruitlessWaits, Lease};
use crate::run::{RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::target::{Fresh, Instance, LaunchError, LaunchFailure, Line};
use crate::wire::{ConnectError, Endpoint, Link, LinkMode};

/// The session that the first connection, which only finds out whether there is a server, opens.
const PROBE: &str = "frameproof-probe";
/// The last lines of a dead server's output that are kept.
const LAST_LINES: usize = 20;
/// The first lines of what it wrote before its end.
const FIRST_LINES: usize = 8;
/// How long the end of a server that takes no connection may take to show.
const GRACE: Duration = Duration::from_millis(500);

/// Starts and ends servers as the cases need them.
pub(crate) struct ServerPool {
    protocol: Arc<Protocol>,
    target: Target,
    endpoint: Endpoint,
    model: Option<Model>,
    shared: Mutex<Shared>,
    max_deaths: u32,
    /// How often a death was waited for that was none; see [`Lease`].
    fruitless_waits: Arc<FruitlessWaits>,
}

struct Shared {
    server: Option<ServerHandle>,
    endpoint: Endpoint,
    family: Option<String>,
    deaths: u32,
    /// A case has told of the death of the server that is there.
    reported: Arc<AtomicBool>,
    /// How servers ended that nobody has heard of yet.
    crashes: Vec<Crash>,
}

/// The end of a server that cases shared.
pub(crate) struct Crash {
    /// How it ended.
    pub how: Death,
    /// The last lines of its output.
    pub output: Vec<Line>,
    /// The case that it was to serve next; none: no case was left.
    pub before: Option<String>,
    reported: Arc<AtomicBool>,
}

impl Shared {
    /// Notes the end of the server, if it has ended; how.
    async fn note_death(&mut self, before: Option<&str>) -> Option<Death> {
        let Some(ServerHandle::Launched(instance)) = &self.server else { return None };
        let how = instance.died().await?;
        let crash = Crash {
            how: how.clone(),
            output: instance.log().incident(FIRST_LINES, LAST_LINES),
            before: before.map(str::to_owned),
            reported: Arc::clone(&self.reported),
        };
        self.crashes.push(crash);
        Some(how)
    }

    fn replaced_by(&mut self, server: ServerHandle, endpoint: Endpoint) {
        (self.server, self.endpoint, self.reported) = (Some(server), endpoint, Arc::default());
    }
}

impl ServerPool {
    /// Starts the model and the server that a run begins with, and sees whether it takes connections.
    pub async fn open(
        protocol: &Arc<Protocol>,
        target: &Target,
        options: &RunOptions,
        model: model::Options,
    ) -> Result<Self, RunError> {
        let model = match target {
            Target::Configured(spec) => match spec.model.listen {
                Some(listen) => {
                    let started = model::start(model::Options { listen, ..model }).await;
                    let failed = |error: model::StartError| LaunchError::Model(error.to_string());
                    Some(started.map_err(|error| LaunchFailure::from(failed(error)))?)
                }
                None => None,
            },
            _ => None,
        };
        let endpoint = Endpoint {
            url: String::new(),
            headers: Vec::new(),
            max_message: options.limits.frame.max_bytes,
            deadline: options.timing.deadline(options.timing.step_deadline),
            trust: options.transport.trust.clone(),
            mutation: options.transport.mutation.clone(),
        };
        let shared = Shared {
            server: None,
            endpoint: endpoint.clone(),
            family: None,
            deaths: 0,
            reported: Arc::default(),
            crashes: Vec::new(),
        };
        let (protocol, target) = (Arc::clone(protocol), target.clone());
        let pool = Self {
            protocol,
            target,
            endpoint,
            model,
            shared: Mutex::new(shared),
            max_deaths: options.attempts.max_deaths,
            fruitless_waits: Arc::default(),
        };
        let (server, endpoint) = pool.start().await?;
        let probed = match &server {
            ServerHandle::Reference(_) => Ok(()),
            _ => pool.probe(&server, &endpoint).await,
        };
        let mut shared = pool.shared.lock().await;
        shared.replaced_by(server, endpoint);
        drop(shared);
        if let Err(error) = probed {
            let error = pool.explained(error).await;
            pool.stop().await;
            return Err(error);
        }
        Ok(pool)
    }

    /// Why a server cannot be connected to, with what it wrote, where it was launched: perhaps it has ended meanwhile.
    async fn explained(&self, error: RunError) -> RunError {
        let shared = self.shared.lock().await;
        match (error, &shared.server) {
            (RunError::Target(error), Some(ServerHandle::Launched(instance)))
                if instance.spec().is_launched() =>
            {
                let patience = match &error {
                    ConnectError::BadUrl { .. } | ConnectError::Http { .. } => Duration::ZERO,
                    _ => GRACE,
                };
                let died = instance.died_within(patience).await;
                let error =
                    died.map_or(LaunchError::Connect(error), |death| LaunchError::Fell(death.to_string()));
                LaunchFailure { error, output: instance.log().incident(FIRST_LINES, LAST_LINES) }.into()
            }
            (error, _) => error,
        }
    }

    /// Ends everything that was started.
    pub async fn stop(&self) {
        if let Some(server) = self.shared.lock().await.server.take() {
            server.stop().await;
        }
    }

    /// Whether the server that cases share takes a connection now; one that is not there is started.
    pub async fn reachable(&self) -> Result<(), RunError> {
        let mut shared = self.shared.lock().await;
        let kept = match shared.server.take() {
            Some(ServerHandle::Launched(instance)) if instance.died().await.is_some() => {
                instance.stop().await;
                None
            }
            other => other,
        };
        let (server, endpoint) = match kept {
            Some(server) => (server, shared.endpoint.clone()),
            None => self.start().await?,
        };
        let probed = self.probe(&server, &endpoint).await;
        (shared.server, shared.endpoint) = (Some(server), endpoint);
        probed
    }

    /// Replaces the shared server by another one. `false`: it was not started by us, or is not there.
    pub async fn restart_fresh(&self) -> bool {
        let mut shared = self.shared.lock().await;
        match shared.server.take() {
            other @ (None | Some(ServerHandle::Foreign)) => {
                shared.server = other;
                false
            }
            Some(server) => {
                server.stop().await;
                shared.deaths = 0;
                true
            }
        }
    }

    /// How launched servers that cases shared have ended since this was asked last.
    pub async fn take_crashes(&self) -> Vec<Crash> {
        let mut shared = self.shared.lock().await;
        if shared.note_death(None).await.is_some()
            && let Some(server) = shared.server.take()
        {
            server.stop().await;
        }
        std::mem::take(&mut shared.crashes)
    }

    /// The same, for a server that may be about to end: so long is waited for it.
    pub async fn crashes_within(&self, patience: Duration) -> Vec<Crash> {
        let instance = match &self.shared.lock().await.server {
            Some(ServerHandle::Launched(instance)) => Some(Arc::clone(instance)),
            _ => None,
        };
        if let Some(instance) = instance {
            instance.died_within(patience).await;
        }
        self.take_crashes().await
    }

    /// The deaths that no case has told of.
    pub async fn unreported_crashes(&self) -> Vec<Crash> {
        let mut shared = self.shared.lock().await;
        shared.note_death(None).await;
        let mut crashes = std::mem::take(&mut shared.crashes);
        crashes.retain(|crash| !crash.reported.load(Ordering::Relaxed));
        crashes
    }

    /// Memory that the launched server which cases share has resident, in bytes.
    pub async fn memory(&self) -> Option<u64> {
        match &self.shared.lock().await.server {
            Some(ServerHandle::Launched(instance)) => instance.memory().await,
            _ => None,
        }
    }

    /// The panics and exceptions in the output of the launched server which cases share, since this was asked with the same `seen`; it
    /// lives on.
    pub async fn outbursts(&self, seen: &mut u64) -> Vec<String> {
        match &self.shared.lock().await.server {
            Some(ServerHandle::Launched(instance)) if instance.died().await.is_none() => {
                instance.log().outbursts(seen)
            }
            _ => Vec::new(),
        }
    }

    /// Where clients connect to, for reports.
    pub async fn url(&self) -> String {
        self.shared.lock().await.endpoint.url.clone()
    }

    /// Cases that must run while no other does: they need a server of their own on ports that another one has.
    pub fn is_exclusive(&self, case: &LoadedCase) -> bool {
        match &self.target {
            Target::Configured(spec) => spec.is_launched() && !spec.is_portable() && self.needs_own(case),
            _ => false,
        }
    }

    /// Whether the server is started for the run, and can be again.
    pub fn is_ours(&self) -> bool {
        match &self.target {
            Target::Url { .. } => false,
            Target::Reference { .. } => true,
            Target::Configured(spec) => spec.is_launched(),
        }
    }

    /// Whether a case may run beside another.
    pub fn are_compatible(&self, one: &LoadedCase, other: &LoadedCase) -> bool {
        let by_family = matches!(&self.target, Target::Configured(spec) if spec.fresh == Fresh::Family);
        !self.is_exclusive(one) && !self.is_exclusive(other) && (!by_family || one.family == other.family)
    }

    fn needs_own(&self, case: &LoadedCase) -> bool {
        // A server that is restarted is the case's own: others would lose their connections.
        let restarts = case.case.steps.iter().any(|step| step.restarts());
        match &self.target {
            Target::Url { .. } => false,
            Target::Reference { .. } => restarts,
            Target::Configured(spec) => spec.is_launched() && (restarts || spec.fresh == Fresh::Case),
        }
    }

    /// The server for a case: its own, or the shared one, launched anew where it has died.
    pub async fn lease(&self, case: &LoadedCase) -> Result<Lease, RunError> {
        if self.needs_own(case) {
            if self.is_exclusive(case) {
                self.shared.lock().await.note_death(Some(&case.id)).await;
                self.stop().await;
            }
            let (server, endpoint) = self.start().await?;
            let mut lease = self.lease_of(&server, endpoint);
            lease.server.shared = None;
            lease.server.restarter = match &server {
                ServerHandle::Foreign => None,
                ServerHandle::Reference(server) => Some(Restarter::Reference(server.restarter())),
                ServerHandle::Launched(instance) => Some(Restarter::Launched(Arc::clone(instance))),
            };
            lease.own = Some(server);
            return Ok(lease);
        }
        let mut shared = self.shared.lock().await;
        let shared = &mut *shared;
        let mut stale = false;
        let dead = shared.note_death(Some(&case.id)).await;
        shared.deaths += u32::from(dead.is_some());
        if let Some(ServerHandle::Launched(instance)) = &shared.server {
            if let Some(how) = dead.as_ref().filter(|_| shared.deaths > self.max_deaths) {
                let dead =
                    format!("the server died {} times and is not launched again: {how}", self.max_deaths);
                return Err(LaunchFailure::from(LaunchError::Dead(dead)).into());
            }
            let other = shared.family.as_ref().is_some_and(|family| *family != case.family);
            stale = dead.is_some() || (other && instance.spec().fresh == Fresh::Family);
        }
        if stale && let Some(server) = shared.server.take() {
            server.stop().await;
        }
        if shared.server.is_none() {
            let (server, endpoint) = self.start().await?;
            shared.replaced_by(server, endpoint);
        }
        shared.family = Some(case.family.clone());
        let endpoint = shared.endpoint.clone();
        let mut lease = match &shared.server {
            Some(server) => self.lease_of(server, endpoint),
            None => self.lease_of(&ServerHandle::Foreign, endpoint),
        };
        lease.reported = Arc::clone(&shared.reported);
        Ok(lease)
    }

    fn lease_of(&self, server: &ServerHandle, endpoint: Endpoint) -> Lease {
        let instance = match server {
            ServerHandle::Launched(instance) => Some(Arc::clone(instance)),
            _ => None,
        };
        let shared = Some(instance.as_ref().map_or(0, |instance| Arc::as_ptr(instance).addr()));
        Lease {
            server: CaseServer { endpoint, restarter: None, instance, shared },
            own: None,
            reported: Arc::default(),
            fruitless_waits: Arc::clone(&self.fruitless_waits),
        }
    }

    async fn start(&self) -> Result<(ServerHandle, Endpoint), RunError> {
        let mut endpoint = self.endpoint.clone();
        match &self.target {
            Target::Reference(variant) => {
                let dialect = self.protocol.dialect().map(str::to_owned);
                let options =
                    reference::Options { variant: variant.clone(), dialect, ..reference::Options::default() };
                let server = reference::start(&self.protocol.name, &options).await?;
                server.url().clone_into(&mut endpoint.url);
                Ok((ServerHandle::Reference(server), endpoint))
            }
            Target::Url { url, headers } => {
                endpoint.url = complete(&self.protocol, url)?;
                endpoint.headers.clone_from(headers);
                Ok((ServerHandle::Foreign, endpoint))
            }
            Target::Configured(spec) => {
                let model = self.model.as_ref().map(Model::url);
                let upgrade = self.protocol.upgrade_headers().unwrap_or_default();
                let instance =
                    Instance::launch(spec, model.as_deref(), &self.endpoint.trust, upgrade).await?;
                endpoint.url = instance.shown_url();
                Ok((ServerHandle::Launched(instance), endpoint))
            }
        }
    }

    /// One connection first: a wall is reported once, not once a case.
    async fn probe(&self, server: &ServerHandle, endpoint: &Endpoint) -> Result<(), RunError> {
        let mut probe = endpoint.clone();
        match server {
            ServerHandle::Reference(_) | ServerHandle::Foreign => {}
            ServerHandle::Launched(instance) => {
                let found = instance.new_session().await;
                let vars = found.map_err(|error| LaunchFailure { error, output: instance.log().tail(20) })?;
                probe = session_endpoint(&self.protocol, endpoint, instance, &vars)?;
                if let Join::Parameter(parameter) = &self.protocol.extension.session.join
                    && let Some(id) = vars.get(parameter)
                {
                    probe.url = probe.url.replace(&format!("{{{parameter}}}"), id);
                }
            }
        }
        if let Join::Parameter(parameter) = &self.protocol.extension.session.join {
            probe.url = probe.url.replace(&format!("{{{parameter}}}"), PROBE);
        }
        // Without what its headers need no case can connect, and each says why.
        let Ok(defaults) = self.protocol.upgrade_headers() else { return Ok(()) };
        match connects(&probe.clone().with_defaults(&defaults)).await {
            // Some cases may leave out what is refused.
            Err(ConnectError::Http { .. }) if !defaults.is_empty() => connects(&probe).await?,
            tried => tried?,
        }
        Ok(())
    }
}

/// Whether a connection can be had; it is closed again. A server that is there and does not do what it should is for the cases to tell.
async fn connects(endpoint: &Endpoint) -> Result<(), ConnectError> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    match Link::open(endpoint, 0, sender, LinkMode::Messages).await {
        Ok(link) => crate::run::case::teardown::close_probe(link, 0, receiver).await,
        Err(error) if error.is_verdict() => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
