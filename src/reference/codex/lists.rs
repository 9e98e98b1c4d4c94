//! thread/list, thread/loaded/list and thread/read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::{Answer, Answered, Peer, answer_to};
use super::faults::Defect;
use super::files::absolute;
use super::rpc::{Params, Refusal, invalid, refuse};
use super::state::{HOME, State};
use super::store::{About, PROVIDER, Thread};
use super::styles::Style;
use super::threads::defaults;

/// Threads on a page, where the request does not say.
const PAGE: u64 = 25;
/// The most on any.
const LARGEST: u64 = 100;
const KINDS: [&str; 9] = [
    "cli",
    "vscode",
    "exec",
    "appServer",
    "subAgent",
    "subAgentReview",
    "subAgentCompact",
    "subAgentThreadSpawn",
    "unknown",
];
/// Those that a person talks to.
const INTERACTIVE: [&str; 2] = ["cli", "vscode"];
/// That of every thread here.
const KIND: &str = "vscode";

/// What a list is restricted to.
struct Filter {
    archived: bool,
    /// archived was given as null.
    no_shelf: bool,
    folders: Option<Vec<String>>,
    search: Option<String>,
    providers: Vec<String>,
    kinds: Vec<String>,
    /// They were given, if only as empty lists.
    has_providers: bool,
    has_kinds: bool,
}

impl Filter {
    fn read(params: &Params<'_>) -> Result<Self, Refusal> {
        let folders = match params.get("cwd") {
            None => None,
            Some(Value::String(folder)) => Some(vec![absolute("/", folder)]),
            Some(Value::Array(_)) => {
                params.texts("cwd")?.map(|all| all.iter().map(|each| absolute("/", each)).collect())
            }
            Some(_) => return Err(invalid("cwd is of a wrong type")),
        };
        let kinds = params.texts("sourceKinds")?.unwrap_or_default();
        if kinds.iter().any(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(invalid("sourceKinds has an unknown kind"));
        }
        Ok(Self {
            archived: params.flag("archived")?.unwrap_or(false),
            no_shelf: params.0.get("archived") == Some(&Value::Null),
            folders,
            search: params.maybe_text("searchTerm")?.map(str::to_owned),
            providers: params.texts("modelProviders")?.unwrap_or_default(),
            kinds,
            has_providers: params.get("modelProviders").is_some(),
            has_kinds: params.get("sourceKinds").is_some(),
        })
    }

    fn lets(&self, thread: &Thread, defect: Option<Defect>) -> bool {
        let About { archived, ephemeral, name, preview, .. } = &thread.about;
        let title = name.as_ref().unwrap_or(preview);
        let cwd = &thread.settings.cwd;
        let in_folder = |folder: &String| match defect {
            Some(Defect::CwdIsAPrefix) => cwd.starts_with(folder.as_str()),
            Some(Defect::FoldersIgnoreCase) => cwd.eq_ignore_ascii_case(folder),
            _ => cwd == folder,
        };
        let found = |term: &String| match defect {
            Some(Defect::SearchIgnoresCase) => title.to_lowercase().contains(&term.to_lowercase()),
            Some(Defect::SearchIsForTheBeginning) => title.starts_with(term.as_str()),
            _ => title.contains(term.as_str()),
        };
        let interactive = match defect {
            Some(Defect::NoKindsListNone) if self.has_kinds => false,
            _ => self.kinds.is_empty() && INTERACTIVE.contains(&KIND),
        };
        let shelf = match defect {
            Some(Defect::ArchiveIsListed) => *archived || !self.archived,
            Some(Defect::ArchivedListsAll) => self.archived || !archived,
            Some(Defect::NullListsAll) if self.no_shelf => true,
            _ => *archived == self.archived,
        };
        let of_kind = interactive
            || self.kinds.iter().any(|kind| kind == KIND)
            || defect == Some(Defect::KindsAreIgnored);
        let provided = match defect {
            Some(Defect::ProvidersAreIgnored) => true,
            Some(Defect::NoProvidersListNone) if self.has_providers => {
                self.providers.iter().any(|name| name == PROVIDER)
            }
            _ => self.providers.is_empty() || self.providers.iter().any(|name| name == PROVIDER),
        };
        let ephemeral_too = match defect {
            Some(Defect::EphemeralIsListed) => true,
            Some(Defect::EphemeralForksAreListed) => thread.about.forked_from.is_some(),
            _ => false,
        };
        let hidden = defect == Some(Defect::InterruptedIsNotListed)
            && thread.turns.iter().all(|turn| turn.status == "interrupted");
        (!ephemeral || ephemeral_too)
            && !thread.turns.is_empty()
            && !hidden
            && shelf
            && self.folders.as_ref().is_none_or(|folders| folders.iter().any(in_folder))
            && self.search.as_ref().is_none_or(found)
            && provided
            && of_kind
    }
}

impl State {
    /// A request of the server waits for this client's answer.
    fn awaits_answer(&self, client: u64) -> bool {
        self.pending.values().any(|each| each.asked.contains(&client))
    }

    /// A command/exec of this client that has no process id of the client's runs.
    fn runs_command(&self, client: u64) -> bool {
        self.processes.keys().any(|(owner, key)| *owner == client && key.starts_with('#'))
    }
}

impl Peer<'_> {
    pub fn list(&self, params: &Params<'_>) -> Answered {
        let mut page = self.page(params, None);
        self.behaviour.mutate(&mut page, |defect, page| *page = self.page(params, Some(defect)));
        page.map(Answer::Now)
    }

    fn page(&self, params: &Params<'_>, defect: Option<Defect>) -> Result<Value, Refusal> {
        let filter = Filter::read(params)?;
        let key = match params.one_of("sortKey", &["created_at", "updated_at"]) {
            Err(_) if defect == Some(Defect::AnySortKey) => None,
            Err(_) if defect == Some(Defect::CamelSortKeys) => {
                params.one_of("sortKey", &["createdAt", "updatedAt"])?.map(|_| "created_at")
            }
            key => key?,
        };
        let by_update = match defect {
            Some(Defect::AlwaysByCreation) => false,
            Some(Defect::ByUpdateUnlessAsked) => key != Some("created_at"),
            _ => key == Some("updated_at"),
        };
        let least = if defect == Some(Defect::NoPagesOfOne) { 2 } else { 1 };
        let limit = params.number("limit")?.filter(|limit| *limit >= least).unwrap_or(PAGE).min(LARGEST);
        let after = match params.maybe_text("cursor")? {
            None => None,
            Some(cursor) => Some(position(cursor).ok_or_else(|| refuse("invalid cursor"))?),
        };
        let state = self.core.lock();
        let place = |thread: &Thread| {
            let About { created, updated, number, .. } = &thread.about;
            (if by_update { *updated } else { *created }, *number)
        };
        let hidden = |thread: &Thread| {
            defect == Some(Defect::RestartHidesThreads)
                && state.restarted
                && !state.live.contains_key(&thread.about.id)
        };
        let listed = state.threads.values().filter(|thread| filter.lets(thread, defect) && !hidden(thread));
        let mut found: Vec<&Thread> = listed.collect();
        found.sort_by_key(|thread| std::cmp::Reverse(place(thread)));
        if defect == Some(Defect::OldestFirst) || by_update && defect == Some(Defect::OldestUpdateFirst) {
            found.reverse();
        }
        let before = after.filter(|_| defect != Some(Defect::CursorsAreIgnored));
        found.retain(|thread| match (before, defect) {
            (None, _) => true,
            (Some(last), Some(Defect::PagesOverlap)) => place(thread) <= last,
            (Some(last), _) => place(thread) < last,
        });
        let mut limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if defect == Some(Defect::PagesAreTooLong) {
            limit += 1;
        }
        let more =
            found.len() > limit || found.len() == limit && defect == Some(Defect::FullPagesHaveACursor);
        found.truncate(limit);
        let next = found.last().filter(|_| more || defect == Some(Defect::AlwaysACursor)).map(|thread| {
            let (at, number) = place(thread);
            match self.behaviour.style(Style::LongCursors) {
                true => format!("{:0>60}.{number}", at),
                false => format!("{at}.{number}"),
            }
        });
        let next = next.filter(|_| defect != Some(Defect::NeverACursor));
        let data: Vec<Value> = found.iter().map(|thread| entry(&state, thread, defect)).collect();
        if data.is_empty() && defect == Some(Defect::EmptyListsAreNull) {
            return Ok(json!({ "data": null, "nextCursor": next }));
        }
        Ok(json!({ "data": data, "nextCursor": next }))
    }

    /// Answers once nothing is under way any more, under a defect.
    fn list_loaded_later(&self, id: &Value) -> Answer {
        let (core, client, id) = (Arc::clone(self.core), self.client, id.clone());
        self.core.spawn(async move {
            let busy = || {
                let state = core.lock();
                state.awaits_answer(client) || state.runs_command(client)
            };
            while busy() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let mut ids: Vec<String> = core.lock().live.keys().cloned().collect();
            ids.sort();
            answer_to(&core, client, &id, &Ok(json!({ "data": ids, "nextCursor": null })));
        });
        Answer::Elsewhere
    }

    pub fn loaded(&self, id: &Value, params: &Params<'_>) -> Answered {
        params.number("limit")?;
        params.maybe_text("cursor")?;
        let state = self.core.lock();
        let busy = state.awaits_answer(self.client) && self.has(Defect::PendingHoldsUp)
            || state.runs_command(self.client) && self.has(Defect::SlowRequestsHoldUp);
        if busy {
            drop(state);
            return Ok(self.list_loaded_later(id));
        }
        let mut ids: BTreeSet<&String> = state.live.keys().collect();
        self.behaviour.mutate(&mut ids, |defect, ids| match defect {
            Defect::FreshIsNotLoaded => {
                ids.retain(|id| state.threads.get(*id).is_some_and(|thread| !thread.turns.is_empty()));
            }
            Defect::StoredCountsAsLoaded => *ids = state.threads.keys().collect(),
            Defect::EphemeralIsNotLoaded => {
                ids.retain(|id| state.threads.get(*id).is_some_and(|thread| !thread.about.ephemeral));
            }
            _ => {}
        });
        if !ids.is_empty() && self.has(Defect::LoadedThreadsAreObjects) {
            let ids: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
            return Ok(Answer::Now(json!({ "data": ids })));
        }
        Ok(Answer::Now(json!({ "data": ids, "nextCursor": null })))
    }

    pub fn read_thread(&self, params: &Params<'_>) -> Answered {
        let id = params.text("threadId")?;
        let turns = params.flag("includeTurns")?.unwrap_or(false);
        let mut state = self.core.lock();
        if !state.threads.contains_key(id) && self.has(Defect::ReadsUnknown) {
            let status = json!({ "type": "notLoaded" });
            let mut told = Thread::new(0, defaults(), false).to_json(HOME, &status, false);
            told["id"] = json!(id);
            return Ok(Answer::Now(json!({ "thread": told })));
        }
        let has_turns = !state.thread(id)?.turns.is_empty();
        if self.has(Defect::ReadReturnsNull) {
            return Ok(Answer::Now(Value::Null));
        }
        let stranger = state.live.get(id).is_some_and(|live| !live.subscribers.contains(&self.client));
        if stranger && self.has(Defect::ReadSubscribes) {
            state.open(id, self.client);
        }
        if stranger && turns && self.has(Defect::ReadingTurnsSubscribes) {
            state.open(id, self.client);
        }
        if !state.live.contains_key(id) && self.has(Defect::ReadsLoad) {
            state.open(id, self.client);
            state.live.get_mut(id).map(|live| live.subscribers.remove(&self.client));
        }
        let busy = state.live.get(id).is_some_and(|live| live.active.is_some());
        let turns = turns
            || has_turns && self.has(Defect::ReadAlwaysHasTurns)
            || busy && self.has(Defect::BusyReadsHaveTurns);
        let mut told = state.to_json(id, turns);
        if let Some(turns) = told["turns"].as_array_mut() {
            self.behaviour.mutate(turns, |defect, turns| match defect {
                Defect::TurnsAreReadBackwards => turns.reverse(),
                Defect::OpenTurnsAreReadFirst => turns.sort_by_key(|turn| turn["status"] != "inProgress"),
                Defect::TurnsAreReadWithoutItems => {
                    turns.iter_mut().for_each(|turn| turn["items"] = json!([]));
                }
                Defect::CommandsAreNotRead => keep_items(turns, |item| item["type"] != "commandExecution"),
                Defect::UserMessagesAreNotRead => keep_items(turns, |item| item["type"] != "userMessage"),
                Defect::InterruptedIsReadAsCompleted => {
                    for turn in turns.iter_mut().filter(|turn| turn["status"] == "interrupted") {
                        turn["status"] = json!("completed");
                    }
                }
                Defect::InterruptedIsReadAsFailed => {
                    for turn in turns.iter_mut().filter(|turn| turn["status"] == "interrupted") {
                        turn["status"] = json!("failed");
                    }
                }
                _ => {}
            });
        }
        if told["status"]["type"] == "notLoaded" && self.has(Defect::StoredIsIdle) {
            told["status"] = json!({ "type": "idle" });
        }
        if self.has(Defect::ReadHasNoStatus) {
            told.as_object_mut().map(|told| told.remove("status"));
        }
        if told["status"]["type"] == "active" && self.has(Defect::ReadStatusIsIdle) {
            told["status"] = json!({ "type": "idle" });
        }
        Ok(Answer::Now(json!({ "thread": told })))
    }
}

/// A thread as a list tells it.
fn entry(state: &State, thread: &Thread, defect: Option<Defect>) -> Value {
    let mut told = state.to_json(&thread.about.id, false);
    match defect {
        Some(Defect::ListsHaveNoStatus) => told["status"] = json!({ "type": "notLoaded" }),
        Some(Defect::ListsLeaveOutTheStatus) => drop(told.as_object_mut().map(|told| told.remove("status"))),
        Some(Defect::ListsLeaveOutTheTime) => drop(told.as_object_mut().map(|told| told.remove("updatedAt"))),
        Some(Defect::ListsSayIdle) if told["status"]["type"] == "active" => {
            told["status"] = json!({ "type": "idle" });
        }
        Some(Defect::StoredIsIdle) if told["status"]["type"] == "notLoaded" => {
            told["status"] = json!({ "type": "idle" });
        }
        Some(Defect::TheArchiveHasNoPreviews) if thread.about.archived => {
            told.as_object_mut().map(|told| told.remove("preview"));
        }
        Some(Defect::ListsHaveNoNames) => told["name"] = Value::Null,
        Some(Defect::ListsHaveNoPreview) => told["preview"] = json!(""),
        _ => {}
    }
    told
}

fn keep_items(turns: &mut [Value], keep: impl Fn(&Value) -> bool) {
    for items in turns.iter_mut().filter_map(|turn| turn["items"].as_array_mut()) {
        items.retain(&keep);
    }
}

/// Where a page ended.
fn position(cursor: &str) -> Option<(u64, u64)> {
    let (at, number) = cursor.split_once('.')?;
    Some((at.trim_start_matches('0').parse().ok()?, number.parse().ok()?))
}
