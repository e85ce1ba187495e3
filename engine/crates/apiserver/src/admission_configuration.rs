//! `--admission-control-config-file`: an `AdmissionConfiguration` with the configurations of
//! plugins (k8s.io/apiserver/pkg/admission/config.go).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The error of a plugin configuration that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A file is invalid.
    #[error("{}: {why}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The error, with the invalid field.
        why: String,
    },
}

const CONFIGURATION: Shape = Shape {
    kind: "AdmissionConfiguration",
    versions: &["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"],
    fields: &["plugins"],
};

/// The maximum size of a configuration file in bytes.
const MAX_FILE_SIZE: u64 = 3 * 1024 * 1024;

/// Reads an `AdmissionConfiguration`, YAML or JSON. Returns the plugin configurations by plugin
/// name, for [`Options::plugin_configurations`](crate::Options::plugin_configurations). A `path` in
/// it is relative to the file.
///
/// # Errors
/// A file that cannot be read, an unknown field, a duplicate plugin, and a plugin with both `path`
/// and `configuration`.
pub fn read_admission_configuration(
    path: &Path,
) -> Result<BTreeMap<String, Value>, ConfigurationError> {
    let file = read(path)?;
    let invalid = |why: String| ConfigurationError::Invalid {
        path: path.to_owned(),
        why,
    };
    let fields = Fields::read(&file, &CONFIGURATION).map_err(invalid)?;
    let mut configurations = BTreeMap::new();
    for plugin in fields.list("plugins").map_err(invalid)? {
        plugin
            .only(&["name", "path", "configuration"])
            .map_err(invalid)?;
        let name = plugin.text("name").map_err(invalid)?;
        let at = plugin.path();
        if name.is_empty() {
            return Err(invalid(format!("{at}.name: Required value")));
        }
        let place = plugin.text("path").map_err(invalid)?;
        let inline = plugin.get("configuration").filter(|it| !it.is_null());
        let configuration = match (place.as_str(), inline) {
            ("", None) => Value::Null,
            ("", Some(inline)) => inline.clone(),
            (place, None) => {
                let folder = path.parent().unwrap_or(Path::new(""));
                read(&folder.join(place))?
            }
            (_, Some(_)) => {
                let why = "path and configuration are mutually exclusive";
                return Err(invalid(format!("{at}: {why}")));
            }
        };
        if configurations.insert(name.clone(), configuration).is_some() {
            return Err(invalid(format!("{at}.name: Duplicate value: {name:?}")));
        }
    }
    Ok(configurations)
}

fn read(path: &Path) -> Result<Value, ConfigurationError> {
    let unreadable = |source| ConfigurationError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let invalid = |why: String| ConfigurationError::Invalid {
        path: path.to_owned(),
        why,
    };
    if fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_SIZE {
        return Err(invalid(format!("larger than {MAX_FILE_SIZE} bytes")));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    serde_saphyr::from_str(&text).map_err(|error| invalid(error.to_string()))
}

/// The kind, versions and fields of a plugin's configuration.
pub(crate) struct Shape {
    pub(crate) kind: &'static str,
    pub(crate) versions: &'static [&'static str],
    pub(crate) fields: &'static [&'static str],
}

/// An object of a configuration; unknown fields are rejected.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Fields<'a> {
    /// The fields of an object of one kind.
    ///
    /// # Errors
    /// Another kind or version, or an unknown field.
    pub(crate) fn read(value: &'a Value, shape: &Shape) -> Result<Self, String> {
        let fields = Self::plain(value, "")?;
        let (kind, version) = (fields.text("kind")?, fields.text("apiVersion")?);
        if kind != shape.kind
            && !(shape.kind.ends_with("Configuration") && kind == "Configuration")
        {
            return Err(format!(
                "kind: Unsupported value: {kind:?}: must be {:?}",
                shape.kind
            ));
        }
        if !shape.versions.contains(&version.as_str()) {
            let known = shape.versions.join(", ");
            return Err(format!(
                "apiVersion: Unsupported value: {version:?}: supported values: {known}"
            ));
        }
        let mut known = vec!["kind", "apiVersion"];
        known.extend(shape.fields);
        fields.only(&known)?;
        Ok(fields)
    }

    /// The fields of an object without a kind.
    ///
    /// # Errors
    /// The value is not an object.
    pub(crate) fn plain(value: &'a Value, path: &str) -> Result<Self, String> {
        if !value.is_object() {
            let at = if path.is_empty() {
                "configuration"
            } else {
                path
            };
            return Err(format!("{at}: must be an object"));
        }
        Ok(Self {
            value,
            path: path.to_owned(),
        })
    }

    /// Rejects fields that are not in `known`.
    ///
    /// # Errors
    /// The first unknown field.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), String> {
        let mut all = self.value.as_object().into_iter().flatten();
        match all.find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(format!("unknown field {:?}", self.at(name))),
            None => Ok(()),
        }
    }

    /// The path of the object in the document.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|it| !it.is_null())
    }

    /// The fields of an object in a field; `None` if absent.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Self>, String> {
        let found = self.get(name);
        found.map(|it| Self::plain(it, &self.at(name))).transpose()
    }

    /// A string; empty if absent.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        match self.get(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(format!("{}: must be a string", self.at(name))),
        }
    }

    /// A number; `None` if absent.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let number = value.as_i64();
        let why = || format!("{}: must be an integer", self.at(name));
        number.map(Some).ok_or_else(why)
    }

    /// The items of a list; empty if absent.
    pub(crate) fn values(&self, name: &str) -> Result<Vec<Value>, String> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(_) => Err(format!("{}: must be a list", self.at(name))),
        }
    }

    /// The strings of a list; empty if absent.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let items = self.values(name)?.into_iter().enumerate();
        let texts = items.map(|(index, it)| match it {
            Value::String(text) => Ok(text),
            _ => Err(format!("{}[{index}]: must be a string", self.at(name))),
        });
        texts.collect()
    }

    /// The objects of a list; empty if absent.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<Self>, String> {
        let items = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(format!("{}: must be a list", self.at(name))),
        };
        let items = items.iter().enumerate();
        items
            .map(|(index, it)| Self::plain(it, &format!("{}[{index}]", self.at(name))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn error_text(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "config.yaml", text);
        let error = read_admission_configuration(&path).unwrap_err().to_string();
        error.rsplit_once("config.yaml: ").unwrap().1.to_owned()
    }

    /// The example of the admission-controllers document.
    #[test]
    fn configurations_are_read_from_other_files_or_inline() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            "events.yaml",
            "kind: Configuration\nlimits: []\n",
        );
        let path = write(
            folder.path(),
            "config.yaml",
            "kind: AdmissionConfiguration\napiVersion: apiserver.k8s.io/v1alpha1\nplugins:\n\
             - name: EventRateLimit\n  path: events.yaml\n- name: PodSecurity\n  \
             configuration: {kind: PodSecurityConfiguration}\n- name: Priority\n",
        );
        let found = read_admission_configuration(&path).unwrap();
        assert_eq!(found["EventRateLimit"]["limits"], serde_json::json!([]));
        assert_eq!(found["PodSecurity"]["kind"], "PodSecurityConfiguration");
        assert_eq!(found["Priority"], Value::Null);
    }

    #[test]
    fn invalid_configurations_are_rejected_with_the_field() {
        let head =
            "kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n";
        let rows = [
            (format!("{head}plugin: []\n"), "unknown field \"plugin\""),
            (
                format!("{head}plugins:\n- name: A\n  file: b\n"),
                "unknown field \"plugins[0].file\"",
            ),
            (
                format!("{head}plugins:\n- path: b\n"),
                "plugins[0].name: Required value",
            ),
            (
                format!("{head}plugins:\n- name: A\n- name: A\n"),
                "plugins[1].name: Duplicate value: \"A\"",
            ),
            (
                format!("{head}plugins:\n- name: A\n  path: b\n  configuration: {{}}\n"),
                "plugins[0]: path and configuration are mutually exclusive",
            ),
            (
                "kind: Other\napiVersion: apiserver.config.k8s.io/v1\n".to_owned(),
                "kind: Unsupported value: \"Other\": must be \"AdmissionConfiguration\"",
            ),
            (
                "kind: AdmissionConfiguration\napiVersion: v9\n".to_owned(),
                "apiVersion: Unsupported value: \"v9\": supported values: \
                 apiserver.config.k8s.io/v1, apiserver.k8s.io/v1alpha1",
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(error_text(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_missing_file_is_reported_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none.yaml");
        let error = read_admission_configuration(&path).unwrap_err().to_string();
        assert!(error.contains("none.yaml: No such file"), "{error}");
    }
}
