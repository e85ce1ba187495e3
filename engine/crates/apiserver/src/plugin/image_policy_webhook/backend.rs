//! The kubeconfig of the image policy backend.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::plugin::pod::{list, text};
use crate::webhook_client::{Credentials, Endpoint};

/// The endpoint of a kubeconfig's current context, or of its only cluster and user.
///
/// # Errors
/// A file that cannot be read, a cluster without an `https` server, and kubeconfig fields that are
/// not supported here.
pub(super) fn endpoint(path: &Path) -> Result<Endpoint, String> {
    let content = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let config: Value =
        serde_saphyr::from_str(&content).map_err(|error| error.to_string())?;
    let context = named(&config, "contexts", text(&config, "current-context"));
    let context = context.map_or(&Value::Null, |it| &it["context"]);
    let folder = path.parent().unwrap_or(Path::new(""));
    let cluster = named(&config, "clusters", text(context, "cluster"));
    let cluster = cluster.ok_or("the current context has no cluster")?;
    let cluster = Fields {
        value: &cluster["cluster"],
        folder,
    };
    let known = [
        "server",
        "certificate-authority",
        "certificate-authority-data",
    ];
    cluster.only(&known)?;
    let server = text(cluster.value, "server");
    if !server.starts_with("https://") {
        return Err(format!("server {server:?} does not begin with https://"));
    }
    let bundle = cluster.bytes("certificate-authority")?;
    let mut endpoint = Endpoint::at(server, bundle)?;
    if let Some(user) = named(&config, "users", text(context, "user")) {
        let user = Fields {
            value: &user["user"],
            folder,
        };
        let known = [
            "client-certificate",
            "client-certificate-data",
            "client-key",
            "client-key-data",
            "token",
        ];
        user.only(&known)?;
        endpoint.credentials = Credentials {
            certificate: user.bytes("client-certificate")?,
            key: user.bytes("client-key")?,
            token: text(user.value, "token").to_owned(),
        };
    }
    Ok(endpoint)
}

/// The entry with that name, or the only entry if the name is empty.
fn named<'a>(config: &'a Value, field: &str, name: &str) -> Option<&'a Value> {
    match list(config, field) {
        [only] if name.is_empty() => Some(only),
        all => all.iter().find(|it| it["name"] == name),
    }
}

/// A cluster or a user of a kubeconfig.
struct Fields<'a> {
    value: &'a Value,
    /// The directory that paths are relative to.
    folder: &'a Path,
}

impl Fields<'_> {
    fn only(&self, known: &[&str]) -> Result<(), String> {
        let mut all = self.value.as_object().into_iter().flatten();
        match all.find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(format!("{name:?} is not supported")),
            None => Ok(()),
        }
    }

    /// The base64 data or the file of a field; empty if neither is set.
    fn bytes(&self, field: &str) -> Result<Vec<u8>, String> {
        let data = format!("{field}-data");
        if let Some(encoded) = self.value[&data].as_str() {
            let decoded = STANDARD.decode(encoded);
            return decoded.map_err(|error| format!("{data}: {error}"));
        }
        match self.value[field].as_str() {
            None => Ok(Vec::new()),
            Some(path) => fs::read(self.folder.join(path))
                .map_err(|error| format!("{field}: {path}: {error}")),
        }
    }
}
