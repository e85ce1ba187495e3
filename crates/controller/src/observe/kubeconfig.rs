//! Strict parsing of kubeconfigs: only those are accepted that do nothing but connect to an https
//! server.
//!
//! The author of a kubeconfig Secret must gain no privilege by it: no program is started (`exec`,
//! auth providers), no file of the operator is read, no user is impersonated, no proxy is used,
//! and the server's certificate is verified. Fields that are not listed here are rejected instead
//! of ignored.

mod pem;

use std::collections::BTreeMap;
use std::fmt;

use http::Uri;
use kube::config::AuthInfo;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

pub use fivespot_runtime::http::is_local_host;

/// The largest kubeconfig that is read, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// Why a kubeconfig was rejected. The messages never contain a value from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kubeconfig is larger than [`MAX_BYTES`].
    #[error("the kubeconfig has {0} bytes; at most {MAX_BYTES} are accepted")]
    TooLarge(usize),
    /// The input is no kubeconfig.
    #[error("the kubeconfig cannot be read; it must be YAML or JSON of kind Config")]
    Malformed,
    /// A required field or section is missing.
    #[error("the kubeconfig has no {0}; add it")]
    Missing(&'static str),
    /// A field that is never accepted, or that is unknown.
    #[error("{0} is not accepted in a kubeconfig Secret; remove it")]
    Forbidden(String),
    /// A field is present but cannot be used.
    #[error("{field} {why}")]
    Unusable {
        /// The field.
        field: &'static str,
        /// What is wrong, and what the field must be.
        why: &'static str,
    },
}

/// What a kubeconfig's `server` may be besides an https URL of another host. By default nothing:
/// the author of the Secret then cannot make the operator connect to a path of his choice or to a
/// service on the operator's own host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// A path, as in the URLs of management servers in front of several clusters.
    pub path: bool,
    /// A loopback, link-local or cloud metadata address, or a name that resolves to one.
    pub local: bool,
}

/// An accepted kubeconfig: an https server, the authorities for its certificate, and one
/// credential. The `Debug` form shows no credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    server: Uri,
    server_name: Option<String>,
    allows_local: bool,
    authorities: Vec<Vec<u8>>,
    credential: Credential,
}

#[derive(Clone, PartialEq, Eq)]
enum Credential {
    Token(String),
    /// Both base64 of PEM, as in the kubeconfig.
    Certificate {
        certificate: String,
        key: String,
    },
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credential = match self.credential {
            Credential::Token(_) => "token",
            Credential::Certificate { .. } => "client certificate",
        };
        formatter
            .debug_struct("Access")
            .field("server", &self.server)
            .field("server_name", &self.server_name)
            .field("credential", &credential)
            .finish_non_exhaustive()
    }
}

impl Access {
    /// Parses a kubeconfig strictly: its current context, and that context's cluster and user.
    ///
    /// # Example
    /// ```
    /// use fivespot_controller::kubeconfig::{Access, Allowed, Error};
    /// let refused = Access::parse(br#"{
    ///     "current-context": "c",
    ///     "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    ///     "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1:6443"}}],
    ///     "users": [{"name": "u", "user": {"exec": {"command": "sh"}}}]
    /// }"#, Allowed::default());
    /// assert_eq!(refused, Err(Error::Forbidden("user.exec".to_owned())));
    /// ```
    ///
    /// # Errors
    /// The first thing found that is not accepted; see [`Error`].
    pub fn parse(bytes: &[u8], allowed: Allowed) -> Result<Self, Error> {
        if bytes.len() > MAX_BYTES {
            return Err(Error::TooLarge(bytes.len()));
        }
        let file: File = serde_saphyr::from_slice(bytes).map_err(|_| Error::Malformed)?;
        let context = file.context()?;
        let cluster = named(&file.clusters, &context.cluster)
            .and_then(|named| named.cluster.as_ref())
            .ok_or(Error::Missing("cluster of the current context"))?;
        let user = named(&file.users, &context.user)
            .and_then(|named| named.user.as_ref())
            .ok_or(Error::Missing("user of the current context"))?;
        // The user first, so that a field that would run a program is reported before any other.
        let credential = user.credential()?;
        cluster.refuse_unknown()?;
        Ok(Self {
            server: cluster.server(allowed)?,
            server_name: cluster.tls_server_name.clone(),
            allows_local: allowed.local,
            authorities: cluster.authorities()?,
            credential,
        })
    }

    /// The server's URL, always https.
    pub fn server(&self) -> &Uri {
        &self.server
    }

    /// The name that the server's certificate must have, if it is not the host's.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Whether the server may have a loopback, link-local or cloud metadata address.
    pub(crate) fn allows_local(&self) -> bool {
        self.allows_local
    }

    /// The certificate authorities for the server, in DER; at least one.
    pub fn authorities(&self) -> &[Vec<u8>] {
        &self.authorities
    }

    /// The credential as kube's `AuthInfo`.
    pub fn auth_info(&self) -> AuthInfo {
        let mut info = AuthInfo::default();
        match &self.credential {
            Credential::Token(token) => info.token = Some(token.clone().into()),
            Credential::Certificate { certificate, key } => {
                info.client_certificate_data = Some(certificate.clone());
                info.client_key_data = Some(key.clone().into());
            }
        }
        info
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "current-context", default)]
    current_context: Option<String>,
    #[serde(default)]
    contexts: Vec<Named>,
    #[serde(default)]
    clusters: Vec<Named>,
    #[serde(default)]
    users: Vec<Named>,
}

impl File {
    fn context(&self) -> Result<&Context, Error> {
        let name = self
            .current_context
            .as_ref()
            .filter(|name| !name.is_empty())
            .ok_or(Error::Missing("current-context"))?;
        named(&self.contexts, name)
            .and_then(|named| named.context.as_ref())
            .ok_or(Error::Missing("context of that name"))
    }
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    context: Option<Context>,
    #[serde(default)]
    cluster: Option<Cluster>,
    #[serde(default)]
    user: Option<User>,
}

fn named<'a>(all: &'a [Named], name: &str) -> Option<&'a Named> {
    all.iter().find(|named| named.name == name)
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    certificate_authority_data: Option<String>,
    #[serde(default)]
    tls_server_name: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    /// Only controls how responses are compressed.
    #[serde(default, rename = "disable-compression")]
    _disable_compression: IgnoredAny,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

impl Cluster {
    fn refuse_unknown(&self) -> Result<(), Error> {
        if self.insecure_skip_tls_verify {
            return Err(forbidden("cluster", "insecure-skip-tls-verify"));
        }
        match self.unknown.keys().next() {
            Some(field) => Err(forbidden("cluster", field)),
            None => Ok(()),
        }
    }

    fn server(&self, allowed: Allowed) -> Result<Uri, Error> {
        let unusable = |why| Error::Unusable {
            field: "cluster.server",
            why,
        };
        let server = self.server.as_deref();
        let server = server.ok_or(Error::Missing("cluster.server"))?;
        let server: Uri = server.parse().map_err(|_| unusable("is not a URL"))?;
        if server.scheme_str() != Some("https") {
            return Err(unusable("must be an https URL"));
        }
        let authority = server
            .authority()
            .map_or("", |authority| authority.as_str());
        if authority.is_empty() || authority.contains('@') {
            return Err(unusable("must name a host, without a user"));
        }
        if server.query().is_some() {
            return Err(unusable("must not have a query"));
        }
        if !allowed.path && server.path() != "/" {
            return Err(unusable(
                "must not have a path; the operator allows one with \
                 --allow-workload-server-path",
            ));
        }
        if !allowed.local && server.host().is_some_and(is_local_host) {
            return Err(unusable(
                "must not be a loopback, link-local or metadata address; the operator allows one with \
                 --allow-loopback-workload-server",
            ));
        }
        Ok(server)
    }

    fn authorities(&self) -> Result<Vec<Vec<u8>>, Error> {
        let field = "cluster.certificate-authority-data";
        let data = self.certificate_authority_data.as_deref();
        let data = data.ok_or(Error::Missing(field))?;
        pem::certificates(data).ok_or(Error::Unusable {
            field,
            why: "must be base64 of at least one PEM certificate",
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    client_certificate_data: Option<String>,
    #[serde(default)]
    client_key_data: Option<String>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

impl User {
    fn credential(&self) -> Result<Credential, Error> {
        if let Some(field) = self.unknown.keys().next() {
            return Err(forbidden("user", field));
        }
        let certificate = present(self.client_certificate_data.as_ref());
        let key = present(self.client_key_data.as_ref());
        match (present(self.token.as_ref()), certificate, key) {
            (None, Some(certificate), Some(key)) => certificate_of(certificate, key),
            (Some(token), None, None) => token_of(token),
            (Some(_), _, _) => Err(Error::Unusable {
                field: "user",
                why: "must have either a token or a client certificate and key",
            }),
            (None, Some(_), None) => Err(Error::Missing("user.client-key-data")),
            (None, None, Some(_)) => Err(Error::Missing("user.client-certificate-data")),
            (None, None, None) => Err(Error::Missing("credential in user")),
        }
    }
}

fn certificate_of(certificate: &str, key: &str) -> Result<Credential, Error> {
    if pem::certificates(certificate).is_none() {
        return Err(Error::Unusable {
            field: "user.client-certificate-data",
            why: "must be base64 of a PEM certificate",
        });
    }
    if !pem::is_private_key(key) {
        return Err(Error::Unusable {
            field: "user.client-key-data",
            why: "must be base64 of a PEM private key",
        });
    }
    Ok(Credential::Certificate {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    })
}

fn token_of(token: &str) -> Result<Credential, Error> {
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Unusable {
            field: "user.token",
            why: "must be printable ASCII without spaces",
        });
    }
    Ok(Credential::Token(token.to_owned()))
}

fn present(field: Option<&String>) -> Option<&str> {
    field.map(String::as_str).filter(|value| !value.is_empty())
}

fn forbidden(part: &str, field: &str) -> Error {
    // The field's name is text of the Secret's author: shown, but bounded and without control
    // characters.
    let field: String = field
        .chars()
        .filter(|letter| !letter.is_control())
        .take(64)
        .collect();
    Error::Forbidden(format!("{part}.{field}"))
}

#[cfg(test)]
pub(crate) mod tests;
