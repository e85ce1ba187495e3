//! Valid objects of every built-in kind, from which requests are made.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::record::Trouble;

/// A kind, and an object of it that both servers accept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The path of the collection; `$ns` stands for the namespace of the kind.
    pub path: String,
    /// Which of `status` and `scale` there are.
    #[serde(default)]
    pub subresources: Vec<String>,
    /// Whether a PUT has to name the version that it replaces.
    #[serde(default)]
    pub versioned: bool,
    /// The object without name and namespace. `$name` in its texts is the name of the object.
    pub object: Value,
    /// What is sent to `status`.
    #[serde(default)]
    pub status: Value,
}

impl Seed {
    /// The kind that its objects say they are of.
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    /// The namespace in which its objects are made; none for kinds of the cluster.
    pub fn namespace(&self) -> Option<String> {
        let plural = self.path.rsplit('/').next().unwrap_or_default();
        self.path
            .contains("$ns")
            .then(|| format!("differential-{plural}"))
    }

    /// The path of the collection in its namespace.
    pub fn collection(&self) -> String {
        match self.namespace() {
            Some(namespace) => self.path.replace("$ns", &namespace),
            None => self.path.clone(),
        }
    }
}

/// Every seed of the list.
///
/// # Errors
/// The file cannot be read as one.
pub fn read() -> Result<Vec<Seed>, Trouble> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("differential/seeds.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}
