//! What protects a listening server: a certificate of its own authority and a token.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};

use crate::identity::{KeyError, TokenKey};
use crate::storage::write_private;

/// Why credentials could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system gave no randomness.
    #[error("the system gave no randomness for the access token")]
    Random,
    /// A key or certificate was refused by the library that makes it.
    #[error("the serving certificate could not be made")]
    Certificate(#[from] rcgen::Error),
    /// The system gave no randomness for the key that signs tokens, or it is none.
    #[error(transparent)]
    TokenKey(#[from] KeyError),
    /// The file that they are kept in cannot be read or written.
    #[error("{path} cannot be read or written")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file that they are kept in holds something else.
    #[error("{0} does not hold credentials; remove it and new ones are made")]
    Damaged(PathBuf),
    /// The certificate was refused by the library that serves it.
    #[error("the serving certificate could not be used")]
    Tls(#[from] rustls::Error),
}

/// A certificate for `localhost` and the loopback addresses, the authority that signed it,
/// the administrator's token, and the key that signs the tokens of service accounts.
#[derive(Clone)]
pub struct Credentials {
    secrets: Secrets,
    token_key: TokenKey,
    tls: Arc<ServerConfig>,
}

/// What has to be kept for the same clients to be let in again; binary parts in base64.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Secrets {
    token: String,
    authority: String,
    certificate: String,
    key: String,
    token_key: String,
}

/// The file that they are kept in.
const FILE: &str = "credentials.json";

impl Credentials {
    /// Makes a certificate, a token of 256 random bits and a key, in memory alone.
    ///
    /// # Errors
    /// When the system has no randomness, or the certificate cannot be made.
    pub fn generate() -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut secret = [0; 32];
        provider
            .secure_random
            .fill(&mut secret)
            .map_err(|_| Error::Random)?;
        let authority_key = KeyPair::generate()?;
        let authority = authority()?;
        let authority_pem = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate()?;
        let certificate = serving()?.signed_by(&key, &issuer)?;
        let token_key = TokenKey::generate()?;
        let secrets = Secrets {
            token: URL_SAFE_NO_PAD.encode(secret),
            authority: authority_pem,
            certificate: STANDARD.encode(certificate.der()),
            key: STANDARD.encode(key.serialize_der()),
            token_key: STANDARD.encode(token_key.pkcs8()?),
        };
        let der = (certificate.der().clone(), key.serialize_der());
        Ok(Self {
            secrets,
            token_key,
            tls: Arc::new(tls(provider, der)?),
        })
    }

    /// Those that a directory keeps, made and put there if there are none. The file is for
    /// its owner alone.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds something else.
    pub fn kept_in(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let failed = |source| Error::File {
            path: path.clone(),
            source,
        };
        match fs::read(&path) {
            Ok(text) => Self::read(&text).ok_or_else(|| Error::Damaged(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = Self::generate()?;
                let text = serde_json::to_vec(&made.secrets);
                let text = text.map_err(|error| failed(error.into()))?;
                write_private(&path, &text).map_err(failed)?;
                Ok(made)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn read(text: &[u8]) -> Option<Self> {
        let secrets: Secrets = serde_json::from_slice(text).ok()?;
        let bytes = |text: &str| STANDARD.decode(text).ok();
        let certificate = CertificateDer::from(bytes(&secrets.certificate)?);
        let der = (certificate, bytes(&secrets.key)?);
        let token_key = TokenKey::from_pkcs8(&bytes(&secrets.token_key)?).ok()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Some(Self {
            token_key,
            tls: Arc::new(tls(provider, der).ok()?),
            secrets,
        })
    }

    /// The key that signs the tokens of service accounts.
    pub fn token_key(&self) -> TokenKey {
        self.token_key.clone()
    }

    /// The token that clients have to send.
    pub fn token(&self) -> &str {
        &self.secrets.token
    }

    /// The certificate of the authority, for clients to check the server against; PEM.
    pub fn authority_pem(&self) -> &str {
        &self.secrets.authority
    }

    pub(crate) fn tls(&self) -> Arc<ServerConfig> {
        self.tls.clone()
    }

    /// Whether `token` is the right one. Takes as long for every wrong one.
    pub(crate) fn accepts(&self, token: &str) -> bool {
        // Digests are of one length and tell nothing about where texts begin to differ.
        let wanted = Sha256::digest(self.secrets.token.as_bytes());
        let given = Sha256::digest(token.as_bytes());
        let differences = wanted
            .iter()
            .zip(given.iter())
            .fold(0, |all, (a, b)| all | (a ^ b));
        differences == 0
    }

    /// A kubeconfig for the server at `address`. It grants everything and so belongs into
    /// a file that only its owner can read.
    pub fn kubeconfig(&self, address: SocketAddr, name: &str) -> String {
        let authority = STANDARD.encode(&self.secrets.authority);
        let token = &self.secrets.token;
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {name}\n\
             \x20 cluster:\n\
             \x20   server: https://{address}\n\
             \x20   certificate-authority-data: {authority}\n\
             users:\n\
             - name: {name}-admin\n\
             \x20 user:\n\
             \x20   token: {token}\n\
             contexts:\n\
             - name: {name}\n\
             \x20 context:\n\
             \x20   cluster: {name}\n\
             \x20   user: {name}-admin\n\
             current-context: {name}\n"
        )
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

fn tls(
    provider: Arc<CryptoProvider>,
    (certificate, key): (CertificateDer<'static>, Vec<u8>),
) -> Result<ServerConfig, rustls::Error> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

fn authority() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "embedded-apiserver-ca");
    Ok(params)
}

fn serving() -> Result<CertificateParams, rcgen::Error> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = CertificateParams::new(names)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
        .distinguished_name
        .push(DnType::CommonName, "embedded-apiserver");
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_token_is_accepted() {
        let credentials = Credentials::generate().unwrap();
        let token = credentials.token().to_owned();
        assert!(credentials.accepts(&token));
        assert!(!credentials.accepts(""));
        assert!(!credentials.accepts(&token[1..]));
        assert!(!credentials.accepts(&format!("{token}x")));
        assert!(!Credentials::generate().unwrap().accepts(&token));
    }

    #[test]
    fn a_debug_print_shows_no_secret() {
        let credentials = Credentials::generate().unwrap();
        assert!(!format!("{credentials:?}").contains(credentials.token()));
    }
}
