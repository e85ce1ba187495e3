//! Metrics, health, and the ports that serve them.

pub(crate) mod health;
pub(crate) mod instruments;
pub mod metrics;
pub(crate) mod ports;
