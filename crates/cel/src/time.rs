//! Instants and spans of time, with the ranges and the text forms of Go.

mod duration;
mod layout;
mod timestamp;

pub use duration::Duration;
pub(crate) use timestamp::Part;
pub use timestamp::Timestamp;
