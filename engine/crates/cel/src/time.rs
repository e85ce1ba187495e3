//! Timestamps and durations, with the ranges and the text forms of Go.

mod format;
mod timestamp;

pub use format::read_duration;
pub use kubemu_gostd::time::Duration;
pub(crate) use timestamp::Part;
pub use timestamp::Timestamp;
