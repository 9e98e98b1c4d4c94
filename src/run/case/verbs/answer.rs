//! Answers to requests of the server's: `reply` and `refuse`.

use serde_json::{Map, Value};

use crate::protocol::Answer;
use crate::protocol::extension::Exchange;
use crate::run::case::client::Received;
use crate::run::case::exchange::Purpose;
use crate::run::case::interpreter::{Abort, Interpreter};

impl Interpreter<'_> {
    /// Answers a request of the server's that a client has received. One that cannot be answered breaks `blame`.
    pub(crate) async fn answer(
        &mut self,
        client: &str,
        answer: &Answer,
        received: &Received,
        blame: &[String],
    ) -> Result<(), Abort> {
        let Some(message) = self.answer_to(answer, received, None)? else {
            let request = self.cx.protocol.server_request(received.message, &received.body);
            let message = match request {
                Some(request) => format!("it has no {}, which its answer must repeat", request.id),
                None => "it is not a request that the protocol says how to answer".to_owned(),
            };
            return self.fail_step(blame, message, Some(received), None);
        };
        // It belongs to what is under way.
        self.send_json(client, message, Purpose::Housekeeping).await
    }

    /// The message that answers a request. `None`: it is no request, or has no id. `with`: names that come before the case's.
    pub(crate) fn answer_to(
        &mut self,
        answer: &Answer,
        received: &Received,
        with: Option<&Value>,
    ) -> Result<Option<Value>, Abort> {
        let protocol = self.cx.protocol.clone();
        let kind = answer.kind();
        let request = protocol.server_request(received.message, &received.body);
        let Some((request, form)) = request.and_then(|request| Some((request, request.template(kind)?)))
        else {
            return Ok(None);
        };
        let id = request.id.get(&received.body).filter(|id| !id.is_null());
        let Some(id) = id.cloned() else { return Ok(None) };
        let given = self.expand(answer.given(), with)?;
        let with = Map::from_iter([("id".to_owned(), id), (kind.name().to_owned(), given)]);
        self.expand(form, Some(&Value::Object(with))).map(Some)
    }

    /// The same for a step of an exchange that the protocol declares.
    pub(crate) async fn answer_exchange(
        &mut self,
        client: &str,
        step: &Exchange,
        received: &Received,
    ) -> Result<(), Abort> {
        match Answer::of(step.reply.clone(), step.refuse.clone()) {
            Ok(Some(answer)) => Box::pin(self.answer(client, &answer, received, &step.covers)).await,
            _ => Ok(()),
        }
    }
}
