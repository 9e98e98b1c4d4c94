//! Clients that wait before they send: for the think time of the case, or of the preamble that it is run behind.

use std::time::Instant;

use crate::run::case::context::StepScope;
use crate::run::case::interpreter::{Abort, Interpreter};

/// How often clients pause in a case: one with hundreds of messages must not take minutes.
const MOST_PAUSES: u32 = 10;

/// How often clients have waited before a message.
#[derive(Debug, Default)]
pub(crate) struct Pauses(u32);

impl Interpreter<'_> {
    /// Waits for the case's think time, unless the message comes right behind another one or brings about what the case begins with.
    pub(crate) async fn think(&mut self, cx: &StepScope<'_>) -> Result<(), Abort> {
        let loaded = self.cx.loaded;
        let Some(pause) = loaded.case.beginning.think_time else { return Ok(()) };
        let is_right_behind = cx.at.contains("/parallel/") || self.log.awaits_answer(cx.client);
        if is_right_behind || loaded.is_in_preamble(cx.at) || self.pauses.0 == MOST_PAUSES {
            return Ok(());
        }
        self.pauses.0 += 1;
        let until = Instant::now() + pause;
        while self.receive_until(until).await? {}
        Ok(())
    }
}
