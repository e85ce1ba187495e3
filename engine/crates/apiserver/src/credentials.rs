//! Credentials of a listening server: a serving certificate with its own certificate
//! authority, a token, and client certificates.
//!
//! Client certificates have a CA of their own: that of the serving certificate signs nothing else.
//! A certificate of another CA is rejected in the handshake, where Kubernetes would continue
//! without it: a client that sends one intends to use it.

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
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};

use crate::identity::key::{KeyError, TokenKey};
use crate::storage::write_private;
use crate::user::{MASTERS, User};

/// Why credentials could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system returned no randomness.
    #[error("the operating system returned no randomness for the access token")]
    Random,
    /// The library rejected a key or certificate that it should make.
    #[error("the serving certificate could not be created")]
    Certificate(#[from] rcgen::Error),
    /// The operating system returned no randomness for the key that signs tokens, or the key
    /// is invalid.
    #[error(transparent)]
    TokenKey(#[from] KeyError),
    /// The credentials file cannot be read or written.
    #[error("{path} cannot be read or written")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The credentials file does not contain credentials.
    #[error("{0} does not contain credentials; remove it to create new ones")]
    Damaged(PathBuf),
    /// The TLS library rejected the serving certificate.
    #[error("the serving certificate could not be used")]
    Tls(#[from] rustls::Error),
    /// The TLS library rejected the certificate authority of client certificates.
    #[error("the certificate authority of client certificates could not be used")]
    Clients(#[from] VerifierBuilderError),
}

/// A certificate for `localhost` and the loopback addresses, the certificate authority that
/// signed it, the administrator's token and certificate, the authority that signs client
/// certificates, and the key that signs service account tokens.
#[derive(Clone)]
pub struct Credentials {
    secrets: Secrets,
    token_key: TokenKey,
    tls: Arc<ServerConfig>,
}

/// What must be stored so that the same clients are accepted again; binary parts in base64.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Secrets {
    token: String,
    authority: String,
    certificate: String,
    key: String,
    token_key: String,
    /// Absent in files that were written before client certificates existed.
    client: Option<ClientSecrets>,
}

/// The certificate authority of client certificates, and the administrator's certificate.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientSecrets {
    authority: String,
    authority_key: String,
    certificate: String,
    key: String,
}

impl ClientSecrets {
    fn generate() -> Result<Self, Error> {
        let authority_key = KeyPair::generate()?;
        let authority = authority(CLIENT_AUTHORITY)?.self_signed(&authority_key)?;
        let mut secrets = Self {
            authority: STANDARD.encode(authority.der()),
            authority_key: STANDARD.encode(authority_key.serialize_der()),
            certificate: String::new(),
            key: String::new(),
        };
        let admin = User::admin();
        let issued = secrets.issue(&admin.name, Some(MASTERS))?;
        (secrets.certificate, secrets.key) = (issued.certificate, issued.key);
        Ok(secrets)
    }

    fn issue(&self, name: &str, group: Option<&str>) -> Result<ClientCertificate, Error> {
        let unreadable = |_| rcgen::Error::CouldNotParseKeyPair;
        let key = STANDARD.decode(&self.authority_key).map_err(unreadable)?;
        let authority_key = KeyPair::try_from(key)?;
        let issuer = Issuer::new(authority(CLIENT_AUTHORITY)?, authority_key);
        let key = KeyPair::generate()?;
        let certificate = client(name, group)?.signed_by(&key, &issuer)?;
        Ok(ClientCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// A client certificate and its key; PEM.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientCertificate {
    /// The certificate, which contains the user name.
    pub certificate: String,
    /// The private key of the certificate.
    pub key: String,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}

/// The name of the credentials file.
const FILE: &str = "credentials.json";

impl Credentials {
    /// Generates a certificate, a token of 256 random bits and a key, only in memory.
    ///
    /// # Errors
    /// The operating system returns no randomness, or the certificate cannot be made.
    pub fn generate() -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut secret = [0; 32];
        provider
            .secure_random
            .fill(&mut secret)
            .map_err(|_| Error::Random)?;
        let authority_key = KeyPair::generate()?;
        let authority = authority("embedded-apiserver-ca")?;
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
            client: Some(ClientSecrets::generate()?),
        };
        let tls = Arc::new(tls(&secrets)?);
        Ok(Self {
            secrets,
            token_key,
            tls,
        })
    }

    /// Reads the credentials in a directory; generates and writes them if there are none. Only
    /// the owner can read the file.
    ///
    /// # Errors
    /// The file cannot be read or written, or does not contain credentials.
    pub fn load_or_generate(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let failed = |source| Error::File {
            path: path.clone(),
            source,
        };
        let store = |created: &Self| {
            let text = serde_json::to_vec(&created.secrets);
            let text = text.map_err(|error| failed(error.into()))?;
            write_private(&path, &text).map_err(failed)
        };
        let damaged = || Error::Damaged(path.clone());
        match fs::read(&path) {
            Ok(text) => {
                let mut secrets: Secrets =
                    serde_json::from_slice(&text).map_err(|_| damaged())?;
                let is_whole = secrets.client.is_some();
                if !is_whole {
                    secrets.client = Some(ClientSecrets::generate()?);
                }
                let read = Self::read(secrets).ok_or_else(damaged)?;
                if !is_whole {
                    store(&read)?;
                }
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let created = Self::generate()?;
                store(&created)?;
                Ok(created)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn read(secrets: Secrets) -> Option<Self> {
        let token_key = STANDARD.decode(&secrets.token_key).ok()?;
        Some(Self {
            token_key: TokenKey::from_pkcs8(&token_key).ok()?,
            tls: Arc::new(tls(&secrets).ok()?),
            secrets,
        })
    }

    /// Issues a client certificate for the user `name`, in `group` if it is given and, like
    /// every authenticated user, in `system:authenticated`.
    ///
    /// # Errors
    /// A name that a certificate cannot contain, or no randomness from the operating system.
    pub fn issue(
        &self,
        name: &str,
        group: Option<&str>,
    ) -> Result<ClientCertificate, Error> {
        match &self.secrets.client {
            Some(client) => client.issue(name, group),
            None => Err(Error::Certificate(rcgen::Error::CouldNotParseKeyPair)),
        }
    }

    /// The key that signs service account tokens.
    pub fn token_key(&self) -> TokenKey {
        self.token_key.clone()
    }

    /// The bearer token of the administrator.
    pub fn token(&self) -> &str {
        &self.secrets.token
    }

    /// The certificate of the authority, with which clients verify the server; PEM.
    pub fn authority_pem(&self) -> &str {
        &self.secrets.authority
    }

    /// The certificate of the authority that signs client certificates; PEM. `None` if none are
    /// accepted.
    pub fn client_authority_pem(&self) -> Option<String> {
        let der = &self.secrets.client.as_ref()?.authority;
        let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
        for (index, letter) in der.chars().enumerate() {
            if index > 0 && index.is_multiple_of(64) {
                text.push('\n');
            }
            text.push(letter);
        }
        text.push_str("\n-----END CERTIFICATE-----\n");
        Some(text)
    }

    pub(crate) fn tls(&self) -> Arc<ServerConfig> {
        self.tls.clone()
    }

    /// Whether `token` is the bearer token. Takes the same time for every wrong token.
    pub(crate) fn accepts(&self, token: &str) -> bool {
        // Digests have equal length and reveal nothing about where the texts differ.
        let expected = Sha256::digest(self.secrets.token.as_bytes());
        let given = Sha256::digest(token.as_bytes());
        let differences = expected
            .iter()
            .zip(given.iter())
            .fold(0, |all, (a, b)| all | (a ^ b));
        differences == 0
    }

    /// A kubeconfig for the server at `address`, with the administrator's token and
    /// certificate. It grants full access, so write it to a file that only its owner can read.
    pub fn kubeconfig(&self, address: SocketAddr, name: &str) -> String {
        let token = format!("\x20   token: {}\n", self.secrets.token);
        let user = format!("{token}{}", self.certificate_lines());
        self.kubeconfig_of((address, name), &user)
    }

    /// A kubeconfig with the certificate only, as Cluster API providers write those of
    /// workload clusters; some of their clients use nothing else.
    pub fn certificate_kubeconfig(&self, address: SocketAddr, name: &str) -> String {
        self.kubeconfig_of((address, name), &self.certificate_lines())
    }

    fn certificate_lines(&self) -> String {
        let client = self.secrets.client.as_ref();
        client.map_or_else(String::new, |client| {
            format!(
                "\x20   client-certificate-data: {}\n\
                 \x20   client-key-data: {}\n",
                STANDARD.encode(&client.certificate),
                STANDARD.encode(&client.key)
            )
        })
    }

    fn kubeconfig_of(&self, (address, name): (SocketAddr, &str), user: &str) -> String {
        let authority = STANDARD.encode(&self.secrets.authority);
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
             {user}\
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

/// The TLS configuration of the server. A client certificate is optional; it is verified if
/// the client sends one.
fn tls(secrets: &Secrets) -> Result<ServerConfig, Error> {
    let unreadable = |_| rustls::Error::General("a certificate is not base64".to_owned());
    let bytes = |text: &str| STANDARD.decode(text).map_err(unreadable);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut clients = RootCertStore::empty();
    if let Some(client) = &secrets.client {
        clients.add(bytes(&client.authority)?.into())?;
    }
    let clients = Arc::new(clients);
    let clients = WebPkiClientVerifier::builder_with_provider(clients, provider.clone());
    let clients = clients.allow_unauthenticated().build()?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes(&secrets.key)?));
    let certificate = CertificateDer::from(bytes(&secrets.certificate)?);
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

const CLIENT_AUTHORITY: &str = "embedded-apiserver-client-ca";

fn authority(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn client(name: &str, group: Option<&str>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if let Some(group) = group {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
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
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_authority_of_client_certificates_is_the_one_that_the_server_verifies_with() {
        let credentials = Credentials::generate().expect("credentials");
        let text = credentials.client_authority_pem().expect("an authority");
        assert!(text.lines().all(|it| it.len() <= 64), "{text}");
        let read = CertificateDer::from_pem_slice(text.as_bytes()).expect("PEM");
        let client = credentials.secrets.client.expect("an authority");
        assert_eq!(STANDARD.encode(read), client.authority);
    }

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
    fn debug_output_contains_no_secret() {
        let credentials = Credentials::generate().unwrap();
        assert!(!format!("{credentials:?}").contains(credentials.token()));
    }
}
