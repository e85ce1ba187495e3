//! Fuzzes the code that parses untrusted bytes, and checks properties of the results.
//!
//! [`TARGETS`] are the functions that are fuzzed. A [`FuzzRun`] is a run with a seed, which
//! reproduces it, and [`program`] the command line for these targets and those of other crates.

mod corpus;
mod fuzz_run;
pub mod program;
mod random;
mod target;

pub use fuzz_run::{Counts, Failure, FuzzRun};
pub use target::{TARGETS, Target};
