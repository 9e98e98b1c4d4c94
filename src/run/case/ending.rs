//! Connections that end where something else was due: told as that, with the frame that shows it.

use crate::run::case::client::Ended;
use crate::run::case::diagnose::Silence;
use crate::run::case::interpreter::{Runner, Stop};

impl Runner<'_> {
    /// Records that a connection's end is what is wrong. Ends the case if that breaks a MUST.
    pub(crate) fn ended_by(
        &mut self,
        check: &str,
        client: &str,
        blame: &[String],
        message: String,
    ) -> Result<(), Stop> {
        let shows = self.conns.clients.get(client).and_then(|state| state.ended.as_ref()?.event);
        let before = self.verdict.failures.len();
        let failed = self.failed_by(check, blame, message, None, None);
        if let Some(failure) = self.verdict.failures.get_mut(before) {
            failure.frames = shows.into_iter().collect();
        }
        failed
    }

    /// The sentence about a connection that ended where the server had something else to do. Cases in which it ended in the same
    /// way behind the same kind of message fail for one reason, whatever each of them waited for.
    pub(crate) fn ended_instead(&mut self, client: &str, ended: &Ended, rest: &str) -> String {
        let sentence = ended.describe() + rest;
        let asked = self.asked(client);
        self.verdict.silences.push((sentence.clone(), Silence::Ended(ended.plainly(), asked)));
        sentence
    }
}
