//! What a server does otherwise than the plain one: its defect, when that strikes, and its legal styles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Becomes true at such a moment, if a place is reached that asks for defects.
    pub met: Arc<AtomicBool>,
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
    met: Arc<AtomicBool>,
}

impl<D: Named, S: Named> Behaviour<D, S> {
    pub fn new(setup: &Setup) -> Self {
        Self {
            defect: setup.fault.as_deref().and_then(D::named),
            trigger: setup.trigger,
            styles: setup.styles.iter().filter_map(|name| S::named(name)).collect(),
            moment: Moment::default(),
            met: Arc::clone(&setup.met),
        }
    }

    /// The same for a session (or a connection that is in none yet), in which nothing has happened. Clones of it share what happens.
    pub fn of_session(&self) -> Self {
        Self { moment: self.moment.of_session(), ..self.clone() }
    }

    /// The session becomes a part of another one, with what has happened in it.
    pub fn join(&self, other: &Self) {
        self.moment.join(&other.moment);
    }

    /// Something has happened in the session.
    pub fn note(&self, happening: Happening) {
        self.moment.note(happening);
    }

    /// The same, and what ends it happens when the guard is dropped.
    pub fn during(&self, begin: Happening, end: Happening) -> During {
        self.moment.note(begin);
        During { moment: self.moment.clone(), end }
    }

    /// A message of the client has come.
    pub fn message(&self, bytes: &[u8]) {
        self.moment.message(bytes, self.trigger);
    }

    /// Whether this defect strikes now. To be asked last, when it would matter: the moment of its trigger counts as met.
    pub fn strikes(&self, defect: D) -> bool {
        self.defect == Some(defect) && self.is_met()
    }

    /// Whether this defect strikes now, for a place that only prepares what it does later: the moment counts as met when that
    /// `took_effect`.
    pub fn prepares(&self, defect: D) -> bool {
        self.defect == Some(defect) && self.moment.is(self.trigger)
    }

    /// What a defect has prepared now changes something.
    pub fn took_effect(&self) {
        self.met.store(true, Ordering::Relaxed);
    }

    /// Lets the defect change a value. Only if it really does, and this is a moment of the trigger, the moment counts as met: what
    /// leaves the value as it was cannot be noticed.
    pub fn mutate<T: Clone + PartialEq>(&self, value: &mut T, how: impl FnOnce(D, &mut T)) {
        let Some(defect) = self.defect.filter(|_| self.moment.is(self.trigger)) else { return };
        let plain = value.clone();
        how(defect, value);
        if *value != plain {
            self.took_effect();
        }
    }

    /// This is a moment of the trigger.
    fn is_met(&self) -> bool {
        let is_met = self.moment.is(self.trigger);
        if is_met {
            self.took_effect();
        }
        is_met
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

/// Something goes on in a session until this is dropped, also with the task that it is in.
pub(in crate::reference) struct During {
    moment: Moment,
    end: Happening,
}

impl Drop for During {
    fn drop(&mut self) {
        self.moment.note(self.end);
    }
}

impl<D, S> Default for Behaviour<D, S> {
    fn default() -> Self {
        let styles = Arc::from([]);
        Self {
            defect: None,
            trigger: Trigger::Always,
            styles,
            moment: Moment::default(),
            met: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Only;

    impl Named for Only {
        fn named(_: &str) -> Option<Self> {
            Some(Self)
        }
    }

    #[test]
    fn a_moment_is_met_only_where_the_defect_changes_something() {
        let setup =
            Setup { fault: Some("only".to_owned()), trigger: Trigger::SecondTurn, ..Setup::default() };
        let behaviour = Behaviour::<Only, Only>::new(&setup);
        let met = || setup.met.load(Ordering::Relaxed);
        let mutate = |text: &str| {
            let mut text = text.to_owned();
            behaviour.mutate(&mut text, |_, text| *text = text.replace('x', "y"));
            text
        };
        assert_eq!(mutate("x"), "x", "not yet");
        (0..2).for_each(|_| behaviour.note(Happening::Turn));
        assert_eq!(mutate("a"), "a");
        assert!(!met(), "there was nothing to change");
        assert_eq!(mutate("x"), "y");
        assert!(met());
    }

    #[test]
    fn a_moment_is_met_when_what_was_prepared_takes_effect() {
        let setup = Setup { fault: Some("only".to_owned()), trigger: Trigger::FirstTurn, ..Setup::default() };
        let behaviour = Behaviour::<Only, Only>::new(&setup);
        assert!(behaviour.prepares(Only) && !setup.met.load(Ordering::Relaxed));
        behaviour.took_effect();
        assert!(setup.met.load(Ordering::Relaxed));
        (0..2).for_each(|_| behaviour.note(Happening::Turn));
        assert!(!behaviour.prepares(Only), "its moment is over");
    }

    #[test]
    fn what_goes_on_ends_with_its_guard() {
        let setup =
            Setup { fault: Some("only".to_owned()), trigger: Trigger::WhileAsking, ..Setup::default() };
        let behaviour = Behaviour::<Only, Only>::new(&setup);
        let asks = behaviour.during(Happening::Asks, Happening::Decided);
        assert!(behaviour.prepares(Only));
        drop(asks);
        assert!(!behaviour.prepares(Only));
    }
}
