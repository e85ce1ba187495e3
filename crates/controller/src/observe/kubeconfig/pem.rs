//! Parses base64 of PEM.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificates, in DER and in order. `None` unless every section can be parsed and there is
/// at least one certificate.
pub(super) fn certificates(base64: &str) -> Option<Vec<Vec<u8>>> {
    let pem = decode(base64)?;
    let certificates: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(&pem)
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect::<Result<_, _>>()
        .ok()?;
    (!certificates.is_empty()).then_some(certificates)
}

/// Whether it contains a private key.
pub(super) fn is_private_key(base64: &str) -> bool {
    decode(base64).is_some_and(|pem| PrivateKeyDer::from_pem_slice(&pem).is_ok())
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    let compact: String = base64.split_ascii_whitespace().collect();
    STANDARD.decode(compact).ok()
}
