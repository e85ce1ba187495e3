//! Timestamps and durations, with the ranges and the text forms of Go.

mod format;
mod timestamp;

pub use fivespot_gostd::time::Duration;
pub use format::read_duration;
pub(crate) use timestamp::Part;
pub use timestamp::Timestamp;
