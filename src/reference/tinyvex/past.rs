//! What the defects of a connection remember of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// What has happened on a connection so far.
#[derive(Default)]
pub(super) struct Past {
    pub counts: Counts,
    /// subIds that were subscribed.
    pub sub_ids: RefCell<BTreeSet<String>>,
    /// Ids of sessions that were prompted and unknown.
    pub refused: RefCell<BTreeSet<String>>,
    /// The newest session, until it is prompted.
    pub unused: RefCell<Option<String>>,
    /// The session whose prompt was cancelled last.
    pub cancelled: RefCell<Option<String>>,
    pub newest_id: Shared,
    pub newest_t: Shared,
}

/// How often something has happened.
#[derive(Default)]
pub(super) struct Counts {
    /// In a row.
    pub pings: Cell<u32>,
    /// Texts that were no JSON.
    pub rubbish: Cell<u32>,
    pub sessions: Cell<u32>,
    pub prompts: Cell<u32>,
    /// Cancels of a prompt that ran.
    pub cancels: Cell<u32>,
    pub initializes: Cell<u32>,
    pub connects: Cell<u32>,
    pub unsubscribes: Cell<u32>,
}

/// Counts one more, and returns how many there were before.
pub(super) fn another(count: &Cell<u32>) -> u32 {
    count.replace(count.get() + 1)
}

/// A value of the newest request, which those before it share by mistake.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Option<Value>>>);

impl Shared {
    pub fn set(&self, value: Option<Value>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    pub fn get(&self) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
