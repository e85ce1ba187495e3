//! What clients show of themselves.

use std::sync::Arc;

use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;

/// The certificates that a client has shown, its own first: an extension of each of its requests.
/// They are there where the server's TLS configuration asks for them, and have been verified
/// by it.
#[derive(Clone, Debug)]
pub struct ClientCertificates(pub Arc<[CertificateDer<'static>]>);

impl ClientCertificates {
    /// Those of a connection; none where the client has shown none.
    pub(crate) fn of(connection: &ServerConnection) -> Option<Self> {
        let shown = connection.peer_certificates()?;
        Some(Self(
            shown
                .iter()
                .cloned()
                .map(CertificateDer::into_owned)
                .collect(),
        ))
    }
}
