//! How decisions are carried out: actions and their requests, what waits after a failure, and
//! what may be written from caches.

pub mod action;
pub(crate) mod backoff;
pub(crate) mod from_cache;
pub mod memory;
pub(crate) mod repeat;
pub(crate) mod write;
