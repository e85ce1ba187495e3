//! Which certificates of webhooks are trusted: those that Go's `x509.Verify` trusts.

use rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::identity::certificate;

/// Verifies the certificates of servers with those of a bundle.
#[derive(Debug)]
pub(super) struct Verifier {
    bundle: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// # Errors
    /// The bundle contains what cannot be a trust anchor.
    pub(super) fn new(
        bundle: Vec<CertificateDer<'static>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &bundle {
            let added = roots.add(certificate.clone());
            added.map_err(|error| error.to_string())?;
        }
        Ok(Self {
            bundle,
            roots,
            algorithms,
        })
    }
}

impl ServerCertVerifier for Verifier {
    /// A certificate of the bundle itself needs no chain: `openssl req -x509` makes a CA
    /// certificate that serves as both, and webpki refuses a CA certificate of a server.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let chain = verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        );
        if let Err(refused) = chain {
            if !self.bundle.contains(end_entity) || !is_about_the_chain(&refused) {
                return Err(refused);
            }
            if !certificate::is_for_servers(end_entity) {
                return Err(CertificateError::InvalidPurpose.into());
            }
        }
        verify_server_name(&parsed, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether a certificate was refused for its place in a chain. webpki has then checked its time,
/// which it does first, but not its name.
fn is_about_the_chain(refused: &Error) -> bool {
    match refused {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(CertificateError::Other(OtherError(other))) => {
            other.to_string() == "CaUsedAsEndEntity"
        }
        _ => false,
    }
}

/// The message of Go's TLS for a refused connection, as far as it has the same reasons.
pub(super) fn message(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    let Some(Error::InvalidCertificate(why)) = inner else {
        return format!("tls: {error}");
    };
    let why = match why {
        CertificateError::UnknownIssuer => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::InvalidPurpose
        | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        CertificateError::Other(OtherError(other))
            if other.to_string() == "CaUsedAsEndEntity" =>
        {
            "certificate signed by unknown authority".to_owned()
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}
