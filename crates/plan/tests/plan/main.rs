//! The planner against a toy world: an API server, a Cluster API and a node of a few lines each.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a toy world that breaks is a test that fails"
)]

mod chance;
mod crash;
mod last_call;
mod law;
mod others;
mod providers;
mod reclaiming;
mod reporting;
mod scenario;
mod schedule_inputs;
mod shutdown;
mod spending;
mod stalled;
mod table;
mod taints;
mod trouble;
mod world;
