//! Namespaces. The namespace controller completes their deletion.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::object_meta::NameRule;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{
    BuiltinKind, FieldSelector, UNOWNED_FINALIZER, Write, column, is_owned, rule,
};
use crate::meta;
use crate::resource::{Column, Resource, Subresource, Verb};

/// The namespaces that exist from the start; all but the last cannot be deleted.
pub(crate) const INITIAL: [&str; 4] =
    ["default", "kube-system", "kube-public", "kube-node-lease"];

/// `namespaces` of `v1`.
#[derive(Debug)]
pub(super) struct Namespace;

/// The initial finalizer of every namespace.
const OWN_FINALIZER: &str = "kubernetes";

impl BuiltinKind for Namespace {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "Namespace", "namespaces")
            .cluster_scoped()
            .returned_when_deleted()
            .with_short_names(&["ns"])
            .without_verb(Verb::DeleteCollection)
            .without_generation()
            .with_subresources(&[Subresource::Finalize, Subresource::Status])
            .with_columns(vec![
                Column::new("Status", "string", "The status of the namespace"),
                Column::age(),
            ])
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const { &[FieldSelector::new("status.phase")] }
    }

    fn name_rule(&self) -> NameRule {
        NameRule::DnsLabel
    }

    /// Defaults the label with the namespace's name, and the phase.
    fn default(&self, object: &mut Value) {
        let name = meta::name(object).to_owned();
        let labels = meta::field(meta::edit(object), "labels");
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        let status = meta::field(meta::fields(object), "status");
        let phase = status.entry("phase").or_insert_with(|| json!(""));
        if phase == "" {
            *phase = "Active".into();
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let fields = meta::fields(object);
        let own = meta::field(fields, "spec")
            .entry("finalizers")
            .or_insert_with(|| json!([]));
        if let Value::Array(finalizers) = own
            && !finalizers.iter().any(|it| it == OWN_FINALIZER)
        {
            finalizers.push(OWN_FINALIZER.into());
        }
        fields.insert("status".to_owned(), json!({"phase": "Active"}));
    }

    /// Restores the finalizers of the spec, which only `finalize` changes.
    fn prepare_update(&self, object: &mut Value, old: &Value) {
        let spec = meta::field(meta::fields(object), "spec");
        match old["spec"].get("finalizers") {
            Some(previous) => {
                spec.insert("finalizers".to_owned(), previous.clone());
            }
            None => {
                spec.shift_remove("finalizers");
            }
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    /// Validates the finalizers of the spec. The paths of errors have no index, as in Kubernetes.
    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        match write.subresource {
            "status" => {
                phase(write.object, &mut errors);
                return errors;
            }
            "finalize" => {}
            // An update restores the finalizers.
            _ if write.old.is_some() => return errors,
            _ => {}
        }
        let list = Field::of(write.object, "spec").child("finalizers");
        for finalizer in list.items() {
            let finalizer = finalizer.at(list.path.clone());
            rule::qualified_name(&finalizer, &mut errors);
            if !is_owned(finalizer.text()) {
                errors.push(finalizer.invalid(UNOWNED_FINALIZER));
            }
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::string(&object["status"]["phase"]),
            column::age(object, now),
        ]
    }
}

/// Validates the phase, which must match the deletion timestamp.
fn phase(object: &Value, errors: &mut Errors) {
    let value = Field::of(object, "status")
        .child("phase")
        .at("status.Phase");
    let (phase, why) = if meta::is_deleting(object) {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };
    if value.text() != phase {
        errors.push(value.invalid_text(why));
    }
}
