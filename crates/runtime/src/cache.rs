//! The last state of objects that the API server sent: stores, what is kept of an object, and
//! which of our own writes a store does not show yet.

mod budget;
mod expectations;
mod informer;
mod packed;
mod projection;
mod shared_read;
mod store;

pub use budget::{
    Budget, MAX_OBJECTS, MAX_PAGES, Reservation, TooLarge, check_identifiers,
};
pub use expectations::{Expectation, Expectations, Version};
pub use informer::{Handler, Health, Informer, InformerSink, Task, WatchFailure};
pub use projection::{
    CacheProjection, FieldMask, LEAN, MetadataOnly, Projection, TOO_DEEP, TOO_MANY,
    WholeObject,
};
pub(crate) use projection::{MaskSeed, ValueLimit};
pub use shared_read::SharedReads;
pub use store::{Object, Part, Store};
