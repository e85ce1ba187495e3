//! What a policy may have to look up while it decides.

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

    /// The object in the version and kind that a policy with `matchPolicy: Equivalent` names,
    /// where that is not the one of the request. Unless said otherwise versions are taken to be
    /// alike but for their names.
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

    /// Who answers the variable `authorizer`; without one, an expression that asks it fails.
    fn authorizer(&self) -> Option<Arc<dyn Authorizer>> {
        None
    }
}

impl World for () {}
