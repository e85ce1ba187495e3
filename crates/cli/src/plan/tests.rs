use insta::assert_snapshot;

use jiff::Timestamp;

use super::{Fleet, LINES, Range, Report, report, text};
use crate::{Failure, Outcome, document};

/// Two hosts at night, and a class without hosts.
const CLASSES: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineClass
metadata: {name: desks}
spec:
  clusterNames: [render]
  bootstrapSpec: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
  hosts: [{name: desk-2}, {name: desk-1}]
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineClass
metadata: {name: cloud}
spec:
  clusterNames: [render]
  bootstrapSpec: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
  provisioning: {leadTime: 5m}
---
";

/// A machine of a class, from Monday to Friday.
fn machine(name: &str, class: &str, hours: &str, more: &str) -> String {
    format!(
        "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {{name: {name}, namespace: render}}
spec:
  classRef: {class}
  schedule: {{daysOfWeek: [mon-fri], hoursOfDay: ['{hours}'], timezone: Europe/Zurich}}
{more}---
"
    )
}

/// The forecast with its exit code, or the failure.
fn planned(manifests: &str, span: (&str, &str)) -> String {
    shown(manifests, span, LINES)
}

fn shown(manifests: &str, span: (&str, &str), lines: usize) -> String {
    let report = match report_of(manifests, span) {
        Ok(report) => report,
        Err(failure) => return failure.to_string(),
    };
    let mut out = Vec::new();
    text(&mut out, &report, lines).unwrap();
    let text = String::from_utf8(out).unwrap();
    let code = u8::from(report.outcome() == Outcome::No);
    format!("{text}exit code {code}\n")
}

fn report_of(manifests: &str, span: (&str, &str)) -> Result<Report, Failure> {
    let documents = document::parse("fleet.yaml", manifests)?;
    let range = Range {
        from: span.0.parse().ok(),
        to: span.1.parse().ok(),
        now: Timestamp::UNIX_EPOCH,
        zone: None,
    };
    report(Fleet::of(documents, None)?, &range, None)
}

/// A Monday and a Tuesday.
const TWO_DAYS: (&str, &str) = ("2026-03-09", "2026-03-11");

#[test]
fn a_week_that_fits_says_so() {
    let fleet = [
        CLASSES,
        &machine("a", "{name: desks}", "9-11", ""),
        &machine("b", "{name: desks}", "10-11", ""),
        // The other two have left when it begins.
        &machine("c", "{name: desks, host: desk-1}", "13", ""),
    ];
    assert_snapshot!(planned(&fleet.concat(), TWO_DAYS));
}

#[test]
fn an_opening_without_a_free_host_is_named_with_who_has_the_hosts() {
    let fleet = [
        CLASSES,
        &machine("first", "{name: desks}", "9-11", "  priority: 80\n"),
        &machine("named", "{name: desks, host: desk-1}", "9-10", ""),
        &machine("other", "{name: desks, host: desk-2}", "10", ""),
        &machine("third", "{name: desks}", "9-11", "  priority: 10\n"),
        &machine("wrong", "{name: desks, host: desk-9}", "9", ""),
        &machine("lost", "{name: desks}", "9", "  clusterName: production\n"),
    ];
    assert_snapshot!(planned(&fleet.concat(), TWO_DAYS));
}

#[test]
fn a_lead_time_that_is_shorter_than_the_last_provisioning_is_an_opening_that_is_late() {
    let status = "\
status:
  lastProvisioning: {startTime: '2026-03-06T08:00:00Z', readyTime: '2026-03-06T08:12:00Z'}
";
    let fleet = [
        CLASSES,
        &machine("slow", "{name: cloud}", "9-11", status),
        // It has no lead time.
        &machine("desk", "{name: desks}", "9-11", status),
    ];
    assert_snapshot!(planned(&fleet.concat(), TWO_DAYS));
}

#[test]
fn a_set_counts_as_its_machines_and_overrides_and_calendars_count() {
    let set = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineSet
metadata: {name: night, namespace: render}
spec:
  replicas: 3
  template:
    spec:
      classRef: {name: desks}
      schedule:
        daysOfWeek: [mon-fri]
        hoursOfDay: [20-23]
        timezone: Europe/Zurich
        exceptions: [{name: carnival, calendarRef: {name: holidays}, action: Stop}]
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleCalendar
metadata: {name: holidays, namespace: render}
spec: {dates: [{date: '2026-03-10', name: carnival}]}
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {name: rest, namespace: render}
spec:
  targetRef: {name: night-0}
  mode: Stop
  startTime: 2026-03-11T00:00:00Z
  endTime: 2026-03-12T00:00:00Z
---
";
    // On Monday one too many, on Tuesday none, on Wednesday two.
    let fleet = [CLASSES, set].concat();
    assert_snapshot!(planned(&fleet, ("2026-03-09", "2026-03-12")));
    // A machine of the set that is there as well counts once.
    let member = machine("night-1", "{name: desks}", "20-23", "").replace(
        "namespace: render",
        "namespace: render, labels: {5spot.finos.org/scheduled-machine-set: night}",
    );
    let fleet = [CLASSES, set, &member].concat();
    assert_snapshot!(planned(&fleet, ("2026-03-09", "2026-03-12")));
}

#[test]
fn an_object_that_cannot_be_evaluated_is_a_line_and_not_the_end() {
    let fleet = [
        CLASSES,
        &machine("good", "{name: desks}", "9", ""),
        &machine("bad", "{name: desks}", "29", ""),
        &machine("strange", "{name: moon}", "9", ""),
    ];
    assert_snapshot!(planned(&fleet.concat(), TWO_DAYS));
    let bad = machine("bad", "{name: desks}", "29", "");
    assert_snapshot!(planned(&bad, TWO_DAYS));
}

#[test]
fn a_long_list_is_cut_off_and_one_that_is_too_long_is_refused() {
    let minutes = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: NAME, namespace: render}
spec:
  classRef: {name: desks}
  schedule: {cron: '*/2 * * * *', duration: 1m, timezone: UTC}
---
";
    let machine = |name: &str| minutes.replace("NAME", name);
    let fleet = [CLASSES.to_owned(), machine("a"), machine("b"), machine("c")];
    let hours = ("2026-03-09T00:00:00Z", "2026-03-09T00:10:00Z");
    assert_snapshot!(shown(&fleet.concat(), hours, 2));
    assert_snapshot!(planned(&fleet.concat(), ("2026-03-09", "2027-03-09")));
}

#[test]
fn the_limits_of_a_class_count_and_an_override_that_it_does_not_allow_does_not() {
    let limits = "  hosts: [{name: desk-2}, {name: desk-1}]
  limits: {machinesPerNamespace: 1, maxOverride: 2h}
  timezone: Europe/Zurich
";
    let hosts = "  hosts: [{name: desk-2}, {name: desk-1}]\n";
    let run = |hours: u32| {
        format!(
            "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {{name: long, namespace: render}}
spec:
  targetRef: {{name: a}}
  mode: Run
  startTime: 2026-03-09T18:00:00Z
  endTime: 2026-03-09T{:02}:00:00Z
---
",
            18 + hours
        )
    };
    let fleet = |hours| {
        [
            CLASSES.replacen(hosts, limits, 1),
            machine("a", "{name: desks}", "9-11", "  priority: 80\n"),
            machine("b", "{name: desks}", "11-12", ""),
            run(hours),
        ]
        .concat()
    };
    let day = ("2026-03-09", "2026-03-10");
    let three = planned(&fleet(3), day);
    assert!(
        three.contains("render/b  1h    LimitReached  limits.machinesPerNamespace of "),
        "{three}"
    );
    assert!(three.contains("1 of 2 openings"), "{three}");
    let two = planned(&fleet(2), day);
    assert!(two.contains("1 of 3 openings"), "{two}");
}

#[test]
fn json_has_every_broken_opening_with_its_reason_and_remedy() {
    let fleet = [
        CLASSES,
        &machine(
            "a",
            "{name: desks, host: desk-1}",
            "9-11",
            "  priority: 80\n",
        ),
        &machine("b", "{name: desks, host: desk-1}", "11-12", ""),
    ];
    let report = report_of(&fleet.concat(), ("2026-03-09", "2026-03-10")).unwrap();
    let mut out = Vec::new();
    crate::output::json(&mut out, &report.printed()).unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn a_class_that_does_not_select_a_namespace_is_for_none_of_its_machines() {
    let select =
        "  namespaceSelector: {matchLabels: {tier: night}}\n  hosts: [{name: desk-2}";
    let classes = CLASSES.replacen("  hosts: [{name: desk-2}", select, 1);
    let namespace = |labels: &str| {
        format!(
            "\
apiVersion: v1
kind: Namespace
metadata: {{name: render, labels: {labels}}}
---
"
        )
    };
    let of = |namespace: &str| {
        let fleet = [
            &*classes,
            namespace,
            &machine("a", "{name: desks}", "9", ""),
        ];
        planned(&fleet.concat(), TWO_DAYS)
    };
    let refused = of(&namespace("{tier: day}"));
    let row = "render/a  whole window  ClassNotAllowed  ScheduledMachineClass desks does not select \
               namespace render; name another class, or have the namespace labelled\n";
    assert!(refused.contains(row), "{refused}");
    let kept = "All 2 openings";
    assert!(of(&namespace("{tier: night}")).starts_with(kept));
    // Its labels are not known.
    assert!(of("").starts_with(kept));
}

#[test]
fn machines_that_may_not_begin_at_once_are_late_and_jitter_is_that_of_the_uid() {
    let rates = "  startsPerMinute: 1\n  hosts: [{name: desk-2}";
    let classes = CLASSES.replacen("  hosts: [{name: desk-2}", rates, 1);
    let [a, b] = ["a", "b"].map(|name| machine(name, "{name: desks}", "9", ""));
    let late = planned(&[&*classes, &a, &b].concat(), ("2026-03-09", "2026-03-10"));
    let row = "render/b  1m    LimitReached  startsPerMinute 1 of ScheduledMachineClass desks is \
               reached; set a lead time, or have startsPerMinute raised\n";
    assert!(late.contains(row), "{late}");
    let classes = classes.replacen("  startsPerMinute: 1", "  jitter: 30m", 1);
    let fleet =
        |b: &str| [&*classes, &a, b, &machine("c", "{name: desks}", "9", "")].concat();
    let unknown = planned(&fleet(&b), ("2026-03-09", "2026-03-10"));
    assert!(
        unknown.contains("3 machines have a class with jitter and no uid"),
        "{unknown}"
    );
    assert!(unknown.contains("09:00:00 +01:00  render/c"), "{unknown}");
    // The last of them opens later than the others.
    let with_uid = machine("b", "{name: desks}", "9", "")
        .replace("namespace: render", "namespace: render, uid: uid-820");
    let known = planned(&fleet(&with_uid), ("2026-03-09", "2026-03-10"));
    assert!(
        known.contains("2 machines have a class with jitter and no uid"),
        "{known}"
    );
    assert!(known.contains("09:19:00 +01:00  render/b"), "{known}");
}
