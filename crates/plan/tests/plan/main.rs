//! Tests of the planner in a simulation: an API server, a Cluster API and a Node of a few
//! lines each.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic in the simulated world fails the test"
)]

mod auditing;
mod capacity_search;
mod capacity_verdict;
mod chance;
mod classes;
mod crash;
mod foreign_objects;
mod hosts;
mod jitter;
mod last_call;
mod law;
mod limits;
mod problems;
mod providers;
mod rates;
mod reclaiming;
mod reporting;
mod returning;
mod scenario;
mod schedule_inputs;
mod sets;
mod shutdown;
mod simulation;
mod stalled;
mod steps;
mod table;
mod taints;
mod usage;
mod write_counts;
