//! turn/start, turn/steer, turn/interrupt, and turns that a user makes without the model.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::connection::{Answer, Answered, Peer, answer_to};
use super::faults::Defect;
use super::files::now;
use super::items;
use super::player::Player;
use super::rpc::{Params, Refusal, invalid, refuse, response};
use super::shell::Sandbox;
use super::state::{Active, State, Status, Work};
use super::store::Turn;
use super::styles::Style;
use super::threads::{defaults, overridden};
use super::{Behaviour, Core};
use crate::cue;
use crate::reference::engine::{Canceller, Happening};

/// The input of a turn.
fn input(params: &Params<'_>, behaviour: &Behaviour) -> Result<Vec<Value>, Refusal> {
    let mut input = checked_input(params, None);
    behaviour.mutate(&mut input, |defect, input| *input = checked_input(params, Some(defect)));
    input
}

fn checked_input(params: &Params<'_>, defect: Option<Defect>) -> Result<Vec<Value>, Refusal> {
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
        let input = input(params, &self.behaviour)?;
        let mut state = self.core.lock();
        let known = state.live.contains_key(thread);
        if !known && self.has(Defect::TurnsOfUnknownThreads) {
            return Ok(Answer::Now(json!({ "turn": Turn::new(items::fresh("turn")).to_json(true) })));
        }
        let (stored, live) = state.loaded(thread)?;
        let mut settings = stored.settings.clone();
        overridden(&mut settings, params)?;
        let last = stored.turns.last().map_or("", |turn| turn.status);
        if last == "interrupted" && self.has(Defect::InterruptedThreadsAreDead) {
            return Err(refuse("the thread was interrupted"));
        }
        if last == "failed" && self.has(Defect::FailedThreadsAreDead) {
            return Err(refuse("the thread has failed"));
        }
        if params.get("approvalPolicy") == Some(&json!("unlessTrusted"))
            && self.has(Defect::PoliciesAreInKebabCase)
        {
            return Err(invalid("approvalPolicy"));
        }
        let failures = stored.turns.iter().rev().take_while(|turn| turn.status == "failed").count();
        if failures > 1 && self.has(Defect::TwoFailuresAreTheEnd) {
            return Err(refuse("the thread has failed"));
        }
        if live.active.is_some() && live.behaviour.style(Style::OneTurnOnly) {
            return Err(refuse("a turn is in progress"));
        }
        self.behaviour.mutate(&mut settings, |defect, settings| match defect {
            Defect::TurnIgnoresCwd => settings.cwd.clone_from(&stored.settings.cwd),
            Defect::TurnIgnoresSandbox => settings.sandbox.clone_from(&stored.settings.sandbox),
            Defect::InterruptsResetTheFolder if last == "interrupted" && params.get("cwd").is_none() => {
                settings.cwd = defaults().cwd;
            }
            Defect::InterruptsResetThePolicy
                if last == "interrupted" && params.get("approvalPolicy").is_none() =>
            {
                settings.approval = defaults().approval;
            }
            Defect::FailuresResetTheSandbox if last == "failed" && params.get("sandboxPolicy").is_none() => {
                settings.sandbox = defaults().sandbox;
            }
            Defect::WritableRootsAreIgnored => {
                if let Sandbox::Workspace(roots) = &mut settings.sandbox {
                    roots.clear();
                }
            }
            _ => {}
        });
        let waits = live.status == Status::Active { waiting: true };
        if let Some(active) = live.active.as_ref().filter(|_| waits)
            && self.has(Defect::NewTurnsEndWaitingOnes)
        {
            active.canceller.cancel();
        }
        if live.active.is_none()
            && stored.turns.len() > 1
            && live.subscribers.len() > 1
            && self.behaviour.prepares(Defect::LaterTurnsAreTheirStarters)
        {
            live.held = live.subscribers.iter().copied().filter(|client| *client != self.client).collect();
        }
        let queued = live.active.is_some();
        let again = last == "failed" || last == "interrupted";
        if let Some(due) = &mut live.due {
            overridden(due, params)?;
        }
        let reverted = settings != stored.settings && self.behaviour.prepares(Defect::OverridesAreForOneTurn);
        let reverted = reverted.then(|| stored.settings.clone());
        if reverted.is_some() {
            live.due.get_or_insert_with(|| settings.clone());
        }
        stored.settings = settings;
        let turn = if self.behaviour.prepares(Defect::TurnIdsRepeat) {
            let turn = format!("turn_{thread}");
            if stored.turns.iter().any(|earlier| earlier.id == turn) {
                self.behaviour.took_effect();
            }
            turn
        } else {
            items::fresh("turn")
        };
        if state.neighbour(thread).is_some() && self.has(Defect::OneThreadAtATime) {
            return Err(refuse("another thread has a turn"));
        }
        let mut result = json!({ "turn": Turn::new(turn.clone()).to_json(true) });
        if self.has(Defect::TurnsAreReturnedPending) {
            result["turn"]["status"] = json!("pending");
        }
        let late = queued && self.has(Defect::QueuedStartsAreAnsweredLate)
            || again && self.has(Defect::StartsBehindFailuresAreAnsweredLate);
        let mut work = Work::Input(input);
        if late {
            work = Work::Answered(Box::new(work), (self.client, id.clone(), result));
        } else {
            state.send(self.client, response(id, &Ok(result)));
        }
        begin_or_queue(self.core, &mut state, thread, turn, work);
        if let (Some(settings), Some(stored)) = (reverted, state.threads.get_mut(thread)) {
            stored.settings = settings;
        }
        Ok(Answer::Elsewhere)
    }

    pub fn steer(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let added = input(params, &self.behaviour)?;
        let expected = match params.text("expectedTurnId") {
            Err(_) if self.has(Defect::SteersAnyTurn) => "",
            expected => expected?,
        };
        let overrides =
            ["cwd", "approvalPolicy", "sandboxPolicy", "model", "effort", "summary", "outputSchema"];
        let overrides = overrides.iter().any(|name| params.get(name).is_some());
        if overrides && self.behaviour.style(Style::SteerRefusesOverrides) {
            return Err(refuse("turn/steer takes no overrides"));
        }
        let mut state = self.core.lock();
        if !state.live.contains_key(thread) && self.has(Defect::SteersUnknownThreads) {
            return Ok(Answer::Now(json!({ "turnId": expected })));
        }
        let (_, live) = state.loaded(thread)?;
        let Some(active) = &mut live.active else {
            if self.has(Defect::SteersNothing) {
                return Ok(Answer::Now(json!({ "turnId": expected })));
            }
            return Err(refuse("there is no active turn to steer"));
        };
        if active.turn != expected && !self.has(Defect::SteersAnotherTurn) && !self.has(Defect::SteersAnyTurn)
        {
            let turn = active.turn.clone();
            if self.has(Defect::RefusedSteersAdd) {
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
        if overrides
            && self.has(Defect::SteersTakeOverrides)
            && let Some(stored) = state.threads.get_mut(thread)
        {
            overridden(&mut stored.settings, params)?;
        }
        let told =
            if self.has(Defect::SteerReturnsAnotherTurn) { items::fresh("turn") } else { turn.clone() };
        state.send(self.client, response(id, &Ok(json!({ "turnId": told }))));
        if state.is_received(thread, "turn/started") && self.has(Defect::SteerStartsATurn) {
            let params = json!({ "threadId": thread, "turn": Turn::new(items::fresh("turn")).to_json(true) });
            state.publish(thread, "turn/started", &params);
        }
        if let Some((other, turn)) = state.neighbour(thread)
            && self.has(Defect::SteersTheNeighbour)
        {
            let (other, turn) = (other.to_owned(), turn.to_owned());
            items::user_message(&mut state, &other, &turn, &added);
        } else if !self.has(Defect::SteerAddsNothing) {
            items::user_message(&mut state, thread, &turn, &added);
        }
        Ok(Answer::Elsewhere)
    }

    pub fn interrupt(&self, id: &Value, params: &Params<'_>) -> Answered {
        let thread = params.text("threadId")?;
        let turn = match params.text("turnId") {
            Err(_) if self.has(Defect::InterruptNeedsNoTurn) => None,
            Err(_) if params.0.contains_key("turnId") && self.has(Defect::NullInterrupts) => None,
            turn => Some(turn?),
        };
        let mut state = self.core.lock();
        let (stored, live) = state.loaded(thread)?;
        let fits = |active: &&Active| {
            turn.is_none_or(|turn| active.turn == turn) || self.has(Defect::InterruptsAnyTurn)
        };
        let first = live.subscribers.first() == Some(&self.client);
        let canceller = live.active.as_ref().filter(fits).map(|active| Arc::clone(&active.canceller));
        let Some(canceller) = canceller else {
            if live.active.is_none() && self.behaviour.prepares(Defect::StaleInterruptsWait) {
                // Not behind an interrupted turn: whether a second interrupt comes before its end is a race.
                live.doomed = stored.turns.last().is_some_and(|last| last.status == "completed");
            }
            if self.behaviour.style(Style::InterruptsNothing) {
                return Ok(Answer::Now(json!({})));
            }
            return Err(refuse("this turn is not in progress"));
        };
        if !self.has(Defect::InterruptIsNotAnswered) {
            let result = if self.has(Defect::InterruptReturnsNull) { Value::Null } else { json!({}) };
            state.send(self.client, response(id, &Ok(result)));
        }
        if first || !self.has(Defect::OnlyTheFirstInterrupts) {
            self.behaviour.note(Happening::Abort);
            canceller.cancel();
            if let Some((other, _)) = state.neighbour(thread)
                && let Some(active) = state.live.get(other).and_then(|live| live.active.as_ref())
                && self.has(Defect::InterruptsTheNeighbour)
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
        let late = match work {
            Work::Compaction => self.has(Defect::CompactionIsAnsweredLate),
            Work::Shell(_) => self.has(Defect::ShellIsAnsweredLate),
            Work::Input(_) | Work::Answered(..) => false,
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
        let late = self.has(Defect::ShellInATurnIsAnsweredLate);
        if !late {
            state.send(self.client, response(id, &Ok(json!({}))));
        }
        let mut player = Player::new(self.core, &state, (thread, &turn), settings, canceller.listen());
        let (core, client, id) = (Arc::clone(self.core), self.client, id.clone());
        self.core.spawn(async move {
            // An error: the turn is about to end, and does not wait for this.
            let _aside = aside;
            let _ = player.user_shell(&command).await;
            if late {
                answer_to(&core, client, &id, &Ok(json!({})));
            }
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
    let is_first = stored.turns.is_empty();
    if let Work::Input(input) = work.plain()
        && (stored.about.preview.is_empty() || is_first && live.behaviour.prepares(Defect::PreviewsLeak))
    {
        stored.about.preview = items::text(input);
    }
    stored.about.updated = now().max(stored.about.updated + 1);
    let failed = stored.turns.last().is_some_and(|last| last.status != "completed");
    if failed && live.tokens > 0 && live.behaviour.strikes(Defect::TotalsBeginAnew) {
        live.tokens = 0;
    }
    stored.turns.push(Turn::new(turn.clone()));
    let canceller = Arc::new(Canceller::default());
    let cancelled = canceller.listen();
    if std::mem::take(&mut live.doomed) {
        live.behaviour.took_effect();
        canceller.cancel();
    }
    let asides = Arc::new(RwLock::new(()));
    live.active = Some(Active { turn: turn.clone(), canceller, steered: Vec::new(), asides });
    live.behaviour.note(Happening::Turn);
    let behaviour = live.behaviour.clone();
    state.set_status(thread, Status::Active { waiting: false });
    let mut params = json!({ "threadId": thread, "turn": Turn::new(turn.clone()).to_json(true) });
    let mut times = 1;
    if state.is_received(thread, "turn/started") {
        behaviour.mutate(&mut params["turn"], |defect, turn| match defect {
            Defect::TurnsStartCompleted => turn["status"] = json!("completed"),
            Defect::StartedNamesAnotherTurn => turn["id"] = json!(items::fresh("turn")),
            _ => {}
        });
        if behaviour.strikes(Defect::TurnsStartTwice) {
            times = 2;
        }
    }
    (0..times).for_each(|_| state.publish(thread, "turn/started", &params));
    let player = Player::new(core, state, (thread, &turn), settings, cancelled);
    core.spawn(player.run(work));
}
