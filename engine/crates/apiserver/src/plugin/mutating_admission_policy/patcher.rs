//! Applies patches with the schemas of the served kinds.

use std::sync::Arc;

use kubemu_admission::policy::{GroupVersionKind, PatchError, Patcher};
use serde_json::Value;

use super::Environment;
use crate::openapi::shape::Shape;
use crate::resource::Resource;
use crate::{apply, decode, meta, patch};

impl Patcher for Environment<'_> {
    fn applied(
        &self,
        object: &Value,
        kind: GroupVersionKind<'_>,
        configuration: &Value,
    ) -> Result<Value, PatchError> {
        let mut configuration = configuration.clone();
        let fields = meta::fields(&mut configuration);
        for field in ["apiVersion", "kind"] {
            fields.insert(field.to_owned(), object[field].clone());
        }
        let resource = self.of_kind(kind);
        let shape = match resource {
            Some(resource) => Shape::of(resource),
            None => Shape::of_kind(kind.group, kind.version, kind.kind),
        };
        let merged = apply::merged(object, &configuration, shape);
        let mut merged = merged
            .map_err(|why| PatchError::Policy(format!("error applying patch: {why}")))?;
        if let Some(resource) = resource.filter(|it| !it.custom) {
            patch::truncate_numbers(resource, &mut merged);
        }
        let finished = finished(self, resource, merged);
        finished.map(|it| it.0).map_err(PatchError::Policy)
    }

    fn patched(
        &self,
        object: &Value,
        kind: GroupVersionKind<'_>,
        operations: &Value,
    ) -> Result<Value, PatchError> {
        let patched = patch::apply_for_policy(object, operations);
        let patched =
            patched.map_err(|why| PatchError::Policy(format!("JSON Patch: {why}")))?;
        let resource = self.of_kind(kind);
        if let Some(why) = decode::unreadable_kind(&patched) {
            return Err(PatchError::Server(why.why));
        }
        let (object, mut unknown) =
            finished(self, resource, patched).map_err(PatchError::Server)?;
        // Go writes the patched object sorted by field name.
        unknown.sort_unstable();
        let is_custom = resource.is_none_or(|it| it.custom);
        if unknown.is_empty() || is_custom {
            return Ok(object);
        }
        let unknown = unknown.join(", ");
        Err(PatchError::Server(format!(
            "strict decoding error: {unknown}"
        )))
    }

    fn converted_to_request_kind(
        &self,
        object: Value,
        _: GroupVersionKind<'_>,
        of_request: GroupVersionKind<'_>,
    ) -> Result<Value, PatchError> {
        let Some(resource) = self.of_kind(of_request) else {
            return Err(PatchError::Server("the kind is not served".to_owned()));
        };
        let conversion = self.0.conversion(resource);
        let restored = conversion.converted(resource, object, &of_request.api_version());
        restored.map_err(|refused| {
            PatchError::Server(format!("failed to convert object: {}", refused.message))
        })
    }
}

impl Environment<'_> {
    fn of_kind(&self, kind: GroupVersionKind<'_>) -> Option<&Arc<Resource>> {
        let registry = &self.0.registry;
        registry.of_kind(kind.group, kind.version, kind.kind)
    }
}

/// The decoded, pruned and defaulted object, and its unknown fields.
fn finished(
    environment: &Environment<'_>,
    resource: Option<&Arc<Resource>>,
    mut object: Value,
) -> Result<(Value, Vec<String>), String> {
    let Some(resource) = resource else {
        return Ok((object, Vec::new()));
    };
    if !resource.custom {
        decode::decode(resource, &mut object)?;
    }
    let unknown = decode::prune_and_default(
        &environment.0.definitions,
        resource,
        &mut object,
        decode::Repeated::default(),
    );
    if let Some(kind) = &resource.builtin {
        kind.default(&mut object);
    }
    Ok((object, unknown))
}
