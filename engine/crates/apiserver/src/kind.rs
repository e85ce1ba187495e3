//! The kinds that are served without a CustomResourceDefinition: one kind, one file.
//!
//! A kind is a [`BuiltinKind`]: the names under which a resource is served, and its strategy.
//! [`builtin_kinds`](builtin::builtin_kinds) lists all of them. Discovery, OpenAPI, tables, selectors, defaulting and
//! validation read that list only, and `cargo judge gen` generates the schemas and the protobuf
//! table from it. How to add one: internals/contributing/built-in-kind.md.
//! Why the rules are written by hand, and what differs from Kubernetes:
//! `internals/decisions/0127-built-in-kinds-are-judged-by-recorded-answers.md`.

mod api_service;
mod binding;
pub(crate) mod builtin;
mod certificate_signing_request;
mod cluster_role;
mod cluster_role_binding;
pub(crate) mod column;
mod component_status;
mod config_map;
mod controller_revision;
mod cron_job;
mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod custom_resource_definition;
mod daemon_set;
mod data;
mod deployment;
mod device;
mod device_class;
mod endpoint_slice;
mod endpoints;
pub(crate) mod event;
mod field;
mod flow_schema;
mod go_struct;
mod horizontal_pod_autoscaler;
mod ingress;
pub(crate) mod ingress_class;
mod ip_address;
mod job;
mod lease;
mod limit_range;
mod load_balancer;
mod local_subject_access_review;
mod match_rules;
mod mutating_admission_policy;
mod mutating_admission_policy_binding;
mod mutating_webhook_configuration;
pub(crate) mod namespace;
mod network_policy;
pub(crate) mod node;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod;
mod pod_disruption_budget;
pub(crate) mod pod_preset;
pub(crate) mod pod_security_policy;
mod pod_spec;
mod pod_template;
pub(crate) mod priority_class;
mod priority_level_configuration;
mod rbac;
mod replica_set;
mod replication_controller;
mod resource_claim;
mod resource_claim_template;
pub(crate) mod resource_name;
mod resource_quota;
mod resource_slice;
mod role;
mod role_binding;
mod rule;
mod runtime_class;
mod secret;
mod self_subject_access_review;
mod self_subject_review;
mod self_subject_rules_review;
mod service;
mod service_account;
mod service_cidr;
mod stateful_set;
pub(crate) mod storage_class;
mod subject_access_review;
mod token_review;
mod validating_admission_policy;
mod validating_admission_policy_binding;
mod validating_webhook_configuration;
mod volume;
mod volume_attachment;
mod volume_attributes_class;
mod webhook_configuration;
mod workload;

use std::fmt;

use jiff::Timestamp;
pub use kubemu_admission::object_meta::NameRule;
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::Value;

use crate::meta;
use crate::resource::Resource;
use crate::user::User;

/// The objects beside which a value is allocated.
pub struct Stored<'a> {
    /// All stored objects of the kind.
    pub objects: &'a mut dyn Iterator<Item = &'a Value>,
    /// Whether the object is not going to be stored.
    pub dry_run: bool,
}

/// A kind that is served without a CustomResourceDefinition. It corresponds to the kind's strategy
/// in Kubernetes (pkg/registry/*/strategy.go) and to its printer.
///
/// Only [`resource`](Self::resource) is required; the default methods implement a kind without
/// special behaviour. [`Options::kinds`](crate::Options::kinds) adds custom kinds.
pub trait BuiltinKind: fmt::Debug + Send + Sync {
    /// Names, scope, verbs, subresources and columns. A resource without a schema gets the one
    /// generated for its group, version and kind, if there is one.
    fn resource(&self) -> Resource;

    /// The objects of a kind that the server computes at each read; `None` for one whose objects are
    /// stored, and for one that is only posted.
    fn computed(&self) -> Option<Vec<Value>> {
        None
    }

    /// Fields besides `metadata.name` and `metadata.namespace` that a `fieldSelector` may name.
    fn field_selectors(&self) -> &'static [FieldSelector] {
        &[]
    }

    /// The rule that the object's name must satisfy.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomain
    }

    /// Whether finalizers must be qualified by a domain, as for most kinds.
    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Owned
    }

    /// Whether an update of the object validates the metadata once more, by the rules for new objects. An
    /// update of a subresource does not.
    fn revalidates_name(&self) -> bool {
        false
    }

    /// Whether the validation of the kind validates the metadata. Otherwise it is validated outside, once,
    /// and after the rest of a new object.
    fn validates_metadata(&self) -> bool {
        true
    }

    /// Whether a write to the status skips the validation of the kind's strategy.
    fn skips_status_validation(&self) -> bool {
        false
    }

    /// The metadata that a write to `status` or `approval` cannot change.
    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::Fixed(&[])
    }

    /// Whether server-side apply to the status of a missing object creates it. Other kinds reject
    /// that, unless their updates create objects too.
    fn is_created_by_status_apply(&self) -> bool {
        false
    }

    /// Defaults the fields that an object leaves out.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Sets the times that an object leaves out and that are those of the request, which comes at `now`.
    fn default_times(&self, object: &mut Value, now: &str) {
        let _ = (object, now);
    }

    /// The warnings for the client about values that [`prepare_create`](Self::prepare_create) is
    /// about to change.
    fn preparation_warnings(&self, object: &Value) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// Sets the initial values of a new object, regardless of what the client sent.
    fn prepare_create(&self, object: &mut Value) {
        let _ = object;
    }

    /// Sets values of a new object before it is validated, unless a write to its status creates it:
    /// in Kubernetes the REST storage of the kind does this, and that of its status does not.
    fn complete(&self, object: &mut Value) {
        let _ = object;
    }

    /// Records the requesting user in a new object, if the kind has fields for that.
    fn record_requester(&self, object: &mut Value, user: &User) {
        let _ = (object, user);
    }

    /// Restores fields that an update cannot change. A status that is a subresource is already
    /// restored.
    fn prepare_update(&self, object: &mut Value, old: &Value) {
        let _ = (object, old);
    }

    /// Restores fields outside spec and metadata that a write to `status` or `approval` cannot
    /// change, and records the time of the write.
    fn prepare_subresource(
        &self,
        subresource: &str,
        object: &mut Value,
        old: &Value,
        now: &str,
    ) {
        let _ = (subresource, object, old, now);
    }

    /// The paths that a write through a subresource cannot change, so that its manager does not own
    /// them (`GetResetFields`). An empty `subresource` means a write to the object itself. `None`
    /// means the paths of most kinds: status or spec.
    fn reset_fields(&self, subresource: &str) -> Option<Vec<Vec<&'static str>>> {
        let _ = subresource;
        None
    }

    /// The validation errors of a write, beyond those of the common object metadata.
    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let _ = write;
        Vec::new()
    }

    /// Allocates a value that must be unique among the objects of the kind, such as an address,
    /// after validation.
    fn allocate(&self, object: &mut Value, stored: &mut Stored<'_>) -> Vec<FieldError> {
        let _ = (object, stored);
        Vec::new()
    }

    /// The warnings for a client that writes the object.
    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let _ = write;
        Vec::new()
    }

    /// The cells of a table row, one for each column of the resource, preceded by the name unless a
    /// column is called `Name`. If empty, the columns' JSON paths are evaluated.
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let _ = (object, now);
        Vec::new()
    }

    /// The conditions of a table row; null for none.
    fn row_conditions(&self, object: &Value) -> Value {
        let _ = object;
        Value::Null
    }

    /// Whether a deletion without a propagation policy keeps the dependents
    /// (`DefaultGarbageCollectionPolicy`).
    fn orphans_dependents(&self) -> bool {
        false
    }

    /// The warning for a client that deletes objects without a propagation policy; empty for none.
    fn deletion_warning(&self) -> &'static str {
        ""
    }

    /// The grace period of a deletion in seconds; `requested` is that of the delete options.
    fn grace_period_seconds(&self, object: &Value, requested: Option<i64>) -> i64 {
        let _ = (object, requested);
        0
    }

    /// The object in another of the API versions that share its storage; `None` for a kind with one
    /// version.
    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        let _ = (object, api_version);
        None
    }
}

/// A write to validate.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The object to store, in the version of the request.
    pub object: &'a Value,
    /// The stored object; `None` on create.
    pub old: Option<&'a Value>,
    /// The Kubernetes release whose rules apply.
    pub kube: KubeVersion,
    /// The part of the object that is written: empty for the object itself, else `status` or
    /// another of its subresources.
    pub subresource: &'a str,
}

impl Write<'_> {
    /// Whether an update changes neither spec nor data, so that validation does not reject values
    /// that were accepted before.
    pub fn is_spec_unchanged(&self) -> bool {
        self.old.is_some_and(|old| {
            old["spec"] == self.object["spec"] && old["data"] == self.object["data"]
        })
    }
}

/// A field that a `fieldSelector` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSelector {
    /// Its name in selectors, such as `spec.nodeName`.
    pub name: &'static str,
    /// Its path in the stored object.
    pub path: &'static str,
    /// The path of the field that is compared if the first is empty; empty for none.
    pub fallback: &'static str,
    /// The value that a selector compares with if the object does not have the field.
    pub absent: &'static str,
}

impl FieldSelector {
    /// A field that is selected by its path, and is the empty string if absent.
    pub const fn new(path: &'static str) -> Self {
        Self {
            name: path,
            path,
            fallback: "",
            absent: "",
        }
    }

    /// The same field under another name.
    #[must_use]
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// The same field, or the one at `path` if it is empty.
    #[must_use]
    pub const fn or(mut self, path: &'static str) -> Self {
        self.fallback = path;
        self
    }

    /// The same field, equal to `text` if absent.
    #[must_use]
    pub const fn with_default(mut self, text: &'static str) -> Self {
        self.absent = text;
        self
    }
}

/// The metadata that a write to the status of an object keeps from the stored one, whatever the
/// client sent: it is not validated either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// These fields; none for most kinds. The writer owns the others.
    Fixed(&'static [&'static str]),
    /// These fields, and the writer owns no metadata.
    Unowned(&'static [&'static str]),
}

impl StatusMetadata {
    /// What `ResetObjectMetaForStatus` restores.
    pub const RESET: Self = Self::Unowned(&[
        "deletionTimestamp",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ]);

    /// The fields that a write keeps.
    pub fn kept(self) -> &'static [&'static str] {
        match self {
            Self::Fixed(names) | Self::Unowned(names) => names,
        }
    }

    /// The paths in the object that the writer does not own.
    pub(crate) fn unowned(self) -> Vec<Vec<&'static str>> {
        match self {
            Self::Fixed(names) => {
                names.iter().map(|name| vec!["metadata", name]).collect()
            }
            Self::Unowned(_) => vec![vec!["metadata"]],
        }
    }
}

/// Whether a finalizer must be one of Kubernetes' own or have a domain (pkg/apis/core/validation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinalizerRule {
    /// Every qualified name is valid.
    #[default]
    Any,
    /// A finalizer must be one of Kubernetes' own or have a domain.
    Owned,
}

impl FinalizerRule {
    /// The errors for an object's finalizers that are not [owned](is_owned).
    pub(crate) fn errors(self, object: &Value) -> Vec<FieldError> {
        let unqualified = meta::finalizers(object)
            .enumerate()
            .filter(|(_, it)| self == Self::Owned && !is_owned(it));
        unqualified
            .map(|(index, it)| {
                let path = format!("metadata.finalizers[{index}]");
                FieldError::invalid(path, it.into(), UNOWNED_FINALIZER)
            })
            .collect()
    }
}

/// The message for a finalizer that is not [owned](is_owned).
const UNOWNED_FINALIZER: &str =
    "name is neither a standard finalizer name nor is it fully qualified";

/// Whether a finalizer is one of Kubernetes' own or has a domain.
fn is_owned(finalizer: &str) -> bool {
    finalizer.contains('/')
        || ["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer)
}

fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    object[field].as_array().into_iter().flatten().enumerate()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
