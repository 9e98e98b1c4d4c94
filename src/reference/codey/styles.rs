//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    NoToolDeltas "no-tool-deltas" "What a tool says comes in ToolCompleted alone." ["CO-TL-10"];
}
