//! Uids and name suffixes: pseudorandom, and reproducible from a seed if one is given.

use std::hash::{BuildHasher as _, RandomState};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// A seed that differs from run to run and from call to call.
pub(crate) fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// A generator with one word of state and a period of 2^64. It is not used for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// A generator of other numbers, which the next number of this one determines.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.0.next_u64())
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let high = (self.0.next_u64() & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (self.0.next_u64() & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff,
        )
    }

    /// The five-character suffix of a `generateName`, from Kubernetes' alphabet without vowels
    /// (k8s.io/apimachinery/pkg/util/rand).
    pub(crate) fn suffix(&mut self) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut rest = self.0.next_u64();
        let mut pick = || {
            let index = (rest % 27) as usize;
            rest /= 27;
            char::from(ALPHABET.get(index).copied().unwrap_or(b'b'))
        };
        [pick(), pick(), pick(), pick(), pick()]
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_has_the_form_of_a_version_4_uuid() {
        let uid = Random::new(7).uid();
        let lengths: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(matches!(uid.as_bytes()[19], b'8'..=b'b'));
    }

    #[test]
    fn a_fork_has_other_numbers() {
        let mut random = Random::new(1);
        let mut fork = random.clone().fork();
        let own = [random.uid(), random.uid()];
        assert!(!own.contains(&fork.uid()));
    }

    #[test]
    fn a_seed_determines_the_sequence() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.uid(), random.uid(), random.suffix(), random.suffix()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let [first, second, ..] = draw(1);
        assert_ne!(first, second);
    }
}
