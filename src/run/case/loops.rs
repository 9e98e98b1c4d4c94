//! The loops that a running step stands in.

use crate::run::case::client::Received;

/// Whether a message ends a loop.
pub(crate) type Until = Box<dyn Fn(&Received) -> bool + Send + Sync>;

/// The loops that the running step stands in, the innermost last.
#[derive(Default)]
pub(crate) struct Loops(Vec<Loop>);

struct Loop {
    until: Until,
    over: bool,
}

impl Loops {
    /// A round of a loop begins.
    pub fn enter(&mut self, until: Until) {
        self.0.push(Loop { until, over: false });
    }

    /// The round of the innermost loop is done. Whether a message has ended that loop.
    pub fn leave(&mut self) -> bool {
        self.0.pop().is_some_and(|one| one.over)
    }

    /// A step has taken this: it ends the loops that wait for it.
    pub fn took(&mut self, received: &Received) {
        for one in &mut self.0 {
            one.over |= (one.until)(received);
        }
    }

    /// Nothing more of the steps is done.
    pub fn is_over(&self) -> bool {
        self.0.iter().any(|one| one.over)
    }
}
