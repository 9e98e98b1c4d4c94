//! Requests of the server: to whom they go, who may answer them, and that each is resolved once.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::connection::Peer;
use super::faults::Defect;
use super::player::Player;
use super::state::{Pending, Status};
use super::styles::Style;
use super::{Behaviour, items};
use crate::reference::engine::Happening;

/// What becomes of a request.
pub(super) enum Reply {
    /// A result; none: an error.
    Given(Option<Value>),
    Cancelled,
}

/// The id of a request as it is told.
fn to_json(behaviour: &Behaviour, id: u64) -> Value {
    match behaviour.striking() {
        Some(Defect::RequestIdsRepeat) => return json!(1_000_000),
        // Clients count from 1: none meets by chance.
        Some(Defect::IdsOfBothSidesMeet) => return json!(1_000_000 + id),
        _ => {}
    }
    if behaviour.style(Style::TextIds) { json!(format!("ask-{id}")) } else { json!(id) }
}

impl Player {
    /// Asks the subscribers, and waits for the first answer.
    pub async fn ask(&mut self, method: &str, mut params: Value) -> Reply {
        let defect = self.behaviour.striking();
        params["threadId"] = json!(self.thread);
        params["turnId"] = json!(self.turn);
        let (decide, mut decided) = oneshot::channel();
        let id = {
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
            if defect == Some(Defect::AsksEverybody) {
                asked = state.clients.keys().copied().collect();
            }
            state.set_status(&self.thread, Status::Active { waiting: true });
            let mut request =
                json!({ "id": to_json(&self.behaviour, id), "method": method, "params": params });
            match defect {
                Some(Defect::RequestsHaveNoId) => {
                    request.as_object_mut().map(|request| request.remove("id"));
                }
                Some(Defect::RequestsHaveNoTurn) => {
                    request["params"].as_object_mut().map(|params| params.remove("turnId"));
                }
                Some(Defect::RequestsAreTheNeighbours) => {
                    if let Some((thread, turn)) = state.neighbour(&self.thread) {
                        (request["params"]["threadId"], request["params"]["turnId"]) =
                            (json!(thread), json!(turn));
                    }
                }
                Some(Defect::RequestsNameAnotherItem) => {
                    request["params"]["itemId"] = json!(items::fresh("item"))
                }
                _ => {}
            }
            for client in &asked {
                let out = defect == Some(Defect::OptOutOfRequests)
                    && state.clients.get(client).is_some_and(|client| {
                        client.agreed.as_ref().is_some_and(|agreed| agreed.opted_out.contains(method))
                    });
                if !out {
                    state.send(*client, request.clone());
                }
            }
            if defect == Some(Defect::LateAnswersCount)
                && let Some(command) = request["params"]["command"].as_str()
            {
                state.asked_about.insert(id, (self.thread.clone(), command.to_owned()));
            }
            self.asked.clone_from(&asked);
            state.pending.insert(id, Pending { asked, decide });
            id
        };
        self.behaviour.note(Happening::Asks);
        self.core.behaviour.note(Happening::Asks);
        let reply = tokio::select! {
            biased;
            // An error: somebody has taken it without an answer.
            given = &mut decided => given.map_or(Reply::Given(None), Reply::Given),
            () = self.cancelled.wait() => Reply::Cancelled,
        };
        self.behaviour.note(Happening::Decided);
        self.core.behaviour.note(Happening::Decided);
        self.resolve(id, &reply);
        reply
    }

    fn resolve(&mut self, id: u64, reply: &Reply) {
        let defect = self.behaviour.striking();
        let mut state = self.core.lock();
        state.pending.remove(&id);
        let cancelled = matches!(reply, Reply::Cancelled);
        let mut params = json!({ "threadId": self.thread, "requestId": to_json(&self.behaviour, id) });
        let times = match defect {
            Some(Defect::ResolvesTwice) => 2,
            Some(Defect::ResolvesLate) => 0,
            Some(Defect::InterruptResolvesNothing) if cancelled => 0,
            _ => 1,
        };
        match defect {
            Some(Defect::ResolvesAsText) => params["requestId"] = json!(id.to_string()),
            Some(Defect::ResolvesTheNeighbour) => {
                if let Some((thread, _)) = state.neighbour(&self.thread) {
                    params["threadId"] = json!(thread);
                }
            }
            Some(Defect::ResolvesAnotherThread) => params["threadId"] = json!(items::fresh("thr")),
            _ => {}
        }
        for _ in 0..times {
            let one = defect == Some(Defect::ResolvedIsToldToOne);
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
        if defect == Some(Defect::ResolvesLate) {
            self.unresolved = Some(params);
        }
    }
}

impl Peer<'_> {
    /// A client has answered a request.
    pub fn decided(&self, id: &Value, result: Option<Value>) {
        let mut state = self.core.lock();
        let defect = self.behaviour.striking();
        let mine = |pending: &Pending| match defect {
            Some(Defect::StrangersMayAnswer) => true,
            _ => pending.asked.contains(&self.client),
        };
        let same = |number: u64| match defect {
            Some(Defect::AnswersOfAnyType) => {
                id.as_str() == Some(&number.to_string()) || *id == json!(number)
            }
            _ => *id == to_json(&self.behaviour, number),
        };
        let mut fitting = state.pending.iter().filter(|(_, pending)| mine(pending));
        let Some(number) = fitting.find(|(number, _)| same(**number)).map(|(number, _)| *number) else {
            let accepts = result.is_some_and(|result| {
                result["decision"].as_str().is_some_and(|decision| decision.starts_with("accept"))
            });
            let late = id.as_u64().and_then(|number| state.asked_about.remove(&number));
            if let Some((thread, command)) = late.filter(|_| accepts)
                && let Some(live) = state.live.get_mut(&thread)
            {
                live.allowed.insert(command);
            }
            return;
        };
        if defect == Some(Defect::AnswersDecideAll) {
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
