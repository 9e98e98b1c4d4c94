//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    NoJournal "no-journal" "Data bears no journal." ["TV-SUB-3", "TV-AMB-11"];
}
