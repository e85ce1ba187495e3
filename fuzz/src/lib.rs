//! Fuzzes the code that parses untrusted bytes, and checks properties of the results.
//!
//! [`TARGETS`] are the functions that are fuzzed. A [`Hunt`] is a run with a seed, which reproduces
//! it.

mod corpus;
mod hunt;
mod random;
mod target;

pub use hunt::{Found, Hunt, Tally};
pub use target::{TARGETS, Target};
