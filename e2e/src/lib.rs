//! There is one file per promise under `tests/`. Their shared code is in `fivespot-testkit`. The
//! comparison of the embedded server with a real one is in [`record`] and [`differential`].

pub mod differential;
pub mod record;
