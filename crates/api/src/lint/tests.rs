use serde_json::{Value, json};

use fivespot_schedule::Steps;

use super::{
    LINTS, MAX_STEPS, check, hosts_of_classes, of_schedule_within, shared_hosts,
};
use crate::ScheduledMachine;
use crate::rules::acceptable;

const NOW: &str = "2026-01-05T00:00:00Z";

fn edited(edits: &[(&str, Value)]) -> ScheduledMachine {
    let mut object = acceptable();
    object["spec"]["gracefulShutdownTimeout"] = "5m".into();
    for (field, value) in edits {
        let mut at = &mut object["spec"];
        for part in field.split('.') {
            at = &mut at[part];
        }
        *at = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn warnings(edits: &[(&str, Value)]) -> Vec<(&'static str, String)> {
    let found = check(&edited(edits), NOW.parse().unwrap());
    found
        .into_iter()
        .map(|warning| {
            (
                warning.lint.code,
                format!("{}: {}", warning.field, warning.message),
            )
        })
        .collect()
}

fn codes(edits: &[(&str, Value)]) -> Vec<&'static str> {
    warnings(edits).into_iter().map(|(code, _)| code).collect()
}

fn cron(expression: &str, duration: &str) -> [(&'static str, Value); 4] {
    [
        ("schedule.daysOfWeek", json!([])),
        ("schedule.hoursOfDay", json!([])),
        ("schedule.cron", expression.into()),
        ("schedule.duration", duration.into()),
    ]
}

#[test]
fn office_hours_have_no_warnings() {
    assert_eq!(codes(&[]), [""; 0]);
    let zone = ("schedule.timezone", json!("America/New_York"));
    assert_eq!(codes(&[zone]), [""; 0]);
}

#[test]
fn hours_over_midnight_on_some_days_only_are_reported() {
    let night = ("schedule.hoursOfDay", json!(["22-6"]));
    let daily = ("schedule.daysOfWeek", json!(["mon-sun"]));
    assert_eq!(codes(std::slice::from_ref(&night)), ["SL002"]);
    assert_eq!(codes(&[night, daily]), [""; 0]);
}

#[test]
fn zones_that_are_not_locations_are_reported() {
    for (zone, is_reported) in [
        ("UTC", false),
        ("Europe/Zurich", false),
        ("America/Argentina/Ushuaia", false),
        ("EST", true),
        ("CET", true),
        ("Etc/GMT+5", true),
        ("Mars/Olympus", true),
        ("", true),
    ] {
        let found = codes(&[("schedule.timezone", zone.into())]);
        assert_eq!(found.contains(&"SL003"), is_reported, "{zone}: {found:?}");
    }
}

#[test]
fn a_clock_change_is_reported_where_an_edge_falls_into_it() {
    let zone = ("schedule.timezone", json!("America/New_York"));
    let sundays = ("schedule.daysOfWeek", json!(["sun"]));
    let hour = |hour: &str| ("schedule.hoursOfDay", json!([hour]));
    let found = warnings(&[zone.clone(), sundays.clone(), hour("2")]);
    let expected = "spec.schedule: on 2026-03-08 the clocks in America/New_York skip 02:00 to \
                    03:00, at the start or end of a window: skipped hours are never active";
    assert_eq!(found, [("SL004", expected.to_owned())]);
    let found = warnings(&[zone.clone(), sundays.clone(), hour("1")]);
    let expected = "spec.schedule: on 2026-11-01 the clocks in America/New_York repeat 01:00 \
                    to 02:00, at the start or end of a window: repeated hours are active twice";
    assert_eq!(found, [("SL004", expected.to_owned())]);
    assert_eq!(codes(&[zone, sundays, hour("0-23")]), [""; 0]);
}

#[test]
fn the_effect_of_a_clock_change_on_a_cron_is_described() {
    for (cron, expected) in [
        (
            "30 2 8 3 *",
            "on 2026-03-08 the clocks in America/New_York skip 02:00 to 03:00, at the start or \
             end of a window: cron expressions that match in the skipped time fire at its end",
        ),
        (
            "30 1 1 11 *",
            "on 2026-11-01 the clocks in America/New_York repeat 01:00 to 02:00, at the start or \
             end of a window: cron expressions that match in the repeated time fire twice",
        ),
    ] {
        let zone = ("schedule.timezone", json!("America/New_York"));
        let found = warnings(&[&self::cron(cron, "3h")[..], &[zone][..]].concat());
        assert_eq!(found, [("SL004", format!("spec.schedule: {expected}"))]);
    }
}

#[test]
fn a_window_that_is_shorter_than_the_shutdown_is_reported() {
    assert_eq!(codes(&cron("0 9 * * *", "4m")), ["SL005"]);
    assert_eq!(codes(&cron("0 9 * * *", "5m")), [""; 0]);
    // The shutdown ends with the earlier of the two timeouts.
    let drain = ("nodeDrainTimeout", json!("2m"));
    let short = [&cron("0 9 * * *", "2m")[..], &[drain][..]].concat();
    assert_eq!(codes(&short), [""; 0]);
    // Adjacent windows are merged.
    assert_eq!(codes(&cron("* * * * *", "1m")), [""; 0]);
}

#[test]
fn a_day_that_no_month_has_never_fires() {
    assert_eq!(codes(&cron("0 0 30 2 *", "1h")), ["SL006"]);
    assert_eq!(codes(&cron("0 0 29 2 *", "1h")), [""; 0]);
}

#[test]
fn short_commands_are_reported_one_by_one() {
    let commands = ("killIfCommands", json!(["vim", "java", "ü"]));
    let found = warnings(&[commands]);
    let fields: Vec<&str> = found
        .iter()
        .filter_map(|(_, text)| text.split(':').next())
        .collect();
    assert_eq!(fields, ["spec.killIfCommands[0]", "spec.killIfCommands[2]"]);
}

#[test]
fn a_kubeadm_machine_without_a_version_is_reported() {
    let kubeadm = ("bootstrapSpec.kind", json!("KubeadmConfig"));
    assert_eq!(codes(std::slice::from_ref(&kubeadm)), ["SL008"]);
    let version = ("machineTemplate", json!({"version": "v1.31.2"}));
    assert_eq!(codes(&[kubeadm, version.clone()]), [""; 0]);
    assert_eq!(codes(&[version]), [""; 0], "k0s has a version of its own");
}

#[test]
fn a_remote_machine_without_an_ssh_key_is_reported_unless_it_needs_none() {
    let spec = |spec: Value| codes(&[("infrastructureSpec.spec", spec)]);
    assert_eq!(spec(json!({"address": "192.0.2.7"})), ["SL009"]);
    let empty = json!({"address": "192.0.2.7", "sshKeyRef": {"name": ""}});
    assert_eq!(spec(empty), ["SL009"]);
    let key = json!({"address": "192.0.2.7", "sshKeyRef": {"name": "key"}});
    assert_eq!(spec(key), [""; 0]);
    assert_eq!(spec(json!({"pool": "racks"})), [""; 0]);
    let job = json!({"address": "192.0.2.7", "provisionJob": {}});
    assert_eq!(spec(job), [""; 0]);
    let other = ("infrastructureSpec.kind", json!("Metal3Machine"));
    let given = ("infrastructureSpec.spec", json!({"address": "192.0.2.7"}));
    assert_eq!(
        codes(&[other, given]),
        [""; 0],
        "other providers ask for no such key"
    );
}

#[test]
fn two_machines_with_one_address_are_reported_with_the_other_name() {
    let machine = |name: &str, spec: Value| {
        let mut object = acceptable();
        object["metadata"]["name"] = name.into();
        object["spec"]["infrastructureSpec"]["spec"] = spec;
        serde_json::from_value(object).unwrap()
    };
    let all = [
        machine("first", json!({"address": "192.0.2.7"})),
        machine("another", json!({"address": "192.0.2.8"})),
        machine("second", json!({"address": "192.0.2.7", "port": 22})),
        machine("behind", json!({"address": "192.0.2.7", "port": 2222})),
        machine("pooled", json!({"address": "192.0.2.7", "pool": "racks"})),
    ];
    let all: Vec<&crate::ScheduledMachine> = all.iter().collect();
    let found: Vec<(usize, String)> = shared_hosts(&all)
        .into_iter()
        .map(|(place, warning)| {
            (place, format!("{} {}", warning.lint.code, warning.message))
        })
        .collect();
    let change_text = |other: &str| {
        format!("SL010 192.0.2.7:22 is also used by ScheduledMachine default/{other}")
    };
    assert_eq!(
        found,
        [(0, change_text("second")), (2, change_text("first"))]
    );
    let twice = [all[0], all[0]];
    assert_eq!(shared_hosts(&twice), [], "one object that is given twice");
}

#[test]
fn hosts_of_classes_are_compared_with_the_machines_that_name_them() {
    let machine = |name: &str, class: &str, host: Option<&str>| {
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {"name": name},
            "spec": {"schedule": {}, "classRef": {"name": class, "host": host}},
        });
        serde_json::from_value::<crate::ScheduledMachine>(object).unwrap()
    };
    let class = |name: &str, hosts: Value| {
        let mut object = crate::rules::acceptable();
        object["kind"] = json!("ScheduledMachineClass");
        object["metadata"] = json!({"name": name});
        object["spec"]["clusterNames"] = json!(["prod"]);
        object["spec"]["hosts"] = hosts;
        serde_json::from_value::<crate::ScheduledMachineClass>(object).unwrap()
    };
    let machines = [
        ("a", "desks", Some("one")),
        ("b", "desks", Some("two")),
        ("c", "desks", Some("one")),
        ("d", "servers", Some("one")),
        ("e", "elsewhere", Some("one")),
        ("f", "desks", None),
    ];
    let machines: Vec<_> = machines
        .into_iter()
        .map(|(name, class, host)| machine(name, class, host))
        .collect();
    let classes = [
        class("desks", json!([{"name": "one"}])),
        class("servers", json!([])),
    ];
    let machines: Vec<_> = machines.iter().collect();
    let classes: Vec<_> = classes.iter().collect();
    let found: Vec<_> = hosts_of_classes(&machines, &classes)
        .into_iter()
        .map(|(place, of)| (place, of.lint.code, of.message))
        .collect();
    let said = |place, code, message: &str| (place, code, message.to_owned());
    assert_eq!(
        found,
        [
            said(1, "SL019", "ScheduledMachineClass desks has no host two"),
            said(2, "SL020", "ScheduledMachine default/a names one, too"),
            said(3, "SL019", "ScheduledMachineClass servers has no hosts"),
        ]
    );
}

#[test]
fn codes_are_in_order_and_unique() {
    assert!(LINTS.is_sorted_by(|one, next| one.code < next.code));
}

const NIGHT: &str =
    r#"{"name": "night", "days": ["mon-fri"], "start": "19:00", "end": "07:30"}"#;

fn windows(windows: &[&str]) -> [(&'static str, Value); 3] {
    let windows = windows
        .iter()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    [
        ("schedule.daysOfWeek", json!([])),
        ("schedule.hoursOfDay", json!([])),
        ("schedule.windows", windows.collect()),
    ]
}

#[test]
fn a_window_that_lies_within_the_others_is_reported() {
    let late = r#"{"name": "late", "days": ["wed"], "start": "22:00", "duration": "2h"}"#;
    let found = warnings(&windows(&[NIGHT, late]));
    let message = "spec.schedule.windows[1]: window 'late' lies within the other windows";
    assert_eq!(found, [("SL011", message.to_owned())]);
    let early = late.replace("22:00", "18:00");
    assert_eq!(codes(&windows(&[NIGHT, &early])), [""; 0]);
}

#[test]
fn an_exception_whose_last_date_has_passed_is_reported() {
    let exception = |last: &str| {
        let dates = json!([{"name": "works", "action": "Stop",
            "startDate": "2026-01-01", "endDate": last}]);
        codes(&[("schedule.exceptions", dates)])
    };
    assert_eq!(exception("2026-01-04"), ["SL012"]);
    assert_eq!(exception("2026-01-05"), [""; 0]);
}

#[test]
fn a_calendar_without_a_future_date_is_reported() {
    let codes = |date: &str| {
        let calendar = serde_json::from_value(json!({
            "metadata": {"name": "c"}, "spec": {"dates": [{"name": "d", "date": date}]},
        }));
        let now = "2026-01-05T00:00:00Z".parse().unwrap();
        super::of_calendar(&calendar.unwrap(), now).len()
    };
    assert_eq!(
        (codes("2026-01-03"), codes("2026-01-05"), codes("12-25")),
        (1, 0, 0)
    );
}

#[test]
fn windows_too_short_for_provisioning_or_shutdown_are_reported() {
    let short = r#"{"name": "short", "start": "12:00", "duration": "10m"}"#;
    let with = |field: &'static str, value: &str| {
        let mut edits = windows(&[short]).to_vec();
        edits.push((field, value.into()));
        codes(&edits)
    };
    assert_eq!(with("provisioning.leadTime", "10m"), ["SL014"]);
    assert_eq!(with("provisioning.leadTime", "5m"), [""; 0]);
    let mut edits = windows(&[short]).to_vec();
    edits.push(("shutdown.endPolicy", "CompleteByWindowEnd".into()));
    edits.push(("gracefulShutdownTimeout", "10m".into()));
    assert_eq!(codes(&edits), ["SL015"]);
    edits.push(("provisioning.leadTime", "1h".into()));
    assert_eq!(codes(&edits), ["SL015"]);
}

/// Sixteen windows of so long on every day, an hour apart.
fn sixteen_windows(duration: &str) -> [(&'static str, Value); 3] {
    let window = |hour: u32| json!({"name": format!("w{hour}"), "start": format!("{hour:02}:00"), "duration": duration});
    [
        ("schedule.daysOfWeek", json!([])),
        ("schedule.hoursOfDay", json!([])),
        ("schedule.windows", (4..20).map(window).collect()),
    ]
}

#[test]
fn the_warnings_of_the_most_expensive_schedules_take_few_steps() {
    let minutes = cron("*/2 * * * *", "1m");
    let never = cron("0 0 30 2 *", "1m");
    let apart = sixteen_windows("1m");
    let joined = sixteen_windows("168h");
    for edits in [&minutes[..], &never, &apart, &joined] {
        for zone in ["Africa/Casablanca", "America/New_York"] {
            let zone = [("schedule.timezone", json!(zone))];
            let object = edited(&[edits, &zone].concat());
            let steps = Steps::at_most(MAX_STEPS);
            of_schedule_within(&object, NOW.parse().unwrap(), &steps);
            let one_comparison = 20_000;
            assert!(
                steps.taken() > 0 && steps.taken() <= MAX_STEPS + one_comparison,
                "{edits:?} {}",
                steps.taken()
            );
        }
    }
}

#[test]
fn each_of_sixteen_windows_that_lie_within_the_others_is_reported() {
    let codes = codes(&sixteen_windows("168h"));
    let redundant = codes.iter().filter(|code| **code == "SL011");
    assert_eq!(redundant.count(), 16);
}
