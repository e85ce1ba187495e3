//! The spec of a job (`ValidateJobSpec` in pkg/apis/batch/validation).

use kubemu_admission::FieldError;
use serde_json::Value;

use super::policy;
use crate::kind::field::{Errors, Field};
use crate::kind::{go_struct, pod_spec, rule};
use crate::meta;

/// The maximum parallelism of an indexed job, and the maximum of its failed indexes.
const MAX_INDEXED_PARALLELISM: i64 = 100_000;
/// Further limits apply above this number of completions.
const MANY_COMPLETIONS: i64 = 100_000;
/// The maximum parallelism, and of failed indexes, of a job with many completions.
const MAX_WITH_MANY_COMPLETIONS: i64 = 10_000;

/// Validates the parts of a spec that the template of a CronJob has too.
pub(in crate::kind) fn errors(spec: &Field<'_>, errors: &mut Errors) {
    for number in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        rule::non_negative(&spec.child(number), errors);
    }
    let by_index = spec.child("backoffLimitPerIndex");
    if spec.child("maxFailedIndexes").is_set() && !by_index.is_set() {
        errors.push(by_index.required("when maxFailedIndexes is specified"));
    }
    managed_by(&spec.child("managedBy"), errors);
    let mode = spec.child("completionMode");
    rule::one_of_if_set(&mode, &["NonIndexed", "Indexed"], errors);
    match mode.text() {
        "Indexed" => indexed(spec, errors),
        "NonIndexed" | "" => not_indexed(spec, errors),
        _ => {}
    }
    policy::failure(spec, errors);
    policy::success(spec, errors);
    policy::replacement(spec, errors);
    template(spec, errors);
}

fn template(spec: &Field<'_>, errors: &mut Errors) {
    let template = spec.child("template");
    errors.extend(pod_spec::template_errors(&template));
    let policy = template.child("spec.restartPolicy");
    match policy.text() {
        "" | "Always" => {
            errors.push(policy.required("valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" if spec.child("podFailurePolicy").is_set() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(policy.invalid(why));
        }
        "OnFailure" | "Never" => {}
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}

fn managed_by(field: &Field<'_>, errors: &mut Errors) {
    const MAX_LENGTH: u64 = 63;
    if !field.is_set() {
        return;
    }
    match field.text().split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            let wrong = kubemu_admission::name::dns_subdomain(host).into_iter();
            let path = field.path.clone();
            errors.extend(
                wrong.map(|it| FieldError::invalid(path.clone(), host.into(), it)),
            );
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(field.invalid(why));
        }
    }
    if field.text().len() as u64 > MAX_LENGTH {
        errors.push(FieldError::too_long(field.path.clone(), MAX_LENGTH));
    }
}

fn indexed(spec: &Field<'_>, errors: &mut Errors) {
    let (completions, parallelism) =
        (spec.child("completions"), spec.child("parallelism"));
    let failed = spec.child("maxFailedIndexes");
    if !completions.is_set() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    if parallelism.count() > MAX_INDEXED_PARALLELISM {
        let why = format!(
            "must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed"
        );
        errors.push(parallelism.invalid(why));
    }
    if completions.is_set() && failed.count() > completions.count() {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    if failed.count() > MAX_INDEXED_PARALLELISM {
        let why = format!("must be less than or equal to {MAX_INDEXED_PARALLELISM}");
        errors.push(failed.invalid(why));
    }
    let by_index = spec.child("backoffLimitPerIndex").is_set();
    if completions.count() <= MANY_COMPLETIONS || !by_index {
        return;
    }
    if !failed.is_set() {
        let why =
            format!("must be specified when completions is above {MANY_COMPLETIONS}");
        errors.push(failed.required(&why));
    }
    for number in [parallelism, failed] {
        if number.count() > MAX_WITH_MANY_COMPLETIONS {
            let why = format!(
                "must be less than or equal to {MAX_WITH_MANY_COMPLETIONS} when completions are above \
                 {MANY_COMPLETIONS} and used with backoff limit per index"
            );
            errors.push(number.invalid(why));
        }
    }
}

fn not_indexed(spec: &Field<'_>, errors: &mut Errors) {
    for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        let field = spec.child(name);
        if field.is_set() {
            errors.push(field.invalid("requires indexed completion mode"));
        }
    }
}

/// The errors of changes to immutable fields of a job. Kubernetes shows a changed template as a Go
/// struct; here it is shown as JSON.
pub(super) fn change_errors(object: &Value, old: &Value, errors: &mut Errors) {
    let (spec, before) = (Field::of(object, "spec"), Field::of(old, "spec"));
    completions(&spec, &before, errors);
    let selector = spec.child("selector");
    if *selector.value != old["spec"]["selector"] {
        let shown = go_struct::selector(selector.value);
        errors.push(go_struct::invalid(&selector, &shown, "field is immutable"));
    }
    let template = spec.child("template");
    let is_suspended = before.child("suspend").is_true();
    if fixed_template(template.value, is_suspended)
        != fixed_template(&old["spec"]["template"], is_suspended)
    {
        errors.push(template.invalid("field is immutable"));
    }
    for name in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        rule::immutable(&spec.child(name), &before.child(name), errors);
    }
}

/// A template without its mutable fields: for a suspended job these are labels, annotations and
/// scheduling constraints.
fn fixed_template(template: &Value, is_suspended: bool) -> Value {
    let mut fixed = template.clone();
    if !is_suspended {
        return fixed;
    }
    let fields = meta::fields(&mut fixed);
    let metadata = meta::field(fields, "metadata");
    for field in ["labels", "annotations"] {
        metadata.shift_remove(field);
    }
    let spec = meta::field(fields, "spec");
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        spec.shift_remove(field);
    }
    let affinity = spec.get_mut("affinity").and_then(Value::as_object_mut);
    let is_empty = affinity.is_some_and(|it| {
        it.shift_remove("nodeAffinity");
        it.is_empty()
    });
    if is_empty {
        spec.shift_remove("affinity");
    }
    fixed
}

/// The completions of an indexed job may only change together with its parallelism.
fn completions(spec: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let completions = spec.child("completions");
    if spec.child("completionMode").text() != "Indexed" {
        rule::immutable(&completions, &old.child("completions"), errors);
        return;
    }
    let changed = *completions.value != *old.child("completions").value;
    let together = completions.value == spec.child("parallelism").value;
    if changed && completions.is_set() && !together {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.push(completions.invalid(why));
    }
}
