//! Documents that are served in addition to resources: version, health, discovery, OpenAPI.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kubemu_admission::KubeVersion;
use serde_json::json;

use crate::api_response::{ApiResponse, Content};
use crate::call::Call;
use crate::discovery::{self, Form};
use crate::identity::TokenKey;
use crate::identity::claim::ISSUER;
use crate::meta;
use crate::metrics::Metrics;
use crate::openapi::Documents;
use crate::registry::Registry;
use crate::route;
use crate::status::Status;

/// The documents of a server; those that are expensive to generate are cached.
#[derive(Debug)]
pub(crate) struct DocumentCache {
    kube: KubeVersion,
    keys: TokenKey,
    schemas: Mutex<Option<(u64, Arc<Documents>)>>,
    /// The counters of the page `/metrics`.
    pub(crate) metrics: Metrics,
}

impl DocumentCache {
    pub(crate) fn new(kube: KubeVersion, keys: TokenKey, now: Timestamp) -> Self {
        Self {
            kube,
            keys,
            schemas: Mutex::new(None),
            metrics: Metrics::new(now),
        }
    }

    /// A cache of its own with the documents of this one, and counters that start at zero.
    pub(crate) fn fork(&self, now: Timestamp) -> Self {
        let schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            kube: self.kube,
            keys: self.keys.clone(),
            schemas: Mutex::new(schemas.clone()),
            metrics: Metrics::new(now),
        }
    }

    /// The document at the path of a request; 404 if there is none.
    pub(crate) fn find(&self, registry: &Registry, call: &Call) -> ApiResponse {
        let parts: Vec<&str> = call.path.split('/').filter(|it| !it.is_empty()).collect();
        let form = Form::accepted(&call.accept);
        let found = match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => return health(call, &parts),
            ["metrics"] => return self.metrics.page(&self.release()),
            ["metrics", "slis"] => return Metrics::health(),
            ["version"] => Some((Form::Plain, self.version())),
            [] => Some((Form::Plain, paths(registry))),
            ["api"] => Some((form, discovery::api(registry, form, "127.0.0.1"))),
            ["apis"] => Some((form, discovery::apis(registry, form))),
            ["api", version] => plain(discovery::version(registry, "", version)),
            ["apis", group] => plain(discovery::group(registry, group)),
            ["apis", group, version] => {
                plain(discovery::version(registry, group, version))
            }
            [".well-known", "openid-configuration"] => Some((Form::Plain, issuer())),
            ["openid", "v1", "jwks"] => return self.published_keys(),
            ["openapi", "v2"] => return self.older_schema(registry, call),
            ["openapi", "v3", path @ ..] => {
                return self.schema(registry, &path.join("/"));
            }
            _ => None,
        };
        let Some((form, value)) = found else {
            if let Some(target) = route::without_subresource(registry, &call.path) {
                return Status::not_found(&target.resource, &target.name).into();
            }
            // Below a built-in group the 404 is that of a missing resource, elsewhere that of
            // a missing page.
            let group = match parts.as_slice() {
                ["api", _, ..] => "",
                ["apis", group, _, ..] => group,
                _ => return ApiResponse::not_found(),
            };
            let mut all = registry.all();
            return if all.any(|it| !it.custom && it.group == *group) {
                Status::no_such_resource().into()
            } else {
                ApiResponse::not_found()
            };
        };
        if call.method != http::Method::GET && call.method != http::Method::HEAD {
            return Status::method_not_allowed().into();
        }
        let content_type = form.content_type().to_owned();
        ApiResponse::new(
            200,
            Content::Document {
                content_type,
                body: meta::json(&value),
            },
        )
    }

    /// The keys with which clients verify service account tokens.
    fn published_keys(&self) -> ApiResponse {
        match self.keys.published() {
            Ok(keys) => ApiResponse::new(
                200,
                Content::Document {
                    content_type: "application/jwk-set+json".to_owned(),
                    body: meta::json(&keys),
                },
            ),
            Err(error) => Status::internal(error).into(),
        }
    }

    fn release(&self) -> String {
        format!("v{}.0", self.kube)
    }

    fn version(&self) -> serde_json::Value {
        json!({
            "major": "1",
            "minor": self.kube.minor().to_string(),
            "gitVersion": format!("{}+5spot", self.release()),
            "gitCommit": "",
            "gitTreeState": "clean",
            "emulationMajor": "1",
            "emulationMinor": self.kube.minor().to_string(),
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": (self.kube.minor() - 1).to_string(),
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        })
    }

    fn schema(&self, registry: &Registry, path: &str) -> ApiResponse {
        let documents = self.documents(registry);
        let body = if path.is_empty() {
            Some(meta::json(&documents.index()))
        } else {
            documents.find(path).map(|it| it.text.clone().into())
        };
        let Some(body) = body else {
            return ApiResponse::not_found();
        };
        // A real server lets the HTTP library detect the content type of the index.
        let content_type = if path.is_empty() {
            "text/plain; charset=utf-8"
        } else {
            "application/json"
        };
        let content_type = content_type.to_owned();
        ApiResponse::new(200, Content::Document { content_type, body })
    }

    /// The OpenAPI v2 document in the form that the client accepts.
    fn older_schema(&self, registry: &Registry, call: &Call) -> ApiResponse {
        let documents = self.documents(registry);
        let release = self.release();
        let protobuf = [OPENAPI_V2, OPENAPI_V2_SENT];
        let (content_type, body) = if protobuf.iter().any(|it| call.accept.contains(it)) {
            (
                OPENAPI_V2_SENT,
                documents.older_protobuf(registry, &release),
            )
        } else {
            ("application/json", documents.older(registry, &release))
        };
        let content_type = content_type.to_owned();
        ApiResponse::new(200, Content::Document { content_type, body })
    }

    fn documents(&self, registry: &Registry) -> Arc<Documents> {
        let mut cached = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((revision, documents)) if *revision == registry.revision() => {
                documents.clone()
            }
            _ => {
                let documents = Arc::new(Documents::new(registry, &self.release()));
                *cached = Some((registry.revision(), documents.clone()));
                documents
            }
        }
    }
}

/// The media types of OpenAPI v2 in protobuf: in the `Accept` header, and in the response.
const OPENAPI_V2: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const OPENAPI_V2_SENT: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

fn issuer() -> serde_json::Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

fn plain(found: Option<serde_json::Value>) -> Option<(Form, serde_json::Value)> {
    found.map(|value| (Form::Plain, value))
}

fn health(call: &Call, parts: &[&str]) -> ApiResponse {
    match parts {
        [name] if call.query.verbose => {
            ApiResponse::text(200, &format!("[+]ping ok\n{name} check passed\n"))
        }
        [_] | [_, "ping"] => ApiResponse::text(200, "ok"),
        _ => ApiResponse::not_found(),
    }
}

/// The response to `/readyz` when the storage has failed, with the name that the check has in
/// Kubernetes; `None` for any other path.
pub(crate) fn not_ready(path: &str) -> Option<ApiResponse> {
    let text = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n";
    (path.trim_matches('/') == "readyz").then(|| ApiResponse::text(500, text))
}

fn paths(registry: &Registry) -> serde_json::Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for group in registry.groups() {
        for version in registry.versions(group) {
            if group.is_empty() {
                paths.push(format!("/api/{version}"));
            } else {
                paths.push(format!("/apis/{group}/{version}"));
            }
        }
    }
    let rest = [
        "/healthz",
        "/livez",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ];
    paths.extend(rest.map(str::to_owned));
    json!({ "paths": paths })
}
