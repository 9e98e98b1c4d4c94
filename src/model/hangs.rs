//! Hangs that last no longer than the case that asked for them: what one case leaves behind in the model must not stand in the way of
//! the next one's turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The cues of running cases that have the model hang. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Hangs(Arc<Mutex<HashMap<String, Running>>>);

/// The cases that have sent one cue, and whoever waits for their end.
#[derive(Debug)]
struct Running {
    cases: usize,
    over: watch::Sender<()>,
}

/// Cues that hang for as long as this lives.
#[derive(Debug)]
pub struct CaseHangs {
    hangs: Hangs,
    cues: Mutex<Vec<String>>,
}

/// The cues in a text, as they stand there.
fn cues(text: &str) -> impl Iterator<Item = &str> {
    text.split("[[cue:").skip(1).filter_map(|rest| rest.split_once("]]")).map(|(cue, _)| cue)
}

impl Hangs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A case begins.
    #[must_use]
    pub fn begin(&self) -> CaseHangs {
        CaseHangs { hangs: self.clone(), cues: Mutex::default() }
    }

    /// Ends when no case runs any more that has sent a cue of the text: at once, where none does.
    pub(super) fn over(&self, text: &str) -> watch::Receiver<()> {
        let running = self.lock();
        let own = cues(text).find_map(|cue| running.get(cue));
        own.map_or_else(|| watch::channel(()).1, |own| own.over.subscribe())
    }
}

impl CaseHangs {
    /// The case is about to send this text, whose cue has the model hang.
    pub fn sends(&self, text: &str) {
        let mut own = self.cues.lock().unwrap_or_else(PoisonError::into_inner);
        for cue in cues(text) {
            if own.iter().any(|known| known == cue) {
                continue;
            }
            own.push(cue.to_owned());
            let mut running = self.hangs.lock();
            let new = || Running { cases: 0, over: watch::Sender::new(()) };
            running.entry(cue.to_owned()).or_insert_with(new).cases += 1;
        }
    }
}

impl Drop for CaseHangs {
    fn drop(&mut self) {
        let own = self.cues.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = self.hangs.lock();
        for cue in &*own {
            let Some(all) = running.get_mut(cue) else { continue };
            all.cases -= 1;
            if all.cases == 0 {
                running.remove(cue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hang_ends_with_the_last_case_that_has_sent_its_cue() {
        let hangs = Hangs::default();
        let is_over = |waits: &watch::Receiver<()>| waits.has_changed().is_err();
        let (one, two) = (hangs.begin(), hangs.begin());
        one.sends("do [[cue:a]]");
        one.sends("again [[cue:a]]");
        two.sends("do [[cue:a]] [[cue:b]]");
        let (a, b) = (hangs.over("please do [[cue:a]]"), hangs.over("[[cue:b]]"));
        drop(one);
        assert!(!is_over(&a) && !is_over(&b), "another case has sent it, too");
        drop(two);
        assert!(is_over(&a) && is_over(&b));
        assert!(is_over(&hangs.over("late [[cue:a]]")), "no case waits for it");
    }
}
