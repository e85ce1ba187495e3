//! HTTP servers with or without TLS, with connection limits and graceful shutdown. The caller
//! returns the responses.

mod certificate;
mod connection_slot;
mod listen;
mod plain;
mod probe;
mod tls;

pub use certificate::ClientCertificates;
pub use connection_slot::Lifetimes;
pub use plain::Plain;
pub use probe::{Detail, ProbeResponse, serve_probes};
pub use tls::{Limits, Peer, Server};
