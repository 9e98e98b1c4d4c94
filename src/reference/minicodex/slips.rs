//! What the defects make of a snapshot.

use serde_json::{Value, json};

use super::faults::Defect;
use super::session::{Inner, Session, now};
use crate::reference::faults::mutate;

impl Session {
    /// Makes of a snapshot that is right one that is not.
    pub(super) fn mutate_snapshot(&self, inner: &Inner, frame: &mut Value) {
        let is_over = inner.active().is_none();
        let was_aborted = inner.was_aborted() && frame["run_state"].is_object();
        self.behaviour.mutate(frame, |defect, frame| match defect {
            Defect::SnapshotWithoutVersion => {
                frame.as_object_mut().map(|frame| frame.remove("v"));
            }
            Defect::SnapshotSaysAborted if is_over && was_aborted => {
                frame["run_state"]["status"] = json!("aborted")
            }
            Defect::SnapshotShortensAwaiting if frame["run_state"]["status"] == "awaiting_approval" => {
                frame["run_state"]["status"] = json!("awaiting");
            }
            Defect::SnapshotKeepsFailures if frame["run_state"]["status"] == "error" => {
                frame["run_state"]["status"] = json!("running");
                frame["run_state"]["finished_at"] = Value::Null;
            }
            Defect::SnapshotNamesNoSession if inner.active().is_some() => {
                frame["session_state"]["session_id"] = Value::Null;
            }
            Defect::SnapshotBriefsLackTool | Defect::SnapshotBriefArgsAreText => {
                let briefs = frame.pointer_mut("/run_state/pending_approvals").and_then(Value::as_array_mut);
                for brief in briefs.into_iter().flatten() {
                    if defect == Defect::SnapshotBriefsLackTool {
                        brief["tool_key"] = Value::Null;
                    } else {
                        brief["args"] = json!(brief["args"].to_string());
                    }
                }
            }
            Defect::SnapshotKeepsAborting if is_over && was_aborted => {
                frame["run_state"]["status"] = json!("aborting");
                frame["run_state"]["finished_at"] = Value::Null;
            }
            Defect::SnapshotListsIds => {
                let ids = inner.run.iter().flat_map(|run| &run.pending).map(|call| json!(call.id));
                if frame["run_state"].is_object() {
                    frame["run_state"]["pending_approvals"] = ids.collect();
                }
            }
            Defect::SnapshotBriefsHaveId => {
                let briefs = frame.pointer_mut("/run_state/pending_approvals").and_then(Value::as_array_mut);
                briefs.into_iter().flatten().for_each(|brief| mutate::rename(brief, "call_id", "id"));
            }
            Defect::SnapshotDatesAreNumbers if frame["run_state"].is_object() => {
                frame["run_state"]["started_at"] = json!(1_767_323_045);
            }
            Defect::SnapshotCutsRunId if is_over && frame["run_state"].is_object() => {
                frame["run_state"]["run_id"] = json!("run-1");
            }
            Defect::EmptyTranscriptIsNull if frame["transcript"] == json!([]) => {
                frame["transcript"] = Value::Null;
            }
            Defect::SnapshotListsRuns if inner.active().is_some() => {
                frame["run_state"] = json!([frame["run_state"]]);
            }
            Defect::SnapshotVersionMoves if inner.active().is_some() => frame["v"] = json!("1.0.1"),
            Defect::SnapshotListsPending if inner.active().is_some_and(|run| !run.pending.is_empty()) => {
                frame["pending_approvals"] = frame["run_state"]["pending_approvals"].clone();
            }
            Defect::EmptyLogHasNoCursor if inner.newest().is_none() => frame["event_id"] = Value::Null,
            Defect::SnapshotArgsAreText => {
                for item in frame["transcript"].as_array_mut().into_iter().flatten() {
                    if item["type"] == "tool_call" {
                        item["args"] = json!(item["args"].to_string());
                    }
                }
            }
            Defect::SnapshotHasOutput => {
                for item in frame["transcript"].as_array_mut().into_iter().flatten() {
                    if item["type"] == "function_call_output" {
                        mutate::rename(item, "result", "output");
                        item["output"] = json!(item["output"].to_string());
                    }
                }
            }
            Defect::TranscriptOfTwoRuns | Defect::TranscriptIsReversed => {
                if let Some(items) = frame["transcript"].as_array_mut() {
                    reorder(items, defect == Defect::TranscriptIsReversed);
                }
            }
            Defect::SnapshotStatusLags if frame["run_state"]["status"] == "awaiting_approval" => {
                frame["run_state"]["status"] = json!("running");
            }
            Defect::EmptySessionId => frame["session_state"]["session_id"] = json!(""),
            Defect::TranscriptAsMap => frame["transcript"] = json!({ "items": frame["transcript"] }),
            Defect::SnapshotOfAnotherVersion => frame["v"] = json!("1.1.0"),
            Defect::IdleShowsRunning if frame["run_state"]["status"] == "finished" => {
                frame["run_state"]["status"] = json!("running");
                frame["run_state"]["finished_at"] = Value::Null;
            }
            Defect::SnapshotHidesRun => frame["run_state"] = Value::Null,
            Defect::SnapshotCursorAsText => frame["event_id"] = json!(frame["event_id"].to_string()),
            Defect::SnapshotHasExtra => frame["server_time"] = json!(now()),
            _ => {}
        });
    }
}

/// What a defect makes of a transcript: the other way round, or only that of the last two runs.
fn reorder(items: &mut Vec<Value>, reverse: bool) {
    if reverse {
        items.reverse();
        return;
    }
    let starts = items.iter().enumerate().filter(|(_, item)| item["type"] == "user_text").map(|(at, _)| at);
    let starts: Vec<_> = starts.collect();
    if let Some(from) = starts.len().checked_sub(2).and_then(|second| starts.get(second)) {
        items.drain(..from);
    }
}
