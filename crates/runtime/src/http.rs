//! Requests to API servers. Responses are bounded in time and in size, and are read object by
//! object.

mod chunks;
mod client;
mod connect;
pub mod error;
mod local;
mod outage;

pub use chunks::MAX_OBJECT_BYTES;
pub use client::{
    Address, ApiClient, Deletion, EventStream, Exchange, ExchangeObserver, Page,
    PatchFormat, WatchEvent, is_segment,
};
pub use connect::{Connection, client};
pub use local::{is_local, is_local_host};
pub use outage::Outage;
