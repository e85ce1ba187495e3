//! The last state of objects that the API server sent: stores, what is kept of an object, and
//! which of our own writes a store does not show yet.

mod budget;
mod expectations;
mod fill;
mod informer;
mod packed;
mod projection;
mod shared_read;
mod store;

pub use budget::{Budget, MOST_OBJECTS, Reserved, TooLarge};
pub use expectations::{Expectation, Expectations, Version};
pub use fill::{Fill, Handler};
pub use informer::{Health, Informer, Task, WatchFailure};
pub use projection::{
    Cached, FieldMask, LEAN, MetadataOnly, Projection, TOO_DEEP, Whole,
};
pub use shared_read::SharedReads;
pub use store::{Object, Part, Store};
