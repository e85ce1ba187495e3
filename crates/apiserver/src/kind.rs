//! What single built-in kinds want done to their objects on the way in.
//!
//! The rules are those of the kinds' strategies in Kubernetes (pkg/registry/*/strategy.go)
//! as far as the kinds are served here.

mod budget;
mod event;
pub(crate) mod finalizer;
mod node;
mod pod;
mod rule;
mod webhook;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fivespot_admission::FieldError;
use fivespot_admission::crd::Crd;
use fivespot_admission::policy::{Binding, Policy};
use serde_json::{Value, json};

use crate::definition::naming;
use crate::meta;
use crate::resource::Resource;
use crate::state::State;

/// The kinds that have rules of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Namespace,
    Node,
    Pod,
    Secret,
    Budget,
    Definition,
    RoleBinding,
    Policy,
    Binding,
    Webhooks,
    Other,
}

impl Kind {
    fn of(resource: &Resource) -> Self {
        let kept = &resource.storage;
        match (kept.group.as_str(), kept.resource.as_str()) {
            ("", "namespaces") => Self::Namespace,
            ("", "nodes") => Self::Node,
            ("", "pods") => Self::Pod,
            ("", "secrets") => Self::Secret,
            ("policy", "poddisruptionbudgets") => Self::Budget,
            ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
                Self::RoleBinding
            }
            ("apiextensions.k8s.io", "customresourcedefinitions") => Self::Definition,
            ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
                Self::Policy
            }
            ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => {
                Self::Binding
            }
            (
                "admissionregistration.k8s.io",
                "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
            ) => Self::Webhooks,
            _ => Self::Other,
        }
    }
}

/// Fills in what the kind has defaults for.
pub(crate) fn default(resource: &Resource, object: &mut Value) {
    match Kind::of(resource) {
        Kind::Secret => default_secret(object),
        Kind::Pod => pod::default(object),
        Kind::Node => node::default(object),
        Kind::Webhooks => webhook::default(object),
        Kind::Definition => default_definition(object),
        Kind::RoleBinding => default_subjects(object),
        Kind::Policy => {
            let spec = meta::field(meta::fields(object), "spec");
            spec.entry("failurePolicy").or_insert_with(|| "Fail".into());
            if let Some(found) = spec.get_mut("matchConstraints") {
                default_match(meta::fields(found));
            }
        }
        Kind::Binding => {
            if let Some(found) = object["spec"].get_mut("matchResources") {
                default_match(meta::fields(found));
            }
        }
        Kind::Namespace => name_by_label(object),
        Kind::Budget | Kind::Other => {}
    }
}

fn default_match(rules: &mut serde_json::Map<String, Value>) {
    rules
        .entry("matchPolicy")
        .or_insert_with(|| "Equivalent".into());
    for key in ["namespaceSelector", "objectSelector"] {
        rules.entry(key).or_insert_with(|| json!({}));
    }
    let lists = ["resourceRules", "excludeResourceRules"];
    for list in lists {
        let rules = rules.get_mut(list).and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            meta::fields(rule)
                .entry("scope")
                .or_insert_with(|| "*".into());
        }
    }
}

/// Every namespace can be selected by its name.
fn name_by_label(object: &mut Value) {
    let name = meta::name(object).to_owned();
    let labels = meta::field(meta::edit(object), "labels");
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
}

fn default_subjects(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    if let Some(role) = object.get_mut("roleRef").and_then(Value::as_object_mut) {
        let group = role.entry("apiGroup").or_insert_with(|| "".into());
        if group == "" {
            *group = GROUP.into();
        }
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group"))
            && let Some(fields) = subject.as_object_mut()
        {
            fields.entry("apiGroup").or_insert_with(|| GROUP.into());
        }
    }
}

fn default_secret(object: &mut Value) {
    let fields = meta::fields(object);
    if let Some(Value::Object(texts)) = fields.shift_remove("stringData") {
        let data = meta::field(fields, "data");
        for (key, text) in texts {
            let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(key, encoded.into());
        }
    }
    fields.entry("type").or_insert_with(|| "Opaque".into());
}

fn default_definition(object: &mut Value) {
    let spec = meta::field(meta::fields(object), "spec");
    spec.entry("conversion")
        .or_insert_with(|| json!({"strategy": "None"}));
    let names = meta::field(spec, "names");
    if let Some(kind) = names.get("kind").and_then(Value::as_str).map(str::to_owned) {
        names
            .entry("singular")
            .or_insert_with(|| kind.to_lowercase().into());
        names
            .entry("listKind")
            .or_insert_with(|| format!("{kind}List").into());
    }
}

/// What a new object of the kind begins with, whatever the client sent.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    let fields = meta::fields(object);
    match Kind::of(resource) {
        Kind::Namespace => {
            meta::field(fields, "spec")
                .insert("finalizers".to_owned(), json!(["kubernetes"]));
            fields.insert("status".to_owned(), json!({"phase": "Active"}));
        }
        Kind::Pod => {
            let quality = pod::quality(object);
            let status = json!({"phase": "Pending", "qosClass": quality});
            meta::fields(object).insert("status".to_owned(), status);
        }
        Kind::Budget => {
            let status = json!({
                "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0,
                "expectedPods": 0,
            });
            fields.insert("status".to_owned(), status);
        }
        Kind::Definition => {
            let status = naming::fresh(object);
            meta::fields(object).insert("status".to_owned(), status);
        }
        Kind::Policy => {
            fields.insert("status".to_owned(), json!({}));
        }
        Kind::Other if resource.custom && resource.has_status() => {
            fields.shift_remove("status");
        }
        Kind::Node
        | Kind::Secret
        | Kind::Binding
        | Kind::RoleBinding
        | Kind::Webhooks
        | Kind::Other => {}
    }
}

/// What an update of the kind cannot touch.
pub(crate) fn prepare_update(resource: &Resource, object: &mut Value, old: &Value) {
    if Kind::of(resource) == Kind::Namespace {
        keep_finalizers(object, old);
    }
}

fn keep_finalizers(object: &mut Value, old: &Value) {
    let spec = meta::field(meta::fields(object), "spec");
    match old["spec"].get("finalizers") {
        Some(had) => {
            spec.insert("finalizers".to_owned(), had.clone());
        }
        None => {
            spec.shift_remove("finalizers");
        }
    }
}

/// A write to a namespace's `finalize` changes the finalizers of its spec alone.
pub(crate) fn keep_all_but_finalizers(object: &mut Value, old: &Value) {
    let finalizers = object["spec"]["finalizers"].clone();
    *object = old.clone();
    let spec = meta::field(meta::fields(object), "spec");
    spec.insert("finalizers".to_owned(), finalizers);
}

/// The rules that an object of the kind breaks.
pub(crate) fn errors(
    state: &State,
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let broken = rule::errors(resource, object, old);
    if !broken.is_empty() {
        return broken;
    }
    // What has not changed since it was accepted is not refused again.
    if old
        .is_some_and(|old| old["spec"] == object["spec"] && old["data"] == object["data"])
    {
        return Vec::new();
    }
    match Kind::of(resource) {
        Kind::Definition => refusal(match old {
            None => Crd::compile(object, state.kube),
            Some(old) => Crd::replace(object, old, state.kube),
        }),
        Kind::Policy => refusal(Policy::compile(object, state.kube)),
        Kind::Binding => refusal(Binding::compile(object)),
        Kind::Budget => budget::errors(object),
        Kind::Pod => pod::errors(object, old),
        Kind::Namespace
        | Kind::Node
        | Kind::Secret
        | Kind::RoleBinding
        | Kind::Webhooks
        | Kind::Other => Vec::new(),
    }
}

/// What a client is warned of who writes an object of the kind.
pub(crate) fn warning(resource: &Resource, object: &Value) -> Option<String> {
    (Kind::of(resource) == Kind::Webhooks).then(|| {
        // Until the admission chain calls them; see docs/decisions/0080.
        format!(
            "{} {:?} is stored and its webhooks are not called: requests are admitted as if \
             there were none",
            resource.kind,
            meta::name(object)
        )
    })
}

fn refusal<T>(compiled: Result<T, Vec<FieldError>>) -> Vec<FieldError> {
    compiled.err().unwrap_or_default()
}

/// Whether the kind is a question that is answered and not stored.
pub(crate) fn is_question(resource: &Resource) -> bool {
    matches!(
        resource.group.as_str(),
        "authorization.k8s.io" | "authentication.k8s.io"
    )
}

fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    object[field].as_array().into_iter().flatten().enumerate()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}
