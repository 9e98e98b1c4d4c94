//! Requests of the server: to whom they go, who may answer them, and that each is resolved once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::connection::Peer;
use super::faults::Defect;
use super::player::Player;
use super::state::{Client, Grant, Pending, State, Status};
use super::styles::Style;
use super::{Behaviour, items};
use crate::reference::engine::Happening;

/// What becomes of a request.
pub(super) enum Reply {
    /// A result; none: an error.
    Given(Option<Value>),
    Cancelled,
}

/// The id of a request as it is told to these clients.
fn to_json(behaviour: &Behaviour, id: u64, state: &State, (thread, asked): (&str, &BTreeSet<u64>)) -> Value {
    let repeated = if behaviour.prepares(Defect::RequestIdsRepeat) {
        Some(0)
    } else if behaviour.prepares(Defect::RequestIdsAreOfTheThread) {
        state.threads.get(thread).map(|thread| thread.turns.len())
    } else {
        None
    };
    if let Some(repeated) = repeated {
        let told = json!(1_000_000 + repeated);
        // Requests that are not open at the same time may have the same id.
        if state.pending.values().any(|other| other.told == told && !other.asked.is_disjoint(asked)) {
            behaviour.took_effect();
        }
        return told;
    }
    // Clients count from 1: none meets by chance.
    if behaviour.prepares(Defect::IdsOfBothSidesMeet) {
        return json!(1_000_000 + id);
    }
    if behaviour.style(Style::TextIds) { json!(format!("ask-{id}")) } else { json!(id) }
}

impl Player {
    /// Asks the subscribers, and waits for the first answer.
    pub async fn ask(&mut self, method: &str, mut params: Value) -> Reply {
        params["threadId"] = json!(self.thread);
        params["turnId"] = json!(self.turn);
        let (decide, mut decided) = oneshot::channel();
        let (id, told) = {
            let mut state = self.core.lock();
            state.counts.requests += 1;
            let id = state.counts.requests;
            let subscribers = state.live.get(&self.thread).map(|live| live.subscribers.clone());
            let mut asked = subscribers.unwrap_or_default();
            if self.behaviour.style(Style::AsksTheFirst)
                && let Some(first) = asked.first().copied()
            {
                asked = [first].into();
            }
            if state.clients.keys().any(|client| !asked.contains(client)) && self.has(Defect::AsksEverybody) {
                asked = state.clients.keys().copied().collect();
            }
            state.set_status(&self.thread, Status::Active { waiting: true });
            let left = |client: &&Client| client.left.contains(&self.thread);
            if state.clients.values().any(|client| left(&client)) && self.has(Defect::LeaversAreAsked) {
                asked.extend(state.clients.iter().filter(|(_, client)| left(client)).map(|(id, _)| *id));
            }
            let told = to_json(&self.behaviour, id, &state, (&self.thread, &asked));
            let mut request = json!({ "id": told, "method": method, "params": params });
            if !asked.is_empty() {
                self.behaviour.mutate(&mut request, |defect, request| match defect {
                    Defect::RequestsHaveNoId => {
                        request.as_object_mut().map(|request| request.remove("id"));
                    }
                    Defect::RequestsHaveNoTurn => {
                        request["params"].as_object_mut().map(|params| params.remove("turnId"));
                    }
                    Defect::RequestsHaveTheFirstTurn => {
                        let thread = state.threads.get(&self.thread);
                        if let Some(first) = thread.and_then(|thread| thread.turns.first()) {
                            request["params"]["turnId"] = json!(first.id);
                        }
                    }
                    Defect::RequestsAreTheNeighbours => {
                        if let Some((thread, turn)) = state.neighbour(&self.thread) {
                            (request["params"]["threadId"], request["params"]["turnId"]) =
                                (json!(thread), json!(turn));
                        }
                    }
                    Defect::RequestsNameAnotherItem => {
                        request["params"]["itemId"] = json!(items::fresh("item"))
                    }
                    _ => {}
                });
            }
            for client in &asked {
                let out = state.clients.get(client).is_some_and(|client| {
                    client.agreed.as_ref().is_some_and(|agreed| agreed.opted_out.contains(method))
                });
                if !(out && self.has(Defect::OptOutOfRequests)) {
                    state.send(*client, request.clone());
                }
            }
            if (self.behaviour.prepares(Defect::LateAnswersCount)
                || self.behaviour.prepares(Defect::LateAnswersResolve))
                && let Some(command) = request["params"]["command"].as_str()
            {
                state.asked_about.insert(id, (self.thread.clone(), command.to_owned()));
            }
            self.asked.clone_from(&asked);
            state.pending.insert(id, Pending { told: told.clone(), asked, decide });
            (id, told)
        };
        let asking = self.behaviour.during(Happening::Asks, Happening::Decided);
        let reply = tokio::select! {
            biased;
            // An error: somebody has taken it without an answer.
            given = &mut decided => given.map_or(Reply::Given(None), Reply::Given),
            () = self.cancelled.wait() => Reply::Cancelled,
        };
        drop(asking);
        self.resolve(id, told, &reply);
        reply
    }

    fn resolve(&mut self, id: u64, told: Value, reply: &Reply) {
        let core = Arc::clone(&self.core);
        let mut state = core.lock();
        state.pending.remove(&id);
        let mut params = json!({ "threadId": self.thread, "requestId": told });
        let (late, times) = if state.is_received(&self.thread, "serverRequest/resolved") {
            self.distort(&state, id, &mut params, reply)
        } else {
            (false, 1)
        };
        for _ in 0..times {
            let one = self.asked.len() > 1 && self.has(Defect::ResolvedIsToldToOne);
            match self.behaviour.style(Style::AsksTheFirst) || one {
                true => self
                    .asked
                    .iter()
                    .take(if one { 1 } else { usize::MAX })
                    .for_each(|client| state.notify(*client, "serverRequest/resolved", &params)),
                false => state.publish(&self.thread, "serverRequest/resolved", &params),
            }
        }
        state.set_status(&self.thread, Status::Active { waiting: false });
        if late {
            self.unresolved = Some(params);
        }
    }

    /// Changes a resolution under a defect: whether it comes later, and how often it comes now.
    fn distort(&self, state: &State, id: u64, params: &mut Value, reply: &Reply) -> (bool, usize) {
        self.behaviour.mutate(params, |defect, params| match defect {
            Defect::ResolvesAsText => params["requestId"] = json!(id.to_string()),
            Defect::ResolvesTheNeighbour => {
                if let Some((thread, _)) = state.neighbour(&self.thread) {
                    params["threadId"] = json!(thread);
                }
            }
            Defect::ResolvesAnotherThread => params["threadId"] = json!(items::fresh("thr")),
            _ => {}
        });
        let cancelled = matches!(reply, Reply::Cancelled);
        let granted = match reply {
            Reply::Given(Some(result)) => result["decision"] == "acceptForSession",
            _ => false,
        };
        if self.has(Defect::ResolvesLate) || granted && self.has(Defect::SessionGrantsResolveLate) {
            return (true, 0);
        }
        if self.has(Defect::ResolvesTwice) {
            return (false, 2);
        }
        (false, usize::from(!(cancelled && self.has(Defect::InterruptResolvesNothing))))
    }
}

impl Peer<'_> {
    /// A client has answered a request.
    pub fn decided(&self, id: &Value, result: Option<Value>) {
        let mut state = self.core.lock();
        let of_any_type = |number: u64| {
            (id.as_str() == Some(&number.to_string()) || *id == json!(number))
                && self.has(Defect::AnswersOfAnyType)
        };
        let same = |number: u64, pending: &Pending| *id == pending.told || of_any_type(number);
        let mine =
            |pending: &Pending| pending.asked.contains(&self.client) || self.has(Defect::StrangersMayAnswer);
        let mut fitting = state.pending.iter().filter(|(number, pending)| same(**number, pending));
        let Some(number) = fitting.find(|(_, pending)| mine(pending)).map(|(number, _)| *number) else {
            let accepts = result.is_some_and(|result| {
                result["decision"].as_str().is_some_and(|decision| decision.starts_with("accept"))
            });
            let late = id.as_u64().and_then(|number| state.asked_about.remove(&number));
            if let Some((thread, _)) = &late
                && self.has(Defect::LateAnswersResolve)
            {
                let params = json!({ "threadId": thread, "requestId": id });
                return state.publish(thread, "serverRequest/resolved", &params);
            }
            if let Some((thread, command)) = late.filter(|_| accepts)
                && let Some(live) = state.live.get_mut(&thread)
            {
                live.allowed.insert(command, Grant::Presumed);
            }
            return;
        };
        let own = state.pending.values().filter(|pending| pending.asked.contains(&self.client)).count();
        if own > 1 && self.has(Defect::AnswersDecideAll) {
            let (mine, others): (BTreeMap<u64, Pending>, _) = std::mem::take(&mut state.pending)
                .into_iter()
                .partition(|(_, pending)| pending.asked.contains(&self.client));
            state.pending = others;
            // Errors: their turns have ended meanwhile.
            mine.into_values().for_each(|pending| drop(pending.decide.send(result.clone())));
            return;
        }
        if let Some(pending) = state.pending.remove(&number) {
            // An error: its turn has ended meanwhile.
            let _ = pending.decide.send(result);
        }
    }
}
