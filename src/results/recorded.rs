//! The events of runs, wherever they are kept: in memory, or in files too large to be held.

use std::borrow::Cow;

use crate::exit::Exit;
use crate::results::event::{RunEvent, RunStarted};

/// Most cases that are held at once for a report which is ordered by causes: of those that failed, were warned of or are flaky, and as
/// many others.
const MOST: usize = 5_000;

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

    /// What a report shows that needs all events at once: of very many cases the first ones. [`RunStarted::left_out`]
    /// says how many are not among them.
    ///
    /// # Errors
    /// As [`Recorded::event`].
    fn bounded(&self) -> Result<Cow<'_, [RunEvent]>, String> {
        let (mut shown, mut wrong, mut others) = (Vec::new(), 0, 0);
        let mut run = None;
        for at in 0..self.count() {
            let event = self.event(at)?.into_owned();
            match &event {
                RunEvent::CaseStarted { .. } => continue,
                RunEvent::CaseFinished(report) => {
                    let count = if report.is_notable() { &mut wrong } else { &mut others };
                    *count += 1;
                    if *count > MOST {
                        // A run that was killed has no event at its end: its beginning says it.
                        if let Some(RunEvent::RunStarted(started)) = run.and_then(|run| shown.get_mut(run)) {
                            started.left_out += 1;
                        }
                        continue;
                    }
                }
                RunEvent::RunStarted(_) => run = Some(shown.len()),
                RunEvent::RunFinished(_) => {}
            }
            shown.push(event);
        }
        Ok(Cow::Owned(shown))
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

impl RunStarted {
    /// That cases are left out of a report, if some are.
    #[must_use]
    pub fn left_out_note(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            format!(
                "{} cases are left out here, which holds {MOST} that something is wrong with and {MOST} others: --junit and --json have \
                 all of them",
                self.left_out
            )
        })
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

    fn bounded(&self) -> Result<Cow<'_, [RunEvent]>, String> {
        self.all()
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

    fn bounded(&self) -> Result<Cow<'_, [RunEvent]>, String> {
        self.all()
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
        Exit::most_severe(self.events.iter().filter_map(|place| match place {
            Place::Own(RunEvent::RunFinished(summary)) => Some(summary.exit_code),
            _ => None,
        }))
    }
}
