//! Maps with keys that are not user input, which need no hash function that resists attacks.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with internal keys: ids of expressions, names of type parameters and functions.
pub(crate) type FnvMap<K, V> = HashMap<K, V, BuildHasherDefault<Fnv>>;

/// The Fowler-Noll-Vo hash (FNV-1a), one integer at a time.
pub(crate) struct Fnv(u64);

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Default for Fnv {
    fn default() -> Self {
        Self(OFFSET)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(PRIME);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // The map uses the highest bits, which the last bytes hardly affect.
        self.0.rotate_left(32) ^ self.0
    }
}
