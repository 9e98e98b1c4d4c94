//! What a server does otherwise than the plain one: its defect, when that strikes, and its legal styles.

use std::sync::Arc;

use super::trigger::{Happening, Moment, Trigger};
use crate::reference::styles::pieces;

/// A chunk has about so many small pieces at most.
const PARTS: usize = 8;

/// Something that a table of a dialect names: a defect or a style.
pub(in crate::reference) trait Named: Copy + PartialEq + 'static {
    /// The entry of this name.
    fn named(name: &str) -> Option<Self>;
}

/// Which variant of a dialect's server is to be made.
#[derive(Debug, Clone, Default)]
pub(in crate::reference) struct Setup {
    /// The name of its defect.
    pub fault: Option<String>,
    /// When that strikes.
    pub trigger: Trigger,
    /// The names of its styles; those that are not the dialect's own are passed over.
    pub styles: Vec<String>,
}

/// A server's defect and styles, and what has happened in the session that it is asked for. Every place of a dialect where one of
/// them matters asks here.
#[derive(Debug, Clone)]
pub(in crate::reference) struct Behaviour<D, S> {
    defect: Option<D>,
    trigger: Trigger,
    styles: Arc<[S]>,
    moment: Moment,
}

impl<D: Named, S: Named> Behaviour<D, S> {
    pub fn new(setup: &Setup) -> Self {
        Self {
            defect: setup.fault.as_deref().and_then(D::named),
            trigger: setup.trigger,
            styles: setup.styles.iter().filter_map(|name| S::named(name)).collect(),
            moment: Moment::default(),
        }
    }

    /// The same for a session (or a connection that is in none yet), in which nothing has happened. Clones of it share what happens.
    pub fn of_session(&self) -> Self {
        Self { moment: Moment::default(), ..self.clone() }
    }

    /// Something has happened in the session.
    pub fn note(&self, happening: Happening) {
        self.moment.note(happening);
    }

    /// A message of the client has come.
    pub fn message(&self, bytes: &[u8]) {
        self.moment.message(bytes);
    }

    /// Whether this defect strikes now.
    pub fn strikes(&self, defect: D) -> bool {
        self.defect == Some(defect) && self.moment.is(self.trigger)
    }

    /// The defect that strikes now, for a place where several may.
    pub fn striking(&self) -> Option<D> {
        self.defect.filter(|_| self.moment.is(self.trigger))
    }

    /// The same, for a place that the defect spares.
    pub fn without_defect(&self) -> Self {
        Self { defect: None, ..self.clone() }
    }

    /// What is said, in the pieces of the style `whole` (one) or `small` (many), if the server has it: else as the script has it.
    pub fn recut(&self, chunks: Vec<String>, whole: S, small: S) -> Vec<String> {
        if self.style(whole) {
            vec![chunks.concat()]
        } else if self.style(small) {
            pieces::small(&chunks, PARTS)
        } else {
            chunks
        }
    }

    /// Whether the server has this style.
    pub fn style(&self, style: S) -> bool {
        self.styles.contains(&style)
    }
}

impl<D, S> Default for Behaviour<D, S> {
    fn default() -> Self {
        let styles = Arc::from([]);
        Self { defect: None, trigger: Trigger::Always, styles, moment: Moment::default() }
    }
}
