//! The parts common to all objects: metadata, owners, and references to other objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{Error, key};

/// The metadata of an object that an API server returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Name.
    pub name: String,
    /// Namespace, empty for a cluster-scoped object.
    pub namespace: String,
    /// Uid; an object with another uid is a different one, even under the same name.
    pub uid: String,
    /// The opaque version that is the precondition of a write.
    pub resource_version: String,
    /// Whether a deletion timestamp is set.
    pub is_deleting: bool,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The finalizers that remain.
    pub finalizers: Vec<String>,
    /// Owner references.
    pub owners: Vec<Owner>,
}

/// One owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// Whether it is the one owner that controls the object.
    pub is_controller: bool,
}

/// A reference to an object in the same namespace.
///
/// v1beta1 has group and version, v1beta2 only the group; the version is then any that is served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// API group, empty for the core group.
    pub group: String,
    /// Version, if the reference has one.
    pub version: Option<String>,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl Meta {
    /// Reads the metadata of a stored object.
    ///
    /// # Errors
    /// [`Error::Missing`] without name or uid.
    pub fn read(object: &Value) -> Result<Self, Error> {
        let meta = &object["metadata"];
        let required = |field: &'static str, path: &'static str| {
            text(&meta[field]).ok_or_else(|| Error::Missing {
                kind: text(&object["kind"]).unwrap_or_else(|| "object".to_owned()),
                field: path,
            })
        };
        Ok(Self {
            name: required("name", "metadata.name")?,
            namespace: text(&meta["namespace"]).unwrap_or_default(),
            uid: required("uid", "metadata.uid")?,
            resource_version: text(&meta["resourceVersion"]).unwrap_or_default(),
            is_deleting: text(&meta["deletionTimestamp"]).is_some(),
            labels: strings(&meta["labels"]),
            annotations: strings(&meta["annotations"]),
            finalizers: items(&meta["finalizers"]).filter_map(text).collect(),
            owners: items(&meta["ownerReferences"]).map(Owner::read).collect(),
        })
    }

    /// Whether the object has the paused annotation.
    pub fn is_paused(&self) -> bool {
        self.annotations.contains_key(key::PAUSED)
    }

    /// The controller reference, if there is one.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.is_controller)
    }

    /// Whether an owner reference has that uid.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner.uid == uid)
    }
}

impl Owner {
    fn read(reference: &Value) -> Self {
        let field = |name: &str| text(&reference[name]).unwrap_or_default();
        Self {
            api_version: field("apiVersion"),
            kind: field("kind"),
            name: field("name"),
            uid: field("uid"),
            is_controller: reference["controller"] == Value::Bool(true),
        }
    }

    /// Whether the owner is a Machine of Cluster API, of any version.
    pub fn is_machine(&self) -> bool {
        self.kind == "Machine"
            && split_api_version(&self.api_version).0 == crate::version::GROUP
    }
}

impl Reference {
    /// A reference by `apiVersion`, kind and name.
    ///
    /// # Example
    /// ```
    /// use fivespot_capi::Reference;
    /// let node = Reference::new("v1", "Node", "n1");
    /// assert_eq!((node.group.as_str(), node.version.as_deref()), ("", Some("v1")));
    /// ```
    pub fn new(api_version: &str, kind: &str, name: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self {
            group: group.to_owned(),
            version: (!version.is_empty()).then(|| version.to_owned()),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Reads either form. `None` without a kind or a name.
    pub(crate) fn read(reference: &Value) -> Option<Self> {
        let kind = text(&reference["kind"])?;
        let name = text(&reference["name"])?;
        match text(&reference["apiGroup"]) {
            Some(group) => Some(Self {
                group,
                version: None,
                kind,
                name,
            }),
            None => Some(Self::new(&text(&reference["apiVersion"])?, &kind, &name)),
        }
    }

    /// Whether both refer to the same object, whatever versions they name.
    pub fn is_same_object(&self, other: &Self) -> bool {
        (&self.group, &self.kind, &self.name) == (&other.group, &other.kind, &other.name)
    }

    /// Group and version in the form of `apiVersion`. `None` without a version.
    pub fn api_version(&self) -> Option<String> {
        let version = self.version.as_deref()?;
        Some(match self.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        })
    }
}

/// Splits `group/version`; the core group is empty.
fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// A string that is not empty.
pub(crate) fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The items of a list; none if the value is no list.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A map of strings; other values are omitted.
fn strings(value: &Value) -> BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flat_map(Map::iter);
    entries
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
