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
    /// Whether its objects have no name, because they are not stored.
    #[serde(default)]
    pub nameless: bool,
    /// Whether a controller writes the status soon after each write, with the generation that it
    /// has observed.
    #[serde(default)]
    pub observed: bool,
    /// Whether a controller writes the status soon after each write, with the limits that it counts
    /// against.
    #[serde(default)]
    pub counted: bool,
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
}

/// Something that both servers get before the cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// What is asked for, a POST unless it is said.
    #[serde(default)]
    pub method: Option<Method>,
    /// Where.
    pub path: String,
    /// What is sent.
    #[serde(default)]
    pub object: Option<Value>,
    /// What has to be answered before the next is sent.
    #[serde(default)]
    pub until: Option<Until>,
}

/// How a server is asked.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Makes an object.
    Post,
    /// Writes one.
    Put,
    /// Removes one.
    Delete,
}

impl Method {
    /// As it is said in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// A request, and the code that is to be answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Where.
    pub path: String,
    /// What is sent with POST; it is read if there is nothing.
    #[serde(default)]
    pub object: Option<Value>,
    /// The code.
    pub code: u16,
}

/// What both servers get, in this order.
///
/// # Errors
/// The file cannot be read as a list of such.
pub fn setup() -> Result<Vec<Setup>, Trouble> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("differential/setup.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
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
