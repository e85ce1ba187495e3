//! Shared code of the programs that measure: requests with untyped JSON, and the audit log of the
//! requests.

mod audit;
mod stage;

pub use audit::{Entry, Log};
pub use stage::{Stage, collection, send};
