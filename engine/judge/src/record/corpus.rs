//! The requests, as data: one file per case, in a folder per area.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::BoxError;

/// Related requests, which are sent to a server one after the other.
///
/// In every text of a case, `$ns` represents the name of the namespace that is created for it.
/// `${id/pointer}` represents the value at the JSON pointer in the response to the request with
/// that `id`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The folder of the case.
    #[serde(skip)]
    pub area: String,
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// What the case is about, in a sentence.
    pub about: String,
    /// Objects that requests are made from: inline, or as the path of a file below the folder of the
    /// recordings.
    #[serde(default)]
    pub objects: BTreeMap<String, Value>,
    /// Requests that must succeed, and whose responses are not recorded.
    #[serde(default)]
    pub setup: Vec<Request>,
    /// The requests whose responses are recorded.
    pub steps: Vec<Request>,
}

/// One request, and what is recorded of its response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The method, a space, the path and the query.
    pub send: String,
    /// The name of the response in later requests and in the list of differences.
    #[serde(default)]
    pub id: String,
    /// The media type of the body: `json` (the default), `yaml`, `merge`, `json-patch`,
    /// `strategic`, `apply`, or one in full.
    #[serde(default, rename = "as")]
    pub media: String,
    /// Additional headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The name of the object of the case that the body is made from.
    #[serde(default, rename = "use")]
    pub base: String,
    /// The body, or a merge patch of the object in `use`.
    #[serde(default)]
    pub body: Option<Value>,
    /// The body as literal text.
    #[serde(default)]
    pub text: Option<String>,
    /// Patterns of the parts of the response's body that are recorded. All if it is empty.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Patterns of the parts that are dropped.
    #[serde(default)]
    pub drop: Vec<String>,
    /// The request is repeated until its response meets this condition.
    #[serde(default)]
    pub until: Option<ResponseCondition>,
    /// The request is a watch, and this many events are recorded.
    #[serde(default)]
    pub events: usize,
}

/// A condition on a response. All set fields must match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseCondition {
    /// The status code.
    pub code: Option<u16>,
    /// A JSON pointer at which there must be a value.
    pub at: Option<String>,
    /// The value that must be there.
    pub is: Option<Value>,
}

impl Case {
    /// The area and the name: `area/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }

    /// The value of `$ns`.
    pub fn namespace(&self) -> String {
        format!("{}-{}", self.area, self.name)
    }

    /// The object with this name.
    ///
    /// # Errors
    /// There is no such object, or its file cannot be read.
    pub fn object(&self, name: &str) -> Result<Value, BoxError> {
        let found = self.objects.get(name);
        let found = found.ok_or_else(|| format!("{}: no object {name}", self.key()))?;
        let Value::String(path) = found else {
            return Ok(found.clone());
        };
        let text = fs::read_to_string(super::folder().join(path))
            .map_err(|error| format!("{}: {path}: {error}", self.key()))?;
        Ok(serde_saphyr::from_str(&text)?)
    }
}

/// Reads every case below a folder, sorted by area and name.
///
/// # Errors
/// A file cannot be read as a case.
pub fn read(folder: &Path) -> Result<Vec<Case>, BoxError> {
    let mut cases = Vec::new();
    for area in sorted(folder)? {
        for path in sorted(&area)? {
            let text = fs::read_to_string(&path)?;
            let mut case: Case = serde_saphyr::from_str(&text)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            case.area = stem(&area);
            case.name = stem(&path);
            cases.push(case);
        }
    }
    Ok(cases)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, BoxError> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|it| it.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
