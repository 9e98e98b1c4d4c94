//! Many cases: which one is next, attempts, deadlines, and what is reported of each.

pub(crate) mod attempt;
pub(crate) mod dispatcher;
pub(crate) mod held;
pub(crate) mod interrupt;
pub(crate) mod pace;
pub(crate) mod preambles;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod short_deadlines;
pub(crate) mod sink;
pub(crate) mod started;
pub(crate) mod states;
