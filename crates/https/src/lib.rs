//! Servers behind a socket: TLS or none, limits, an orderly end. What is answered is their
//! caller's.

mod certificate;
mod listen;
mod place;
mod plain;
mod tls;

pub use certificate::ClientCertificates;
pub use place::Lifetimes;
pub use plain::Plain;
pub use tls::{Limits, Server};
