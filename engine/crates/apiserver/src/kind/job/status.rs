//! The status of a job (`ValidateJobStatusUpdate` in pkg/apis/batch/validation).

use kubemu_admission::FieldError;
use serde_json::Value;

use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Whether a condition of the job is true.
pub(super) fn has_condition(job: &Value, kind: &str) -> bool {
    let all = job["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|it| it["type"] == kind && it["status"] == "True")
}

/// A job before and after an update.
struct Change<'a> {
    object: &'a Value,
    old: &'a Value,
    status: Field<'a>,
}

impl Change<'_> {
    fn has(&self, kind: &str) -> bool {
        has_condition(self.object, kind)
    }

    /// Whether the status of the condition has changed.
    fn has_changed(&self, kind: &str) -> bool {
        has_condition(self.object, kind) != has_condition(self.old, kind)
    }

    fn is_finished(&self) -> bool {
        self.has("Complete") || self.has("Failed")
    }

    fn finish_changed(&self) -> bool {
        let before =
            has_condition(self.old, "Complete") || has_condition(self.old, "Failed");
        self.is_finished() != before
    }

    fn changed(&self, field: &str) -> bool {
        self.object["status"][field] != self.old["status"][field]
    }

    fn conditions(&self, why: &str) -> FieldError {
        let conditions = self.status.child("conditions");
        conditions.invalid(why).without_value()
    }
}

/// The validation errors of a new status.
pub(super) fn errors(object: &Value, old: &Value, errors: &mut Errors) {
    let change = Change {
        object,
        old,
        status: Field::of(object, "status"),
    };
    for number in ["active", "succeeded", "failed", "ready", "terminating"] {
        rule::non_negative(&change.status.child(number), errors);
    }
    conditions(&change, errors);
    times(&change, errors);
    finished(&change, errors);
    indices(&change, errors);
    pods(&change, errors);
    contradictions(&change, errors);
    decreases(&change, errors);
}

fn conditions(change: &Change<'_>, errors: &mut Errors) {
    let complete = change.has("Complete");
    let complete_changed = change.has_changed("Complete");
    if complete
        && change.has("Failed")
        && (complete_changed || change.has_changed("Failed"))
    {
        let why = "cannot set Complete=True and Failed=true conditions";
        errors.push(change.conditions(why));
    }
    let target = change.has("FailureTarget");
    if complete && target && (complete_changed || change.has_changed("FailureTarget")) {
        let why = "cannot set Complete=True and FailureTarget=true conditions";
        errors.push(change.conditions(why));
    }
}

fn times(change: &Change<'_>, errors: &mut Errors) {
    let complete = change.has("Complete");
    let end = change.status.child("completionTime");
    let start = change.status.child("startTime");
    if change.has_changed("Complete") || change.changed("completionTime") {
        if end.is_set() && !complete {
            let why =
                "cannot set completionTime when there is no Complete=True condition";
            errors.push(end.invalid(why));
        }
        if !end.is_set() && complete {
            let why = "completionTime is required for Complete jobs";
            errors.push(end.required(why));
        }
    }
    // Both have the same format, so that string order is time order.
    if start.is_set() && end.is_set() && end.text() < start.text() {
        errors.push(end.invalid("must be equal to or after `startTime`"));
    }
    let failed = change.has_changed("Failed") || change.changed("failedIndexes");
    if failed && change.has("Failed") && !change.has("FailureTarget") {
        let why =
            "cannot set Failed=True condition without the FailureTarget=true condition";
        errors.push(change.conditions(why));
    }
    let met = change.has_changed("SuccessCriteriaMet");
    if complete
        && !change.has("SuccessCriteriaMet")
        && (change.has_changed("Complete") || met)
    {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true \
             condition";
        errors.push(change.conditions(why));
    }
}

fn finished(change: &Change<'_>, errors: &mut Errors) {
    if !change.is_finished() {
        return;
    }
    let just_finished = change.finish_changed();
    let active = change.status.child("active");
    if active.count() > 0 && (just_finished || change.changed("active")) {
        errors.push(active.invalid("active>0 is invalid for finished job"));
    }
    let start = change.status.child("startTime");
    let spec = &change.object["spec"];
    let never_ran = spec["suspend"] == true && spec["completions"] == 0;
    if !start.is_set() && !never_ran && (just_finished || change.changed("startTime")) {
        errors.push(start.required("startTime is required for finished job"));
    }
    let uncounted = change.status.child("uncountedTerminatedPods");
    let count = uncounted.child("failed").len() + uncounted.child("succeeded").len();
    if count > 0 && (just_finished || change.changed("uncountedTerminatedPods")) {
        errors.push(uncounted.invalid("must be empty for finished job"));
    }
}

fn indices(change: &Change<'_>, errors: &mut Errors) {
    let spec = &change.object["spec"];
    let is_indexed = spec["completionMode"] == "Indexed";
    let completed = change.status.child("completedIndexes");
    let checked = [
        ("completedIndexes", true),
        ("failedIndexes", !spec["backoffLimitPerIndex"].is_null()),
    ];
    let changed = checked
        .into_iter()
        .filter(|it| it.1 && change.changed(it.0));
    for (name, _) in changed {
        let field = change.status.child(name);
        let wrong = spec["completions"].as_i64();
        if let Some(why) = wrong.and_then(|it| interval_error(field.text(), it)) {
            errors.push(field.invalid(format!("error parsing {name}: {why}")));
        }
    }
    if change.changed("completedIndexes") && !completed.text().is_empty() && !is_indexed {
        let why =
            "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(completed.invalid(why));
    }
    let failed = change.status.child("failedIndexes");
    let by_index = !change.object["spec"]["backoffLimitPerIndex"].is_null();
    if change.changed("failedIndexes") && failed.is_set() && !by_index {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(failed.invalid(why));
    }
}

/// The error of a string of pod indexes such as `1,3-5`; each must be less than `completions`
/// (`validateIndexesFormat`).
fn interval_error(text: &str, completions: i64) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let index = |text: &str| {
        let number: i64 = text.parse().map_err(|_| {
            format!("cannot convert string to integer for index: {text:?}")
        })?;
        if number >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(number)
    };
    let order = |before: i64, now: i64| {
        let why = format!("non-increasing order, previous: {before}, current: {now}");
        (before >= now).then_some(why)
    };
    let mut last = None;
    for interval in text.split(',') {
        let mut limits = interval.split('-');
        let (first, second) = (limits.next().unwrap_or_default(), limits.next());
        if limits.next().is_some() {
            return Some(format!(
                "the fragment {interval:?} violates the requirement that an index interval can \
                 have at most two parts separated by '-'"
            ));
        }
        let first = match index(first) {
            Ok(first) => first,
            Err(why) => return Some(why),
        };
        let mut end = first;
        if let Some(second) = second {
            end = match index(second) {
                Ok(second) => second,
                Err(why) => return Some(why),
            };
            if let Some(why) = order(first, end) {
                return Some(why);
            }
        }
        if let Some(why) = last.and_then(|last| order(last, first)) {
            return Some(why);
        }
        last = Some(end);
    }
    None
}

fn pods(change: &Change<'_>, errors: &mut Errors) {
    let terminating = change.status.child("terminating");
    let is_changed = change.finish_changed() || change.changed("terminating");
    if terminating.count() > 0 && change.is_finished() && is_changed {
        errors.push(terminating.invalid("terminating>0 is invalid for finished job"));
    }
    let (ready, active) = (change.status.child("ready"), change.status.child("active"));
    let changed = change.changed("ready") || change.changed("active");
    if changed && ready.is_set() && ready.count() > active.count() {
        errors.push(ready.invalid("cannot set more ready pods than active"));
    }
}

fn contradictions(change: &Change<'_>, errors: &mut Errors) {
    let met = change.has("SuccessCriteriaMet");
    if met && change.has("Failed") {
        let why = "cannot set SuccessCriteriaMet=True and Failed=true conditions";
        errors.push(change.conditions(why));
    }
    if met && change.has("FailureTarget") {
        let why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
        errors.push(change.conditions(why));
    }
    let has_policy = !change.object["spec"]["successPolicy"].is_null();
    if has_policy && !met && change.has("Complete") {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless \
             SuccessCriteriaMet=True";
        errors.push(change.conditions(why));
    }
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if has_condition(change.old, kind) && !change.has(kind) {
            let why = format!("cannot disable the terminal {kind}=True condition");
            errors.push(change.conditions(&why));
        }
    }
}

fn decreases(change: &Change<'_>, errors: &mut Errors) {
    let old = Field::of(change.old, "status");
    let spec = &change.object["spec"];
    let elastic =
        spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"];
    for (name, checked) in [("failed", true), ("succeeded", !elastic)] {
        let number = change.status.child(name);
        if checked && number.count() < old.child(name).count() {
            errors.push(number.invalid(format!("cannot decrease the {name} counter")));
        }
    }
    let end = change.status.child("completionTime");
    let previous = old.child("completionTime");
    if end.is_set() && previous.is_set() && end.value != previous.value {
        errors.push(end.invalid("field is immutable"));
    }
    let start = change.status.child("startTime");
    let runs = change.object["spec"]["suspend"] != true;
    if old.child("startTime").is_set() && change.changed("startTime") && runs {
        let why = "field is immutable for unsuspended job once set";
        errors.push(start.invalid(why));
    }
    let met = |object: &Value| has_condition(object, "SuccessCriteriaMet");
    if met(change.old) && !met(change.object) {
        let why = "cannot disable the SuccessCriteriaMet=True condition";
        errors.push(change.conditions(why));
    }
    let completed = has_condition(change.old, "Complete");
    if completed && !met(change.old) && met(change.object) {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true \
             conditions";
        errors.push(change.conditions(why));
    }
}
