//! PodPresets, which Kubernetes 1.20 removed; served while the plugin PodPreset is enabled.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::Field;
use super::pod_spec::{self, default};
use super::{BuiltinKind, Write, column};
use crate::meta;
use crate::openapi::definitions::PREFIX;
use crate::resource::{Column, Resource};

/// `podpresets` of `settings.k8s.io/v1alpha1`.
#[derive(Debug)]
pub(crate) struct PodPreset;

impl BuiltinKind for PodPreset {
    fn resource(&self) -> Resource {
        let list = |of: &str| {
            let of = format!("{PREFIX}io.k8s.api.core.v1.{of}");
            json!({"type": "array", "items": {"$ref": of}})
        };
        let selector = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
        let spec = json!({"type": "object", "properties": {
            "selector": {"$ref": format!("{PREFIX}{selector}")},
            "env": list("EnvVar"),
            "envFrom": list("EnvFromSource"),
            "volumes": list("Volume"),
            "volumeMounts": list("VolumeMount"),
        }});
        Resource::new("settings.k8s.io", "v1alpha1", "PodPreset", "podpresets")
            .without_generation()
            .with_columns(vec![Column::created_at()])
            .with_schema(json!({"type": "object", "properties": {"spec": spec}}))
    }

    fn default(&self, object: &mut Value) {
        default::preset(meta::field(meta::fields(object), "spec"));
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        pod_spec::preset_errors(&Field::of(write.object, "spec"))
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            object["metadata"]["creationTimestamp"].clone(),
        ]
    }
}
