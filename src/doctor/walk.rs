//! The walk: step by step, until something is missing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::doctor::finding::{APART, ASKS, STARTS, Start, UPGRADES, started, unreachable};
use crate::doctor::finding::{StepFinding, StepState};
use crate::doctor::late::{body, end_of_turn, late_words, listening};
use crate::doctor::reported::{Reported, is_wrong, reason};
use crate::protocol::Protocol;
use crate::protocol::extension::TargetTool;
use crate::results::Check;
use crate::results::cause::Cause;
use crate::results::event::{Failure, FrameRecord, LogLine, Verdict, Way};
use crate::results::redact::Secrets;
use crate::run::case::execute::run_case;
use crate::run::case::outcome::{CaseEnd, CaseOutcome};
use crate::run::context::RunContext;
use crate::run::isolation::precheck as isolation;
use crate::run::isolation::precheck::WORDS;
use crate::run::options::{CaseOptions, GoesOn, Retention};
use crate::run::server::pool::ServerPool;
use crate::run::server::probe::detect_dialect;
use crate::run::server::serve::not_served;
use crate::run::triage::model_use as asked;
use crate::run::triage::model_use::{Count, Missing, ModelUse, NotOffered};
use crate::run::{RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::scenario::synthetic::Builder;
use crate::shortage;

/// How long a guarded call may stand without an end before that counts as asking, in milliseconds.
const ASKS_MS: u64 = 1500;

/// The last lines that a dead server wrote, as evidence.
const LAST_LINES: usize = 8;
/// The first lines of what it wrote before its end.
const FIRST_LINES: usize = 3;
/// What to do about a server that died.
const DIED: &str = "the process ended during this step: its last lines of output are below";
/// The same of one that wrote nothing.
const DIED_SILENTLY: &str = "the process ended during this step, without any output";
/// What to do about a server that answers no upgrade any more.
const FROZEN: &str = "does a connection, or its end, keep it from serving the next one? Each step opens connections of its own, and \
                      closes them";
/// How long after the last connection a server may take to show that it did not survive it.
const LATE: Duration = Duration::from_secs(1);

/// The client of the doctor's cases.
const CLIENT: &str = "doctor";

/// Walks through a target and tells `sink` each step. The result says whether nothing is missing.
///
/// # Errors
/// The configuration is wrong. A server that is not there is a finding.
pub async fn doctor(
    protocol: &Arc<Protocol>,
    target: &Target,
    options: RunOptions,
    sink: &mut (dyn FnMut(&StepFinding) + Send),
) -> Result<bool, RunError> {
    let secrets = target.secrets();
    let asked: Arc<ModelUse> = Arc::default();
    let clock = Instant::now();
    // The steps come one after the other.
    let mut run = RunContext::new(protocol, target, RunOptions { jobs: 1, ..options })?;
    let pool = match ServerPool::open(protocol, target, &run.options, run.calls.model(Some(asked.observer())))
        .await
    {
        Ok(pool) => pool,
        Err(error) => return unreachable(error.redacted(&secrets), target, clock, sink),
    };
    let has_model = matches!(target, Target::Configured(spec) if spec.model.listen.is_some());
    detect_dialect(&pool, target, &mut run).await;
    let mut walk = Walk {
        protocol: &run.protocol,
        target,
        run: &run,
        pool: &pool,
        secrets: &secrets,
        sink,
        good: true,
        reported: Reported::default(),
    };
    walk.report(StepFinding::new(STARTS, StepState::Ok, started(target, Start::Ready), ""));
    walk.report(StepFinding::new(
        UPGRADES,
        StepState::Ok,
        format!("{} accepts connections", crate::wire::shown(&pool.url().await)),
        "",
    ));
    let good = tokio::select! {
        good = walk.all(&asked, has_model) => good,
        shortage = shortage::came() => return Err(RunError::Shortage(shortage)),
    };
    pool.stop().await;
    Ok(good)
}

struct Walk<'w> {
    protocol: &'w Arc<Protocol>,
    target: &'w Target,
    run: &'w RunContext,
    pool: &'w ServerPool,
    secrets: &'w Secrets,
    sink: &'w mut (dyn FnMut(&StepFinding) + Send),
    good: bool,
    reported: Reported,
}

impl<'w> Walk<'w> {
    fn report(&mut self, mut finding: StepFinding) {
        self.good &= finding.state != StepState::Problem;
        finding.text = self.secrets.text(finding.text);
        finding.also = finding.also.into_iter().map(|text| self.secrets.text(text)).collect();
        finding.frames.retain(|line| !line.automatic && !self.is_ambient(line));
        finding.frames = self.secrets.report(finding.frames);
        finding.log = self.secrets.report(finding.log);
        (self.sink)(&finding);
    }

    /// What may come at any time says nothing here.
    fn is_ambient(&self, line: &FrameRecord) -> bool {
        let body = body(self.protocol, line);
        let name = self.protocol.type_of(&body);
        line.way == Way::ToClient
            && name.is_some_and(|name| self.protocol.extension.ambient.iter().any(|one| one == name))
    }

    /// The name of the server's request that this frame is.
    fn request_in(&self, line: &FrameRecord) -> Option<String> {
        let body = body(self.protocol, line);
        let name = self.protocol.type_of(&body)?;
        let asks = self.protocol.server_requests_named(name).next().is_some();
        asks.then(|| name.to_owned())
    }

    /// Whether the server outlives the steps so far. Between two of them nobody would notice its end: it is launched again.
    async fn survives(&mut self, patience: Duration) -> bool {
        let Some(crash) = self.pool.crashes_within(patience).await.into_iter().next() else { return true };
        let text = format!("the server ended after a client had disconnected: {}", crash.how);
        let advice = match crash.output.is_empty() {
            true => "what does it do when a client disconnects? It wrote no output",
            false => "what does it do when a client disconnects? Its last lines of output are below",
        };
        let mut finding = StepFinding::new("does it stay alive?", StepState::Problem, text, advice);
        finding.log = LogLine::of_itself(&crash.output);
        self.report(finding);
        false
    }

    async fn all(&mut self, asked: &ModelUse, has_model: bool) -> bool {
        self.conversation(asked, has_model).await;
        self.good && self.survives(LATE).await
    }

    async fn conversation(&mut self, asked: &ModelUse, has_model: bool) {
        if !self.opening().await {
            return;
        }
        const STEP: &str = "plain turn?";
        let plain = self.turn(json!([{ "say": WORDS }])).expect(CLIENT, "turn-end");
        let plain = self.case(plain).await;
        let mut cue = self.cue(&plain, asked.count(), has_model);
        // What ends the turn may be what breaks a rule.
        let is_cut = !plain.reached_end
            && plain.end.has_run()
            && end_of_turn(self.protocol, &plain.record.wire).is_some();
        if (plain.reached_end || is_cut) && plain.known.is_none() && !self.has_prompts() {
            let late =
                |case: &CaseOutcome| late_words(self.protocol, STEP, &case.record.wire, WORDS[0].trim());
            let mut found = late(&plain);
            let is_unsaid = found.is_none() && (is_cut || cue.state != StepState::Ok);
            if is_unsaid && asked::missing(self.target, asked.count()).is_none() {
                // Perhaps they come when nobody listens any more.
                let turn = self.turn(json!([{ "say": WORDS }])).expect(CLIENT, "turn-end").unwatched();
                found = late(&self.case(turn.step(listening(self.protocol, CLIENT))).await);
            }
            if let Some(mut late) = found {
                late.also = self.reported.news(&plain);
                self.report(late);
                return;
            }
        }
        // A case that a wrong frame ended says nothing about what would have come.
        let was_stopped = !plain.reached_end
            && plain
                .failures
                .iter()
                .any(|one| is_wrong(one) && (one.check != Check::Step || one.actual.is_some()));
        let advice = match &cue {
            _ if was_stopped => "the frames show how far it got".to_owned(),
            // Why it does not end, most likely.
            StepFinding { state: StepState::Problem, text, advice, .. } => format!("{text}: {advice}"),
            StepFinding { state: StepState::Unknown, text, advice, .. } if !advice.is_empty() => {
                format!("the frames show how far it got. {text}: {advice}")
            }
            _ => "the frames show how far it got".to_owned(),
        };
        if !self.judge(STEP, &plain, "a turn begins and ends as the protocol says", &advice) {
            return;
        }
        // Without a model nothing more can be asked for.
        let continues = match cue.state {
            StepState::Problem => false,
            StepState::Ok | StepState::Known => true,
            StepState::Unknown => has_model || self.has_prompts() || plain.known.is_some(),
        };
        if cue.state != StepState::Ok {
            cue.frames = plain.record.wire;
        }
        self.report(cue);
        let soon = Duration::ZERO;
        if continues && self.survives(soon).await {
            self.apart().await;
            if self.survives(soon).await {
                self.guarded(asked).await;
            }
        }
    }

    fn has_prompts(&self) -> bool {
        !self.run.options.prompts.is_default()
    }

    /// Tells how a step's case went: as it should, or not, or in a way that the baseline knows. The result says whether to go on: what
    /// a frame breaks is told, and hinders nothing.
    fn judge(&mut self, step: &'static str, outcome: &CaseOutcome, good: &str, advice: &str) -> bool {
        let wrong = outcome.failures.iter().any(is_wrong);
        let news = self.reported.news(outcome);
        let mut finding = match (&outcome.end, &outcome.known) {
            (CaseEnd::Ran, Some(reason)) if !wrong => {
                StepFinding::new(step, StepState::Known, format!("known to fail: {reason}"), "")
            }
            (CaseEnd::Ran, _) if !wrong => StepFinding::new(step, StepState::Ok, good, ""),
            (CaseEnd::Ran, _) if outcome.reached_end && news.is_empty() => {
                StepFinding::new(step, StepState::Ok, format!("{good}, except for what is told above"), "")
            }
            (CaseEnd::NotApplicable(reason), _) => {
                StepFinding::new(step, StepState::Unknown, reason.clone(), "")
            }
            (CaseEnd::ServerDied { .. }, _) => {
                let advice = if outcome.log.is_empty() { DIED_SILENTLY } else { DIED };
                StepFinding::new(step, StepState::Problem, reason(outcome), advice)
            }
            (CaseEnd::Error(_), _) if outcome.cause == Some(Cause::UpgradeUnanswered) => {
                let text = self.run.activity.is_frozen(1).unwrap_or_else(|| reason(outcome));
                StepFinding::new(step, StepState::Problem, text, FROZEN)
            }
            _ => {
                let mut news = news.into_iter();
                // Where a violation that was told before ends the step, it is what is wrong with it, too.
                let text = news.next().filter(|_| outcome.end.has_run()).unwrap_or_else(|| reason(outcome));
                let mut finding = StepFinding::new(step, StepState::Problem, text, advice);
                finding.also = news.collect();
                finding
            }
        };
        let continues = finding.state != StepState::Problem || (outcome.end.has_run() && outcome.reached_end);
        finding.frames.clone_from(&outcome.record.wire);
        finding.log.clone_from(&outcome.log);
        self.report(finding);
        continues
    }

    async fn apart(&mut self) {
        const STEP: &str = APART;
        if let Some(why) = self.protocol.lacks_isolation() {
            self.report(StepFinding::new(STEP, StepState::Ok, format!("not looked at: {why}"), ""));
            return;
        }
        let case = match isolation::case(self.protocol) {
            Ok(case) => case,
            Err(error) => {
                self.report(StepFinding::new(STEP, StepState::Unknown, error, ""));
                return;
            }
        };
        let mut outcome = self.walk(&case).await;
        let ids = &self.protocol.extension.fuzzing.isolated;
        let leaks = isolation::leaks(&mut outcome, ids);
        // What excused the steps does not excuse a leak.
        outcome.known = outcome.known.take().filter(|_| !leaks);
        self.remove_excused(&case, &mut outcome);
        let mut finding = if let (true, Some(reason)) = (leaks, &outcome.known) {
            StepFinding::new(STEP, StepState::Known, format!("known to fail: {reason}"), "")
        } else if leaks {
            let text = "a message of one session reached a client of another";
            let advice =
                "is there one session for all clients? `sessions = 1` runs cases one after the other";
            match ids.is_empty() {
                true => StepFinding::new(
                    STEP,
                    StepState::Unknown,
                    format!("{text}; the protocol does not forbid it"),
                    advice,
                ),
                false => StepFinding::new(STEP, StepState::Problem, text, advice),
            }
        } else if outcome.end.has_run() && (outcome.reached_end || !outcome.failures.iter().any(is_wrong)) {
            let mut news = self.reported.news(&outcome).into_iter();
            let mut finding = match news.next() {
                None => {
                    let text = "a second session received nothing of the first";
                    StepFinding::new(STEP, StepState::Ok, text, "")
                }
                Some(text) => StepFinding::new(STEP, StepState::Problem, text, ""),
            };
            finding.also = news.collect();
            finding
        } else {
            StepFinding::new(STEP, StepState::Unknown, reason(&outcome), "")
        };
        finding.frames = outcome.record.wire;
        finding.log = outcome.log;
        self.report(finding);
    }

    async fn opening(&mut self) -> bool {
        let opening = self.protocol.extension.openings.values().next();
        let speaks_first = opening.and_then(|steps| steps.first()).and_then(|step| step.expect.as_ref());
        if let Some(names) = speaks_first {
            let first = names.as_slice().to_vec();
            let connect = json!({ "open": CLIENT, "opening": "none" });
            let outcome = self.case(self.steps().step(connect).expect(CLIENT, first.clone())).await;
            let good = format!("`{}` comes first", first.join(" or "));
            let speaks =
                self.judge("first frame?", &outcome, &good, "in this protocol, the server sends first");
            if !speaks || !self.survives(Duration::ZERO).await {
                return false;
            }
        }
        let outcome = self.case(self.steps().open(CLIENT)).await;
        let text = match opening.is_none_or(|steps| steps.is_empty()) {
            true => "the protocol has none",
            false => "done as the protocol says",
        };
        let advice = "is it this protocol, and this path? An `overlay` describes known differences; see docs/targets.md";
        self.judge("opening exchange?", &outcome, text, advice) && self.survives(Duration::ZERO).await
    }

    /// Whether what the cue says came back.
    fn cue(&self, plain: &CaseOutcome, asked: Count, has_model: bool) -> StepFinding {
        const STEP: &str = "does the cue reach the model?";
        let said: String = plain
            .record
            .wire
            .iter()
            .filter(|line| line.way == Way::ToClient)
            .map(|line| line.text.as_str())
            .collect();
        // The server may repeat the user's text, where the words stand within the cue and are not readable.
        if WORDS.iter().all(|word| said.contains(word.trim())) {
            return StepFinding::new(STEP, StepState::Ok, "the model's text came back", "");
        }
        if plain.known.is_some() {
            return StepFinding::new(
                STEP,
                StepState::Unknown,
                "the turn ended early with a failure that the baseline lists",
                "",
            );
        }
        if self.has_prompts() {
            return StepFinding::new(STEP, StepState::Unknown, "plain prompts are used instead of cues", "");
        }
        match asked::missing(self.target, asked) {
            Some(Missing { text, advice }) => {
                // A protocol whose cues call tools is one of agents; of another nobody knows whether there is a model.
                let agents = !self.protocol.extension.tools.is_empty();
                let state = if has_model || agents { StepState::Problem } else { StepState::Unknown };
                StepFinding::new(STEP, state, text, &advice)
            }
            None if has_model => StepFinding::new(
                STEP,
                StepState::Problem,
                "the model got the cue and answered, but its text did not reach the client",
                "does the server pass the model's text on? The frames of the plain turn show what it sent",
            ),
            None => StepFinding::new(
                STEP,
                StepState::Unknown,
                "the model's text did not come back, and no scripted model was started for this target",
                "does the running server send its requests to `frameproof model`? `model = \"HOST:PORT\"` in the target's table starts one there",
            ),
        }
    }

    async fn guarded(&mut self, asked: &ModelUse) {
        const STEP: &str = ASKS;
        let Some(tool) = self.protocol.extension.tools.get("guarded").cloned() else {
            self.report(StepFinding::new(STEP, StepState::Unknown, "the protocol has no guarded tool", ""));
            return;
        };
        if tool.asks == Some(false) {
            self.report(StepFinding::new(STEP, StepState::Ok, "the protocol has no approvals", ""));
            return;
        }
        if tool.target == TargetTool::Absent {
            let text = "not looked at: the target has no tool of the class `guarded` (`without-tools`)";
            self.report(StepFinding::new(STEP, StepState::Ok, text, ""));
            return;
        }
        let is_declined = |need: &&String| self.protocol.declines(need);
        if let Some(need) = tool.needs.iter().find(is_declined) {
            let text = format!("not looked at: the overlay says that `{need}` is not offered");
            self.report(StepFinding::new(STEP, StepState::Ok, text, ""));
            return;
        }
        let turn = json!([{ "call": { "class": "guarded" } }, { "say": WORDS }]);
        let never = json!({ "never": "turn-end", "window": format!("{ASKS_MS}ms") });
        let outcome = self.case(self.turn(turn).step(never)).await;
        let wrong = outcome.failures.iter().any(is_wrong);
        let forbidden = |failure: &Failure| failure.cause == Some(Cause::Forbidden);
        let ended = outcome.failures.iter().chain(&outcome.consequences).any(forbidden);
        let last =
            outcome.record.wire.iter().rev().find(|line| line.way == Way::ToClient && !self.is_ambient(line));
        let names_it = last.is_some_and(|line| line.text.contains(&tool.name));
        // A protocol whose server asks by requests of its own says which these are.
        let asked_by = last.and_then(|line| self.request_in(line));
        if !outcome.end.has_run() || outcome.known.is_some() || (wrong && !ended && !outcome.reached_end) {
            self.judge(STEP, &outcome, "", "the frames show how far it got");
            return;
        }
        let not_offered = asked.not_offered(self.protocol);
        let mut finding = if let Some(not_offered) = not_offered.as_ref().filter(|tools| tools.has("guarded"))
        {
            // A server that asks about any name says nothing about a tool of its own.
            StepFinding::new(STEP, StepState::Problem, not_offered.text(), NotOffered::ADVICE)
        } else if let Some(name) = asked_by {
            StepFinding::new(STEP, StepState::Ok, format!("it waits after its request `{name}`"), "")
        } else if self.has_prompts() && (ended || !names_it) {
            // What a model of its own makes of a prompt is nobody's to demand.
            let text =
                format!("plain prompts are used instead of cues, and none has made it call `{}`", tool.name);
            StepFinding::new(STEP, StepState::Unknown, text, "")
        } else if ended {
            StepFinding::new(
                STEP,
                StepState::Problem,
                format!("the turn ended without an approval request for `{}`", tool.name),
                "is the tool there under this name, and does it need approval? [target.NAME.tools.guarded] names another; \
                 `without-tools = [\"guarded\"]` says that the server has no such tool",
            )
        } else if names_it {
            StepFinding::new(
                STEP,
                StepState::Ok,
                format!("it waits after a frame that names `{}`", tool.name),
                "",
            )
        } else {
            let text = format!("the turn waits, but the last frame does not name `{}`", tool.name);
            StepFinding::new(
                STEP,
                StepState::Unknown,
                text,
                "see the frames: is the last one the approval request?",
            )
        };
        let mut rest = outcome;
        rest.failures.retain(|failure| !forbidden(failure));
        rest.consequences.retain(|failure| !forbidden(failure));
        finding.also = self.reported.news(&rest);
        if !finding.also.is_empty() && finding.state == StepState::Ok {
            finding.state = StepState::Problem;
        }
        finding.frames = rest.record.wire;
        finding.log = rest.log;
        let continues = finding.state != StepState::Problem;
        self.report(finding);
        if let Some(others) = not_offered.filter(|_| continues) {
            const STEP: &str = "are the tools known?";
            // Many cases call an open tool; another may be one that the server offers in other requests.
            let state = match others.is_mapped || others.has("open") {
                true => StepState::Problem,
                false => StepState::Unknown,
            };
            self.report(StepFinding::new(STEP, state, others.text(), NotOffered::ADVICE));
        }
    }

    /// A case of the doctor's.
    fn steps(&self) -> Builder<'w> {
        Builder::new(self.protocol, "step", "A step of the doctor's")
    }

    /// One that has begun a turn.
    fn turn(&self, turn: Value) -> Builder<'w> {
        self.steps().turn(turn).open(CLIENT).start_turn(CLIENT)
    }

    /// Runs a case.
    async fn case(&self, case: Builder<'_>) -> CaseOutcome {
        match case.build() {
            Ok(loaded) => self.walk(&loaded).await,
            Err(error) => CaseOutcome::error(error),
        }
    }

    async fn walk(&self, loaded: &LoadedCase) -> CaseOutcome {
        let clock = Instant::now();
        let lease = match self.pool.lease(loaded).await {
            Ok(lease) => lease,
            Err(error) => return not_served(&error, clock),
        };
        // Frames are compared whole.
        // Each step has a session of its own: what one leaves pending is no other's.
        let mut options = self.run.case_options(self.run.options.randomness.seed.wrapping_add(1));
        options.salt = self.run.next_salt(&loaded.id, 0, 0);
        let options = CaseOptions { retention: Retention::Trace, goes_on: GoesOn::Always, ..options };
        let mut outcome = run_case(self.run, loaded, options, &lease.server).await;
        if let Some(instance) = &lease.server.instance {
            if let Some(how) = lease.death(&outcome).await {
                outcome.died(how, None);
            }
            let lines = match outcome.end {
                // What it said last tells why, whenever that was.
                CaseEnd::ServerDied { .. } => instance.log().incident(FIRST_LINES, LAST_LINES),
                _ => instance.log().between(clock, Instant::now()),
            };
            outcome.log = LogLine::of(&lines, outcome.record.began.unwrap_or(clock));
        }
        lease.finish().await;
        self.remove_excused(loaded, &mut outcome);
        outcome
    }

    /// Takes out the failures that the baseline knows.
    fn remove_excused(&self, loaded: &LoadedCase, outcome: &mut CaseOutcome) {
        let Some(baseline) = &self.run.options.baseline else { return };
        let known = &mut outcome.known;
        let mut is_left = |failure: &Failure| {
            let reason = baseline.reason_for(&loaded.id, failure).map(str::to_owned);
            let excused = reason.is_some() && failure.verdict != Verdict::Error;
            if excused {
                *known = reason;
            }
            !excused
        };
        outcome.failures.retain(&mut is_left);
        outcome.consequences.retain(is_left);
    }
}
