//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    LongCallIds "long-call-ids" "A call_id is long, and holds blanks and signs." ["CL-TC-2"];
}
