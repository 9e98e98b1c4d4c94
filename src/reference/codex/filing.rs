//! What is changed about stored threads: the archive, subscriptions, metadata, rollback.

use serde_json::{Value, json};

use super::connection::{Answer, Answered, Peer};
use super::faults::Defect;
use super::files::now;
use super::rpc::{Params, invalid, refuse};
use super::state::{HOME, State};
use super::styles::Style;

/// The fields of gitInfo.
const GIT: [&str; 3] = ["sha", "branch", "originUrl"];

impl Peer<'_> {
    /// Tells the subscribers of a thread, and who asked.
    fn announce_to_asker(&self, state: &State, thread: &str, method: &str) {
        let params = json!({ "threadId": thread });
        state.publish(thread, method, &params);
        let subscribed = state.live.get(thread).is_some_and(|live| live.subscribers.contains(&self.client));
        if !subscribed && !self.has(Defect::ArchiveIsToldToSubscribers) {
            state.notify(self.client, method, &params);
        }
    }

    pub fn archive(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let mut state = self.core.lock();
        if let Err(refusal) = state.thread(thread) {
            if self.has(Defect::ArchivesUnknown) {
                return Ok(Answer::Now(json!({})));
            }
            return Err(refusal);
        }
        move_file(&mut state, thread, true, || self.has(Defect::ArchiveLeavesTheFile));
        drop(state);
        let result = if self.has(Defect::ArchiveReturnsNull) { Value::Null } else { json!({}) };
        self.answer(id, &Ok(result));
        let mut state = self.core.lock();
        if !self.has(Defect::ArchiveIsNotTold) {
            self.announce_to_asker(&state, thread, "thread/archived");
        }
        if state.live.contains_key(thread)
            && !self.has(Defect::ArchivedStaysLoaded)
            && let Some(live) = state.live.remove(thread)
            && let Some(active) = live.active
        {
            active.canceller.cancel();
        }
        Ok(Answer::Elsewhere)
    }

    pub fn unarchive(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let mut state = self.core.lock();
        let known = state.threads.get(thread).is_some_and(|thread| thread.about.archived);
        let anything =
            || self.behaviour.style(Style::UnarchivesAnything) || self.has(Defect::UnarchivesAnything);
        if !known && !anything() {
            return Err(refuse(format!("no archived thread: {thread}")));
        }
        if !known && !state.threads.contains_key(thread) {
            return Ok(Answer::Now(json!({ "thread": { "id": thread } })));
        }
        if !(known && self.has(Defect::UnarchiveDoesNothing)) {
            move_file(&mut state, thread, false, || {
                self.has(Defect::ArchiveLeavesTheFile) || self.has(Defect::UnarchiveLeavesTheFile)
            });
        }
        if let Some(thread) = state.threads.get_mut(thread)
            && !thread.turns.is_empty()
            && self.has(Defect::UnarchiveForgets)
        {
            thread.turns.clear();
        }
        let mut result = json!({ "thread": state.to_json(thread, false) });
        if self.has(Defect::UnarchiveReturnsNothing) {
            result = json!({});
        }
        drop(state);
        self.answer(id, &Ok(result));
        if !self.has(Defect::UnarchiveIsNotTold) {
            self.announce_to_asker(&self.core.lock(), thread, "thread/unarchived");
        }
        Ok(Answer::Elsewhere)
    }

    pub fn unsubscribe(&self, params: &Params<'_>) -> Answered {
        let id = params.text("threadId")?;
        let mut state = self.core.lock();
        if state.is_subscribed(id, self.client)
            && let Some(client) = state.clients.get_mut(&self.client)
        {
            client.left.insert(id.to_owned());
        }
        let status = match state.live.get_mut(id) {
            None if self.has(Defect::NotLoadedIsNotSubscribed) => "notSubscribed",
            None => "notLoaded",
            Some(live) => {
                let was = live.subscribers.contains(&self.client);
                if self.behaviour.prepares(Defect::UnsubscribedForGood) {
                    live.held.insert(self.client);
                }
                if live.subscribers.iter().any(|client| *client != self.client)
                    && self.has(Defect::UnsubscribesEverybody)
                {
                    live.subscribers.clear();
                } else if was
                    && !(live.active.is_some() && self.has(Defect::BusyUnsubscribeDoesNothing))
                    && !self.has(Defect::UnsubscribeDoesNothing)
                {
                    live.subscribers.remove(&self.client);
                }
                if was || self.has(Defect::AlwaysUnsubscribed) { "unsubscribed" } else { "notSubscribed" }
            }
        };
        Ok(Answer::Now(json!({ "status": status })))
    }

    pub fn update_metadata(&self, params: &Params<'_>) -> Answered {
        let id = params.text("threadId")?;
        let info = params.object("gitInfo")?;
        let mut state = self.core.lock();
        state.thread(id)?;
        if let Some(thread) = state.threads.get_mut(id) {
            let git = &mut thread.about.git;
            if git.keys().any(|name| info.is_none_or(|info| !info.contains_key(name)))
                && self.has(Defect::MetadataReplaces)
            {
                git.clear();
            }
            let several = info.is_some_and(|info| info.len() > 1);
            let most = if several && self.has(Defect::MetadataSetsOne) { 1 } else { usize::MAX };
            for (name, value) in info.into_iter().flatten().take(most) {
                if !GIT.contains(&name.as_str()) || !(value.is_string() || value.is_null()) {
                    return Err(invalid("gitInfo"));
                }
                if value.is_null() {
                    if git.contains_key(name) && !self.has(Defect::NullsKeepMetadata) {
                        git.remove(name);
                    }
                } else {
                    git.insert(name.clone(), value.clone());
                }
            }
        }
        let mut told = state.to_json(id, false);
        if told["gitInfo"].is_null() && self.has(Defect::EmptyMetadata) {
            told["gitInfo"] = json!({ "sha": null, "branch": null, "originUrl": null });
        }
        if let Some(thread) = state.threads.get_mut(id)
            && !thread.about.git.is_empty()
            && self.has(Defect::MetadataIsNotStored)
        {
            thread.about.git.clear();
        }
        Ok(Answer::Now(json!({ "thread": told })))
    }

    pub fn rollback(&self, params: &Params<'_>) -> Answered {
        let id = params.text("threadId")?;
        let count = params.number("numTurns")?.ok_or_else(|| invalid("missing field `numTurns`"))?;
        let mut state = self.core.lock();
        let (thread, live) = state.loaded(id)?;
        if live.active.is_some() {
            return Err(refuse("a turn is in progress"));
        }
        let count =
            if count > 1 && thread.turns.len() > 1 && self.has(Defect::RollsBackOne) { 1 } else { count };
        let left = thread.turns.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        let all = thread.turns.clone();
        thread.turns.truncate(left);
        self.behaviour.mutate(&mut thread.turns, |defect, turns| {
            if defect == Defect::RollsBackTheFirst {
                *turns = all[all.len() - left..].to_vec()
            }
        });
        thread.about.updated = now();
        let result = json!({ "thread": state.to_json(id, true) });
        if left < all.len()
            && self.has(Defect::RollbackIsNotStored)
            && let Some(thread) = state.threads.get_mut(id)
        {
            thread.turns = all;
        }
        state.save(id);
        Ok(Answer::Now(result))
    }
}

/// Archives a thread, or takes it out of the archive, with its file.
fn move_file(state: &mut State, id: &str, archived: bool, leave: impl FnOnce() -> bool) {
    let Some(thread) = state.threads.get_mut(id) else { return };
    let from = thread.path(HOME);
    thread.about.archived = archived;
    if let (Some(from), Some(to)) = (from, thread.path(HOME))
        && state.files.read(&from).is_ok()
        && !leave()
    {
        // A thread without a turn has no file yet.
        let _ = state.files.rename(&from, &to);
        state.announce_changes();
    }
}
