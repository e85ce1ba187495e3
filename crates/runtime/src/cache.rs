//! What the API server last said about objects: stores, what is kept of an object, and which of
//! our own writes a store has yet to show.

mod budget;
mod fill;
mod informer;
mod packed;
mod projection;
mod shared_read;
mod store;
mod writes;

pub use budget::{Budget, MOST_OBJECTS, Reserved, TooLarge};
pub use fill::{Fill, Handler};
pub use informer::{Health, Informer, Task, Trouble};
pub use projection::{Cached, Keep, LEAN, MetadataOnly, Projection, TOO_DEEP, Whole};
pub use shared_read::Shared;
pub use store::{Object, Part, Store};
pub use writes::{Ledger, Version, Written};
