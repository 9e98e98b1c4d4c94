//! What the model may call: commands, patches, its plan, and the tools of the client.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::Behaviour;
use super::asking::Reply;
use super::deviations;
use super::exec_request::environment;
use super::faults::Defect;
use super::files::absolute;
use super::items::fresh;
use super::player::{Player, Stop};
use super::shell::{self, Job, Program, Sandbox, Stream};
use super::state::{Grant, Rule, WORK};
use super::store::Settings;
use super::styles::Style;
use crate::cue::Call;
use crate::reference::engine::{Cancelled, Happening};

/// Bytes of a long command.
const LONG: usize = 200;

/// What a client has decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    Accept,
    ForSession,
    /// Accept once, which counts for the session, under a defect; or the reverse.
    Confused(Grant),
    /// Accept, and what begins with these words from now on.
    Amendment(Vec<String>),
    Decline,
    Cancel,
}

impl Decision {
    /// What an answer says. Nothing but the document's decisions allows anything.
    fn read(reply: Option<&Value>, behaviour: &Behaviour) -> Self {
        let has = |defect| behaviour.strikes(defect);
        let Some(result) = reply else {
            return if has(Defect::ErrorsAllow) { Self::Accept } else { Self::Decline };
        };
        let Some(decision) = result.get("decision") else {
            return if has(Defect::NoDecisionAllows) { Self::Accept } else { Self::Decline };
        };
        if let Some(amendment) = decision.get("acceptWithExecpolicyAmendment") {
            let words = amendment.get("execpolicy_amendment").and_then(Value::as_array);
            let words = words.into_iter().flatten().filter_map(Value::as_str);
            return Self::Amendment(words.map(str::to_owned).collect());
        }
        let allows = decision.get("applyNetworkPolicyAmendment").is_some();
        match decision.as_str() {
            Some("accept") if behaviour.prepares(Defect::AcceptIsForSession) => {
                Self::Confused(Grant::Presumed)
            }
            Some("acceptForSession") if behaviour.prepares(Defect::SessionIsOnce) => {
                Self::Confused(Grant::Forgotten)
            }
            Some("accept") => Self::Accept,
            Some("acceptForSession") => Self::ForSession,
            Some("cancel") if has(Defect::CancelDeclines) => Self::Decline,
            Some("cancel") if has(Defect::CancelAccepts) => Self::Accept,
            Some("cancel") => Self::Cancel,
            Some("decline") => Self::Decline,
            Some(other) if other.eq_ignore_ascii_case("accept") && has(Defect::DecisionsIgnoreCase) => {
                Self::Accept
            }
            None if *decision == json!(true) && has(Defect::TrueAllows) => Self::Accept,
            _ if allows || has(Defect::UnknownDecisionsAllow) => Self::Accept,
            _ => Self::Decline,
        }
    }
}

impl Player {
    /// Carries out a call of the model.
    pub async fn perform(&mut self, call: &Call) -> Result<(), Stop> {
        let is_due = |due: &Settings| *due == self.settings;
        if !self.core.lock().live.get(&self.thread).and_then(|live| live.due.as_ref()).is_none_or(is_due) {
            self.behaviour.took_effect();
        }
        match call.name.as_str() {
            "exec_command" | "shell" | "shell_command" => self.command(&call.args).await,
            "apply_patch" => self.patch(&call.args).await,
            "update_plan" => {
                self.plan(&call.args);
                Ok(())
            }
            name if self.settings.tools.iter().any(|tool| tool == name) => {
                self.dynamic(name, &call.args).await
            }
            // The model is told that there is no such tool; that shows in what it says next.
            _ => Ok(()),
        }
    }

    fn item(&self, id: &str, command: &str, source: &str) -> Value {
        json!({
            "type": "commandExecution", "id": id, "command": command, "cwd": self.settings.cwd, "processId": null,
            "source": source, "status": "inProgress", "commandActions": [{ "type": "unknown", "command": command }],
            "aggregatedOutput": null, "exitCode": null, "durationMs": null,
        })
    }

    /// Whether nobody needs to be asked about a command any more.
    fn is_allowed(&self, command: &str) -> bool {
        let state = self.core.lock();
        let Some(live) = state.live.get(&self.thread) else { return false };
        let words: Vec<&str> = command.split_whitespace().collect();
        let begins = |rule: &&Rule| {
            !rule.words.is_empty()
                && words.len() >= rule.words.len()
                && rule.words.iter().zip(&words).all(|(due, word)| due == word)
        };
        let ruled = state.rules.iter().find(begins).map(|rule| rule.grant);
        match live.allowed.get(command).copied().or(ruled) {
            Some(grant) => grant.counts(&self.behaviour),
            None => !live.allowed.is_empty() && self.has(Defect::SessionIsForAllCommands),
        }
    }

    async fn command(&mut self, args: &Map<String, Value>) -> Result<(), Stop> {
        let started = |item: &Value| item["type"] == "commandExecution";
        if self.settings.cwd != WORK
            && self.has_completed_now(started)
            && self.has(Defect::LaterCommandsLoseTheFolder)
        {
            WORK.clone_into(&mut self.settings.cwd);
        }
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (command, reason) = (text("cmd"), text("justification"));
        let escalated = text("sandbox_permissions") == "require_escalated";
        let mut sandbox = self.settings.sandbox.clone();
        let allowed = escalated && self.is_allowed(&command);
        let unless = escalated && !allowed;
        let never = self.settings.approval == "never" && !(unless && self.has(Defect::NeverIsAsked));
        let spared = || {
            command.len() > LONG && self.has(Defect::LongCommandsRun) || self.has(Defect::NothingIsAskedAbout)
        };
        let wary = !escalated
            && self.has_completed(|item| item["status"] == "declined")
            && self.settings.approval != "never"
            && self.has(Defect::DenialsMakeWary);
        let asks = unless && !never && !spared() || wary;
        let id = fresh("item");
        let item = self.item(&id, &command, "agent");
        let late = asks && self.has(Defect::CommandsAreShownAfterTheRequest);
        if !late {
            self.started(&deviations::command(item.clone(), &self.behaviour, true));
        }
        if asks {
            let mut params = json!({
                "itemId": id, "reason": reason, "command": command, "cwd": self.settings.cwd,
                "commandActions": item["commandActions"], "proposedExecpolicyAmendment": null,
            });
            if !self.behaviour.style(Style::NoAvailableDecisions) {
                params["availableDecisions"] = json!(["accept", "acceptForSession", "decline", "cancel"]);
            }
            deviations::request(&mut params, &self.behaviour);
            if self.behaviour.prepares(Defect::RunsBeforeTheAnswer) {
                let before = self.core.lock().files.writes();
                let _ = self.run_shell(&id, &command, Sandbox::Full, false).await;
                let written = self.core.lock().files.writes() != before;
                self.set_done_early(written);
            }
            let reply = self.ask("item/commandExecution/requestApproval", params).await;
            let done_early = self.set_done_early(false);
            let decision = match &reply {
                Reply::Given(given) => Decision::read(given.as_ref(), &self.behaviour),
                Reply::Cancelled => {
                    if done_early {
                        self.behaviour.took_effect();
                    }
                    if !self.has(Defect::InterruptedCommandsStayOpen) {
                        self.not_run(item);
                    }
                    return Err(Stop::Cancelled);
                }
            };
            if late {
                self.started(&item);
            }
            match decision {
                Decision::Decline | Decision::Cancel => {
                    self.denied(&decision, done_early);
                    if self.behaviour.prepares(Defect::DeclineIsRemembered) {
                        self.allow(&command, Grant::Presumed);
                    }
                    self.not_run(item);
                    self.flush();
                    return if decision == Decision::Cancel { Err(Stop::Cancelled) } else { Ok(()) };
                }
                Decision::ForSession => self.allow(&command, Grant::Given),
                Decision::Confused(grant) => self.allow(&command, grant),
                Decision::Amendment(words) => {
                    let forgets = self.behaviour.prepares(Defect::AmendmentsAreForgotten);
                    let grant = if forgets { Grant::Forgotten } else { Grant::Given };
                    self.core.lock().rules.push(Rule { words, grant });
                }
                Decision::Accept => {}
            }
        }
        if escalated
            && (!never || allowed)
            && sandbox != Sandbox::Full
            && !self.has(Defect::AcceptedRunInTheSandbox)
        {
            sandbox = Sandbox::Full;
        }
        self.execute(item, &id, &command, sandbox).await
    }

    /// Whether such an item of the thread was completed.
    fn has_completed(&self, what: impl Fn(&Value) -> bool) -> bool {
        let state = self.core.lock();
        let turns = state.threads.get(&self.thread).map(|thread| thread.turns.as_slice());
        turns.unwrap_or_default().iter().flat_map(|turn| &turn.items).any(what)
    }

    /// Whether such an item of the turn was completed.
    fn has_completed_now(&self, what: impl Fn(&Value) -> bool) -> bool {
        let mut state = self.core.lock();
        let turn = state.threads.get_mut(&self.thread).and_then(|thread| thread.turn(&self.turn));
        turn.is_some_and(|turn| turn.items.iter().any(what))
    }

    fn allow(&self, command: &str, grant: Grant) {
        let mut state = self.core.lock();
        if let Some(live) = state.live.get_mut(&self.thread) {
            live.allowed.insert(command.to_owned(), grant);
        }
    }

    /// Sets whether what is asked about was done already, under a defect; whether it was so before.
    pub fn set_done_early(&self, done: bool) -> bool {
        let mut state = self.core.lock();
        state.live.get_mut(&self.thread).is_some_and(|live| std::mem::replace(&mut live.done_early, done))
    }

    /// A client has refused what it was asked about.
    pub fn denied(&self, decision: &Decision, done_early: bool) {
        self.behaviour.note(Happening::Denial);
        if *decision == Decision::Cancel {
            self.behaviour.note(Happening::Abort);
        }
        if done_early {
            self.behaviour.took_effect();
        }
    }

    fn not_run(&self, mut item: Value) {
        let status = if self.has(Defect::DeclinedIsCompleted) { "inProgress" } else { "declined" };
        item["status"] = json!(status);
        self.completed(item);
    }

    /// Tells what was held back.
    pub fn flush(&mut self) {
        if let Some(params) = self.unresolved.take() {
            self.core.lock().publish(&self.thread, "serverRequest/resolved", &params);
        }
    }

    /// Runs a command whose item was started, and completes it.
    async fn execute(&mut self, item: Value, id: &str, command: &str, sandbox: Sandbox) -> Result<(), Stop> {
        let begun = Instant::now();
        let (ended, output) = self.run_shell(id, command, sandbox, true).await;
        let time = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let code = *ended.as_ref().unwrap_or(&-1);
        let mut done = deviations::ran(item, code, output, time);
        if done["status"] == "failed" && !self.asked.is_empty() && self.has(Defect::AcceptedNeverFail) {
            done["status"] = json!("completed");
        }
        if ended.is_err() {
            done["exitCode"] = Value::Null;
        }
        self.completed(deviations::command(done, &self.behaviour, false));
        self.flush();
        ended.map(drop).map_err(Stop::from)
    }

    /// Runs a command in the shell: its exit code, unless the turn was cancelled, and what it printed.
    async fn run_shell(
        &mut self,
        id: &str,
        command: &str,
        sandbox: Sandbox,
        told: bool,
    ) -> (Result<i64, Cancelled>, String) {
        let mut job =
            Job { cwd: self.settings.cwd.clone(), env: environment(), sandbox, terminal: None, input: None };
        let (core, thread, turn) = (self.core.clone(), self.thread.clone(), self.turn.clone());
        let behaviour = self.behaviour.clone();
        let mut printed = Vec::new();
        let mut output = |_: Stream, bytes: &[u8]| {
            let first = printed.is_empty();
            printed.extend_from_slice(bytes);
            if told && !(first && behaviour.strikes(Defect::FirstOutputIsNotTold)) {
                let delta = String::from_utf8_lossy(bytes);
                let params = json!({ "itemId": id, "delta": delta });
                super::items::publish(
                    &core.lock(),
                    &thread,
                    &turn,
                    "item/commandExecution/outputDelta",
                    params,
                );
            }
        };
        let running = self.behaviour.during(Happening::ToolStarts, Happening::ToolEnds);
        let program = Program::Script(command.to_owned());
        let spared = self.behaviour.prepares(Defect::InterruptWaitsForCommands);
        let run = shell::run(&self.core, &mut job, &program, &mut output);
        let ended = tokio::select! {
            biased;
            code = run => Ok(code),
            () = self.cancelled.wait(), if !spared => Err(Cancelled),
        };
        drop(running);
        let waited = spared && self.cancelled.is_set();
        if waited {
            self.behaviour.took_effect();
        }
        let ended = ended.and_then(|code| if waited { Err(Cancelled) } else { Ok(code) });
        (ended, String::from_utf8_lossy(&printed).into_owned())
    }

    /// A command of the user's: nobody is asked, and no sandbox holds.
    pub async fn user_shell(&mut self, command: &str) -> Result<(), Stop> {
        let id = fresh("item");
        let source = if self.has(Defect::ShellIsTheAgents) { "agent" } else { "userShell" };
        let item = self.item(&id, command, source);
        self.started(&item);
        let mut sandbox = Sandbox::Full;
        self.behaviour.mutate(&mut sandbox, |defect, sandbox| {
            if defect == Defect::ShellIsSandboxed {
                sandbox.clone_from(&self.settings.sandbox)
            }
        });
        if self.has(Defect::ShellIsAskedAbout) {
            let params =
                json!({ "itemId": id, "command": command, "cwd": self.settings.cwd, "commandActions": [] });
            let _ = self.ask("item/commandExecution/requestApproval", params).await;
        }
        self.execute(item, &id, command, sandbox).await
    }

    fn plan(&self, args: &Map<String, Value>) {
        let steps = args.get("plan").and_then(Value::as_array).into_iter().flatten();
        let plan: Vec<Value> = steps
            .map(|step| {
                let status = match step["status"].as_str() {
                    Some("in_progress") if self.has(Defect::PlanStatusesAreTheModels) => "in_progress",
                    Some("in_progress" | "inProgress") => "inProgress",
                    Some("completed") => "completed",
                    _ => "pending",
                };
                json!({ "step": step["step"].as_str().unwrap_or_default(), "status": status })
            })
            .collect();
        if self.has(Defect::NoPlans) {
            return;
        }
        self.publish("turn/plan/updated", json!({ "explanation": args.get("explanation"), "plan": plan }));
    }

    async fn dynamic(&mut self, tool: &str, args: &Map<String, Value>) -> Result<(), Stop> {
        let id = fresh("item");
        let mut item = json!({
            "type": "dynamicToolCall", "id": id, "tool": tool, "arguments": args, "status": "inProgress",
            "contentItems": null, "success": null, "durationMs": null,
        });
        let late = self.has(Defect::ToolCallsAreShownLate);
        if !late {
            self.started(&item);
        }
        let reply =
            self.ask("item/tool/call", json!({ "callId": id, "tool": tool, "arguments": args })).await;
        if late {
            self.started(&item);
        }
        let given = match reply {
            Reply::Given(given) => given,
            Reply::Cancelled => {
                item["status"] = json!("failed");
                self.completed(item);
                return Err(Stop::Cancelled);
            }
        };
        let success = given.as_ref().is_some_and(|given| given["success"] == true);
        item["success"] = json!(success);
        item["status"] = json!(if success { "completed" } else { "failed" });
        if let Some(given) = given {
            item["contentItems"] = given["contentItems"].clone();
        }
        self.completed(item);
        Ok(())
    }

    /// The decision about a change of files; none: it was interrupted.
    pub async fn ask_about_files(&mut self, id: &str) -> Option<Decision> {
        let params = json!({ "itemId": id, "reason": null, "grantRoot": null });
        match self.ask("item/fileChange/requestApproval", params).await {
            Reply::Given(given) => Some(Decision::read(given.as_ref(), &self.behaviour)),
            Reply::Cancelled => None,
        }
    }

    /// A path of the thread.
    pub fn place(&self, path: &str) -> String {
        absolute(&self.settings.cwd, path)
    }
}
