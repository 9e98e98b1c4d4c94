//! What tells one run from all others on the same server.

use std::fmt;
use std::str::FromStr;

/// Tells the sessions, keys and ids of one run from those of all others, which a server may remember.
///
/// Its text has eight hexadecimal digits. The one of zeros is for a server that is started for the run: nothing was there before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunId(u32);

impl RunId {
    /// One that no run had before.
    pub(crate) fn fresh() -> Self {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        Self(((high ^ low) as u32).max(1))
    }

    /// What makes the ids of a case others than those that the same seed gave before. `execution`: how often the case was run
    /// before in this run.
    pub(crate) fn salt(self, execution: u32) -> u64 {
        // The finaliser of SplitMix64: each input has an output of its own, and 0 is its own.
        let mut salt = (u64::from(self.0) << 32) | u64::from(execution);
        salt = (salt ^ (salt >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        salt = (salt ^ (salt >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        salt ^ (salt >> 31)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FromStr for RunId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = u32::from_str_radix(text, 16).ok().filter(|_| !text.starts_with('+'));
        id.map(Self).ok_or_else(|| {
            format!("`{text}` is not a run id: up to eight hexadecimal digits, as a run prints it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_read_as_it_is_written() {
        let id = RunId::fresh();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("1f".parse(), Ok(RunId(0x1f)));
        for bad in ["", "+1", "123456789", "xyz"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn salts_differ() {
        assert_eq!(RunId::default().salt(0), 0, "what a run of its own always had");
        let salts = (0..100).flat_map(|run| (0..10).map(move |execution| RunId(run).salt(execution)));
        assert_eq!(salts.collect::<std::collections::BTreeSet<u64>>().len(), 1000);
    }
}
