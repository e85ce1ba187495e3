//! The certificates of clients.

use std::sync::Arc;

use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;

/// The certificates that a client has presented, its own first: an extension of each of its
/// requests. They exist if the server's TLS configuration requests them, and have been verified
/// by it.
#[derive(Clone, Debug)]
pub struct ClientCertificates(pub Arc<[CertificateDer<'static>]>);

impl ClientCertificates {
    /// The certificates of a connection; `None` if the client has presented none.
    pub(crate) fn of(connection: &ServerConnection) -> Option<Self> {
        let certificates = connection.peer_certificates()?;
        Some(Self(
            certificates
                .iter()
                .cloned()
                .map(CertificateDer::into_owned)
                .collect(),
        ))
    }
}
