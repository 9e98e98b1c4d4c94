//! How a turn ends: well, by no-exit, or by a failure.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::asking::LATE;
use super::faults::Defect;
use super::items;
use super::styles::Style;
use super::turn::{Player, Stop};
use crate::cue::Fail;

/// How long after a turn the context is compacted, in a style.
const IDLE: Duration = Duration::from_millis(50);

impl Player {
    pub(super) async fn end(&mut self, result: Result<(), Stop>) {
        let conversation = Arc::clone(&self.conversation);
        let cause = self.cause.clone();
        if conversation.style(Style::CompactsOften) {
            conversation.compact_unasked();
        }
        if conversation.behaviour().prepares(Defect::AlwaysForATurn) {
            let mut inner = conversation.lock();
            let always = std::mem::take(&mut inner.always);
            inner.misremembered.extend(always);
        }
        let is_finished = match result {
            Err(Stop::Failed(fail)) => return self.failed(&fail),
            Err(Stop::Exit) => return self.exit().await,
            Ok(()) => {
                if self.has(Defect::FinishBeforeLoading) || self.style(Style::FinishesFirst) {
                    return conversation.finish_before_idle(&cause);
                }
                let stays =
                    self.has(Defect::LoadingStays) || (self.approved && self.has(Defect::StaysAfterApproval));
                let adds = self.has(Defect::ItemAfterEnd);
                let at_once = !stays && !adds && !self.style(Style::LateFinish);
                if at_once {
                    conversation.finish_when_idle(&cause);
                } else if !stays {
                    self.loading(false);
                }
                if adds {
                    self.one_more_thing();
                }
                at_once
            }
        };
        if self.style(Style::LateFinish) {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        if !is_finished {
            conversation.finish(&cause);
        }
        if conversation.style(Style::CompactsWhenIdle) {
            let conversation = Arc::clone(&conversation);
            tokio::spawn(async move {
                tokio::time::sleep(IDLE).await;
                conversation.compact_idle();
            });
        }
        if conversation.style(Style::ReportsContext) {
            conversation.report_context();
        }
        if conversation.behaviour().strikes(Defect::ItemLongAfter) {
            tokio::time::sleep(LATE).await;
            self.one_more_thing();
        } else if conversation.behaviour().strikes(Defect::FinishesLateAgain) {
            tokio::time::sleep(LATE).await;
            conversation.finish_again(&cause);
        } else if conversation.behaviour().strikes(Defect::PingsAsText) {
            tokio::time::sleep(LATE).await;
            conversation.ping();
        }
    }

    fn one_more_thing(&mut self) {
        let id = self.new_id("msg");
        let behaviour = self.conversation.behaviour().without_defect();
        self.item(items::message(&id, "assistant", "one more thing", &behaviour));
    }

    /// The user has said no-exit.
    async fn exit(&mut self) {
        let conversation = Arc::clone(&self.conversation);
        let waits = self.style(Style::LateFinishAfterExit);
        conversation.lock().busy = waits;
        self.loading(false);
        if self.style(Style::ClosesAfterExit) {
            return conversation.hang_up(Message::Close(None));
        }
        if waits {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if !self.style(Style::NoFinishAfterExit) {
            conversation.finish(&self.cause);
        }
    }

    /// A network error is told as a message of the system's and ends the turn; others are errors.
    fn failed(&mut self, fail: &Fail) {
        let conversation = Arc::clone(&self.conversation);
        conversation.lock().busy = self.has(Defect::StuckAfterError);
        conversation.lock().failed = true;
        if self.has(Defect::SwallowsFailures) {
            return self.loading(false);
        }
        if conversation.behaviour().prepares(Defect::KeepsFailedText) {
            conversation.lock().leftover = std::mem::take(&mut self.so_far);
        }
        let by_message =
            (fail.status == 503 && !self.style(Style::FailsByError)) || self.style(Style::FailsByMessage);
        if by_message {
            let id = self.new_id("sys");
            let text = format!("⚠️ Network error while contacting the provider: {}", fail.message);
            self.item(items::message(&id, "system", &text, conversation.behaviour()));
            self.loading(false);
            conversation.finish(&self.cause);
            conversation.lock().busy |= self.has(Defect::StuckAfterMessage);
            return;
        }
        let details = json!({ "error": fail.message, "code": fail.status });
        let late = self.has(Defect::ErrorAfterLoading);
        if late {
            self.loading(false);
        }
        conversation.error(&self.cause, "Failed to process user input", details.clone());
        if self.has(Defect::FailsTwice) {
            conversation.error(&self.cause, "Failed to process user input", details);
        }
        if !late {
            self.loading(false);
        }
        if self.has(Defect::FailureFinishes) || self.style(Style::FailureFinishes) {
            conversation.finish(&self.cause);
        }
    }
}
