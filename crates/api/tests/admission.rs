//! What an API server answers to ScheduledMachines under the rendered CRD and policy.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy takes the functions beside the tests of an integration test for no test code"
)]

// Each module is one aspect of the same judge.
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
