//! HTTP servers with or without TLS, with connection limits and graceful shutdown. The caller
//! returns the responses.

mod certificate;
mod listen;
mod place;
mod plain;
mod tls;

pub use certificate::ClientCertificates;
pub use place::Lifetimes;
pub use plain::Plain;
pub use tls::{Limits, Server};
