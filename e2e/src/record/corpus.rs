//! The requests, as data: one file per case, in a folder per area.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::Trouble;

/// Requests that belong together, put to a server one after the other.
///
/// In every text of a case `$ns` stands for the name of the namespace that is made for it;
/// `${id/pointer}` for what the answer to the request with that `id` has at the JSON pointer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The folder it is in.
    #[serde(skip)]
    pub area: String,
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// What it is about, in a sentence.
    pub about: String,
    /// Objects that requests are made from: themselves, or the path of a file below the
    /// root of the source tree.
    #[serde(default)]
    pub objects: BTreeMap<String, Value>,
    /// Requests that must succeed, and whose answers are not kept.
    #[serde(default)]
    pub setup: Vec<Request>,
    /// The requests whose answers are kept.
    pub steps: Vec<Request>,
}

/// One request, and what is kept of its answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Method, a space, path and query.
    pub send: String,
    /// By this the answer is called in later requests and in the list of differences.
    #[serde(default)]
    pub id: String,
    /// The media type of the body: `json` (the default), `yaml`, `merge`, `json-patch`,
    /// `strategic`, `apply`, or one in full.
    #[serde(default, rename = "as")]
    pub media: String,
    /// Headers beside those that follow from the rest.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The object of the case that the body is made from.
    #[serde(default, rename = "use")]
    pub base: String,
    /// The body, or what is changed of `use`, as a merge patch.
    #[serde(default)]
    pub body: Option<Value>,
    /// The body as it is.
    #[serde(default)]
    pub text: Option<String>,
    /// Patterns of what is kept of the answer's body; everything if there is none.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Patterns of what is dropped from it.
    #[serde(default)]
    pub drop: Vec<String>,
    /// The request is repeated until its answer is so.
    #[serde(default)]
    pub until: Option<Until>,
    /// The request is a watch, and this many events are kept.
    #[serde(default)]
    pub events: usize,
}

/// What an answer must be like; everything said must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The status code.
    pub code: Option<u16>,
    /// A JSON pointer at which there must be something.
    pub at: Option<String>,
    /// What must be there.
    pub is: Option<Value>,
}

impl Case {
    /// The area and the name: `area/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }

    /// What `$ns` stands for.
    pub fn namespace(&self) -> String {
        format!("{}-{}", self.area, self.name)
    }

    /// The object of that name.
    ///
    /// # Errors
    /// There is none, or its file cannot be read.
    pub fn object(&self, name: &str) -> Result<Value, Trouble> {
        let found = self.objects.get(name);
        let found = found.ok_or_else(|| format!("{}: no object {name}", self.key()))?;
        let Value::String(path) = found else {
            return Ok(found.clone());
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = fs::read_to_string(root.join(path))
            .map_err(|error| format!("{}: {path}: {error}", self.key()))?;
        Ok(serde_saphyr::from_str(&text)?)
    }
}

/// Every case below a folder, in the order of areas and names.
///
/// # Errors
/// A file cannot be read as a case.
pub fn read(folder: &Path) -> Result<Vec<Case>, Trouble> {
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

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Trouble> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|it| it.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
