//! One tool call: the rules, the client's decision, the run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::faults::Defect;
use super::session::{AGENT, Call, Session};
use super::styles::Style;
use super::turn::Stop;
use crate::reference::engine::Happening;
use crate::reference::engine::notes::{self, Class};
use crate::reference::engine::{Cancel, Cancelled};

/// What the server's filters say about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Allow,
    Deny,
    Ask,
}

/// The filters: `write_note` is asked about, but for the key `forbidden`, which is denied.
fn rule(session: &Session, call: &Call) -> Rule {
    let forbidden = call.params.get("key") == Some(&json!("forbidden"));
    let mut rule = match notes::class(&call.tool) {
        Class::Open => Rule::Allow,
        Class::Denied => Rule::Deny,
        Class::Guarded if forbidden => Rule::Deny,
        Class::Guarded => Rule::Ask,
    };
    let has_approved = !session.lock().allowed.is_empty();
    session.behaviour.mutate(&mut rule, |defect, rule| {
        *rule = match (defect, *rule) {
            (Defect::AsksAboutAllowed, _) if call.tool == "slow_note" => Rule::Ask,
            (Defect::AsksBesideOthers, Rule::Allow) if session.lock().request.asks() => Rule::Ask,
            (Defect::AsksAboutDeniedLater, Rule::Deny) if !forbidden && has_approved => Rule::Ask,
            (Defect::DenyYieldsToApproval, Rule::Deny) if forbidden && has_approved => Rule::Allow,
            (Defect::DenySpreads, Rule::Ask) if session.lock().past.rule_has_denied => Rule::Deny,
            (Defect::ApprovalIsShared, Rule::Ask) if session.is_approved_elsewhere(call) => Rule::Allow,
            (Defect::AsksAboutDenied, Rule::Deny) if !forbidden => Rule::Ask,
            (Defect::RunsDenied, Rule::Deny) if !forbidden => Rule::Allow,
            (Defect::DenyMissesParams, Rule::Deny) if forbidden => Rule::Ask,
            (Defect::NeverAsks, Rule::Ask) => Rule::Allow,
            (Defect::ApprovalIsARule, Rule::Ask) if session.lock().allowed.contains(&call.tool) => {
                Rule::Allow
            }
            (Defect::ApprovalIsRemembered, Rule::Ask) if session.lock().allowed.contains(&call.content()) => {
                Rule::Allow
            }
            (Defect::BackgroundIsNotAsked, Rule::Ask) if call.background => Rule::Allow,
            (Defect::DeniesAloneOnly, Rule::Deny) if forbidden && session.lock().request.tools.len() > 1 => {
                Rule::Allow
            }
            (_, rule) => rule,
        }
    });
    if rule == Rule::Ask && std::mem::take(&mut session.lock().denies_next) {
        session.behaviour.took_effect();
        return Rule::Deny;
    }
    session.lock().past.rule_has_denied |= rule == Rule::Deny && forbidden;
    rule
}

/// Announces the calls of one response.
pub(super) fn request(session: &Session, calls: &[Call]) {
    if session.has(Defect::RequestAfterAsking) {
        return;
    }
    let background = calls.iter().any(|call| call.background);
    session.send(request_frame(calls, background && session.has(Defect::BackgroundUnmarked)));
}

fn request_frame(calls: &[Call], unmarked: bool) -> Value {
    let calls = calls.iter().map(|call| {
        json!({
            "call_id": call.id, "name": call.tool, "params": call.params,
            "background": call.background && !unmarked,
        })
    });
    json!({ "type": "ToolRequest", "agent_id": AGENT, "calls": calls.collect::<Vec<_>>() })
}

/// Takes a call from its request to its end.
pub(super) async fn perform(session: &Arc<Session>, call: &Call, mut cancelled: Cancel) -> Result<(), Stop> {
    match rule(session, call) {
        Rule::Deny => {
            if session.style(Style::StartedThenDenied) {
                session.send(
                    json!({ "type": "ToolStarted", "agent_id": AGENT, "call_id": call.id, "name": call.tool }),
                );
            }
            if call.tool == "write_note" && session.has(Defect::DeniedByRuleWrites) {
                session.run(call);
            }
            error(session, call, "denied by rule");
            return Ok(());
        }
        Rule::Ask => {
            ask(session, call);
            if session.has(Defect::RunsWhileAsking) {
                session.run(call);
            }
            if session.has(Defect::RunsBeforeDecision) {
                return run(session, call, &mut cancelled, true).await;
            }
            match decision(session, call, &mut cancelled).await {
                Some(true) => {}
                Some(false) => {
                    if session.has(Defect::RunsWhatIsDenied) {
                        session.run(call);
                    } else if session.has(Defect::DeniedRunsLate) {
                        let call = call.clone();
                        session.later(move |session| drop(session.run(&call)));
                    }
                    error(session, call, "denied by the user");
                    return if session.style(Style::DenialEnds) { Err(Stop::Denied) } else { Ok(()) };
                }
                None => {
                    error(session, call, "cancelled");
                    return Err(Stop::Cancelled);
                }
            }
            let announced = !session.has(Defect::NoStartAfterApproval);
            return run(session, call, &mut cancelled, announced).await;
        }
        Rule::Allow => {}
    }
    run(session, call, &mut cancelled, true).await
}

fn ask(session: &Session, call: &Call) {
    session.lock().pending.push(call.clone());
    session.behaviour.note(Happening::Asks);
    session.send(json!({
        "type": "ToolAwaitingApproval", "agent_id": AGENT, "call_id": call.id, "name": call.tool,
        "params": call.params, "background": call.background,
    }));
    if session.has(Defect::RequestAfterAsking) {
        session.send(request_frame(std::slice::from_ref(call), false));
    }
}

/// The client's decision; `None`: it was cancelled.
async fn decision(session: &Arc<Session>, call: &Call, cancelled: &mut Cancel) -> Option<bool> {
    loop {
        let decided = session.decided.notified();
        if let Some(approved) = session.lock().decisions.get(&call.id) {
            return Some(*approved);
        }
        if cancelled.is_set() {
            session.behaviour.note(Happening::Decided);
            if session.has(Defect::CancelKeepsPending) {
                return None;
            }
            let mut inner = session.lock();
            let second = inner.pending.len() == 1 && inner.request.tools.len() > 1;
            if !(second && session.has(Defect::CancelKeepsTheSecond)) {
                inner.pending.retain(|pending| pending.id != call.id);
            }
            return None;
        }
        tokio::select! {
            () = decided => {}
            () = cancelled.wait() => {}
        }
    }
}

/// Runs a call.
async fn run(
    session: &Arc<Session>,
    call: &Call,
    cancelled: &mut Cancel,
    announced: bool,
) -> Result<(), Stop> {
    let delta = |content: &str| {
        if !session.style(Style::NoToolDeltas) {
            session.send(
                json!({ "type": "ToolDelta", "agent_id": AGENT, "call_id": call.id, "content": content }),
            );
        }
    };
    if session.has(Defect::OutputBeforeStart) {
        delta("…");
    }
    if announced {
        session
            .send(json!({ "type": "ToolStarted", "agent_id": AGENT, "call_id": call.id, "name": call.tool }));
    }
    let takes = call.params.get("ms").and_then(Value::as_u64).unwrap_or(0).min(60_000);
    let time = Duration::from_millis(takes);
    session.behaviour.note(Happening::ToolStarts);
    session.lock().running.insert(call.id.clone());
    let waited = wait(session, call, cancelled, time).await;
    session.lock().running.remove(&call.id);
    session.behaviour.note(Happening::ToolEnds);
    if let Err(stop) = waited {
        if notes::class(&call.tool) == Class::Guarded && session.has(Defect::CancelledTakesEffect) {
            session.run(call);
        }
        error(session, call, "cancelled");
        return Err(stop.into());
    }
    if session.lock().denied_while_running.remove(&call.id) {
        error(session, call, "denied after all");
        return Ok(());
    }
    if notes::class(&call.tool) == Class::Guarded && session.has(Defect::ApprovedDoesNotRun) {
        completed(session, call, "done");
        return Ok(());
    }
    if notes::class(&call.tool) == Class::Guarded {
        let earlier = std::mem::replace(&mut session.lock().request.guarded_ran, true);
        if earlier && session.has(Defect::OneApprovedRuns) {
            completed(session, call, "done");
            return Ok(());
        }
    }
    let mut outcome = session.run(call);
    if notes::class(&call.tool) == Class::Denied {
        // Only a defect runs it. That shows most clearly if it succeeds.
        outcome.is_error = false;
    }
    if call.tool == "write_note" {
        session.lock().ran.push(call.clone());
    }
    if call.tool == "read_note" && session.style(Style::AbsenceIsTold) {
        outcome.is_error = false;
    }
    let beside_failure = session.lock().request.tools.iter().any(|tool| tool == "fail_note");
    outcome.is_error |= !outcome.is_error && beside_failure && session.has(Defect::FailureSpreads);
    if call.tool == "fail_note" {
        let earlier = session.lock().past.failures;
        session.lock().past.failures += 1;
        session.behaviour.mutate(&mut outcome.is_error, |defect, is_error| match defect {
            Defect::FailureIsSuccess => *is_error = false,
            Defect::LaterFailuresAreSuccesses => *is_error = earlier == 0,
            Defect::FailureWithoutWordsIsSuccess => *is_error = !outcome.text.is_empty(),
            _ => {}
        });
    }
    if outcome.is_error {
        error(session, call, &outcome.text);
        let ends = call.tool == "fail_note" && session.has(Defect::FailureEndsTurns);
        return if ends { Err(Stop::Denied) } else { Ok(()) };
    }
    // What is written needs no reading back.
    if notes::class(&call.tool) == Class::Open {
        let middle = outcome.text.chars().count() / 2;
        let at = outcome.text.char_indices().nth(middle).map_or(0, |(at, _)| at);
        let (first, second) = outcome.text.split_at(at);
        delta(first);
        delta(second);
    }
    let another = call.tool == "slow_note" && session.has(Defect::ResultOfAnotherCall);
    completed(session, call, if another { "as before" } else { &outcome.text });
    if session.has(Defect::OutputAfterEnd) {
        delta("and so on");
    }
    Ok(())
}

async fn wait(
    session: &Session,
    call: &Call,
    cancelled: &mut Cancel,
    time: Duration,
) -> Result<(), Cancelled> {
    let end = Instant::now() + time;
    loop {
        let decided = session.decided.notified();
        if session.lock().denied_while_running.contains(&call.id) {
            return Ok(());
        }
        let slept = tokio::select! {
            slept = cancelled.sleep(end.saturating_duration_since(Instant::now())) => slept,
            () = decided => continue,
        };
        let waits = slept.is_err() && session.has(Defect::CancelWaitsForTools);
        if waits || (slept.is_err() && spares(session, call)) {
            tokio::time::sleep(end.saturating_duration_since(Instant::now())).await;
            return if waits { slept } else { Ok(()) };
        }
        return slept;
    }
}

/// Whether a running tool goes on although it was cancelled.
fn spares(session: &Session, call: &Call) -> bool {
    let is_last = {
        let inner = session.lock();
        inner.running.len() == 1 && inner.request.tools.len() > 1
    };
    let is_guarded = notes::class(&call.tool) == Class::Guarded;
    session.has(Defect::CancelSparesTools)
        || (is_last && session.has(Defect::CancelSparesTheLastTool))
        || (is_guarded && session.has(Defect::CancelSparesApproved))
}

fn completed(session: &Session, call: &Call, content: &str) {
    session
        .send(json!({ "type": "ToolCompleted", "agent_id": AGENT, "call_id": call.id, "content": content }));
}

fn error(session: &Session, call: &Call, error: &str) {
    session.send(json!({ "type": "ToolError", "agent_id": AGENT, "call_id": call.id, "error": error }));
}
