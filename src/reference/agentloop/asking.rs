//! Commands that need an approval: asking, what each review does, and what a denial looks like.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::conversation::{Answer, Review};
use super::faults::Defect;
use super::items::{self, Command};
use super::styles::Style;
use super::turn::{Player, Stop};
use crate::cue::Call;
use crate::reference::engine::Happening;
use crate::reference::engine::notes::Outcome;

/// How late a defect strikes that nobody looks for at once.
pub(super) const LATE: Duration = Duration::from_millis(250);

/// Whether a request is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Send,
    /// It is outstanding already.
    Stands,
}

impl Player {
    /// A defect: all commands of a response are asked for before the first is answered.
    pub(super) fn ask_ahead(&mut self, calls: &[Call]) {
        let commands = calls.iter().map(|call| Command::new(&call.name, call.args.clone()));
        let commands: Vec<Command> = commands.filter(|command| self.needs_approval(command)).collect();
        if commands.len() > 1 && self.has(Defect::AsksAllAtOnce) {
            commands.iter().for_each(|command| self.request(command));
            self.asked_ahead = commands.len();
        }
    }

    fn request(&self, command: &Command) {
        self.outstanding();
        let mut payload = command.request(self.conversation.behaviour());
        self.keep_patch(&mut payload);
        self.conversation.send(&self.cause, "approval_request", payload);
    }

    /// A defect: a request without a patch has that of the request before.
    fn keep_patch(&self, payload: &mut Value) {
        if !self.conversation.behaviour().prepares(Defect::PatchStays) {
            return;
        }
        let mut inner = self.conversation.lock();
        match payload.get("applyPatch") {
            Some(patch) => inner.patch = Some(patch.clone()),
            None => {
                let Some(patch) = inner.patch.clone() else { return };
                payload["applyPatch"] = patch;
                self.conversation.behaviour().took_effect();
            }
        }
    }

    fn outstanding(&self) {
        self.conversation.lock().asking += 1;
        self.conversation.behaviour().note(Happening::Asks);
    }

    /// Has a command run, and tells nobody.
    fn run_unseen(&self, command: &Command, after: Duration) {
        let (shared, command) = (Arc::clone(&self.conversation.shared), command.clone());
        if after.is_zero() {
            command.run(&mut shared.lock().notes);
            return;
        }
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            command.run(&mut shared.lock().notes);
        });
    }

    pub(super) async fn perform(&mut self, command: Command) -> Result<(), Stop> {
        if !self.needs_approval(&command) {
            return self.run(&command).await;
        }
        if self.has(Defect::RunsBeforeAnswer) {
            self.request(&command);
            return self.run(&command).await;
        }
        if self.has(Defect::RunsWhileAsking) {
            self.run_unseen(&command, LATE);
        }
        if self.conversation.lock().denied.contains(&command.words) && self.has(Defect::RemembersDenials) {
            self.deny(&command, None);
            return Ok(());
        }
        let behaviour = self.conversation.behaviour();
        if behaviour.prepares(Defect::KeepsStrayDenial)
            && self.conversation.lock().answers.pop_front().is_some()
        {
            behaviour.took_effect();
            self.deny(&command, None);
            return Ok(());
        }
        let mut early = self.style(Style::CallBeforeAsking).then(|| self.announce(&command));
        // A defect has asked already.
        let mut next = if self.asked_ahead > 0 { Request::Stands } else { Request::Send };
        self.asked_ahead = self.asked_ahead.saturating_sub(1);
        loop {
            let answer = self.ask(&command, next, &mut early).await;
            match answer.review {
                Review::Explain => {
                    let Some(asked) = self.explain(&command).await? else {
                        return self.run(&command).await;
                    };
                    next = asked;
                }
                Review::Yes | Review::Always => {
                    self.approve(&command, answer.review);
                    let denies =
                        if answer.review == Review::Yes { Defect::YesIsNo } else { Defect::AlwaysDenies };
                    if self.has(denies) {
                        self.deny(&command, None);
                        return Ok(());
                    }
                    return self.run_announced(&command, early).await;
                }
                Review::NoContinue => return self.denied(&command, answer, early),
                Review::NoExit => return self.stopped(&command),
            }
        }
    }

    /// Explains a command. What is to be done about the request then; none: a defect has the command run.
    async fn explain(&mut self, command: &Command) -> Result<Option<Request>, Stop> {
        let asks_first = self.style(Style::AsksBeforeExplaining);
        if asks_first {
            self.request(command);
        }
        if self.style(Style::ExplainsSlowly) {
            self.cancel.sleep(Duration::from_millis(20)).await?;
        }
        let text = format!("{} changes a note.", command.words.join(" "));
        let id = self.new_id("msg");
        if !self.has(Defect::ExplainSaysNothing) {
            self.item(items::message(&id, "assistant", &text, self.conversation.behaviour()));
        }
        if self.has(Defect::ExplainRuns) {
            return Ok(None);
        }
        if self.has(Defect::ExplainRunsUnseen) {
            self.run_unseen(command, Duration::ZERO);
        }
        if self.style(Style::ExplainsSlowly) {
            self.cancel.sleep(Duration::from_millis(20)).await?;
        }
        if self.style(Style::ExplainsOnly) {
            self.outstanding();
            return Ok(Some(Request::Stands));
        }
        Ok(Some(if asks_first { Request::Stands } else { Request::Send }))
    }

    fn denied(&mut self, command: &Command, answer: Answer, early: Option<String>) -> Result<(), Stop> {
        self.conversation.lock().denied.insert(command.words.clone());
        let is_patch = command.words.first().is_some_and(|word| word == "apply_patch");
        let stops = (answer.reason.is_none()
            && self.conversation.behaviour().strikes(Defect::NoContinueStops))
            || (is_patch && self.conversation.behaviour().strikes(Defect::DeniedPatchesStop));
        if stops {
            return Err(Stop::Exit);
        } else if self.conversation.behaviour().strikes(Defect::NoContinueRuns) {
            self.run_unseen(command, Duration::ZERO)
        } else if self.conversation.behaviour().strikes(Defect::DeniedRunsLate) {
            self.run_unseen(command, LATE)
        } else if self.conversation.behaviour().prepares(Defect::SiblingRunsDenied) {
            self.unrun.push(command.clone())
        } else if self.conversation.behaviour().strikes(Defect::DenialIsSilent) {
            self.muted = true
        }
        self.deny_announced(command, answer.reason, early);
        Ok(())
    }

    fn stopped(&mut self, command: &Command) -> Result<(), Stop> {
        if self.conversation.behaviour().strikes(Defect::NoExitRuns) {
            self.run_unseen(command, Duration::ZERO)
        } else if self.conversation.behaviour().strikes(Defect::ExitRunsLate) {
            self.run_unseen(command, LATE)
        } else if self.conversation.behaviour().strikes(Defect::NoExitGoesOn) {
            return Ok(());
        }
        if self.style(Style::ExitIsTold) {
            let id = self.new_id("sys");
            let told = items::message(&id, "system", "Stopped by the user.", self.conversation.behaviour());
            self.item(told);
        }
        Err(Stop::Exit)
    }

    pub(super) fn needs_approval(&self, command: &Command) -> bool {
        let conversation = &self.conversation;
        if !command.is_dangerous() {
            return false;
        }
        {
            let mut inner = conversation.lock();
            if inner.misremembered.contains(&command.words) {
                conversation.behaviour().took_effect();
            }
            let program = command.words.first();
            let similar = conversation.style(Style::AlwaysByProgram)
                && inner.always.iter().any(|words| words.first() == program);
            if similar || inner.always.contains(&command.words) {
                return false;
            }
            let approved = inner.programs.iter().any(|name| Some(name) == program);
            if approved && conversation.has(Defect::YesForProgram) {
                return false;
            }
            if conversation.behaviour().prepares(Defect::KeepsStrayApproval)
                && inner.answers.pop_front().is_some()
            {
                conversation.behaviour().took_effect();
                return false;
            }
        }
        let (approved, waits, always) = {
            let state = conversation.shared.lock();
            let elsewhere = |by: Option<&u64>| by.is_some_and(|by| *by != conversation.number);
            let words = &command.words;
            let (approved, waits) = (state.approved.get(words), state.waiting.get(words));
            (elsewhere(approved), elsewhere(waits), state.always.contains(words))
        };
        let is_spared = approved
            && (self.has(Defect::AsksOnceForAll) || self.has(Defect::AskedBeforeLeaving))
            || waits && self.has(Defect::AskedElsewhere)
            || always && self.has(Defect::AlwaysIsShared)
            || self.approved && self.has(Defect::YesForSiblings)
            || self.has(Defect::NeverAsks);
        !is_spared
    }

    fn approve(&mut self, command: &Command, review: Review) {
        let conversation = Arc::clone(&self.conversation);
        let behaviour = conversation.behaviour();
        let always = review == Review::Always;
        let misremembers =
            behaviour.prepares(if always { Defect::AlwaysIsOnce } else { Defect::YesIsAlways });
        let for_good = always != misremembers;
        if misremembers {
            conversation.lock().misremembered.insert(command.words.clone());
        }
        self.approved = true;
        if for_good {
            conversation.lock().always.insert(command.words.clone());
            conversation.shared.lock().always.insert(command.words.clone());
        }
        conversation.lock().programs.extend(command.words.first().cloned());
        if behaviour.prepares(Defect::AsksOnceForAll) {
            conversation.shared.lock().approved.insert(command.words.clone(), conversation.number);
        }
        for denied in std::mem::take(&mut self.unrun) {
            behaviour.took_effect();
            self.run_unseen(&denied, Duration::ZERO);
        }
    }

    /// Asks, and waits for the answer.
    async fn ask(&mut self, command: &Command, request: Request, early: &mut Option<String>) -> Answer {
        let conversation = Arc::clone(&self.conversation);
        let before = self.style(Style::IdleBeforeAsking);
        let idles = request == Request::Send && (before || self.style(Style::IdleWhileAsking));
        if idles && before {
            self.loading(false);
        }
        if request == Request::Send {
            self.request(command);
        }
        if idles && !before {
            self.loading(false);
        }
        if self.style(Style::CallWhileAsking) && early.is_none() {
            *early = Some(self.announce(command));
        }
        conversation.lock().pending = Some(command.clone());
        conversation.shared.lock().waiting.insert(command.words.clone(), conversation.number);
        let answer = loop {
            let changed = conversation.changed.notified();
            if let Some(answer) = conversation.lock().answers.pop_front() {
                break answer;
            }
            changed.await;
        };
        conversation.lock().pending = None;
        conversation.shared.lock().waiting.remove(&command.words);
        if idles {
            self.loading(true);
        }
        answer
    }

    fn deny(&mut self, command: &Command, reason: Option<String>) {
        self.deny_announced(command, reason, None);
    }

    fn deny_announced(&mut self, command: &Command, reason: Option<String>, early: Option<String>) {
        let conversation = Arc::clone(&self.conversation);
        let behaviour = conversation.behaviour();
        let reason = reason.filter(|_| !self.has(Defect::LosesDenyMessage));
        let text =
            format!("denied by the user{}", reason.map(|reason| format!(": {reason}")).unwrap_or_default());
        if self.style(Style::DeniedByMessage) {
            let id = self.new_id("sys");
            return self.item(items::message(&id, "system", &text, behaviour));
        }
        if self.style(Style::DeniedInSilence) {
            return;
        }
        let id = early.unwrap_or_else(|| self.announce(command));
        let mut output = command.output(&id, &Outcome { text, is_error: true }, behaviour);
        behaviour.mutate(&mut output, |defect, output| {
            if defect == Defect::DeniedWithoutType {
                output.as_object_mut().map(|output| output.remove("type"));
            }
        });
        self.item(output);
    }

    /// Sends the item that announces a command; its call_id.
    pub(super) fn announce(&mut self, command: &Command) -> String {
        let id = self.call_id();
        let item = command.call(&id, self.conversation.behaviour());
        self.item(item);
        id
    }
}
