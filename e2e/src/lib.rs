//! One file per promise under `tests/`; what they share is in `fivespot-testkit`, and what
//! compares the embedded server with a real one in [`record`] and [`differential`].

pub mod differential;
pub mod record;
