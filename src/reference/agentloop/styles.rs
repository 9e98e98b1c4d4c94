//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    TwoTextParts "two-text-parts" "A message's text comes in two parts of its content." ["AL-RI-5"];
}
