//! The objects and the authorizer that a policy may look up during its evaluation.

use std::sync::Arc;

use serde_json::Value;

use super::authorize::Authorizer;
use super::request::GroupVersionKind;

/// The kind of the parameters of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParamKind {
    /// `<group>/<version>`, or `v1` for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// The source of parameters, conversions and the authorizer.
///
/// Every method has a default for an empty cluster; `()` implements it with these defaults.
pub trait Resolver {
    /// Whether objects of `kind` are namespaced; `None` if the kind is not served.
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        let _ = kind;
        None
    }

    /// The parameter object with this `name`, in any version; `namespace` is empty for
    /// cluster-scoped kinds.
    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let _ = (kind, namespace, name);
        None
    }

    /// Every parameter object of a namespace, in any version, sorted by name.
    fn params(&self, kind: &ParamKind, namespace: &str) -> Vec<Value> {
        let _ = (kind, namespace);
        Vec::new()
    }

    /// An object in another version: that of a policy with `matchPolicy: Equivalent`, or that of
    /// the parameter kind. By default, versions are assumed to differ only in their names.
    ///
    /// # Errors
    /// Why it cannot be converted.
    fn converted(
        &self,
        object: &Value,
        kind: GroupVersionKind<'_>,
    ) -> Result<Value, String> {
        let mut object = object.clone();
        if let Some(api_version) = object.get_mut("apiVersion") {
            *api_version = kind.api_version().into();
        }
        Ok(object)
    }

    /// The authorizer for the variable `authorizer`; without one, an expression that uses it
    /// fails.
    fn authorizer(&self) -> Option<Arc<dyn Authorizer>> {
        None
    }
}

impl Resolver for () {}
