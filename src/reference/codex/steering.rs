//! turn/start, turn/steer, turn/interrupt, and turns that a user makes without the model.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::Core;
use super::connection::{Answer, Answered, Peer};
use super::faults::Defect;
use super::files::now;
use super::items;
use super::player::Player;
use super::rpc::{Params, Refusal, invalid, refuse, response};
use super::state::{Active, State, Status, Work};
use super::store::Turn;
use super::styles::Style;
use super::threads::overridden;
use crate::cue;
use crate::reference::engine::{Canceller, Happening};

/// The input of a turn.
fn input(params: &Params<'_>, defect: Option<Defect>) -> Result<Vec<Value>, Refusal> {
    let input = match params.list("input") {
        Ok(Some(input)) => input,
        Ok(None) if defect == Some(Defect::InputMayBeMissing) => return Ok(Vec::new()),
        Ok(None) => return Err(invalid("missing field `input`")),
        Err(refusal) => return Err(refusal),
    };
    let text = |part: &Value, name: &str| part.get(name).is_some_and(Value::is_string);
    let fits = |part: &Value| match part.get("type").and_then(Value::as_str) {
        Some("text") => text(part, "text"),
        Some("image") => text(part, "url") && defect != Some(Defect::ImagesAreRefused),
        Some("localImage") => text(part, "path") && defect != Some(Defect::ImagesAreRefused),
        Some("skill" | "mention") => text(part, "name") && text(part, "path"),
        _ => defect == Some(Defect::AnyInput) && part.is_object(),
    };
    let fits = !input.is_empty() && input.iter().all(fits);
    if fits { Ok(input.clone()) } else { Err(invalid("input")) }
}

impl Peer<'_> {
    pub fn start_turn(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let defect = self.behaviour.striking();
        let input = input(params, defect)?;
        let mut state = self.core.lock();
        let known = state.live.contains_key(thread);
        if !known && defect == Some(Defect::TurnsOfUnknownThreads) {
            return Ok(Answer::Now(json!({ "turn": Turn::new(items::fresh("turn")).to_json(true) })));
        }
        let (stored, live) = state.loaded(thread)?;
        let mut settings = stored.settings.clone();
        overridden(&mut settings, params)?;
        let last = stored.turns.last().map_or("", |turn| turn.status);
        match defect {
            Some(Defect::InterruptedThreadsAreDead) if last == "interrupted" => {
                return Err(refuse("the thread was interrupted"));
            }
            Some(Defect::FailedThreadsAreDead) if last == "failed" => {
                return Err(refuse("the thread has failed"));
            }
            Some(Defect::PoliciesAreInKebabCase)
                if params.get("approvalPolicy") == Some(&json!("unlessTrusted")) =>
            {
                return Err(invalid("approvalPolicy"));
            }
            _ => {}
        }
        if live.active.is_some() && live.behaviour.style(Style::OneTurnOnly) {
            return Err(refuse("a turn is in progress"));
        }
        match defect {
            Some(Defect::TurnIgnoresCwd) => settings.cwd.clone_from(&stored.settings.cwd),
            Some(Defect::TurnIgnoresSandbox) => settings.sandbox.clone_from(&stored.settings.sandbox),
            _ => {}
        }
        let once = defect == Some(Defect::OverridesAreForOneTurn);
        let before = stored.settings.clone();
        stored.settings = settings;
        if defect == Some(Defect::OneThreadAtATime) && state.neighbour(thread).is_some() {
            return Err(refuse("another thread has a turn"));
        }
        let turn = match defect {
            Some(Defect::TurnIdsRepeat) => format!("turn_{thread}"),
            _ => items::fresh("turn"),
        };
        let mut result = json!({ "turn": Turn::new(turn.clone()).to_json(true) });
        if defect == Some(Defect::TurnsAreReturnedPending) {
            result["turn"]["status"] = json!("pending");
        }
        state.send(self.client, response(id, &Ok(result)));
        begin_or_queue(self.core, &mut state, thread, turn, Work::Input(input));
        if once && let Some(stored) = state.threads.get_mut(thread) {
            stored.settings = before;
        }
        Ok(Answer::Elsewhere)
    }

    pub fn steer(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let defect = self.behaviour.striking();
        let added = input(params, defect)?;
        let expected = match params.text("expectedTurnId") {
            Err(_) if defect == Some(Defect::SteersAnyTurn) => "",
            expected => expected?,
        };
        let overrides =
            ["cwd", "approvalPolicy", "sandboxPolicy", "model", "effort", "summary", "outputSchema"];
        let overrides = overrides.iter().any(|name| params.get(name).is_some());
        if overrides && self.behaviour.style(Style::SteerRefusesOverrides) {
            return Err(refuse("turn/steer takes no overrides"));
        }
        let mut state = self.core.lock();
        if !state.live.contains_key(thread) && defect == Some(Defect::SteersUnknownThreads) {
            return Ok(Answer::Now(json!({ "turnId": expected })));
        }
        let (_, live) = state.loaded(thread)?;
        let Some(active) = &mut live.active else {
            if defect == Some(Defect::SteersNothing) {
                return Ok(Answer::Now(json!({ "turnId": expected })));
            }
            return Err(refuse("there is no active turn to steer"));
        };
        if active.turn != expected
            && !matches!(defect, Some(Defect::SteersAnotherTurn | Defect::SteersAnyTurn))
        {
            let turn = active.turn.clone();
            if defect == Some(Defect::RefusedSteersAdd) {
                items::user_message(&mut state, thread, &turn, &added);
            }
            let words = format!("expected active turn id `{expected}`, but another turn is active");
            return Err(refuse(words));
        }
        let text = items::text(&added);
        if matches!(cue::Cue::find(&text), Ok(Some(_))) {
            active.steered.extend(cue::responses(&text));
        }
        let turn = active.turn.clone();
        if defect == Some(Defect::SteersTakeOverrides)
            && let Some(stored) = state.threads.get_mut(thread)
        {
            overridden(&mut stored.settings, params)?;
        }
        let told = match defect {
            Some(Defect::SteerReturnsAnotherTurn) => items::fresh("turn"),
            _ => turn.clone(),
        };
        state.send(self.client, response(id, &Ok(json!({ "turnId": told }))));
        if defect == Some(Defect::SteerStartsATurn) {
            let params = json!({ "threadId": thread, "turn": Turn::new(items::fresh("turn")).to_json(true) });
            state.publish(thread, "turn/started", &params);
        }
        if defect == Some(Defect::SteersTheNeighbour)
            && let Some((other, turn)) = state.neighbour(thread)
        {
            let (other, turn) = (other.to_owned(), turn.to_owned());
            items::user_message(&mut state, &other, &turn, &added);
        } else if defect != Some(Defect::SteerAddsNothing) {
            items::user_message(&mut state, thread, &turn, &added);
        }
        Ok(Answer::Elsewhere)
    }

    pub fn interrupt(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let defect = self.behaviour.striking();
        let turn = match params.text("turnId") {
            Err(_) if defect == Some(Defect::InterruptNeedsNoTurn) => None,
            turn => Some(turn?),
        };
        let mut state = self.core.lock();
        let (stored, live) = state.loaded(thread)?;
        live.behaviour.note(Happening::Abort);
        let fits = |active: &&Active| {
            turn.is_none_or(|turn| active.turn == turn) || defect == Some(Defect::InterruptsAnyTurn)
        };
        let owner =
            live.subscribers.first() == Some(&self.client) || defect != Some(Defect::OnlyTheFirstInterrupts);
        let canceller = live.active.as_ref().filter(fits).map(|active| Arc::clone(&active.canceller));
        let Some(canceller) = canceller else {
            if defect == Some(Defect::StaleInterruptsWait) && live.active.is_none() {
                // Not behind an interrupted turn: whether a second interrupt comes before its end is a race.
                live.doomed = stored.turns.last().is_some_and(|last| last.status == "completed");
            }
            if self.behaviour.style(Style::InterruptsNothing) {
                return Ok(Answer::Now(json!({})));
            }
            return Err(refuse("this turn is not in progress"));
        };
        if defect != Some(Defect::InterruptIsNotAnswered) {
            state.send(self.client, response(id, &Ok(json!({}))));
        }
        if owner {
            canceller.cancel();
            if defect == Some(Defect::InterruptsTheNeighbour)
                && let Some((other, _)) = state.neighbour(thread)
                && let Some(active) = state.live.get(other).and_then(|live| live.active.as_ref())
            {
                active.canceller.cancel();
            }
        }
        Ok(Answer::Elsewhere)
    }

    pub fn compact(&self, id: &Value, params: &Params<'_>) -> Answered {
        self.own_turn(id, params, Work::Compaction)
    }

    fn own_turn(&self, id: &Value, params: &Params<'_>, work: Work) -> Answered {
        let thread = params.text("threadId")?;
        let mut state = self.core.lock();
        state.loaded(thread)?;
        let late = match self.behaviour.striking() {
            Some(Defect::CompactionIsAnsweredLate) => matches!(work, Work::Compaction),
            Some(Defect::ShellIsAnsweredLate) => matches!(work, Work::Shell(_)),
            _ => false,
        };
        let mut work = work;
        if late {
            work = Work::Answered(Box::new(work), (self.client, id.clone(), json!({})));
        } else {
            state.send(self.client, response(id, &Ok(json!({}))));
        }
        begin_or_queue(self.core, &mut state, thread, items::fresh("turn"), work);
        Ok(Answer::Elsewhere)
    }

    pub fn shell_command(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let command = params.text("command")?.to_owned();
        let mut state = self.core.lock();
        if !state.live.contains_key(thread) && self.has(Defect::ShellForUnknownThreads) {
            return Ok(Answer::Now(json!({})));
        }
        let (_, live) = state.loaded(thread)?;
        let own = live.active.is_none() || self.has(Defect::ShellAlwaysHasItsTurn);
        let Some(active) = live.active.as_ref().filter(|_| !own) else {
            drop(state);
            return self.own_turn(id, params, Work::Shell(command));
        };
        let turn = active.turn.clone();
        let canceller = Arc::clone(&active.canceller);
        let aside = Arc::clone(&active.asides).try_read_owned();
        let settings = state.thread(thread)?.settings.clone();
        state.send(self.client, response(id, &Ok(json!({}))));
        let mut player = Player::new(self.core, &state, (thread, &turn), settings, canceller.listen());
        self.core.spawn(async move {
            // An error: the turn is about to end, and does not wait for this.
            let _aside = aside;
            let _ = player.user_shell(&command).await;
        });
        Ok(Answer::Elsewhere)
    }
}

/// Begins a turn, or has it wait for the one before it.
fn begin_or_queue(core: &Arc<Core>, state: &mut State, thread: &str, turn: String, work: Work) {
    let Some(live) = state.live.get_mut(thread) else { return };
    if live.active.is_some() && !live.behaviour.strikes(Defect::TurnsOverlap) {
        if !live.behaviour.strikes(Defect::QueuedTurnsAreForgotten) {
            live.queue.push_back((turn, work));
        }
    } else {
        begin(core, state, thread, turn, work);
    }
}

/// Begins a turn of a thread that has none.
pub(super) fn begin(core: &Arc<Core>, state: &mut State, thread: &str, turn: String, work: Work) {
    let Ok((stored, live)) = state.loaded(thread) else { return };
    let settings = stored.settings.clone();
    if let Work::Input(input) = work.plain()
        && stored.about.preview.is_empty()
    {
        stored.about.preview = items::text(input);
    }
    stored.about.updated = now().max(stored.about.updated + 1);
    stored.turns.push(Turn::new(turn.clone()));
    let canceller = Arc::new(Canceller::default());
    let cancelled = canceller.listen();
    if std::mem::take(&mut live.doomed) {
        canceller.cancel();
    }
    let asides = Arc::new(RwLock::new(()));
    live.active = Some(Active { turn: turn.clone(), canceller, steered: Vec::new(), asides });
    live.behaviour.note(Happening::Turn);
    core.behaviour.note(Happening::Turn);
    let defect = live.behaviour.striking();
    state.set_status(thread, Status::Active { waiting: false });
    let mut params = json!({ "threadId": thread, "turn": Turn::new(turn.clone()).to_json(true) });
    match defect {
        Some(Defect::TurnsStartCompleted) => params["turn"]["status"] = json!("completed"),
        Some(Defect::StartedNamesAnotherTurn) => params["turn"]["id"] = json!(items::fresh("turn")),
        _ => {}
    }
    let times = match defect {
        Some(Defect::TurnsStartTwice) => 2,
        _ => 1,
    };
    (0..times).for_each(|_| state.publish(thread, "turn/started", &params));
    let player = Player::new(core, state, (thread, &turn), settings, cancelled);
    core.spawn(player.run(work));
}
