//! `repeat`: steps again and again, until one of them takes a message.

use crate::run::case::client::Received;
use crate::run::case::context::StepScope;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::scenario::case::Repeat;

impl Interpreter<'_> {
    /// Does the steps in rounds.
    pub(crate) async fn repeat(&mut self, verb: &Repeat, cx: &StepScope<'_>) -> Result<(), Abort> {
        let at = format!("{}/repeat", cx.at);
        for _ in 0..verb.most {
            let until = self.wanted(&verb.until)?;
            self.loops.enter(Box::new(move |received: &Received| {
                let ends = received.ended.is_some() && until.close && until.fits(&received.body);
                ends || until.matches(received)
            }));
            let done = self.steps(&verb.steps, &at).await;
            let over = self.loops.leave();
            done?;
            if over || self.loops.is_over() {
                return Ok(());
            }
        }
        let (names, most) = (verb.until.names.join(" or "), verb.most);
        let rounds = if most == 1 { "one round".to_owned() } else { format!("{most} rounds") };
        let message = format!("{names} did not come in {rounds} of the loop");
        let expected = self.asked_for(&verb.until)?;
        self.fail_step(cx.blame, message, None, expected)
    }
}
