//! What the programs that measure have in common: requests as they are, without a type for each
//! kind, and the audit log of the requests.

mod audit;
mod stage;

pub use audit::{Entry, Log};
pub use stage::{Stage, collection, send};
