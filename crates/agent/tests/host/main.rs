//! Tests the agent with real processes, and with an API server.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod api_server;
mod away;
mod bus;
mod fake_proc;
mod line;
mod notify;
mod outage;
mod program;
mod reporting;
mod running;
mod times;
mod users;
