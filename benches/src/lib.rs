//! Shared code of the programs that measure: requests with untyped JSON, and the audit log of the
//! requests.

mod audit;
mod test_namespace;

pub use audit::{Entry, Log};
pub use test_namespace::{TestNamespace, collection, send};
