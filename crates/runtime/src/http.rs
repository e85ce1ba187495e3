//! Requests to API servers. Responses are bounded in time and in size, and are read object by
//! object.

mod chunks;
mod client;
mod connect;
pub mod error;
mod local;
mod outage;
mod uri;

pub use chunks::LARGEST_OBJECT;
pub use client::{Address, ApiClient, Change, Events, Page, is_segment};
pub use connect::{Connection, client};
pub use local::{is_local, is_local_host};
pub use outage::{Outage, noted};
pub use uri::{is_page, is_watch};
