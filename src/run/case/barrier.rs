//! The barrier: how a case knows that something did not come. What the protocol's query does not prove takes a window of silence,
//! which the report names.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::protocol::PER;
use crate::results::Check;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::wait::Expectation;

/// What must have come by now, or never comes.
#[derive(Clone, Copy)]
pub(crate) enum About<'w> {
    /// Whatever the server had to say.
    Everything,
    /// What a step rules out.
    Awaited(&'w Expectation),
    /// What refuses something.
    Errors,
}

/// What the answer to the protocol's query proves.
enum Proof {
    /// That nothing of it is to come; with the values of the query's templates.
    All(Value),
    /// That a part of it is not to come.
    Part,
    /// Nothing.
    Nothing,
}

impl Interpreter<'_> {
    /// What the answer to the protocol's query proves of this.
    fn proof(&self, about: About<'_>) -> Proof {
        let protocol = &self.cx.protocol;
        let Some(barrier) = &protocol.extension.barrier else { return Proof::Nothing };
        if barrier.is_whole() {
            return Proof::All(Value::Null);
        }
        if let Some(per) = barrier.per() {
            let value = match about {
                About::Awaited(wanted) => wanted.value_at(per).filter(|_| !wanted.close),
                About::Everything | About::Errors => None,
            };
            return value.map_or(Proof::Nothing, |value| Proof::All(json!({ PER: value })));
        }
        let ordered = match about {
            About::Everything => false,
            About::Awaited(wanted) => {
                let named = |index: &usize| barrier.orders(&protocol.messages[*index].name);
                let ends = wanted.is_for_turn_end();
                !wanted.close
                    && wanted.messages().iter().all(named)
                    && (!ends || protocol.barrier_orders(&protocol.roles().turn_end))
            }
            About::Errors => {
                let errors = protocol.roles().errors.as_ref();
                errors.is_some_and(|(errors, _)| protocol.barrier_orders(errors))
            }
        };
        if ordered { Proof::All(Value::Null) } else { Proof::Part }
    }

    /// Whether the answer to the protocol's query proves that nothing of this is to come.
    pub(crate) fn is_proven(&self, about: About<'_>) -> bool {
        matches!(self.proof(about), Proof::All(_))
    }

    /// Does the protocol's barrier, or waits for the silence that stands for one: when it returns, everything of this that the
    /// server had to say to this client before has been received. The barrier's answer is taken out of the queue, and nothing else.
    pub(crate) async fn barrier(&mut self, client: &str, about: About<'_>) -> Result<(), Abort> {
        let proof = self.proof(about);
        let query = match &proof {
            Proof::All(with) => Some(with),
            Proof::Part => Some(&Value::Null),
            Proof::Nothing => None,
        };
        if let Some(with) = query {
            self.ask(client, with).await?;
        }
        if matches!(proof, Proof::All(_)) {
            return Ok(());
        }
        self.await_silence(client).await?;
        self.expect_connected(client)
    }

    /// Does the protocol's query, which the server has to answer.
    async fn ask(&mut self, client: &str, with: &Value) -> Result<(), Abort> {
        let protocol = Arc::clone(&self.cx.protocol);
        match self.query(client, protocol.extension.barrier_query(), Some(with)).await? {
            None => Ok(()),
            Some((why, covers)) if self.client(client)?.has_ended() => {
                self.fail_on_end(Check::Step, client, &covers, why)
            }
            Some((why, covers)) => self.fail_step(&covers, why, None, None),
        }
    }
}
