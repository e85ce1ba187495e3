//! Valid objects of every built-in kind, from which requests are made.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::record::BoxError;

/// A kind, and an object of it that both servers accept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The path of the collection. `$ns` represents the namespace of the kind.
    pub path: String,
    /// The existing subresources of `status` and `scale`.
    #[serde(default)]
    pub subresources: Vec<String>,
    /// Whether a PUT must contain the resourceVersion that it replaces.
    #[serde(default)]
    pub versioned: bool,
    /// Whether its objects have no name, because they are not stored.
    #[serde(default)]
    pub nameless: bool,
    /// Whether a controller writes the status soon after each write, with the generation that it
    /// has observed.
    #[serde(default)]
    pub observed: bool,
    /// Whether a controller writes the status soon after each write, with the limits of the quota.
    #[serde(default)]
    pub counted: bool,
    /// The object without name and namespace. `$name` in its texts is the name of the object.
    pub object: Value,
    /// The body of requests to `status`.
    #[serde(default)]
    pub status: Value,
}

impl Seed {
    /// The kind of its objects.
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    /// The namespace in which its objects are created. `None` for cluster-scoped kinds.
    pub fn namespace(&self) -> Option<String> {
        let plural = self.path.rsplit('/').next().unwrap_or_default();
        self.path
            .contains("$ns")
            .then(|| format!("differential-{plural}"))
    }
}

/// A request that both servers receive before the cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The method. POST by default.
    #[serde(default)]
    pub method: Option<Method>,
    /// The path.
    pub path: String,
    /// The body.
    #[serde(default)]
    pub object: Option<Value>,
    /// A condition that must be met before the next request is sent.
    #[serde(default)]
    pub until: Option<AwaitedResponse>,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Creates an object.
    Post,
    /// Replaces an object.
    Put,
    /// Deletes an object.
    Delete,
}

impl Method {
    /// The name of the method in HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// A request, and the status code that its response must have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwaitedResponse {
    /// The path.
    pub path: String,
    /// The body of a POST. Without it, the request is a GET.
    #[serde(default)]
    pub object: Option<Value>,
    /// The status code.
    pub code: u16,
}

/// The requests of the setup, in order.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn setup() -> Result<Vec<Setup>, BoxError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("server/setup.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// Reads all seeds.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn read() -> Result<Vec<Seed>, BoxError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("server/seeds.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}
