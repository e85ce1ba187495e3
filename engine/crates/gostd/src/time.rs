//! Durations, and dates and times without a zone, after Go's `time`.

mod duration;
mod layout;

pub use duration::Duration;
pub use layout::{Civil, DATE, LOCAL_TIME, Layout, out_of_range};
