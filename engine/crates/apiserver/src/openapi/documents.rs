//! The OpenAPI documents of a registry.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{document, gnostic, swagger};
use crate::registry::Registry;

/// The OpenAPI documents of a registry: in v3 one for each group and version, in v2 one of all.
///
/// Generating them takes some milliseconds each; cache them until [`Registry::revision`]
/// changes.
#[derive(Clone, Debug)]
pub struct Documents {
    pub(super) all: BTreeMap<String, Document>,
    /// Only old clients ask for OpenAPI v2, so that it is generated for the first request.
    older: OnceLock<Bytes>,
    older_protobuf: OnceLock<Bytes>,
}

/// One encoded document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The hash of the text: the `hash` parameter of its URL and its entity tag.
    pub hash: String,
    /// JSON.
    pub text: String,
}

impl Documents {
    /// The documents of all resources in `registry`; `release` is the Kubernetes release to
    /// write into them, such as `v1.36.0`.
    pub fn new(registry: &Registry, release: &str) -> Self {
        let mut all = BTreeMap::new();
        for group in registry.groups() {
            for version in registry.versions(group) {
                let path = if group.is_empty() {
                    format!("api/{version}")
                } else {
                    format!("apis/{group}/{version}")
                };
                let value = document::of(registry, (group, version), release);
                let text = value.to_string();
                let hash = hash(&text);
                all.insert(path, Document { hash, text });
            }
        }
        Self {
            all,
            older: OnceLock::new(),
            older_protobuf: OnceLock::new(),
        }
    }

    /// The response to `/openapi/v3`: the URL of each document.
    pub fn index(&self) -> Value {
        let paths: serde_json::Map<_, _> = self
            .all
            .iter()
            .map(|(path, document)| {
                let hash = &document.hash;
                let url = format!("/openapi/v3/{path}?hash={hash}");
                (path.clone(), json!({"serverRelativeURL": url}))
            })
            .collect();
        json!({ "paths": paths })
    }

    /// The document at `/openapi/v3/<path>`, such as `api/v1` or `apis/policy/v1`.
    pub fn find(&self, path: &str) -> Option<&Document> {
        self.all.get(path)
    }

    /// The OpenAPI v2 document, as JSON. `registry` and `release` are those of the other
    /// documents.
    pub(crate) fn older(&self, registry: &Registry, release: &str) -> Bytes {
        let older = || swagger::of(registry, release).to_string().into();
        self.older.get_or_init(older).clone()
    }

    /// The OpenAPI v2 document, in protobuf.
    pub(crate) fn older_protobuf(&self, registry: &Registry, release: &str) -> Bytes {
        let older = || gnostic::encode(&swagger::of(registry, release)).into();
        self.older_protobuf.get_or_init(older).clone()
    }
}

/// The hash in upper case hexadecimal, as Kubernetes writes it.
fn hash(text: &str) -> String {
    let mut hash = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02X}");
    }
    hash
}
