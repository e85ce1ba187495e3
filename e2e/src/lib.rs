//! One file per promise under `tests/`; what they share is in `fivespot-testkit`.
