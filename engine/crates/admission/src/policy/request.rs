//! Admission requests.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates an object.
    Create,
    /// Updates an object.
    Update,
    /// Deletes an object.
    Delete,
    /// Connects to an object, such as `exec`.
    Connect,
}

impl Operation {
    /// The name in a request: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Group, version and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupVersionKind<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl GroupVersionKind<'_> {
    fn json(self) -> Value {
        json!({"group": self.group, "version": self.version, "kind": self.kind})
    }

    /// `<group>/<version>`, or the version alone in the core group.
    pub fn api_version(self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Group, version and plural name of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupVersionResource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The plural name.
    pub resource: &'a str,
}

impl GroupVersionResource<'_> {
    fn json(self) -> Value {
        json!({"group": self.group, "version": self.version, "resource": self.resource})
    }
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: String,
    /// The uid; empty if not set.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An admission request. Create it with [`new`](Self::new) or [`create`](Self::create), then
/// set the fields that differ.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The operation.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: GroupVersionKind<'a>,
    /// The resource in the URL.
    pub resource: GroupVersionResource<'a>,
    /// The same resource in its other served versions. If a policy with `matchPolicy:
    /// Equivalent` names one of them, its object is converted with
    /// [`Resolver::converted`](super::Resolver::converted).
    pub equivalents: &'a [(GroupVersionResource<'a>, GroupVersionKind<'a>)],
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for a cluster-scoped object. For a request for a `Namespace`, its
    /// own name.
    pub namespace: &'a str,
    /// The name; empty if the API server will generate it.
    pub name: &'a str,
    /// The new object; `None` for a deletion.
    pub object: Option<&'a Value>,
    /// The old object; `None` for a creation.
    pub old_object: Option<&'a Value>,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub options: Option<&'a Value>,
    /// The user.
    pub user: &'a User,
    /// Whether the request is a dry run, which is not persisted.
    pub dry_run: bool,
    /// The `Namespace` object of [`namespace`](Self::namespace). If it is absent, the namespace
    /// is assumed to have only the label that every namespace has.
    pub namespace_object: Option<&'a Value>,
}

/// A user without attributes.
static EMPTY_USER: User = User {
    name: String::new(),
    uid: String::new(),
    groups: Vec::new(),
    extra: BTreeMap::new(),
};

impl<'a> Request<'a> {
    /// An operation on the resource with this plural, in the group and version of the kind, by
    /// a user without attributes; all other fields are empty. Cannot fail.
    pub fn new(
        operation: Operation,
        kind: GroupVersionKind<'a>,
        plural: &'a str,
    ) -> Self {
        Self {
            operation,
            kind,
            resource: GroupVersionResource {
                group: kind.group,
                version: kind.version,
                resource: plural,
            },
            equivalents: &[],
            subresource: "",
            namespace: "",
            name: "",
            object: None,
            old_object: None,
            options: None,
            user: &EMPTY_USER,
            dry_run: false,
            namespace_object: None,
        }
    }

    /// The creation of `object` by a user without attributes; all other fields are empty and
    /// can be set on the returned request. Name and namespace are those of the object, empty if
    /// it has none. Cannot fail.
    pub fn create(
        kind: GroupVersionKind<'a>,
        plural: &'a str,
        object: &'a Value,
    ) -> Self {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default()
        };
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            object: Some(object),
            ..Self::new(Operation::Create, kind, plural)
        }
    }
}

impl Request<'_> {
    pub(super) fn is_namespace(&self) -> bool {
        self.resource.group.is_empty() && self.resource.resource == "namespaces"
    }

    /// Whether the request is exempt from policies, because policies could prevent their own
    /// repair, or because nothing is stored.
    pub(super) fn is_exempt(&self) -> bool {
        let policies = [
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        ];
        match self.resource.group {
            "admissionregistration.k8s.io" => policies.contains(&self.kind.kind),
            "authentication.k8s.io" | "authorization.k8s.io" => {
                self.resource.resource.ends_with("reviews")
            }
            _ => false,
        }
    }

    /// The variable `request`, for the version of the resource that matched. Empty fields are
    /// absent.
    pub(super) fn variable(
        &self,
        resource: GroupVersionResource<'_>,
        kind: GroupVersionKind<'_>,
    ) -> Value {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| {
            if value != "" {
                fields.insert(name.to_owned(), value);
            }
        };
        set("kind", kind.json());
        set("resource", resource.json());
        set("subResource", self.subresource.into());
        set("requestKind", self.kind.json());
        set("requestResource", self.resource.json());
        set("requestSubResource", self.subresource.into());
        set("name", self.name.into());
        set("namespace", self.namespace.into());
        set("operation", self.operation.as_str().into());
        set("userInfo", self.user.json());
        set("dryRun", self.dry_run.into());
        if let Some(options) = self.options {
            set("options", options.clone());
        }
        Value::Object(fields)
    }

    /// The name as denials print it.
    pub(super) fn display_name(&self) -> &str {
        if !self.name.is_empty() {
            return self.name;
        }
        let metadata = self.object.and_then(|object| object.get("metadata"));
        let text = |name: &str| metadata?.get(name)?.as_str().filter(|it| !it.is_empty());
        text("name")
            .or_else(|| text("generateName"))
            .unwrap_or("Unknown")
    }
}

impl User {
    fn json(&self) -> Value {
        let mut fields = Map::new();
        if !self.name.is_empty() {
            fields.insert("username".to_owned(), self.name.as_str().into());
        }
        if !self.uid.is_empty() {
            fields.insert("uid".to_owned(), self.uid.as_str().into());
        }
        if !self.groups.is_empty() {
            fields.insert("groups".to_owned(), self.groups.clone().into());
        }
        if !self.extra.is_empty() {
            fields.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(fields)
    }
}
