//! What the API server last said about objects: stores, what is kept of an object, and which of
//! our own writes a store has yet to show.

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
pub use informer::{Health, Informer, Task, Trouble};
pub use projection::{
    Cached, FieldMask, LEAN, MetadataOnly, Projection, TOO_DEEP, Whole,
};
pub use shared_read::Shared;
pub use store::{Object, Part, Store};
