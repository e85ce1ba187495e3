//! Builders, fixed instants and an in-process cluster for tests.
