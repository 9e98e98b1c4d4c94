//! Threads: start, resume, fork, and what is changed about them.

use serde_json::{Map, Value, json};

use super::connection::{Answer, Answered, Peer};
use super::faults::Defect;
use super::files::absolute;
use super::rpc::{Params, Refusal, invalid, refuse};
use super::shell::Sandbox;
use super::state::{HOME, State, Status, WORK};
use super::store::{PROVIDER, Settings, Thread};
use super::styles::Style;

/// The approval policies, in either spelling.
const POLICIES: [&str; 8] = [
    "untrusted",
    "unlessTrusted",
    "on-failure",
    "onFailure",
    "on-request",
    "onRequest",
    "never",
    "unless-trusted",
];
const PERSONALITIES: [&str; 3] = ["friendly", "pragmatic", "none"];
const SOURCES: [&str; 3] = ["startup", "resume", "clear"];

/// Changes settings by the overrides of a request.
pub(super) fn overridden(settings: &mut Settings, params: &Params<'_>) -> Result<(), Refusal> {
    params.one_of("personality", &PERSONALITIES)?;
    params.one_of("sessionStartSource", &SOURCES)?;
    params.object("config")?;
    for name in
        ["modelProvider", "baseInstructions", "developerInstructions", "serviceName", "effort", "summary"]
    {
        params.maybe_text(name)?;
    }
    if let Some(cwd) = params.maybe_text("cwd")? {
        settings.cwd = absolute(WORK, cwd);
    }
    if let Some(model) = params.maybe_text("model")? {
        model.clone_into(&mut settings.model);
    }
    if let Some(policy) = params.get("approvalPolicy") {
        let known = policy.as_str().map_or(policy.get("granular").is_some(), |name| POLICIES.contains(&name));
        if !known {
            return Err(invalid("approvalPolicy is none"));
        }
        settings.approval = policy.clone();
    }
    if let Some(name) = params.maybe_text("sandbox")? {
        settings.sandbox = Sandbox::named(name).ok_or_else(|| invalid("sandbox is none"))?;
    }
    if let Some(policy) = params.get("sandboxPolicy") {
        settings.sandbox = Sandbox::policy(policy).ok_or_else(|| invalid("sandboxPolicy is none"))?;
    }
    if let Some(tools) = params.list("dynamicTools")? {
        let names = tools.iter().map(|tool| tool.get("name").and_then(Value::as_str).map(str::to_owned));
        settings.tools = names.collect::<Option<_>>().ok_or_else(|| invalid("a tool has no name"))?;
    }
    Ok(())
}

/// The settings of a thread whose start names none.
pub(super) fn defaults() -> Settings {
    Settings {
        model: "gpt-5".to_owned(),
        cwd: WORK.to_owned(),
        approval: json!("on-request"),
        sandbox: Sandbox::ReadOnly,
        tools: Vec::new(),
    }
}

/// The answer of thread/start and its like.
fn opened(state: &State, id: &str, turns: bool) -> Value {
    let Some(thread) = state.threads.get(id) else { return Value::Null };
    let Settings { model, cwd, approval, sandbox, .. } = &thread.settings;
    json!({
        "thread": state.to_json(id, turns), "model": model, "modelProvider": PROVIDER, "cwd": cwd,
        "approvalPolicy": approval, "sandbox": sandbox.to_json(), "reasoningEffort": null,
    })
}

impl Peer<'_> {
    fn announce(&self, state: &mut State, thread: &str) {
        let mut told = state.to_json(thread, false);
        if self.has(Defect::StartedHasNoStatus) {
            told.as_object_mut().map(|told| told.remove("status"));
        }
        let params = json!({ "thread": told });
        state.notify(self.client, "thread/started", &params);
        if self.has(Defect::StartedTwice) {
            state.notify(self.client, "thread/started", &params);
        }
    }

    /// Starts a thread that nobody asked for, under a defect.
    pub fn start_unasked(&self, state: &mut State, cwd: &str) {
        state.counts.threads += 1;
        let settings = Settings { cwd: cwd.to_owned(), ..defaults() };
        // Refused: there are too many threads.
        if let Ok(thread) = state.add(Thread::new(state.counts.threads, settings, false), self.client) {
            self.announce(state, &thread);
        }
    }

    pub fn start_thread(&self, id: &Value, params: &Params<'_>) -> Answered {
        let mut settings = defaults();
        let checked = overridden(&mut settings, params);
        match checked {
            Err(_) if params.get("personality").is_some() && self.has(Defect::AnyPersonality) => {}
            checked => checked?,
        }
        self.behaviour.mutate(&mut settings.approval, |defect, approval| {
            if defect == Defect::StartIgnoresPolicy {
                *approval = json!("on-request")
            }
        });
        for (field, value, defect) in [
            ("sessionStartSource", "clear", Defect::NoClearStarts),
            ("sandbox", "workspaceWrite", Defect::SandboxesAreInKebabCase),
            ("personality", "none", Defect::NoneIsNoPersonality),
        ] {
            if params.get(field) == Some(&json!(value)) && self.has(defect) {
                return Err(invalid(field));
            }
        }
        let ephemeral = params.flag("ephemeral")?.unwrap_or(false);
        let cwd = params.maybe_text("cwd")?.map(|_| settings.cwd.clone());
        let trusted = cwd.filter(|_| settings.sandbox != Sandbox::ReadOnly);
        let mut state = self.core.lock();
        if let Some(cwd) = trusted {
            match state.clients.get_mut(&self.client) {
                Some(client) if self.behaviour.prepares(Defect::TrustsNothing) => client.untrusted = true,
                _ => trust(&mut state, &cwd),
            }
        }
        if self.behaviour.prepares(Defect::EmptyThreadsAreReused) {
            let follows =
                |id: &String| state.live.get(id).is_some_and(|live| live.subscribers.contains(&self.client));
            let empty = state.threads.values().find(|old| {
                old.turns.is_empty() && old.about.ephemeral == ephemeral && follows(&old.about.id)
            });
            if let Some(old) = empty {
                self.behaviour.took_effect();
                return Ok(Answer::Now(opened(&state, &old.about.id, false)));
            }
        }
        if settings.sandbox != Sandbox::ReadOnly && self.has(Defect::StartIgnoresSandbox) {
            settings.sandbox = Sandbox::ReadOnly;
        }
        state.counts.threads += 1;
        let mut thread = Thread::new(state.counts.threads, settings, ephemeral);
        let busy =
            state.live.values().any(|live| live.active.is_some() && live.subscribers.contains(&self.client));
        if let Some(newest) = state.newest_of(self.client).filter(|newest| !newest.about.preview.is_empty())
            && self.has(Defect::PreviewsLeak)
        {
            thread.about.preview.clone_from(&newest.about.preview);
        }
        let thread = state.add(thread, self.client)?;
        if state.clients.get(&self.client).is_some_and(|client| !client.left.is_empty())
            && self.has(Defect::LeaversFollowNothing)
            && let Some(live) = state.live.get_mut(&thread)
        {
            live.subscribers.clear();
        }
        let mut result = opened(&state, &thread, false);
        if self.has(Defect::StartReturnsNull) {
            result = Value::Null;
        }
        if self.behaviour.style(Style::StartedFirst) {
            self.announce(&mut state, &thread);
            drop(state);
            return Ok(Answer::Now(result));
        }
        drop(state);
        self.answer(id, &Ok(result));
        let mut state = self.core.lock();
        let is_untold = self.has(Defect::StartsAreNotTold) || busy && self.has(Defect::BusyStartsAreNotTold);
        if !is_untold {
            self.announce(&mut state, &thread);
        }
        if self.has(Defect::StartsTellTheirStatus) {
            let params = json!({ "threadId": thread, "status": state.status(&thread) });
            state.notify(self.client, "thread/status/changed", &params);
        }
        Ok(Answer::Elsewhere)
    }

    pub fn resume(&self, request: &Value, params: &Params<'_>) -> Answered {
        let id = params.text("threadId")?;
        let mut state = self.core.lock();
        if !state.threads.contains_key(id) && self.has(Defect::ResumesUnknown) {
            drop(state);
            return self.start_thread(request, &Params(&Map::new()));
        }
        let deserted =
            state.live.get(id).is_some_and(|live| live.active.is_some() && live.subscribers.is_empty());
        if deserted && self.has(Defect::DesertedThreadsAreLocked) {
            return Err(refuse("the thread is in use"));
        }
        let again = state.is_subscribed(id, self.client);
        let mut settings = state.thread(id)?.settings.clone();
        if state.thread(id)?.turns.is_empty() && self.behaviour.style(Style::ResumeNeedsATurn) {
            return Err(refuse(format!("no rollout found for thread id {id}")));
        }
        let model = defaults().model;
        if settings.model != model && params.get("model").is_none() && self.has(Defect::ResumeForgetsTheModel)
        {
            settings.model = model;
        }
        overridden(&mut settings, params)?;
        if settings != state.thread(id)?.settings && self.has(Defect::ResumeIgnoresOverrides) {
            settings = state.thread(id)?.settings.clone();
        }
        if state.live.get(id).and_then(|live| live.due.as_ref()).is_some_and(|due| *due != settings) {
            self.behaviour.took_effect();
        }
        if let Some(thread) = state.threads.get_mut(id) {
            thread.settings = settings;
        }
        state.open(id, self.client);
        if again
            && self.has(Defect::ResumesToggle)
            && let Some(live) = state.live.get_mut(id)
        {
            live.subscribers.remove(&self.client);
        }
        if let Some(live) = state.live.get_mut(id)
            && live.active.is_some()
            && self.behaviour.prepares(Defect::JoinersWait)
        {
            live.held.insert(self.client);
        }
        if self.has(Defect::ResumeReturnsNull) {
            return Ok(Answer::Now(Value::Null));
        }
        if self.has(Defect::ResumeIsAnnounced) {
            self.announce(&mut state, id);
        }
        if self.has(Defect::ResumeIsToldToOthers) {
            let params = json!({ "thread": state.to_json(id, false) });
            state.publish(id, "thread/started", &params);
        }
        let has_turns = !state.thread(id)?.turns.is_empty();
        let turns = !(self.behaviour.style(Style::ResumeWithoutTurns)
            || has_turns && self.has(Defect::ResumeReturnsNoTurns));
        Ok(Answer::Now(opened(&state, id, turns)))
    }

    pub fn fork(&self, id: &Value, params: &Params<'_>) -> Answered {
        let source = params.text("threadId")?;
        let ephemeral = params.flag("ephemeral")?.unwrap_or(false);
        let mut state = self.core.lock();
        let mut settings = match state.thread(source) {
            Ok(thread) => thread.settings.clone(),
            Err(_) if self.has(Defect::ForksUnknown) => {
                drop(state);
                return self.start_thread(id, &Params(&Map::new()));
            }
            Err(refusal) => return Err(refusal),
        };
        overridden(&mut settings, params)?;
        state.counts.threads += 1;
        let ephemeral = ephemeral && !self.has(Defect::ForksAreNeverEphemeral);
        let mut fork = Thread::new(state.counts.threads, settings, ephemeral);
        let original = state.thread(source)?;
        fork.turns.clone_from(&original.turns);
        fork.about.preview.clone_from(&original.about.preview);
        fork.about.forked_from = Some(source.to_owned());
        if let Some(first) = &original.about.forked_from
            && self.has(Defect::ForksNameTheFirst)
        {
            fork.about.forked_from = Some(first.clone());
        }
        if !fork.turns.is_empty() && self.has(Defect::ForksAreEmpty) {
            fork.turns.clear();
        }
        if self.has(Defect::ForksNameNoSource) {
            fork.about.forked_from = None;
        }
        if fork.is_open() && !self.has(Defect::ForkedTurnsStayOpen) {
            fork.break_off();
        }
        if let Some(active) = state.live.get(source).and_then(|live| live.active.as_ref())
            && self.has(Defect::ForkEndsTheTurn)
        {
            active.canceller.cancel();
        }
        if state.live.contains_key(source)
            && !state.is_subscribed(source, self.client)
            && self.has(Defect::ForksFollowTheSource)
        {
            state.open(source, self.client);
        }
        let busy = state.live.get(source).is_some_and(|live| live.active.is_some());
        let fork = state.add(fork, self.client)?;
        state.save(&fork);
        if (self.has(Defect::ForkFollowsNothing) || busy && self.has(Defect::BusyForksAreNotFollowed))
            && let Some(live) = state.live.get_mut(&fork)
        {
            live.subscribers.clear();
        }
        let mut result = opened(&state, &fork, true);
        if self.has(Defect::ForkReturnsNull) {
            result = Value::Null;
        }
        drop(state);
        self.answer(id, &Ok(result));
        let mut state = self.core.lock();
        if busy && self.has(Defect::ForksAreToldAsBusy) {
            let mut told = state.to_json(&fork, false);
            told["status"] = Status::Active { waiting: false }.to_json();
            state.notify(self.client, "thread/started", &json!({ "thread": told }));
        } else if !self.has(Defect::ForkIsNotTold) {
            self.announce(&mut state, &fork);
        }
        Ok(Answer::Elsewhere)
    }

    pub fn set_name(&self, id: &Value, params: &Params<'_>) -> Answered {
        let (thread, name) = (params.text("threadId")?, params.text("name")?);
        let mut state = self.core.lock();
        let known = state.threads.contains_key(thread);
        if !known && !self.has(Defect::NamesUnknown) {
            return Err(refuse(format!("thread not found: {thread}")));
        }
        if !state.live.contains_key(thread) && self.has(Defect::NamesLoadedOnly) {
            return Err(refuse("the thread is not loaded"));
        }
        if state.threads.values().any(|other| other.about.name.as_deref() == Some(name))
            && self.has(Defect::NamesAreUnique)
        {
            return Err(refuse("the name is taken"));
        }
        let is_fresh = state.threads.get(thread).is_some_and(|thread| thread.turns.is_empty());
        if is_fresh && self.has(Defect::NamesNeedATurn) {
            return Err(refuse("the thread has had no turn"));
        }
        let about = state.threads.get(thread).map(|thread| &thread.about);
        if about.is_some_and(|about| about.archived) && self.behaviour.style(Style::ArchivedIsNotNamed) {
            return Err(refuse("the thread is archived"));
        }
        let before = about.and_then(|about| about.name.clone());
        if let Some(thread) = state.threads.get_mut(thread) {
            let renamed = thread.about.name.as_deref().is_some_and(|old| old != name);
            if !(renamed && self.has(Defect::FirstNameStays)) {
                thread.about.name = Some(name.to_owned());
            }
        }
        drop(state);
        self.answer(id, &Ok(json!({})));
        let mut params = json!({ "threadId": thread, "threadName": name });
        self.behaviour.mutate(&mut params, |defect, params| {
            if let (Defect::UpdatesHaveTheOldName, Some(before)) = (defect, before) {
                params["threadName"] = json!(before);
            }
        });
        let state = self.core.lock();
        if !state.live.contains_key(thread)
            && state.clients.len() > 1
            && self.has(Defect::StoredNamesAreToldToTheAsker)
        {
            state.notify(self.client, "thread/name/updated", &params);
            return Ok(Answer::Elsewhere);
        }
        let strangers =
            |client: &u64| state.live.get(thread).is_none_or(|live| !live.subscribers.contains(client));
        if state.clients.keys().any(strangers) && self.has(Defect::NamesAreToldToSubscribers) {
            state.publish(thread, "thread/name/updated", &params);
        } else {
            state.clients.keys().for_each(|client| state.notify(*client, "thread/name/updated", &params));
        }
        Ok(Answer::Elsewhere)
    }

    pub fn memory_mode(&self, params: &Params<'_>) -> Answered {
        let id = params.text("threadId")?;
        params.one_of("mode", &["enabled", "disabled"])?.ok_or_else(|| invalid("missing field `mode`"))?;
        self.core.lock().thread(id)?;
        Ok(Answer::Now(json!({})))
    }

    pub fn clean_terminals(&self, params: &Params<'_>) -> Answered {
        let id = params.text("threadId")?;
        self.core.lock().thread(id)?;
        Ok(Answer::Now(json!({})))
    }
}

/// Marks a project as trusted in the configuration.
fn trust(state: &mut State, cwd: &str) {
    let path = format!("{HOME}/config.toml");
    let line = format!("[projects.{}]", Value::from(cwd));
    let old = state.files.read(&path).map(<[u8]>::to_vec).unwrap_or_default();
    let mut text = String::from_utf8_lossy(&old).into_owned();
    if !text.contains(&line) {
        text.push_str(&format!("\n{line}\ntrust_level = \"trusted\"\n"));
        // A full disk trusts nobody.
        let _ = state.files.write(&path, text.into_bytes());
        state.announce_changes();
    }
}
