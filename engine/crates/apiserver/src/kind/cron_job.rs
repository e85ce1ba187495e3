//! CronJobs: validated and stored; no controller runs them.

mod schedule;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::fill;
use super::{BuiltinKind, Write, column, go_struct, job, rule, workload};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `cronjobs` of `batch/v1`.
#[derive(Debug)]
pub(super) struct CronJob;

/// The maximum length of a name: the name of a job is eleven characters longer.
const MAX_NAME_LENGTH: usize = 52;

const NONE: &str = "<none>";

impl BuiltinKind for CronJob {
    fn resource(&self) -> Resource {
        Resource::new("batch", "v1", "CronJob", "cronjobs")
            .with_short_names(&["cj"])
            .with_category("all")
            .with_subresources(&[Subresource::Status])
            .with_columns(columns())
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        let template = meta::field(spec, "jobTemplate");
        meta::field(template, "metadata");
        job::default_template(meta::field(template, "spec"));
        fill(spec, "concurrencyPolicy", "Allow");
        fill(spec, "suspend", false);
        fill(spec, "successfulJobsHistoryLimit", 3);
        fill(spec, "failedJobsHistoryLimit", 1);
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({}));
    }

    fn skips_status_validation(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            return errors;
        }
        spec(write, &mut errors);
        let name = meta::name(write.object);
        if write.old.is_none() && name.len() > MAX_NAME_LENGTH {
            let why = format!("must be no more than {MAX_NAME_LENGTH} characters");
            errors.push(FieldError::invalid("metadata.name", name.into(), why));
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        workload::template_warnings(
            write,
            "jobTemplate.spec.template",
            workload::Name::InPods,
        )
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let suspended = if spec["suspend"] == true {
            "True"
        } else {
            "False"
        };
        let last = match &status["lastScheduleTime"] {
            Value::Null => NONE.to_owned(),
            time => column::since(time, now),
        };
        let mut cells = vec![
            column::name(object),
            column::string(&spec["schedule"]),
            spec["timeZone"].as_str().unwrap_or(NONE).into(),
            suspended.into(),
            column::count(&status["active"]).into(),
            last.into(),
            column::age(object, now),
        ];
        let job = &spec["jobTemplate"]["spec"];
        cells.extend(workload::container_cells(&job["template"]));
        cells.push(column::selector(&job["selector"]));
        cells
    }
}

fn columns() -> Vec<Column> {
    let zone = "The time zone name for the given schedule, see \
         https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, this \
         will default to the time zone of the kube-controller-manager process. The set of valid \
         time zone names and the time zone offset is loaded from the system-wide time zone \
         database by the API server during CronJob validation and the controller manager during \
         execution. If no system-wide time zone database can be found a bundled version of the \
         database is used instead. If the time zone name becomes invalid during the lifetime of \
         a CronJob or due to a change in host configuration, the controller will stop creating \
         new new Jobs and will create a system event with the reason UnknownTimeZone. More \
         information can be found in \
         https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones";
    let mut columns = vec![
        Column::new(
            "Schedule",
            "string",
            "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.",
        ),
        Column::new("Timezone", "string", zone),
        Column::new(
            "Suspend",
            "boolean",
            "This flag tells the controller to suspend subsequent executions, it does not \
             apply to already started executions.  Defaults to false.",
        ),
        Column::new(
            "Active",
            "integer",
            "A list of pointers to currently running jobs.",
        ),
        Column::new(
            "Last Schedule",
            "string",
            "Information when was the last time the job was successfully scheduled.",
        ),
        Column::age(),
    ];
    columns.extend(workload::container_columns());
    columns.push(Column::new("Selector", "string", job::SELECTOR).wide());
    columns
}

fn spec(write: &Write<'_>, errors: &mut Errors) {
    let spec = Field::of(write.object, "spec");
    let old = write.old.map(|it| &it["spec"]);
    let zone = spec.child("timeZone");
    schedule(&spec, old, errors);
    rule::non_negative(&spec.child("startingDeadlineSeconds"), errors);
    if old.is_none_or(|it| it["timeZone"] != *zone.value) {
        time_zone(&zone, errors);
    }
    let policy = spec.child("concurrencyPolicy");
    rule::one_of(&policy, &["Allow", "Forbid", "Replace"], errors);
    let job = spec.child("jobTemplate.spec");
    job::spec_errors(&job, errors);
    let selector = job.child("selector");
    if selector.is_set() {
        let shown = go_struct::selector(selector.value);
        let why = "`selector` will be auto-generated";
        errors.push(go_struct::invalid(&selector, &shown, why));
    }
    let manual = job.child("manualSelector");
    if manual.is_true() {
        let (path, known) = (manual.path.clone(), ["nil", "false"]);
        errors.push(FieldError::not_supported(path, true.into(), known));
    }
    for limit in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        rule::non_negative(&spec.child(limit), errors);
    }
}

/// Validates the schedule. A stored schedule with a time zone may keep one.
fn schedule(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let field = spec.child("schedule");
    let text = field.text();
    if text.is_empty() {
        errors.push(field.required(""));
        return;
    }
    if let Err(why) = schedule::check(text) {
        errors.push(field.invalid(why));
    }
    if !text.contains("TZ") {
        return;
    }
    let previous = old.and_then(|it| it["schedule"].as_str());
    if !previous.is_some_and(|it| it.contains("TZ")) {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(field.invalid(why));
    } else if spec.child("timeZone").is_set() {
        let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(field.invalid(why));
    }
}

fn time_zone(zone: &Field<'_>, errors: &mut Errors) {
    let name = zone.text();
    if !zone.is_set() {
        return;
    }
    if name.is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
        return;
    }
    if name.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in \
             https://www.iana.org/time-zones";
        errors.push(zone.invalid(why));
    } else if TimeZone::get(name).is_err() {
        errors.push(zone.invalid(format!("unknown time zone {name}")));
    }
}
