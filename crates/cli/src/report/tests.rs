use std::fs;
use std::path::Path;

use super::{Form, planned_report, print, read_rates, report, schema};
use crate::check::Judge;
use crate::document;
use fivespot_api::verdict::Lease;
use fivespot_usage::Query;

const DESK: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata:
  {name: desk, namespace: team-a, labels: {team: a}, creationTimestamp: 2026-10-01T00:00:00Z}
spec:
  schedule: {daysOfWeek: [mon-sun], hoursOfDay: [8-17], timezone: UTC, enabled: ENABLED}
  clusterName: production
  bootstrapSpec: {apiVersion: b/v1, kind: B, spec: {}}
  infrastructureSpec: {apiVersion: i/v1, kind: RemoteMachine, spec: {}}
status:
  phase: Active
  inSchedule: true
  usage:
    startTime: 2026-10-10T00:00:00Z
    months: [{month: 2026-10, activeSeconds: 36000, wantedSeconds: 36000}]
    accountedTime: 2026-10-11T08:00:00Z
    accountedState: Active
";

const STOP: &str = "\
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {name: stop, namespace: team-a, creationTimestamp: 2026-10-11T00:00:00Z}
spec:
  targetRef: {name: desk}
  mode: Stop
  startTime: 2026-10-11T11:00:00Z
  endTime: 2026-10-11T20:00:00Z
";

fn judge(query: &Query<'_>) -> Judge {
    Judge {
        lease: Lease::Held,
        capacity_lease: Lease::Held,
        now: query.now,
    }
}

/// The report in JSON at noon of 11 October, or the error message.
fn reported(manifests: &str, month: &str) -> String {
    let documents = document::parse("desk.yaml", manifests).unwrap();
    let query = Query {
        month: month.parse().unwrap(),
        now: "2026-10-11T12:00:00Z".parse().unwrap(),
        label: None,
        rates: None,
    };
    match report(documents, &query, &judge(&query)) {
        Err(failure) => failure.to_string(),
        Ok((report, _)) => {
            let mut out = Vec::new();
            print(&mut out, Form::Json, &report).unwrap();
            String::from_utf8(out).unwrap()
        }
    }
}

fn total(text: &str) -> [i64; 3] {
    let report: serde_json::Value = serde_json::from_str(text).unwrap();
    let total = &report["total"];
    ["wantedSeconds", "activeSeconds", "alwaysOnSeconds"]
        .map(|name| total[name].as_i64().unwrap())
}

#[test]
fn an_override_that_cannot_be_decoded_is_a_warning_and_the_others_are_counted() {
    let stop = STOP.replace("mode: Stop", "mode: Party");
    let text = format!("{}{STOP}{stop}", DESK.replace("ENABLED", "true"));
    let documents = document::parse("desk.yaml", &text).unwrap();
    let query = Query {
        month: "2026-10".parse().unwrap(),
        now: "2026-10-11T12:00:00Z".parse().unwrap(),
        label: None,
        rates: None,
    };
    let (report, notes) = report(documents, &query, &judge(&query)).unwrap();
    assert_eq!(report.total.figures.wanted_seconds, 13 * 3_600);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("desk.yaml, document 3 is left out: "),
        "{notes:?}"
    );
}

#[test]
fn the_time_since_the_account_was_written_is_counted_with_overrides_and_enabled() {
    let hour = 3_600;
    let desk = DESK.replace("ENABLED", "true");
    assert_eq!(
        total(&reported(&desk, "2026-10")),
        [14 * hour, 14 * hour, 36 * hour]
    );
    // One of the four hours is not wanted.
    let stopped = format!("{desk}{STOP}");
    assert_eq!(
        total(&reported(&stopped, "2026-10")),
        [13 * hour, 14 * hour, 36 * hour]
    );
}

#[test]
fn each_machine_has_the_verdict_that_status_prints() {
    let desk = DESK.replace("ENABLED", "true");
    let report: serde_json::Value =
        serde_json::from_str(&reported(&desk, "2026-10")).unwrap();
    assert_eq!(report["items"][0]["verdict"]["state"], "Serving");
}

#[test]
fn a_forecast_plans_the_whole_month_from_files_with_calendars_and_overrides() {
    let hour = 3_600;
    let calendar = "\
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleCalendar
metadata: {name: holidays, namespace: team-a}
spec: {dates: [{name: strike, date: 2026-10-20}]}
";
    let exceptions = "timezone: UTC, exceptions: \
                      [{name: h, action: Stop, calendarRef: {name: holidays}}]";
    let enabled = DESK.replace("ENABLED", "true");
    let closed = enabled.replace("timezone: UTC", exceptions);
    let killed = enabled.replace("clusterName", "killSwitch: true\n  clusterName");
    for (text, wanted) in [
        (enabled.clone(), 310),
        // Nine of ten hours of one day.
        (format!("{enabled}{STOP}"), 303),
        (format!("{closed}{calendar}"), 300),
        (DESK.replace("ENABLED", "false"), 0),
        (killed, 0),
    ] {
        let documents = document::parse("desk.yaml", &text).unwrap();
        let month: fivespot_usage::Month = "2026-10".parse().unwrap();
        let query = Query {
            month,
            now: month.end(),
            label: None,
            rates: None,
        };
        let (report, notes) = planned_report(documents, &query, None).unwrap();
        assert!(report.is_forecast && notes.is_empty(), "{notes:?}");
        let figures = report.total.figures;
        assert_eq!(figures.used_seconds, wanted * hour, "{text}");
        assert_eq!(figures.always_on_seconds, 744 * hour);
    }
}

#[test]
fn a_forecast_warns_about_a_calendar_that_is_not_in_the_files() {
    let exceptions = "timezone: UTC, exceptions: \
                      [{name: h, action: Stop, calendarRef: {name: holidays}}]";
    let desk = DESK.replace("ENABLED", "true");
    let desk = desk.replace("timezone: UTC", exceptions);
    let documents = document::parse("desk.yaml", &desk).unwrap();
    let query = Query {
        month: "2026-10".parse().unwrap(),
        now: "2026-11-01T00:00:00Z".parse().unwrap(),
        label: None,
        rates: None,
    };
    let (_, notes) = planned_report(documents, &query, None).unwrap();
    assert_eq!(
        notes,
        [
            "team-a/desk: ScheduleCalendar holidays was not found; its exceptions are left out."
        ]
    );
}

#[test]
fn a_month_that_has_not_begun_is_refused() {
    let desk = DESK.replace("ENABLED", "true");
    assert_eq!(
        reported(&desk, "2026-11"),
        "--month 2026-11: it begins at 2026-11-01T00:00:00Z, and now is 2026-10-11T12:00:00Z; \
         give a month that has begun"
    );
    let earlier: serde_json::Value =
        serde_json::from_str(&reported(&desk, "2026-09")).unwrap();
    assert_eq!(
        earlier["withoutAccount"],
        serde_json::json!(["team-a/desk"])
    );
}

#[test]
fn an_invalid_file_of_rates_is_reported_with_a_remedy() {
    let failure = read_rates(Path::new("nowhere.yaml"))
        .unwrap_err()
        .to_string();
    assert!(
        failure.starts_with("reading the rates nowhere.yaml: "),
        "{failure}"
    );
    let name = format!("5spot-rates-{}.yaml", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::write(&path, "currency: CHF\nrates: []\n").unwrap();
    let failure = read_rates(&path).unwrap_err().to_string();
    fs::remove_file(&path).unwrap();
    let wanted = "rates: expected 1 to 256 rates, found 0; correct the file; \
                  `5spot report --help` shows one";
    assert!(failure.ends_with(wanted), "{failure}");
}

#[test]
fn the_example_of_the_help_is_a_file_of_rates() {
    let help = crate::command();
    let help = help.find_subcommand("report").unwrap().get_after_help();
    let help = help.unwrap().to_string();
    let (_, example) = help.split_once("A file of rates:\n").unwrap();
    let example = example.replace("\n  ", "\n");
    fivespot_usage::Rates::parse(example.trim_start()).unwrap();
}

#[test]
fn the_schema_in_the_source_tree_is_up_to_date() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let schema = schema().unwrap();
    let found = fs::read_to_string(tree.join(&schema.path)).ok();
    let remedy = "cargo run --bin 5spot -- generate docs -o docs/reference";
    assert_eq!(schema.difference(found.as_deref()), None, "run `{remedy}`");
}

#[test]
fn one_machine_that_cannot_be_read_fails_no_other() {
    let odd = "---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: odd, namespace: team-a}
spec: {schedule: 7}
";
    let desk = DESK.replace("ENABLED", "true");
    let text = reported(&format!("{desk}{odd}"), "2026-10");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["items"][0]["name"], "desk");
    assert_eq!(report["withoutAccount"], serde_json::json!(["team-a/odd"]));
}

const SHOP: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledCapacity
metadata: {name: shop, namespace: team-a, creationTimestamp: 2026-10-10T00:00:00Z}
spec:
  schedule: {daysOfWeek: [mon-sun], hoursOfDay: [8-17], timezone: UTC}
  leadTime: 30m
  target: {apiVersion: apps/v1, kind: Deployment, name: shop}
  capacity: {field: replicas, activeValue: 5, inactiveValue: 1}
";

#[test]
fn a_capacity_has_the_hours_at_each_value_since_it_was_created() {
    let text = reported(SHOP, "2026-10");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let shop = &report["capacities"][0];
    assert_eq!(shop["target"], "Deployment shop");
    // Ten hours and the lead time on the 10th, four and a half hours on the 11th until noon.
    let hours = |of: usize| {
        let of = &shop["values"][of];
        (
            of["values"]["replicas"].clone(),
            of["seconds"].as_f64().unwrap() / 3_600.0,
        )
    };
    assert_eq!((hours(0), hours(1)), ((5.into(), 15.0), (1.into(), 21.0)));
    assert_eq!(report["items"], serde_json::json!([]));
    assert!(shop["verdict"]["state"].is_string());
}

#[test]
fn a_capacity_that_is_disabled_has_its_inactive_values_all_the_time() {
    let disabled = SHOP.replace("spec:", "spec:\n  enabled: false");
    let text = reported(&disabled, "2026-10");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let values = &report["capacities"][0]["values"];
    assert_eq!(values[0]["seconds"], 0);
    assert_eq!(values[1]["seconds"], 36 * 3_600);
}

/// A machine of a class, from eight to ten, and an override for ten hours from ten on.
const OF_CLASS: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: desk, namespace: team-a, creationTimestamp: 2026-10-01T00:00:00Z}
spec:
  schedule: {daysOfWeek: [mon-sun], hoursOfDay: [8-9], timezone: UTC}
  classRef: {name: desks}
status:
  phase: Inactive
  usage:
    startTime: 2026-10-10T00:00:00Z
    months: [{month: 2026-10, activeSeconds: 36000, wantedSeconds: 36000}]
    accountedTime: 2026-10-11T07:30:00Z
    accountedState: None
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {name: long, namespace: team-a, creationTimestamp: 2026-10-11T07:00:00Z}
spec:
  targetRef: {name: desk}
  mode: Run
  startTime: 2026-10-11T10:00:00Z
  endTime: 2026-10-11T20:00:00Z
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineClass
metadata: {name: desks}
spec:
  clusterNames: [production]
  bootstrapSpec: {apiVersion: b/v1, kind: B, spec: {}}
  infrastructureSpec: {apiVersion: i/v1, kind: RemoteMachine, spec: {}}
  limits: {maxOverride: 2h}
";

#[test]
fn a_machine_has_the_rates_and_the_limits_of_its_class() {
    let rates = "currency: CHF\nrates: \
                 [{name: desks, infrastructureKind: RemoteMachine, pricePerHour: 2}]";
    let rates = fivespot_usage::Rates::parse(rates).unwrap();
    let query = Query {
        month: "2026-10".parse().unwrap(),
        now: "2026-10-11T12:00:00Z".parse().unwrap(),
        label: None,
        rates: Some(&rates),
    };
    let documents = document::parse("desk.yaml", OF_CLASS).unwrap();
    let (report, notes) = report(documents, &query, &judge(&query)).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    let report = serde_json::to_value(report).unwrap();
    // The operator does not apply the override: it is longer than two hours.
    assert_eq!(report["total"]["wantedSeconds"], 12 * 3_600);
    assert_eq!(report["items"][0]["rate"], "desks");
}

#[test]
fn a_machine_whose_class_is_not_known_is_counted_with_a_note_about_what_is_left_out() {
    let (machine, _) = OF_CLASS.split_once("---\n").unwrap();
    let query = Query {
        month: "2026-10".parse().unwrap(),
        now: "2026-10-11T12:00:00Z".parse().unwrap(),
        label: None,
        rates: None,
    };
    let documents = document::parse("desk.yaml", machine).unwrap();
    let (report, notes) = report(documents, &query, &judge(&query)).unwrap();
    assert_eq!(
        notes,
        [
            "team-a/desk: ScheduledMachineClass desks is not known here; its hosts, limits, lead time \
          and end policy are left out."
        ]
    );
    assert_eq!(report.total.figures.wanted_seconds, 12 * 3_600);
}
