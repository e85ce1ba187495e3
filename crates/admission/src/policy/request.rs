//! What is asked of the API server.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A new state of an object.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to an object, such as `exec`.
    Connect,
}

impl Operation {
    /// As in a request: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
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

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: String,
    /// The uid; empty if there is none.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A request to be decided on: made by [`new`](Self::new) or [`create`](Self::create), in which
/// what is different is set.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// What is to be done.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: GroupVersionKind<'a>,
    /// The resource in the URL.
    pub resource: GroupVersionResource<'a>,
    /// The same resource in its other served versions. A policy with `matchPolicy:
    /// Equivalent` that names one of them sees the object as
    /// [`World::converted`](super::World::converted) gives it.
    pub equivalents: &'a [(GroupVersionResource<'a>, GroupVersionKind<'a>)],
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty if the object lives in none. For a request about a `Namespace`
    /// its own name.
    pub namespace: &'a str,
    /// The name; empty where the server has yet to make one.
    pub name: &'a str,
    /// The object as it is to be; absent for a deletion.
    pub object: Option<&'a Value>,
    /// The object as it was; absent for a creation.
    pub old_object: Option<&'a Value>,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub options: Option<&'a Value>,
    /// Who asks.
    pub user: &'a User,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// The `Namespace` object of [`namespace`](Self::namespace). Where it is absent, the
    /// namespace is taken to have only the label that every namespace has.
    pub namespace_object: Option<&'a Value>,
}

/// Somebody of whom nothing is known.
static NOBODY: User = User {
    name: String::new(),
    uid: String::new(),
    groups: Vec::new(),
    extra: BTreeMap::new(),
};

impl<'a> Request<'a> {
    /// An operation on the resource of that plural, in the group and version of the kind, by
    /// somebody of whom nothing is known; everything else is empty. Cannot fail.
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
            user: &NOBODY,
            dry_run: false,
            namespace_object: None,
        }
    }

    /// The creation of `object` by somebody of whom nothing is known, with nothing further to
    /// say; whatever is different is set in what comes back. Name and namespace are those in the
    /// object, empty where it has none. Cannot fail.
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

    /// Whether no policy may look at the request, because policies could lock out those who
    /// repair them, or because nothing is stored.
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

    /// The variable `request`, for the version of the resource that matched. What is empty
    /// is absent.
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

    /// The name as refusals print it.
    pub(super) fn shown_name(&self) -> &str {
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
