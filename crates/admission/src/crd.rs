//! A `CustomResourceDefinition`: what keeps one from being registered, and what a
//! registered one says to objects of its kind.

use serde_json::Value;

use crate::object_meta::Scope;
use crate::schema::{Structural, Verdict};
use crate::{FieldError, KubeVersion};

/// A compiled `apiextensions.k8s.io/v1` `CustomResourceDefinition`.
#[derive(Debug)]
pub struct Crd {
    group: String,
    kind: String,
    plural: String,
    scope: Scope,
    versions: Vec<CustomResource>,
}

impl Crd {
    /// Compiles a `CustomResourceDefinition` as the API server of `version` does when it is
    /// created: names, versions, schemas and the validation rules in them.
    ///
    /// # Errors
    /// What the server would refuse it for, with paths that start at `spec` or `metadata`.
    pub fn compile(crd: &Value, version: KubeVersion) -> Result<Self, Vec<FieldError>> {
        let _ = (crd, version);
        Err(Vec::new())
    }

    /// The API group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The kind of its objects.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The plural name, as in URLs.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Whether its objects live in namespaces.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Every version, in the order of the definition.
    pub fn versions(&self) -> &[CustomResource] {
        &self.versions
    }

    /// The version called `name`, if it is served.
    pub fn served(&self, name: &str) -> Option<&CustomResource> {
        self.versions
            .iter()
            .find(|version| version.served && version.name == name)
    }
}

/// One version of a custom resource.
///
/// A write passes [`decode`](Self::decode), then the caller's mutating admission, then
/// [`create`](Self::create), [`update`](Self::update) or
/// [`update_status`](Self::update_status), then validating admission.
#[derive(Debug)]
pub struct CustomResource {
    name: String,
    served: bool,
    storage: bool,
    has_status: bool,
    schema: Structural,
}

impl CustomResource {
    /// The version's name, as `v1alpha1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the version is served.
    pub const fn is_served(&self) -> bool {
        self.served
    }

    /// Whether objects are stored in this version.
    pub const fn is_storage(&self) -> bool {
        self.storage
    }

    /// Whether the status is a resource of its own.
    pub const fn has_status(&self) -> bool {
        self.has_status
    }

    /// The structural schema.
    pub const fn schema(&self) -> &Structural {
        &self.schema
    }

    /// Turns what a client sent into what the server works on: unknown fields are removed,
    /// nulls that stand for absence too, defaults are filled in.
    ///
    /// Returns the paths of the unknown fields, sorted: the server refuses them when asked
    /// for `fieldValidation=Strict` (`strict decoding error: unknown field "spec.x"`) and
    /// warns about them for `Warn`.
    pub fn decode(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = self.schema.prune(object);
        self.schema.default(object);
        unknown.sort_unstable();
        unknown
    }

    /// Checks an object about to be created.
    pub fn create(&self, object: &Value) -> Verdict {
        self.schema.validate(object, None)
    }

    /// Checks an object about to replace `old`. What did not change is not refused again,
    /// except by rules that look at `oldSelf`.
    pub fn update(&self, object: &Value, old: &Value) -> Verdict {
        self.schema.validate(object, Some(old))
    }

    /// Checks an object whose status is about to replace that of `old`: only the status
    /// part of the schema applies, but rules run as in an update.
    pub fn update_status(&self, object: &Value, old: &Value) -> Verdict {
        self.schema.validate(object, Some(old))
    }
}
