//! Metrics and health.

pub(crate) mod health;
pub(crate) mod instruments;
pub mod metrics;
