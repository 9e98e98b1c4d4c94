//! Many cases: which one is next, attempts, deadlines, and what is reported of each.

pub(crate) mod dispatcher;
pub(crate) mod report;
pub(crate) mod schedule;
pub(crate) mod short_deadlines;
pub(crate) mod sink;
pub(crate) mod started;
