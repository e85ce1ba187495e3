//! Shared code of the programs that measure: an API server, requests with untyped JSON, the audit
//! log of the requests, and what a program is.

mod api_server;
mod audit;
mod program;
mod test_namespace;

pub use api_server::ApiServer;
pub use audit::{Entry, Log};
pub use program::{BoxError, cpu_time, peak_memory, run};
pub use test_namespace::{TestNamespace, collection, send};
