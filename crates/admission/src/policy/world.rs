//! What a policy may have to look up while it decides.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::authorize::Authorizer;

/// The kind of the parameters of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParamKind {
    /// `<group>/<version>`, or `v1` for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// As Kubernetes prints it in errors.
impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version, kind } = self;
        write!(f, "&ParamKind{{APIVersion:{api_version},Kind:{kind},}}")
    }
}

/// Where parameters come from.
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

    /// Who answers the variable `authorizer`; without one, an expression that asks it fails.
    fn authorizer(&self) -> Option<Arc<dyn Authorizer>> {
        None
    }
}

impl World for () {}
