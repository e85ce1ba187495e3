//! The commands of `5spot`, run as a person runs them. They are one program because most of them
//! wait for a server: while one waits, another runs. The longest, of the book, is the first.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong in a test ends it"
)]

mod book;
mod calendar;
mod conformance;
mod data_dir;
mod dev;
mod forecast;
mod nights_and_weekends;
mod overriding;
mod program;
mod report;
mod server;
mod validate_tree;
