//! How an API server with the rendered CRD and policy admits ScheduledMachines.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy takes the functions beside the tests of an integration test for no test code"
)]

// Each module tests one aspect of the same judge.
mod admission {
    mod bounds;
    mod cost;
    mod document;
    mod examples;
    mod judge;
    mod layers;
    mod params;
    mod shadow;
    mod shape;
    mod updates;
}
