//! Steps: one after the other, each with what its verb needs to know of it.

use std::sync::Arc;

use crate::protocol::ReadingName;
use crate::run::case::client::Reading;
use crate::run::case::context::{StepContext, StepScope, Tolerance};
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::case::{Group, Leniency, Restart, Step, Steps, Verb};

impl Interpreter<'_> {
    /// Does steps one after the other.
    pub(crate) async fn steps(&mut self, steps: &[Arc<Step>], at: &str) -> Result<(), Abort> {
        for (index, step) in steps.iter().enumerate() {
            let place = format!("{at}/{index}");
            Box::pin(self.run_step(step, &place)).await?;
            self.go_on()?;
            if self.loops.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// The answer under which a failure of a step is judged: the reading's own, and never "default" where the default
    /// takes it either way.
    fn taken(&self, leniency: &Leniency) -> Option<ReadingName> {
        let answer = |id: &Option<String>| self.cx.protocol.readings.get(id.as_ref()?).copied();
        let allowed = answer(&leniency.allowed).map(|taken| match taken {
            ReadingName::Default => ReadingName::Lenient,
            other => other,
        });
        allowed.or_else(|| answer(&leniency.tolerated))
    }

    /// Does a step, unless its condition does not hold.
    async fn run_step(&mut self, step: &Step, at: &str) -> Result<(), Abort> {
        let leniency = step.verb.leniency();
        let taken = leniency.and_then(|leniency| self.taken(leniency));
        let client = step.verb.by().or(self.conns.first()).unwrap_or_default().to_owned();
        let context = StepContext {
            pointer: format!("{at}/{}", step.verb.name()),
            client: client.clone(),
            tolerance: Tolerance::of(taken, leniency.is_some_and(|leniency| leniency.warns)),
            is_tolerated: taken.is_some(),
            ..StepContext::default()
        };
        let outer = std::mem::replace(&mut self.step, context);
        let (covers, loaded) = (&step.common.covers, self.cx.loaded);
        let blame = if covers.is_empty() { &loaded.case.covers } else { covers };
        let done = self.perform_if_due(step, &StepScope { client: &client, at, covers, blame }).await;
        self.step = outer;
        done
    }

    async fn perform_if_due(&mut self, step: &Step, cx: &StepScope<'_>) -> Result<(), Abort> {
        self.log.begin_step(&self.step.pointer);
        if let Some(condition) = &step.common.when
            && !self.relation(condition)?.0
        {
            // What the server did decides here: that a later step lacks the values is no mistake of the case.
            step.expects().into_iter().for_each(|expect| self.vars.miss(expect.save.keys()));
            return Ok(());
        }
        self.perform(&step.verb, cx).await?;
        if !self.step.vacuous {
            // What else was warned of meanwhile takes nothing away.
            let held = cx.covers.iter().filter(|id| !self.step.failed.contains(id));
            held.for_each(|id| self.verdict.exercise_often(id, 1));
        }
        Ok(())
    }

    async fn perform(&mut self, verb: &Verb, cx: &StepScope<'_>) -> Result<(), Abort> {
        match verb {
            Verb::Open(open) => self.open(open, cx).await,
            Verb::Close(client) => self.close(client).await,
            Verb::Drop(cut) => self.drop_client(cut).await,
            Verb::Stall(client) => self.stall(client, Reading::Stopped),
            Verb::Unstall(client) => self.stall(client, Reading::On),
            Verb::Send(send) => self.send_message(send, cx).await,
            Verb::Raw(raw) => self.raw(raw, cx).await,
            Verb::Binary(binary) => self.binary(binary, cx).await,
            Verb::Frame(frame) => self.frame(frame, cx).await,
            Verb::Bytes(bytes) => self.bytes(bytes, cx).await,
            Verb::Expect(expect) => self.expect(expect, cx).await,
            Verb::Check(check) => self.check(check, cx),
            Verb::Never(never) => self.never(never, cx).await,
            Verb::Ping(ping) => self.ping(ping, cx).await,
            Verb::Joined(joined) => self.joined(joined, cx),
            Verb::Settle(client) => self.settle(client).await,
            Verb::Alive(alive) => self.alive(alive, cx).await,
            Verb::Ended(ended) => self.ended(ended, cx).await,
            Verb::Rejected(rejected) => self.rejected(rejected, cx).await,
            Verb::Unseen(unseen) => self.unseen(unseen, cx).await,
            Verb::Restart(Restart::Hard) => self.restart().await,
            Verb::ExpectFile(file) => self.expect_file(file, cx).await,
            Verb::Get(get) => self.get(get, cx).await,
            Verb::Assert(relation) => self.assert(relation, cx),
            Verb::Unchanged(unchanged) => self.unchanged(unchanged, cx).await,
            Verb::Repeat(repeat) => self.repeat(repeat, cx).await,
            Verb::Steps(group) => self.group(group, cx).await,
            Verb::Parallel(branches) => self.parallel(branches, cx).await,
        }
    }

    /// Does the steps, with variables of their own.
    async fn group(&mut self, group: &Group, cx: &StepScope<'_>) -> Result<(), Abort> {
        let mut values = Vec::with_capacity(group.vars.len());
        for (name, value) in &group.vars {
            values.push((name.clone(), Some(self.expand(value, None)?)));
        }
        let outer = self.vars.replace(values);
        let done = self.steps(&group.steps, &format!("{}/steps", cx.at)).await;
        self.vars.replace(outer);
        done
    }

    /// Takes the branches' steps in turn: first steps first, so that sends go out back to back.
    async fn parallel(&mut self, branches: &[Steps], cx: &StepScope<'_>) -> Result<(), Abort> {
        let longest = branches.iter().map(Steps::len).max().unwrap_or(0);
        for index in 0..longest {
            for (number, branch) in branches.iter().enumerate() {
                if let Some(step) = branch.get(index) {
                    Box::pin(self.run_step(step, &format!("{}/parallel/{number}/{index}", cx.at))).await?;
                }
            }
        }
        Ok(())
    }
}
