//! Seeded random numbers: the same on every machine and in every version.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A source of random numbers.
#[derive(Debug, Clone)]
pub struct SeededRng(ChaCha8Rng);

impl SeededRng {
    /// The source for one case: it depends on nothing but the campaign's seed and the case's number.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&index.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number below `bound`; 0 for the bound 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The modulo's bias is far below anything that could be noticed.
        if bound == 0 { 0 } else { (self.0.next_u64() % bound as u64) as usize }
    }

    /// `true` in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several; `None` of none.
    pub fn pick<'p, T>(&mut self, from: &'p [T]) -> Option<&'p T> {
        let index = self.below(from.len());
        from.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed, index| {
            let mut rng = SeededRng::new(seed, index);
            (0..8).map(|_| rng.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
        assert_eq!(SeededRng::new(1, 1).pick::<u8>(&[]), None);
    }
}
