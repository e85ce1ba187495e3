//! Tests of the planner in a simulated world: an API server, a Cluster API and a Node of a few
//! lines each.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic in the simulated world fails the test"
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
