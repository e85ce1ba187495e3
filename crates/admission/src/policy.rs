//! `ValidatingAdmissionPolicy` and `ValidatingAdmissionPolicyBinding`: which requests they
//! look at, and what they say.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::field::Cause;
use crate::{FieldError, KubeVersion};

/// A compiled `ValidatingAdmissionPolicy`.
#[derive(Debug)]
pub struct Policy {
    name: String,
}

/// A compiled `ValidatingAdmissionPolicyBinding`.
#[derive(Debug)]
pub struct Binding {
    name: String,
}

impl Policy {
    /// Compiles a policy as the API server of `version` does when it is created.
    ///
    /// # Errors
    /// What the server would refuse it for, with paths that start at `metadata` or `spec`.
    pub fn compile(
        policy: &Value,
        version: KubeVersion,
    ) -> Result<Self, Vec<FieldError>> {
        let _ = (policy, version);
        Err(Vec::new())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Binding {
    /// Compiles a binding.
    ///
    /// # Errors
    /// What the server would refuse it for, with paths that start at `metadata` or `spec`.
    pub fn compile(
        binding: &Value,
        version: KubeVersion,
    ) -> Result<Self, Vec<FieldError>> {
        let _ = (binding, version);
        Err(Vec::new())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Policies and their bindings, ready to decide. A policy without a binding decides
/// nothing, and so does a binding whose policy is not there.
#[derive(Debug, Default)]
pub struct Policies {}

impl Policies {
    /// Puts policies and bindings together. Cheap, so that it can be done at each change.
    pub fn new(
        policies: impl IntoIterator<Item = std::sync::Arc<Policy>>,
        bindings: impl IntoIterator<Item = std::sync::Arc<Binding>>,
    ) -> Self {
        let _ = (policies.into_iter().count(), bindings.into_iter().count());
        Self {}
    }

    /// What the policies say to a request, in the order of their names.
    pub fn decide(&self, request: &Request<'_>, world: &dyn World) -> Decision {
        let _ = (request, world);
        Decision::default()
    }
}

/// What is asked of the API server.
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

/// A request to be decided on.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is to be done.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: GroupVersionKind<'a>,
    /// The resource in the URL.
    pub resource: GroupVersionResource<'a>,
    /// The same resource in its other served versions. A policy with `matchPolicy:
    /// Equivalent` that names one of them sees the object in that version.
    pub equivalents: &'a [(GroupVersionResource<'a>, GroupVersionKind<'a>)],
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty if the object lives in none.
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
    /// The `Namespace` object of [`namespace`](Self::namespace). For a request about a
    /// `Namespace` the object itself is used where selectors are concerned.
    pub namespace_object: Option<&'a Value>,
}

/// The kind of the parameters of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParamKind {
    /// `<group>/<version>`, or `v1` for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// What a policy may have to look up while it decides.
///
/// Every method has an answer for a world in which there is nothing; `()` is that world.
pub trait World {
    /// Whether objects of `kind` live in namespaces; none if the kind is not served.
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        let _ = kind;
        None
    }

    /// The parameter object called `name`; `namespace` is empty for cluster-wide kinds.
    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let _ = (kind, namespace, name);
        None
    }

    /// Every parameter object of a namespace, in the order of their names.
    fn params(&self, kind: &ParamKind, namespace: &str) -> Vec<Value> {
        let _ = (kind, namespace);
        Vec::new()
    }
}

impl World for () {}

/// What the policies said to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Every refusal. The API server tells the client about the first one only.
    pub denials: Vec<Denial>,
    /// Sent to the client as `Warning` headers.
    pub warnings: Vec<String>,
    /// Written to the audit log.
    pub audit_annotations: BTreeMap<String, String>,
}

impl Decision {
    /// The refusal that the API server answers with; none if the request is admitted.
    pub fn denied(&self) -> Option<&Denial> {
        self.denials.first()
    }
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The policy that refused.
    pub policy: String,
    /// The binding that made it do so; absent where the policy itself is at fault.
    pub binding: Option<String>,
    /// Which validation refused, counted from 0; absent where none ran.
    pub validation: Option<usize>,
    /// The HTTP status code.
    pub code: u16,
    /// The Status reason, as `Invalid`.
    pub reason: String,
    /// The Status message: `<plural>.<group> "<name>" is forbidden: ValidatingAdmissionPolicy
    /// '<policy>' with binding '<binding>' denied request: <why>`.
    pub message: String,
    /// The entries of `details.causes`; `details.kind` is the plural name.
    pub causes: Vec<Cause>,
}
