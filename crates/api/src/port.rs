//! The ports on which the pods of 5-Spot listen.

/// The port of `/metrics`.
pub const METRICS: u16 = 8080;

/// The port of `/healthz` and `/readyz`.
pub const HEALTH: u16 = 8081;

/// The port of the webhook, for API servers.
pub const WEBHOOK: u16 = 9443;
