//! Seeded chance: the same on every machine and in every version.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A source of chance.
pub(super) struct Chance(ChaCha8Rng);

impl Chance {
    /// It depends on nothing but these two numbers.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&number.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number below `bound`; 0 for the bound 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The modulo's bias is far below anything that could be noticed.
        if bound == 0 { 0 } else { (self.0.next_u64() % bound as u64) as usize }
    }
}
