//! Connections that end where something else was due: told as that, with the frame that shows it.

use crate::results::Check;
use crate::results::cause::{Cause, Statement};
use crate::run::case::client::ObservedEnd;
use crate::run::case::interpreter::{Abort, Interpreter};

impl Interpreter<'_> {
    /// Records that a connection's end is what is wrong. Ends the case if that breaks a MUST.
    pub(crate) fn fail_on_end(
        &mut self,
        check: Check,
        client: &str,
        blame: &[String],
        what: impl Into<Statement>,
    ) -> Result<(), Abort> {
        let shows = self.conns.clients.get(client).and_then(|state| state.ended.as_ref()?.event);
        let before = self.verdict.failures.len();
        let failed = self.failed_by(check, blame, what, None, None);
        if let Some(failure) = self.verdict.failures.get_mut(before) {
            failure.frames = shows.into_iter().collect();
        }
        failed
    }

    /// The sentence about a connection that ended where the server had something else to do. Cases in which it ended in the same
    /// way behind the same kind of message fail for one reason, whatever each of them waited for.
    pub(crate) fn ended_instead(&self, client: &str, ended: &ObservedEnd, rest: &str) -> Statement {
        let cause = Cause::ConnectionEnded(ended.plainly(), self.last_request(client));
        Statement::because(ended.describe() + rest, cause)
    }
}
