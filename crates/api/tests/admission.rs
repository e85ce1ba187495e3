//! How an API server with the rendered CRD and policy admits ScheduledMachines.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy takes the functions beside the tests of an integration test for no test code"
)]

// Each module tests one aspect of the same evaluator.
mod admission {
    mod bounds;
    mod cost;
    mod document;
    mod evaluator;
    mod examples;
    mod layers;
    mod params;
    mod shadow;
    mod shape;
    mod updates;
}
