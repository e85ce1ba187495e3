//! The spec of a job (`ValidateJobSpec` in pkg/apis/batch/validation).

use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Map, Value};

use super::policy;
use crate::kind::field::{Errors, Field};
use crate::kind::{Write, go_struct, pod_spec, rule};
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
pub(super) fn change_errors(write: &Write<'_>, old: &Value, errors: &mut Errors) {
    let (spec, before) = (Field::of(write.object, "spec"), Field::of(old, "spec"));
    completions(&spec, &before, errors);
    let selector = spec.child("selector");
    if *selector.value != old["spec"]["selector"] {
        let shown = go_struct::selector(selector.value);
        errors.push(go_struct::invalid(&selector, &shown, "field is immutable"));
    }
    let template = spec.child("template");
    let mutable = Mutable::of(old, write.kube);
    let [next, previous] =
        [template.value, &old["spec"]["template"]].map(|it| mutable.fixed_template(it));
    if next != previous {
        let place = if mutable.resources {
            template.child("spec")
        } else {
            template
        };
        errors.push(place.invalid("field is immutable"));
    }
    for name in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        let field = spec.child(name);
        if *field.value != *before.child(name).value {
            let of = (spec.value, "batch.v1.JobSpec", name);
            let why = "field is immutable";
            errors.push(go_struct::invalid_field(&field, of, why));
        }
    }
}

/// What may be changed in the template of a suspended job.
#[derive(Clone, Copy)]
struct Mutable {
    /// Labels, annotations and scheduling constraints.
    scheduling: bool,
    /// The resources of containers.
    resources: bool,
}

impl Mutable {
    /// As the stored job decides: since 1.36 its pods must have ended, before it must never have run.
    fn of(old: &Value, kube: KubeVersion) -> Self {
        let status = &old["status"];
        let is_suspended = old["spec"]["suspend"] == true;
        let never_ran = status["startTime"].is_null();
        if !kube.is_at_least(36) {
            return Self {
                scheduling: is_suspended && never_ran,
                resources: false,
            };
        }
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let has_stopped =
            conditions.any(|it| it["type"] == "Suspended" && it["status"] == "True");
        let has_no_pods = status["active"].as_i64().unwrap_or_default() == 0;
        let is_idle = is_suspended && (never_ran || has_stopped) && has_no_pods;
        Self {
            scheduling: is_idle,
            resources: is_idle,
        }
    }

    /// A template without its mutable fields.
    fn fixed_template(self, template: &Value) -> Value {
        let mut fixed = template.clone();
        let fields = meta::fields(&mut fixed);
        if self.scheduling {
            let metadata = meta::field(fields, "metadata");
            for field in ["labels", "annotations"] {
                metadata.shift_remove(field);
            }
            remove_scheduling(meta::field(fields, "spec"));
        }
        if self.resources {
            let spec = meta::field(fields, "spec");
            for list in ["initContainers", "containers"] {
                let containers = spec.get_mut(list).and_then(Value::as_array_mut);
                for container in containers.into_iter().flatten() {
                    meta::fields(container).shift_remove("resources");
                }
            }
        }
        fixed
    }
}

/// Removes the scheduling constraints of a pod.
fn remove_scheduling(spec: &mut Map<String, Value>) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The paths of the errors if the template of a job with this status changes.
    fn refused(release: &str, job: &Value, change: &Value) -> Vec<String> {
        let mut old = json!({"spec": {"completions": 1, "template": {"spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}}});
        json_patch::merge(&mut old, job);
        let mut object = old.clone();
        json_patch::merge(&mut object["spec"]["template"], change);
        let write = Write {
            object: &object,
            old: Some(&old),
            kube: release.parse().expect("a release"),
            subresource: "",
        };
        let mut errors = Errors::new();
        change_errors(&write, &old, &mut errors);
        errors.into_iter().map(|it| it.path).collect()
    }

    fn larger() -> Value {
        json!({"spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}})
    }

    #[test]
    fn the_resources_of_a_suspended_job_without_pods_are_mutable_since_1_36() {
        let suspended = json!({"spec": {"suspend": true}});
        assert_eq!(refused("1.36", &suspended, &larger()), Vec::<String>::new());
        assert_eq!(refused("1.35", &suspended, &larger()), ["spec.template"]);
        assert_eq!(refused("1.36", &json!({}), &larger()), ["spec.template"]);
        let image = json!({"spec": {"containers": [{"name": "c", "image": "j"}]}});
        assert_eq!(refused("1.36", &suspended, &image), ["spec.template.spec"]);
    }

    #[test]
    fn the_template_of_a_job_that_ran_is_mutable_when_its_pods_have_ended() {
        let ran = |status: Value| {
            let mut job =
                json!({"spec": {"suspend": true}, "status": {"startTime": "t"}});
            json_patch::merge(&mut job["status"], &status);
            job
        };
        let stopped = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
        let mut stopping = stopped.clone();
        stopping["active"] = 1.into();
        let selector = json!({"spec": {"nodeSelector": {"disk": "fast"}}});
        let none = Vec::<String>::new();
        assert_eq!(refused("1.36", &ran(stopped.clone()), &selector), none);
        assert_eq!(
            refused("1.36", &ran(stopping), &selector),
            ["spec.template"]
        );
        assert_eq!(
            refused("1.36", &ran(json!({})), &selector),
            ["spec.template"]
        );
        assert_eq!(refused("1.35", &ran(stopped), &selector), ["spec.template"]);
    }
}
