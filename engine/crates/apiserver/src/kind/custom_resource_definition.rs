//! CustomResourceDefinitions. The module `definition` serves the kinds that they register.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::crd::Crd;
use serde_json::{Value, json};

use super::{BuiltinKind, FinalizerRule, Write, column};
use crate::definition::naming;
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `customresourcedefinitions` of `apiextensions.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct CustomResourceDefinition;

impl BuiltinKind for CustomResourceDefinition {
    fn resource(&self) -> Resource {
        let (kind, plural) = ("CustomResourceDefinition", "customresourcedefinitions");
        Resource::new("apiextensions.k8s.io", "v1", kind, plural)
            .cluster_scoped()
            .with_short_names(&["crd", "crds"])
            .with_category("api-extensions")
            .require_resource_version()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![Column::created_at()])
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        spec.entry("conversion")
            .or_insert_with(|| json!({"strategy": "None"}));
        let names = meta::field(spec, "names");
        let kind = names.get("kind").and_then(Value::as_str);
        if let Some(kind) = kind.filter(|it| !it.is_empty()).map(str::to_owned) {
            names
                .entry("singular")
                .or_insert_with(|| kind.to_lowercase().into());
            names
                .entry("listKind")
                .or_insert_with(|| format!("{kind}List").into());
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let status = naming::initial_status(object);
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if write.is_spec_unchanged() {
            return Vec::new();
        }
        let compiled = match write.old {
            None => Crd::compile(write.object, write.kube),
            Some(old) => Crd::replace(write.object, old, write.kube),
        };
        compiled.err().unwrap_or_default()
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let created = object["metadata"]["creationTimestamp"].clone();
        vec![column::name(object), created]
    }
}
