//! The parameters, conversions and authorizer for policies.

use std::sync::Arc;

use kubemu_admission::policy::{Authorizer, GroupVersionKind, ParamKind, Resolver};
use serde_json::Value;

use crate::authorization;
use crate::resource::{GroupResource, Resource};
use crate::state::State;
use crate::store::{Bucket, Key, Range};

/// The cluster state as an environment of policies.
pub(in crate::plugin) struct Environment<'a>(pub(in crate::plugin) &'a State);

impl Environment<'_> {
    fn resource(&self, kind: &ParamKind) -> Option<&Arc<Resource>> {
        let (group, version) = kind
            .api_version
            .rsplit_once('/')
            .unwrap_or(("", &kind.api_version));
        self.0.registry.of_kind(group, version, &kind.kind)
    }

    fn bucket(&self, kind: &ParamKind) -> Option<Bucket> {
        let storage: &GroupResource = &self.resource(kind)?.storage;
        self.0.store.known_bucket(storage)
    }
}

impl Resolver for Environment<'_> {
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        self.resource(kind).map(|it| it.namespaced)
    }

    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let found = self.0.get(self.bucket(kind)?, &Key::new(namespace, name));
        found.map(|it| Value::clone(it))
    }

    fn params(&self, kind: &ParamKind, namespace: &str) -> Vec<Value> {
        let Some(bucket) = self.bucket(kind) else {
            return Vec::new();
        };
        let namespace = Some(namespace).filter(|it| !it.is_empty());
        let range = Range {
            namespace,
            after: None,
        };
        let found = self.0.store.list(bucket, &range, None);
        found
            .into_iter()
            .flatten()
            .map(|(_, it)| Value::clone(it))
            .collect()
    }

    fn converted(
        &self,
        object: &Value,
        kind: GroupVersionKind<'_>,
    ) -> Result<Value, String> {
        let found = self.0.registry.of_kind(kind.group, kind.version, kind.kind);
        let resource = found.ok_or_else(|| "the kind is not served".to_owned())?;
        let conversion = self.0.conversion(resource);
        let converted =
            conversion.converted(resource, object.clone(), &kind.api_version());
        converted.map_err(|refused| refused.message)
    }

    fn authorizer(&self) -> Option<Arc<dyn Authorizer>> {
        Some(Arc::new(authorization::Authorizer(self.0.rules.clone())))
    }
}
