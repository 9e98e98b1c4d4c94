//! The sessions of a server, by their id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions that a server keeps; past that those that nobody uses are forgotten.
const MAX_SESSIONS: usize = 100_000;

/// Sessions by id.
pub(in crate::reference) struct Sessions<S>(Mutex<HashMap<String, Arc<S>>>);

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S> Sessions<S> {
    /// The session of an id, made where there is none.
    pub fn get_or_make(&self, id: String, make: impl FnOnce() -> S) -> Arc<S> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, session| Arc::strong_count(session) > 1);
        }
        Arc::clone(sessions.entry(id).or_insert_with(|| Arc::new(make())))
    }

    /// Forgets a session. Who uses it keeps it.
    pub fn forget(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
