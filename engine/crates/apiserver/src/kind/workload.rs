//! Code that the kinds with a pod template share.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::{self, Fields};
use super::pod_spec::{self, warning};
use super::{Write, column, go_struct, rule};
use crate::meta;
use crate::resource::{Column, Scale, Subresource};

/// A field of each container of a template, as a table cell.
fn containers(template: &Value, field: &str) -> Value {
    let all = template["spec"]["containers"].as_array();
    let all = all.into_iter().flatten();
    let all: Vec<&str> = all.filter_map(|it| it[field].as_str()).collect();
    all.join(",").into()
}

/// The columns about a template's containers.
pub(super) fn container_columns() -> [Column; 2] {
    let column =
        |name: &str, description: &str| Column::new(name, "string", description).wide();
    [
        column("Containers", "Names of each container in the template."),
        column(
            "Images",
            "Images referenced by each container in the template.",
        ),
    ]
}

/// The cells of [`container_columns`].
pub(super) fn container_cells(template: &Value) -> [Value; 2] {
    ["name", "image"].map(|field| containers(template, field))
}

/// The number of ready replicas and of desired ones.
pub(super) fn ready(object: &Value) -> Value {
    let requested = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
    format!("{ready}/{requested}").into()
}

/// The column descriptions of a kind with replicas.
pub(super) struct ReplicaColumns {
    pub(super) desired: &'static str,
    pub(super) current: &'static str,
    pub(super) ready: &'static str,
    pub(super) selector: &'static str,
}

impl ReplicaColumns {
    /// The columns; their cells are [`replica_cells`] and that of the selector.
    pub(super) fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::new("Desired", "integer", self.desired),
            Column::new("Current", "integer", self.current),
            Column::new("Ready", "integer", self.ready),
            Column::age(),
        ];
        columns.extend(container_columns());
        columns.push(Column::new("Selector", "string", self.selector).wide());
        columns
    }
}

/// The cells for the desired, current and ready replicas.
pub(super) fn replica_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let mut cells = vec![
        column::name(object),
        column::number(&spec["replicas"]),
        column::number(&status["replicas"]),
        column::number(&status["readyReplicas"]),
        column::age(object, now),
    ];
    cells.extend(container_cells(&spec["template"]));
    cells
}

/// `status` and `scale` of a kind with replicas.
pub(super) fn subresources() -> [Subresource; 2] {
    let scale = Scale {
        spec_replicas_path: ".spec.replicas".to_owned(),
        status_replicas_path: ".status.replicas".to_owned(),
        label_selector_path: Some(".spec.selector".to_owned()),
    };
    [Subresource::Scale(scale), Subresource::Status]
}

/// Defaults the template of a spec.
pub(super) fn default_template(spec: &mut Fields) {
    default::template(meta::field(spec, "template"));
}

/// Sets the initial status of a new object.
pub(super) fn begin(object: &mut Value, status: Value) {
    meta::fields(object).insert("status".to_owned(), status);
}

/// The initial status of an object with replicas.
pub(super) fn no_replicas() -> Value {
    json!({"replicas": 0})
}

/// The warnings for the template at this path of the spec.
pub(super) fn template_warnings(
    write: &Write<'_>,
    path: &str,
    name: Name,
) -> Vec<String> {
    if write.is_spec_unchanged() {
        return Vec::new();
    }
    let of_name = (name == Name::InPods && write.old.is_none())
        .then(|| warning::name_warning(write.object));
    let mut warnings: Vec<String> = of_name.flatten().into_iter().collect();
    let template = Field::of(write.object, "spec").child(path);
    let annotations = template.child("metadata.annotations");
    warning::annotations(&annotations, &mut warnings);
    warnings.extend(warning::warnings(&template.child("spec")));
    warnings
}

/// How the name of an object is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Pods have the name as prefix. A name that is not a DNS label has a warning.
    InPods,
    /// The validation checks the name; there is no warning.
    Validated,
}

/// Validates a selector that must be set and not be empty. Returns whether it can be compiled.
pub(super) fn selector(
    field: &Field<'_>,
    of: &str,
    unreadable: &str,
    errors: &mut Errors,
) -> bool {
    if field.is_set() {
        rule::selector(field, errors);
        empty_selector(field, of, errors);
    } else {
        errors.push(field.required(""));
    }
    let readable = rule::is_readable(field);
    if !readable {
        let shown = go_struct::selector(field.value);
        errors.push(go_struct::invalid(field, &shown, unreadable));
    }
    readable
}

/// Rejects a selector without requirements.
pub(super) fn empty_selector(field: &Field<'_>, of: &str, errors: &mut Errors) {
    let is_empty = ["matchLabels", "matchExpressions"]
        .iter()
        .all(|it| field.child(it).len() == 0);
    if field.is_set() && is_empty {
        let shown = go_struct::selector(field.value);
        let why = format!("empty selector is invalid for {of}");
        errors.push(go_struct::invalid(field, &shown, &why));
    }
}

/// Validates selector and template of a Deployment or a ReplicaSet. Kubernetes uses one function
/// for both, whose messages name either.
pub(super) fn selected_template(spec: &Field<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    if self::selector(&selector, "deployment", "invalid label selector", errors) {
        rule::matches_template(&selector, &template, errors);
        running_template(&template, "ReplicaSet", errors);
    }
}

/// Validates a template whose pods must always restart.
pub(super) fn running_template(template: &Field<'_>, of: &str, errors: &mut Errors) {
    errors.extend(pod_spec::template_errors(template));
    running_pods(template, of, errors);
}

/// Validates that pods always restart and have no deadline.
pub(super) fn running_pods(template: &Field<'_>, of: &str, errors: &mut Errors) {
    let policy = template.child("spec.restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.not_supported(&["Always"]));
    }
    let deadline = template.child("spec.activeDeadlineSeconds");
    if deadline.is_set() {
        let why = format!("activeDeadlineSeconds in {of} is not Supported");
        errors.push(deadline.forbidden(why));
    }
}

/// Validates that the selector has not changed.
pub(super) fn same_selector(write: &Write<'_>, errors: &mut Errors) {
    let Some(old) = write.old else {
        return;
    };
    let selector = Field::of(write.object, "spec").child("selector");
    if *selector.value != old["spec"]["selector"] {
        let shown = go_struct::selector(selector.value);
        let why = "field is immutable";
        errors.push(go_struct::invalid(&selector, &shown, why));
    }
}

/// Validates that numbers of a status are not negative.
pub(super) fn counts(status: &Field<'_>, names: &[&str], errors: &mut Errors) {
    for name in names {
        rule::non_negative(&status.child(name), errors);
    }
}

/// Validates that numbers of a status are not greater than its `replicas`.
pub(super) fn within_replicas(status: &Field<'_>, names: &[&str], errors: &mut Errors) {
    for name in names {
        let why = "cannot be greater than status.replicas";
        not_above(&status.child(name), &status.child("replicas"), why, errors);
    }
}

/// Validates that one number is not greater than another.
pub(super) fn not_above(
    field: &Field<'_>,
    most: &Field<'_>,
    why: &str,
    errors: &mut Errors,
) {
    if field.count() > most.count() {
        errors.push(field.invalid(why));
    }
}

/// Validates the status of a kind with replicas and fully labeled replicas.
pub(super) fn labeled_status(status: &Field<'_>, errors: &mut Errors) {
    let numbers = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    counts(status, &numbers, errors);
    let numbers = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    within_replicas(status, &numbers, errors);
    available(status, "cannot be greater than readyReplicas", errors);
}

/// Validates that the available replicas are at most the ready ones.
pub(super) fn available(status: &Field<'_>, why: &str, errors: &mut Errors) {
    let (available, ready) = (
        status.child("availableReplicas"),
        status.child("readyReplicas"),
    );
    not_above(&available, &ready, why, errors);
}

/// Validates that the collision count is not decremented.
pub(super) fn collisions(write: &Write<'_>, errors: &mut Errors) {
    let count = Field::of(write.object, "status").child("collisionCount");
    rule::non_negative(&count, errors);
    let old = write
        .old
        .and_then(|it| it["status"]["collisionCount"].as_i64());
    if old.is_some_and(|it| count.count() < it) {
        let path = count.path.clone();
        let why = "cannot be decremented";
        let value = count.count().into();
        errors.push(kubemu_admission::FieldError::invalid(path, value, why));
    }
}
