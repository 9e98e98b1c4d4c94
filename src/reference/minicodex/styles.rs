//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    NullsAreLeftOut "nulls-left-out" "Fields of session_state and run_state that are null are left out." ["MC-AMB-22"];
}
