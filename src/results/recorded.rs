//! The events of runs, wherever they are kept: in memory, or in files too large to be held.

use std::borrow::Cow;

use crate::exit::Exit;
use crate::results::event::{RunEvent, RunStarted};

/// Events in their order, each to be had as often as it is needed.
pub trait Recorded {
    /// How many there are.
    fn count(&self) -> usize;

    /// One of them, by its place from 0.
    ///
    /// # Errors
    /// It can no longer be read, in words; or there are not so many.
    fn event(&self, at: usize) -> Result<Cow<'_, RunEvent>, String>;

    /// The places at which runs begin.
    ///
    /// # Errors
    /// As [`Recorded::event`].
    fn starts(&self) -> Result<Vec<usize>, String> {
        let mut starts = Vec::new();
        for at in 0..self.count() {
            if matches!(*self.event(at)?, RunEvent::RunStarted(_)) {
                starts.push(at);
            }
        }
        Ok(starts)
    }

    /// All of them, in memory.
    ///
    /// # Errors
    /// As [`Recorded::event`].
    fn all(&self) -> Result<Cow<'_, [RunEvent]>, String> {
        let all = (0..self.count()).map(|at| self.event(at).map(Cow::into_owned));
        all.collect::<Result<Vec<_>, _>>().map(Cow::Owned)
    }
}

impl Recorded for [RunEvent] {
    fn count(&self) -> usize {
        self.len()
    }

    fn event(&self, at: usize) -> Result<Cow<'_, RunEvent>, String> {
        self.get(at).map(Cow::Borrowed).ok_or_else(|| "there is no such event".to_owned())
    }

    fn all(&self) -> Result<Cow<'_, [RunEvent]>, String> {
        Ok(Cow::Borrowed(self))
    }
}

impl Recorded for Vec<RunEvent> {
    fn count(&self) -> usize {
        self.len()
    }

    fn event(&self, at: usize) -> Result<Cow<'_, RunEvent>, String> {
        self.as_slice().event(at)
    }

    fn all(&self) -> Result<Cow<'_, [RunEvent]>, String> {
        Ok(Cow::Borrowed(self))
    }
}

/// The run that an event belongs to: the one that has begun last before it. Asked in the order of the events, each is read once.
#[derive(Default)]
pub struct Current(Option<(usize, RunStarted)>);

impl Current {
    /// The run that begins at this place.
    ///
    /// # Errors
    /// As [`Recorded::event`]; or no run begins there.
    pub fn at(&mut self, events: &(impl Recorded + ?Sized), place: usize) -> Result<&RunStarted, String> {
        if self.0.as_ref().is_none_or(|(known, _)| *known != place) {
            let RunEvent::RunStarted(started) = events.event(place)?.into_owned() else {
                return Err("no run begins there any more".to_owned());
            };
            self.0 = Some((place, *started));
        }
        match &self.0 {
            Some((_, started)) => Ok(started),
            None => Err("no run has begun".to_owned()),
        }
    }
}

/// The events of a run in several files: its cases stay where they are.
pub struct Merged<F> {
    files: Vec<F>,
    events: Vec<Place>,
}

/// Where one of them is.
pub(super) enum Place {
    /// Here.
    Own(RunEvent),
    /// In a file, at a place there.
    In(usize, usize),
}

impl<F: Recorded> Recorded for Merged<F> {
    fn count(&self) -> usize {
        self.events.len()
    }

    fn event(&self, at: usize) -> Result<Cow<'_, RunEvent>, String> {
        match self.events.get(at) {
            Some(Place::Own(event)) => Ok(Cow::Borrowed(event)),
            Some(Place::In(file, at)) => self.files[*file].event(*at),
            None => Err("there is no such event".to_owned()),
        }
    }

    fn starts(&self) -> Result<Vec<usize>, String> {
        let starts = self.events.iter().enumerate();
        let starts = starts.filter(|(_, place)| matches!(place, Place::Own(RunEvent::RunStarted(_))));
        Ok(starts.map(|(at, _)| at).collect())
    }
}

impl<F> Merged<F> {
    pub(super) fn new(files: Vec<F>, events: Vec<Place>) -> Self {
        Self { files, events }
    }

    /// The heaviest exit code of its runs.
    pub fn exit(&self) -> Exit {
        Exit::heaviest(self.events.iter().filter_map(|place| match place {
            Place::Own(RunEvent::RunFinished(summary)) => Some(summary.exit_code),
            _ => None,
        }))
    }
}
