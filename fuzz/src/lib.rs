//! Feeds what reads strangers' bytes with what nobody has written on purpose, and checks laws
//! on what comes out.
//!
//! [`TARGETS`] says what is fed, [`Hunt`] how: from a seed, which runs the same run again.

mod corpus;
mod hunt;
mod random;
mod target;

pub use hunt::{Found, Hunt, Tally};
pub use target::{TARGETS, Target};
