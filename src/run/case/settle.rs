//! Silence, and what stands for it: the barrier, `never`.

use std::time::{Duration, Instant};

use crate::results::Check;
use crate::results::cause::{Cause, Statement};
use crate::run::case::barrier::About;
use crate::run::case::client::{Client, EndBlame};
use crate::run::case::context::StepScope;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::receive::Waited;
use crate::scenario::case::Never;

/// A silence is measured in this many pieces: when the machine stands still for a while, only one of them passes
/// unlived, and what the server said meanwhile is seen in the next.
const SLICES: u32 = 5;
/// The silence that stands for a barrier where the protocol names neither: a guess, but one that can fail. Without it
/// whatever follows a `send` would be judged before the server has had time to answer.
const DEFAULT: Duration = Duration::from_millis(500);
/// How long what is owed may come after the barrier, at the end of a case.
const OWED: Duration = Duration::from_secs(1);

impl Interpreter<'_> {
    /// How long a silence must last that stands for an end; `None`: the protocol needs none.
    pub(crate) fn quiet(&self) -> Option<Duration> {
        let own = self.cx.protocol.quiet()?;
        let quiet = self.cx.run.quiet.unwrap_or(own);
        Some(self.cx.run.options.timing.scaled(quiet))
    }

    /// The silence that stands for a barrier.
    fn quiet_fallback(&self) -> Duration {
        let chosen = self.cx.run.quiet.unwrap_or(DEFAULT);
        self.quiet().unwrap_or_else(|| self.cx.run.options.timing.scaled(chosen))
    }

    /// Whether the message just taken ends the turn: where the protocol has a quiet period, nothing must follow it.
    pub(crate) async fn is_last(&mut self, client: &str) -> Result<bool, Abort> {
        let Some(quiet) = self.quiet() else { return Ok(true) };
        let follows = self.client(client)?.inbox.queue.iter().any(|received| !received.ambient);
        Ok(!follows && self.silence(client, quiet).await?)
    }

    /// Waits for the quiet period, or for the connection's end, behind which nothing comes. `false`: something came.
    async fn silence(&mut self, client: &str, quiet: Duration) -> Result<bool, Abort> {
        let before = self.client(client)?.inbox.count();
        for _ in 0..SLICES {
            let until = Instant::now() + quiet / SLICES;
            let mut looks = 0;
            let done = |state: &mut Client| {
                let spoke = state.inbox.count() != before;
                // Ambient messages without a pause do not prolong it. What came while the machine stood still is looked at.
                let late = looks > 0 && Instant::now() > until;
                looks += 1;
                (spoke || late).then_some(spoke)
            };
            if let Waited::Done(true) = self.wait_until(client, until, done).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until the server falls silent towards this client. A silence towards everybody counts for the next client, too.
    pub(crate) async fn await_silence(&mut self, client: &str) -> Result<(), Abort> {
        if self.is_silent_in_time(client).await? {
            return Ok(());
        }
        let covers = self.cx.protocol.extension.turn.covers.clone();
        self.fail_step(&covers, "the server does not stop sending", None, None)
    }

    /// Waits for the silence as long as for a message. `false`: the server sends all the time.
    async fn is_silent_in_time(&mut self, client: &str) -> Result<bool, Abort> {
        if self.client(client)?.is_stalled() {
            return Err(Abort::Error(format!("`{client}` is stalled: it receives nothing")));
        }
        let quiet = self.quiet_fallback();
        self.note_window(quiet, true);
        if self.settling.runs_on.contains(client) {
            // What was left running may say more at any time.
            self.wait_for_end(client, Instant::now() + quiet).await?;
            return Ok(true);
        }
        let until = Instant::now() + self.deadline(None).max(quiet * 2);
        let mut before = self.log.next_index();
        while self.settling.silent_at != Some(before) && !self.silence(client, quiet).await? {
            if Instant::now() > until {
                return Ok(false);
            }
            before = self.log.next_index();
        }
        self.settling.silent_at = (self.log.next_index() == before).then_some(before);
        Ok(true)
    }

    /// Waits for what is owed, such as the reply to a request: a server may be done with what the barrier orders before that.
    pub(crate) async fn await_owed(&mut self) -> Result<(), Abort> {
        let until = Instant::now() + self.cx.run.options.timing.scaled(OWED).min(self.deadline(None));
        while self.judges.is_owed() && self.receive_until(until).await? {}
        Ok(())
    }

    /// Notes for the report that what did not come is known by a window of time only.
    fn note_window(&mut self, window: Duration, silence: bool) {
        self.settling.windows.insert((self.step.pointer.clone(), silence), window);
    }

    /// Hears what the server has to say to what was sent: where nobody can ask whether it is done, its silence tells. It may
    /// have a lot to say: operations that a random message began may run for minutes. Afterwards the connection may be gone.
    pub(crate) async fn await_quiet(&mut self, client: &str) -> Result<(), Abort> {
        let state = self.client(client)?;
        if !state.is_connected() || state.is_stalled() || state.has_ended() {
            return Ok(());
        }
        self.is_silent_in_time(client).await.map(drop)
    }

    /// `settle`: does the barrier, and looks past everything received.
    pub(crate) async fn settle(&mut self, client: &str) -> Result<(), Abort> {
        self.barrier(client, About::Everything).await?;
        // Where a silence stands for the barrier, a server may pause for longer in the midst of what it has to say.
        if self.quiet().is_some() && self.judges.is_owed() {
            self.await_owed().await?;
            self.barrier(client, About::Everything).await?;
        }
        self.client(client)?.inbox.queue.clear();
        Ok(())
    }

    /// `never`: nothing wanted comes until the barrier is answered, or within the window. A connection that is gone
    /// shows nothing, unless a step awaited its end.
    pub(crate) async fn never(&mut self, verb: &Never, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, blame) = (cx.client, cx.blame);
        let mut wanted = self.wanted(&verb.awaited)?;
        wanted.reading = verb.leniency.reading().map(str::to_owned);
        let over =
            |state: &Client| state.has_ended() && (state.blame() != EndBlame::Unexplained || wanted.close);
        match verb.window {
            Some(window) => {
                let window = self.cx.run.options.timing.scaled(window);
                self.note_window(window, false);
                self.wait_for_end(client, Instant::now() + window).await?;
            }
            _ if over(self.client(client)?) => {}
            _ => self.barrier(client, About::Awaited(&wanted)).await?,
        }
        let last = self.log.last_index();
        let state = self.client(client)?;
        let end = state.end(last).filter(|end| wanted.close && wanted.fits(&end.body));
        if let Some(ended) = state.ended().cloned().filter(|_| end.is_some()) {
            state.report_end();
            let message = format!("{}, which is not allowed here", ended.describe());
            let message = Statement::because(message, Cause::Forbidden);
            return self.fail_on_end(Check::Step, client, blame, message);
        }
        if let Some(found) = state.inbox.queue.iter().find(|received| wanted.matches(received)).cloned() {
            let message = format!("{} came, which is not allowed here", wanted.label);
            let message = Statement::because(message, Cause::Forbidden);
            return self.fail_step(blame, message, Some(&found), None);
        }
        self.expect_connected(client)
    }

    /// The connection is there, or a step awaited its end; else that is what is wrong.
    pub(crate) fn expect_connected(&mut self, client: &str) -> Result<(), Abort> {
        self.take_effect()?;
        let state = self.client(client)?;
        let Some(ended) = state.lost().cloned() else { return Ok(()) };
        state.report_end();
        let message = self.ended_instead(client, &ended, ", which no step awaited");
        let covers = self.cx.protocol.extension.frames.ended.clone();
        self.fail_on_end(Check::Connection, client, &covers, message)
    }
}
