//! How a turn ends, and what it has used; what ends with a connection.

use serde_json::{Value, json};

use super::deviations;
use super::faults::Defect;
use super::files::now;
use super::items;
use super::player::{Player, Stop};
use super::state::{State, Status};
use super::steering::begin;
use super::styles::Style;

impl Player {
    /// Stores how it has ended, tells it, and begins the turn that has waited for it.
    pub fn end(&mut self, state: &mut State, result: &Result<(), Stop>) {
        let (status, error) = match result {
            Ok(()) => ("completed", Value::Null),
            Err(Stop::Cancelled) => ("interrupted", Value::Null),
            Err(Stop::Failed(error)) => ("failed", error.clone()),
        };
        let mut earlier_error = Value::Null;
        let mut half = false;
        let mut source = None;
        if let Some(stored) = state.threads.get_mut(&self.thread) {
            stored.about.updated = now().max(stored.about.updated + 1);
            if let Some(turn) = stored.turn(&self.turn) {
                turn.status = status;
                turn.error = error.clone();
                half = turn.items.last().is_some_and(|item| item["type"] == "agentMessage");
                source = stored.about.forked_from.clone().zip(stored.turns.last().cloned());
            }
            if let [.., earlier, _] = stored.turns.as_slice() {
                earlier_error.clone_from(&earlier.error);
            }
        }
        if let Some((source, turn)) = source
            && let Some(source) = state.threads.get_mut(&source)
            && self.has(Defect::ForksWriteToTheirSource)
        {
            source.turns.push(turn);
        }
        state.save(&self.thread);
        if let Some(live) = state.live.get_mut(&self.thread) {
            live.active = None;
        }
        let at_rest = match result {
            Err(Stop::Failed(_)) if !self.behaviour.style(Style::FailedIsIdle) => Status::Failed,
            _ => Status::Idle,
        };
        let stuck = match result {
            Err(Stop::Failed(_)) => self.has(Defect::FailedStaysActive),
            Err(Stop::Cancelled) => self.has(Defect::InterruptedStaysActive),
            Ok(()) => false,
        };
        if !stuck && !self.behaviour.style(Style::IdleAfterTheTurn) {
            state.set_status(&self.thread, at_rest);
        }
        let mut turn = json!({ "id": self.turn, "status": status, "items": [], "error": error });
        if !self.behaviour.style(Style::NoUsageInTurns) {
            turn["usage"] = json!({ "inputTokens": self.read, "outputTokens": self.said });
        }
        if self.behaviour.style(Style::ItemsInTurns)
            && let Some(stored) =
                state.threads.get_mut(&self.thread).and_then(|thread| thread.turn(&self.turn))
        {
            turn["items"] = json!(stored.items);
        }
        let is_received = state.is_received(&self.thread, "turn/completed");
        if is_received {
            deviations::ended(&mut turn, &self.behaviour);
            self.behaviour.mutate(&mut turn, |defect, turn| match defect {
                Defect::HalfAnswersComplete if half && status == "failed" => {
                    turn["status"] = json!("completed");
                    turn["error"] = Value::Null;
                }
                Defect::ErrorsStay if status == "completed" => turn["error"] = earlier_error,
                _ => {}
            });
        }
        let neighbour = state.neighbour(&self.thread).filter(|_| is_received);
        let neighbour = neighbour.filter(|_| self.has(Defect::EndsAreTheNeighbours));
        let params =
            json!({ "threadId": neighbour.map_or(self.thread.as_str(), |(thread, _)| thread), "turn": turn });
        let times = if is_received && self.has(Defect::TurnsEndTwice) { 2 } else { 1 };
        (0..times).for_each(|_| state.publish(&self.thread, "turn/completed", &params));
        if matches!(result, Err(Stop::Cancelled)) && is_received && self.has(Defect::InterruptedTurnsGoOn) {
            let item = json!({ "type": "agentMessage", "id": items::fresh("item"), "text": "" });
            items::started(state, &self.thread, &self.turn, &item);
            items::completed(state, &self.thread, &self.turn, item);
        }
        if matches!(result, Err(Stop::Failed(_)))
            && let Some((other, _)) = state.neighbour(&self.thread)
            && let Some(active) = state.live.get(other).and_then(|live| live.active.as_ref())
            && self.has(Defect::FailuresSpread)
        {
            active.canceller.cancel();
        }
        if (self.behaviour.prepares(Defect::JoinersWait)
            || self.behaviour.prepares(Defect::LaterTurnsAreTheirStarters))
            && let Some(live) = state.live.get_mut(&self.thread)
        {
            live.held.clear();
        }
        if !stuck && self.behaviour.style(Style::IdleAfterTheTurn) {
            state.set_status(&self.thread, at_rest);
        }
        let queued = state.live.get_mut(&self.thread).and_then(|live| live.queue.pop_front());
        if let Some((turn, work)) = queued {
            begin(&self.core, state, &self.thread, turn, work);
        }
    }

    /// Tells the tokens of one answer of the model.
    pub fn usage(&mut self) {
        let total = {
            let mut state = self.core.lock();
            let Some(live) = state.live.get_mut(&self.thread) else { return };
            live.tokens += self.read + self.said;
            live.tokens
        };
        let usage = |total: u64, read: u64, said: u64| {
            json!({
                "totalTokens": total, "inputTokens": read, "cachedInputTokens": 0, "outputTokens": said,
                "reasoningOutputTokens": 0,
            })
        };
        let last = usage(self.read + self.said, self.read, self.said);
        let mut told = json!({
            "total": usage(total, total.saturating_sub(self.said), self.said), "last": last,
            "modelContextWindow": null,
        });
        if !self.core.lock().is_received(&self.thread, "thread/tokenUsage/updated")
            || self.has(Defect::NoUsage)
        {
            return;
        }
        self.behaviour.mutate(&mut told, |defect, told| match defect {
            Defect::UsageHasNoTotal => {
                told.as_object_mut().map(|told| told.remove("total"));
            }
            Defect::LaterUsageHasNoLast if told["total"]["totalTokens"] != told["last"]["totalTokens"] => {
                told.as_object_mut().map(|told| told.remove("last"));
            }
            Defect::TotalsAreTheLast => told["total"] = told["last"].clone(),
            Defect::UsageDoesNotAddUp => told["last"]["outputTokens"] = json!(self.said + 1),
            _ => {}
        });
        self.publish("thread/tokenUsage/updated", json!({ "tokenUsage": told }));
    }
}

impl State {
    /// A client has gone.
    pub fn leave(&mut self, client: u64) {
        let gone = self.clients.remove(&client);
        let strikes = |defect| gone.as_ref().is_some_and(|gone| gone.behaviour.strikes(defect));
        self.watches.retain(|watch| watch.client != client);
        let mut orphans = Vec::new();
        for (id, pending) in &self.pending {
            let asks_others = pending.asked.contains(&client) && pending.asked.len() > 1;
            if asks_others && strikes(Defect::LeavingDeclines) {
                orphans.push(*id);
            }
        }
        for pending in orphans.iter().filter_map(|id| self.pending.remove(id)) {
            // An error: its turn has ended meanwhile.
            let _ = pending.decide.send(None);
        }
        for live in self.live.values_mut() {
            let was = live.subscribers.remove(&client);
            if was
                && live.subscribers.first().is_some_and(|next| *next > client)
                && live.behaviour.strikes(Defect::TheFirstLeavesForAll)
            {
                live.subscribers.clear();
            }
            let Some(active) = &live.active else { continue };
            if was && live.behaviour.strikes(Defect::LeavingEndsTheTurn)
                || live.subscribers.is_empty() && live.behaviour.strikes(Defect::TurnsEndWithTheirClient)
            {
                active.canceller.cancel();
            }
        }
        let own = self.processes.iter().filter(|((owner, _), _)| *owner == client);
        let outlives = |key: &str| {
            key.starts_with('#') && strikes(Defect::NamelessProcessesOutlive)
                || strikes(Defect::ProcessesOutliveTheirConnection)
        };
        own.filter(|((_, key), _)| !outlives(key)).for_each(|(_, process)| process.canceller.cancel());
    }
}
