//! Jobs: validated and stored; no controller runs them.

mod index;
mod policy;
mod spec;
mod status;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::{Fields, each, fill, part};
use super::{BuiltinKind, FieldSelector, Write, column, go_struct, rule, workload};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

pub(in crate::kind) use spec::errors as spec_errors;

/// `jobs` of `batch/v1`.
#[derive(Debug)]
pub(super) struct Job;

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

impl BuiltinKind for Job {
    fn resource(&self) -> Resource {
        let mut columns = vec![
            Column::new("Status", "string", "Status of the job."),
            Column::new(
                "Completions",
                "string",
                "The number of pods which reached phase Succeeded. The value increases \
                 monotonically for a given spec. However, it may decrease in reaction to \
                 scale down of elastic indexed jobs.",
            ),
            Column::new("Duration", "string", "Time required to complete the job."),
            Column::age(),
        ];
        columns.extend(workload::container_columns());
        columns.push(Column::new("Selector", "string", SELECTOR).wide());
        Resource::new("batch", "v1", "Job", "jobs")
            .with_category("all")
            .with_subresources(&[Subresource::Status])
            .with_columns(columns)
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const {
            &[FieldSelector::new("status.succeeded")
                .named("status.successful")
                .with_default("0")]
        }
    }

    fn default(&self, object: &mut Value) {
        let fields = meta::fields(object);
        let spec = meta::field(fields, "spec");
        default_template(spec);
        default_spec(spec);
        let labels = spec["template"].pointer("/metadata/labels").cloned();
        let metadata = meta::field(fields, "metadata");
        let has_own = metadata
            .get("labels")
            .is_some_and(|it| column::count(it) > 0);
        if let Some(labels) = labels.filter(|it| it.is_object() && !has_own) {
            metadata.insert("labels".to_owned(), labels);
        }
    }

    /// A job without its own labels gets those of its template, including the generated ones.
    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({}));
        if object["spec"]["manualSelector"] == true {
            return;
        }
        let own = object["metadata"]["labels"].clone();
        let of_template = &object["spec"]["template"]["metadata"]["labels"];
        let has_own = column::count(&own) > 0 && own != *of_template;
        let (name, uid) = (meta::name(object).to_owned(), meta::uid(object).to_owned());
        let spec = meta::field(meta::fields(object), "spec");
        let template = meta::field(spec, "template");
        let labels = meta::field(meta::field(template, "metadata"), "labels");
        for (keys, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
            for key in keys {
                fill(labels, key, value.as_str());
            }
        }
        let selector = meta::field(meta::field(spec, "selector"), "matchLabels");
        fill(selector, UID_LABELS[1], uid.as_str());
        if !has_own {
            let labels = object["spec"]["template"]["metadata"]["labels"].clone();
            meta::set(object, "labels", labels);
        }
    }

    fn orphans_dependents(&self) -> bool {
        true
    }

    fn deletion_warning(&self) -> &'static str {
        "child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
         suppress this warning"
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        match write.old {
            Some(old) if write.is_spec_unchanged() => {
                status::errors(write.object, old, &mut errors);
            }
            old => {
                generated_selector(write.object, old, &mut errors);
                selected_spec(write.object, &mut errors);
                errors.extend(name_error(write.object));
                if let Some(old) = old {
                    // As in Kubernetes, a changed spec is checked twice.
                    selected_spec(write.object, &mut errors);
                    spec::change_errors(write, old, &mut errors);
                }
            }
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        workload::template_warnings(write, "template", workload::Name::InPods)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let mut cells = vec![
            column::name(object),
            state(object).into(),
            completions(spec, status).into(),
            duration(status, now).into(),
            column::age(object, now),
        ];
        cells.extend(workload::container_cells(&spec["template"]));
        cells.push(column::selector(&spec["selector"]));
        cells
    }
}

/// The description of the selector column.
pub(in crate::kind) const SELECTOR: &str = "A label query over pods that should match the pod \
     count. Normally, the system sets this field for you. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors";

/// Defaults the template of a job, and fields of its failure policy rules.
pub(in crate::kind) fn default_template(spec: &mut Fields) {
    workload::default_template(spec);
    if let Some(policy) = part(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            for pattern in each(rule, "onPodConditions") {
                // It is written if empty, and so is empty if it was not sent.
                if pattern.get("status").is_none_or(|it| *it == "") {
                    pattern.insert("status".to_owned(), "True".into());
                }
            }
        }
    }
}

fn default_spec(spec: &mut Fields) {
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let by_index = spec.get("backoffLimitPerIndex").is_some();
    fill(spec, "backoffLimit", if by_index { i32::MAX } else { 6 });
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let has_policy = spec.get("podFailurePolicy").is_some();
    let replaced = if has_policy {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    fill(spec, "podReplacementPolicy", replaced);
    fill(spec, "manualSelector", false);
}

/// The errors of a generated selector, which must select only the job's own pods. If `old` had no
/// labels with Kubernetes' prefix, they are not required.
fn generated_selector(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let selector = spec.child("selector");
    if spec.child("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    let template = spec.child("template.metadata");
    let labels = template.child("labels");
    let (name, uid) = (meta::name(object), meta::uid(object));
    let has_prefixed = old.is_none_or(|old| {
        let labels = &old["spec"]["template"]["metadata"]["labels"];
        let is_set = |key: &str| labels.get(key).is_some();
        is_set(UID_LABELS[1]) && is_set(NAME_LABELS[1])
    });
    let mut expected = vec![(UID_LABELS[0], uid), (NAME_LABELS[0], name)];
    if has_prefixed {
        expected.extend([(UID_LABELS[1], uid), (NAME_LABELS[1], name)]);
    }
    let all: serde_json::Map<_, _> = expected
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
        .collect();
    for (key, value) in expected {
        let actual = labels.value.get(key).and_then(Value::as_str);
        let path = format!("{}[{key}]", labels.path);
        match actual {
            None => {
                let why = format!("must be '{value}'");
                errors.push(FieldError::required(path, why));
            }
            Some(actual) if actual != value => {
                let why = format!("must be '{value}'");
                errors.push(FieldError::invalid(path, actual.into(), why));
            }
            Some(_) => {}
        }
    }
    let compiled = kubemu_admission::selector::Selector::compile(
        Some(selector.value),
        &selector.path.to_string(),
    );
    if compiled.is_ok_and(|it| !it.matches(Some(&all.into()))) {
        let shown = go_struct::selector(selector.value);
        let why = "`selector` not auto-generated";
        errors.push(go_struct::invalid(&selector, &shown, why));
    }
}

/// Validates the spec with the selector that it has at this point.
fn selected_spec(object: &Value, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    spec::errors(&spec, errors);
    let selector = spec.child("selector");
    if selector.is_set() {
        rule::selector(&selector, errors);
    } else {
        errors.push(selector.required(""));
    }
    if rule::is_readable(&selector) {
        rule::matches_template(&selector, &spec.child("template"), errors);
    }
}

/// The error if the name of an indexed job plus an index is not a valid pod hostname.
fn name_error(object: &Value) -> Option<FieldError> {
    let spec = &object["spec"];
    let count = spec["completions"].as_i64().filter(|it| *it > 0)?;
    if spec["completionMode"] != "Indexed" {
        return None;
    }
    let longest = format!("{}-{}", meta::name(object), count - 1);
    let wrong = !name::dns_label(&longest).is_empty();
    let why = format!("will not able to create pod with invalid DNS label: {longest}");
    let value = meta::name(object).into();
    wrong.then(|| FieldError::invalid("metadata.name", value, why))
}

fn state(object: &Value) -> &'static str {
    let has = |kind: &str| status::has_condition(object, kind);
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if meta::is_deleting(object) {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(spec: &Value, status: &Value) -> String {
    let done = status["succeeded"].as_i64().unwrap_or_default();
    let parallel = spec["parallelism"].as_i64().unwrap_or_default();
    match spec["completions"].as_i64() {
        Some(requested) => format!("{done}/{requested}"),
        None if parallel > 1 => format!("{done}/1 of {parallel}"),
        None => format!("{done}/1"),
    }
}

/// The run time of the job so far or until completion; empty if it has not started.
fn duration(status: &Value, now: Timestamp) -> String {
    let time = |field: &str| status[field].as_str()?.parse::<Timestamp>().ok();
    let Some(start) = time("startTime") else {
        return String::new();
    };
    let end = time("completionTime").unwrap_or(now);
    crate::table::human_duration(start, end)
}
