//! Fuzzes the code that parses untrusted bytes, and checks properties of the results.
//!
//! [`TARGETS`] are the functions that are fuzzed. A [`FuzzRun`] is a run with a seed, which
//! reproduces it.

mod corpus;
mod fuzz_run;
mod random;
mod target;

pub use fuzz_run::{Counts, Failure, FuzzRun};
pub use target::{TARGETS, Target};
