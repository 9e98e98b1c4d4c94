//! Ids of cases: `family/name`, and `family/name@preamble` behind a preamble.

/// Stands between the id of a case and the name of the preamble that it is run behind.
pub const BEHIND: char = '@';

/// The id of a case behind the preamble of this name.
pub fn behind(id: &str, preamble: &str) -> String {
    format!("{id}{BEHIND}{preamble}")
}

/// The id without the preamble.
pub fn without_preamble(id: &str) -> &str {
    id.split_once(BEHIND).map_or(id, |(case, _)| case)
}
