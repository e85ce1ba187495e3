//! The certificate in use. It can be exchanged at any time: open connections keep the one that
//! they began with, the next handshake uses the new one.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem};

/// The most certificates of one chain.
const MAX_CHAIN_LENGTH: usize = 10;

/// Why a certificate cannot be used. Contains nothing of the key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of the chain is not PEM.
    #[error("the certificate is not PEM: {0}")]
    Chain(pem::Error),
    /// It contains no certificate, or too many.
    #[error("expected 1 to {MAX_CHAIN_LENGTH} certificates, found {0}")]
    Length(usize),
    /// The text of the key is not PEM, or contains no private key.
    #[error("the private key is not PEM: {0}")]
    Key(pem::Error),
    /// The key is of an unknown type, or does not match the certificate.
    #[error("the certificate and its key do not match or are not supported: {0}")]
    Pair(#[from] rustls::Error),
}

/// The certificate in use, empty at first. Clones share it.
#[derive(Clone)]
pub struct Certificate {
    provider: Arc<CryptoProvider>,
    used: Arc<RwLock<Option<Arc<CertifiedKey>>>>,
}

impl Default for Certificate {
    fn default() -> Self {
        Self {
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            used: Arc::default(),
        }
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate")
    }
}

impl Certificate {
    /// Uses a chain and its key, both PEM, from the next handshake on.
    ///
    /// # Errors
    /// They cannot be used; the current ones stay in use.
    pub fn exchange(&self, chain: &[u8], key: &[u8]) -> Result<(), Error> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain)
            .take(MAX_CHAIN_LENGTH + 1)
            .collect();
        let chain = chain.map_err(Error::Chain)?;
        if chain.is_empty() || chain.len() > MAX_CHAIN_LENGTH {
            return Err(Error::Length(chain.len()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(Error::Key)?;
        let pair = CertifiedKey::from_der(chain, key, &self.provider)?;
        *self.used.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(pair));
        Ok(())
    }

    /// Whether there is a certificate.
    pub fn is_set(&self) -> bool {
        self.current().is_some()
    }

    fn current(&self) -> Option<Arc<CertifiedKey>> {
        let used = self.used.read();
        used.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The TLS configuration: TLS 1.2 and 1.3, with the certificate that is in use at the
    /// handshake.
    pub(crate) fn tls(&self) -> Result<ServerConfig, rustls::Error> {
        let mut tls = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(tls)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}
