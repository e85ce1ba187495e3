use insta::assert_snapshot;

use fivespot_drawing::terminal::TerminalOptions;

use serde_json::{Value, json};

use super::{Context, Form, Preview, PreviewScope, Range, ViewOptions, print};
use crate::Failure;
use crate::document::{self, Document};

const WORKER: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: worker, namespace: default}
spec:
  schedule: {SCHEDULE}
  clusterName: production
  bootstrapSpec:
    {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
";

const OFFICE: &str =
    "{daysOfWeek: [mon-fri], hoursOfDay: [9-17], timezone: America/New_York}";

/// The preview of a machine with that schedule, or the error message.
fn preview(schedule: &str, form: Form, span: (&str, &str)) -> String {
    preview_of(&machine("worker", schedule), view(form), span)
}

fn machine(name: &str, schedule: &str) -> String {
    let text = WORKER.replace("{SCHEDULE}", schedule);
    text.replace("name: worker", &format!("name: {name}"))
}

/// The view for output that is not a terminal.
fn view(form: Form) -> ViewOptions {
    ViewOptions {
        form,
        is_complete: false,
        terminal: TerminalOptions {
            width: 80,
            colored: false,
        },
        now: "2026-03-01T00:00:00Z".parse().unwrap(),
    }
}

fn preview_of(manifests: &str, view: ViewOptions, span: (&str, &str)) -> String {
    let documents = document::parse("worker.yaml", manifests).unwrap();
    match forecasts_of(&documents, view, span) {
        Err(failure) => failure.to_string(),
        Ok(preview) => {
            let mut out = Vec::new();
            print(&mut out, view, &preview).unwrap();
            String::from_utf8(out).unwrap()
        }
    }
}

fn forecasts_of(
    documents: &[Document],
    view: ViewOptions,
    span: (&str, &str),
) -> Result<Preview, Failure> {
    let range = Range {
        from: span.0.parse().ok(),
        to: span.1.parse().ok(),
        now: view.now,
        zone: None,
    };
    let context = Context::of(documents, None);
    let scope = PreviewScope {
        namespace: None,
        context: &context,
        judge: None,
    };
    let documents = super::source::previewed(documents.to_vec());
    super::preview(&documents, scope, range, view)
}

const SPRING: (&str, &str) = ("2026-03-06T21:30:00Z", "2026-03-10");

#[test]
fn text_shows_a_week_and_every_change_of_schedule_and_clocks() {
    assert_snapshot!(preview(OFFICE, Form::Text, SPRING), @r"
    default/worker: mon-fri 9-17 in America/New_York

                    0     3     6     9     12    15    18    21
    Fri 2026-03-06                                  # # . . . . . .
    Sat 2026-03-07  . . . . . . . . . . . . . . . . . . . . . . . .
    Sun 2026-03-08  . . x . . . . . . . . . . . . . . . . . . . . .  clocks +1h
    Mon 2026-03-09  . . . . . . . . . # # # # # # # # # . . . . . .
                    # wanted  + part of the hour  . not wanted
                    x skipped by the clocks

    From 2026-03-06T21:30:00Z (wanted) to 2026-03-10T04:00:00Z:
      Fri 2026-03-06 18:00:00 -05:00  2026-03-06T23:00:00Z  closes
      Sun 2026-03-08 03:00:00 -04:00  2026-03-08T07:00:00Z  clocks +1h
      Mon 2026-03-09 09:00:00 -04:00  2026-03-09T13:00:00Z  opens
      Mon 2026-03-09 18:00:00 -04:00  2026-03-09T22:00:00Z  closes
    Wanted for 10h 30m of 78h 30m.
    ");
}

#[test]
fn an_hour_that_the_clocks_repeat_is_wanted_twice() {
    let night = "{daysOfWeek: [sun], hoursOfDay: [1-2], timezone: America/New_York}";
    let autumn = ("2026-11-01", "2026-11-02");
    assert_snapshot!(preview(night, Form::Text, autumn), @r"
    default/worker: sun 1-2 in America/New_York

                    0     3     6     9     12    15    18    21
    Sun 2026-11-01  . # # . . . . . . . . . . . . . . . . . . . . .  clocks -1h
                    # wanted  + part of the hour  . not wanted

    From 2026-11-01T04:00:00Z (not wanted) to 2026-11-02T05:00:00Z:
      Sun 2026-11-01 01:00:00 -04:00  2026-11-01T05:00:00Z  opens
      Sun 2026-11-01 01:00:00 -05:00  2026-11-01T06:00:00Z  clocks -1h
      Sun 2026-11-01 03:00:00 -05:00  2026-11-01T08:00:00Z  closes
    Wanted for 3h of 25h.
    ");
}

#[test]
fn parts_of_an_hour_and_days_that_do_not_exist_are_marked() {
    let quarter = "{cron: '45 8 * * *', duration: 90m, timezone: Pacific/Apia}";
    let missing_friday = ("2011-12-29T12:00:00Z", "2012-01-01");
    assert_snapshot!(preview(quarter, Form::Text, missing_friday), @r"
    default/worker: cron '45 8 * * *' for 90m in Pacific/Apia

                    0     3     6     9     12    15    18    21
    Thu 2011-12-29      . . . . . . + # + . . . . . . . . . . . . .
    Fri 2011-12-30  x x x x x x x x x x x x x x x x x x x x x x x x  clocks +24h
    Sat 2011-12-31  # + . . . . . . + # + . . . . . . . . . . . . .
                    # wanted  + part of the hour  . not wanted
                    x skipped by the clocks

    From 2011-12-29T12:00:00Z (not wanted) to 2011-12-31T10:00:00Z:
      Thu 2011-12-29 08:45:00 -10:00  2011-12-29T18:45:00Z  opens
      Thu 2011-12-29 10:15:00 -10:00  2011-12-29T20:15:00Z  closes
      Sat 2011-12-31 00:00:00 +14:00  2011-12-30T10:00:00Z  clocks +24h
      Sat 2011-12-31 00:00:00 +14:00  2011-12-30T10:00:00Z  opens
      Sat 2011-12-31 01:30:00 +14:00  2011-12-30T11:30:00Z  closes
      Sat 2011-12-31 08:45:00 +14:00  2011-12-30T18:45:00Z  opens
      Sat 2011-12-31 10:15:00 +14:00  2011-12-30T20:15:00Z  closes
    Wanted for 4h 30m of 46h.
    ");
}

#[test]
fn json_has_the_same_changes() {
    assert_snapshot!(preview(OFFICE, Form::Json, SPRING), @r#"
    {
      "items": [
        {
          "name": "worker",
          "namespace": "default",
          "timezone": "America/New_York",
          "wantedAtFrom": true,
          "transitions": [
            {
              "time": "2026-03-06T23:00:00Z",
              "wanted": false,
              "cause": "Lists"
            },
            {
              "time": "2026-03-09T13:00:00Z",
              "wanted": true,
              "cause": "Lists"
            },
            {
              "time": "2026-03-09T22:00:00Z",
              "wanted": false,
              "cause": "Lists"
            }
          ],
          "needed": [
            {
              "startTime": "2026-03-06T21:30:00Z",
              "endTime": "2026-03-06T23:00:00Z"
            },
            {
              "startTime": "2026-03-09T13:00:00Z",
              "endTime": "2026-03-09T22:00:00Z"
            }
          ],
          "wantedSeconds": 37800
        }
      ]
    }
    "#);
}

#[test]
fn icalendar_output_has_an_event_for_each_window() {
    let lines = preview(OFFICE, Form::Ics, SPRING);
    assert!(
        lines
            .split_inclusive('\n')
            .all(|line| line.ends_with("\r\n")),
        "{lines:?}"
    );
    assert_snapshot!(lines.replace('\r', ""), @r"
    BEGIN:VCALENDAR
    VERSION:2.0
    PRODID:-//finos//5-spot//EN
    BEGIN:VEVENT
    UID:20260306T213000Z.default/worker@5spot.finos.org
    DTSTAMP:20260301T000000Z
    DTSTART:20260306T213000Z
    DTEND:20260306T230000Z
    SUMMARY:default/worker in service
    TRANSP:TRANSPARENT
    END:VEVENT
    BEGIN:VEVENT
    UID:20260309T130000Z.default/worker@5spot.finos.org
    DTSTAMP:20260301T000000Z
    DTSTART:20260309T130000Z
    DTEND:20260309T220000Z
    SUMMARY:default/worker in service
    TRANSP:TRANSPARENT
    END:VEVENT
    END:VCALENDAR
    ");
}

#[test]
fn a_disabled_schedule_is_never_wanted_with_a_note() {
    let disabled = OFFICE.replace('{', "{enabled: false, ");
    assert_snapshot!(preview(&disabled, Form::Text, SPRING), @r"
    default/worker: mon-fri 9-17 in America/New_York
    Never wanted: the schedule is disabled (spec.schedule.enabled is false).
    ");
    let json = preview(&disabled, Form::Json, SPRING);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["wantedAtFrom"], false);
    assert_eq!(json["items"][0]["transitions"], serde_json::json!([]));
    assert_eq!(json["items"][0]["wantedSeconds"], 0);
}

#[test]
fn wanted_seconds_are_those_between_the_transitions() {
    let all_day = "{daysOfWeek: [mon-sun], hoursOfDay: [0-23], timezone: UTC}";
    let json = preview(all_day, Form::Json, ("2026-03-06", "2026-03-08"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["wantedAtFrom"], true);
    assert_eq!(json["items"][0]["wantedSeconds"], 2 * 86_400);
}

#[test]
fn an_invalid_schedule_is_reported_with_its_location() {
    for (schedule, field, why) in [
        (
            "{daysOfWeek: [mon, fry], hoursOfDay: ['9']}",
            "spec.schedule.daysOfWeek[1]",
            "expected a day (mon, tue, wed, thu, fri, sat or sun), found 'fry'",
        ),
        (
            "{daysOfWeek: [mon], hoursOfDay: ['9'], timezone: Mars}",
            "spec.schedule.timezone",
            "'Mars' is not an IANA time zone",
        ),
        (
            "{cron: '0 9 * * *', duration: 30s}",
            "spec.schedule.duration",
            "must be from 1m to 168h, not 30s",
        ),
        (
            "{cron: '0 9 * * *', hoursOfDay: ['9']}",
            "spec.schedule",
            "cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the \
             other, not both",
        ),
        (
            "{daysOfWeek: [mon]}",
            "spec.schedule",
            "days and hours: both must be given, and hours are missing",
        ),
    ] {
        assert_eq!(
            preview(schedule, Form::Text, SPRING),
            format!(
                "worker.yaml, ScheduledMachine worker, {field}: {why}; correct the schedule"
            ),
        );
    }
}

#[test]
fn long_lines_of_a_calendar_are_folded() {
    let text = WORKER
        .replace("{SCHEDULE}", OFFICE)
        .replace("worker", &"w".repeat(63));
    let out = preview_of(&text, view(Form::Ics), ("2026-03-09", "2026-03-16"));
    assert!(out.split("\r\n").all(|line| line.len() <= 75), "{out}");
    let unfolded = out.replace("\r\n ", "");
    assert!(unfolded.contains(&format!("SUMMARY:default/{} in service", "w".repeat(63))));
}

const EVERY_OTHER_MINUTE: &str = "{cron: '*/2 * * * *', duration: 1m, timezone: UTC}";

#[test]
fn windows_that_repeat_are_one_line_and_all_prints_each() {
    let day = ("2026-03-06", "2026-03-07");
    let short = preview(EVERY_OTHER_MINUTE, Form::Text, day);
    assert_snapshot!(short);
    let complete = ViewOptions {
        is_complete: true,
        ..view(Form::Text)
    };
    let worker = WORKER.replace("{SCHEDULE}", EVERY_OTHER_MINUTE);
    let long = preview_of(&worker, complete, day);
    assert_eq!(long.matches("  opens").count(), 719, "{long}");
}

#[test]
fn a_long_list_and_a_long_grid_are_cut_with_a_note() {
    let year = preview(OFFICE, Form::Text, ("2026-01-01", "2027-01-01"));
    assert!(
        year.contains("… 315 more days; --all prints them\n"),
        "{year}"
    );
    assert!(year.contains("  … 474 more; --all prints them\n"), "{year}");
    assert!(year.lines().count() < 120, "{year}");
}

#[test]
fn no_line_of_a_week_is_wider_than_eighty_columns_or_sixty() {
    for width in [60, 80] {
        let mut view = view(Form::Text);
        view.terminal.width = width;
        let worker = WORKER.replace("{SCHEDULE}", OFFICE);
        let text = preview_of(&worker, view, ("2026-03-06", "2026-03-13"));
        let (grid, list) = text.split_once("From ").unwrap();
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert!(widest(list) <= Some(80), "{list}");
        if width == 80 {
            assert!(widest(grid) <= Some(80), "{grid}");
        }
    }
}

/// Three machines in two zones, over the clock change in New York.
fn three() -> String {
    [
        machine("desk-1", OFFICE),
        machine("desk-2", &OFFICE.replace("9-17", "18-8")),
        machine(
            "zurich",
            &OFFICE.replace("America/New_York", "Europe/Zurich"),
        ),
    ]
    .join("---\n")
}

#[test]
fn several_machines_are_a_line_each() {
    assert_snapshot!(preview_of(
        &three(),
        view(Form::Text),
        ("2026-03-06", "2026-03-13")
    ));
}

#[test]
fn the_dates_of_a_picture_are_those_of_the_most_frequent_zone() {
    let picture = preview_of(&three(), view(Form::Svg), ("2026-03-06", "2026-03-13"));
    let says =
        "3 machines from Fri 2026-03-06 00:00 to Fri 2026-03-13 00:00, America/New_York.";
    assert!(picture.contains(says), "{picture}");
    let page = preview_of(&three(), view(Form::Html), ("2026-03-06", "2026-03-13"));
    assert!(page.contains(says) && page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("Fri 6 Mar 09:00 to 18:00"), "{page}");
}

const NIGHTS: &str = "{timezone: Europe/Zurich,
    windows: [{name: night, days: [mon-fri], start: '19:00', end: '07:30'},
              {name: weekend, days: [sat], start: '07:30', duration: 48h}],
    exceptions: [{name: holidays, action: Stop, calendarRef: {name: zurich}}]}";

const CHRISTMAS: (&str, &str) = ("2026-12-24", "2026-12-28");

#[test]
fn exceptions_and_overrides_are_named_at_their_changes() {
    let worker = WORKER.replace("{SCHEDULE}", NIGHTS).replace(
        "spec:\n  schedule",
        "spec:\n  provisioning: {leadTime: 10m}\n  shutdown: {endPolicy: CompleteByWindowEnd}\n  \
         schedule",
    );
    let others = "\
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleCalendar
metadata: {name: zurich}
spec: {dates: [{name: christmas, date: 12-25}]}
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {name: inventory}
spec:
  targetRef: {name: worker}
  mode: Stop
  startTime: 2026-12-27T12:00:00Z
  endTime: 2026-12-27T14:00:00Z
";
    let all = format!("{worker}{others}");
    assert_snapshot!(preview_of(&all, view(Form::Text), CHRISTMAS), @r"
    default/worker: mon-fri 19:00-07:30, sat 07:30 for 48h in Europe/Zurich, 1 exception

                    0     3     6     9     12    15    18    21
    Thu 2026-12-24  # # # # # # # + . . . . . . . . . . . # # # # #
    Fri 2026-12-25  . . . . . . . . . . . . . . . . . . . . . . . .
    Sat 2026-12-26  # # # # # # # # # # # # # # # # # # # # # # # #
    Sun 2026-12-27  # # # # # # # # # # # # # . . # # # # # # # # #
                    # wanted  + part of the hour  . not wanted

    From 2026-12-23T23:00:00Z (wanted) to 2026-12-27T23:00:00Z:
      Thu 2026-12-24 07:30:00 +01:00  2026-12-24T06:30:00Z  closes  window night
      Thu 2026-12-24 19:00:00 +01:00  2026-12-24T18:00:00Z  opens   window night
      Fri 2026-12-25 00:00:00 +01:00  2026-12-24T23:00:00Z  closes  exception holidays
      Sat 2026-12-26 00:00:00 +01:00  2026-12-25T23:00:00Z  opens   exception holidays
      Sun 2026-12-27 13:00:00 +01:00  2026-12-27T12:00:00Z  closes  override inventory
      Sun 2026-12-27 15:00:00 +01:00  2026-12-27T14:00:00Z  opens   override inventory
    Machines are created 10m before they are wanted.
    Machines are shut down 5m before they are no longer wanted.
    Wanted for 58h 30m of 96h.
    ");
    let json = preview_of(&all, view(Form::Json), CHRISTMAS);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let last = &json["items"][0]["transitions"][4];
    assert_eq!(
        (&last["cause"], &last["name"]),
        (&"Override".into(), &"inventory".into())
    );
}

#[test]
fn the_jitter_of_a_class_is_told_by_how_much_it_moves_windows() {
    let class = "\
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineClass
metadata: {name: desks}
spec:
  clusterNames: [production]
  jitter: 30m
  bootstrapSpec: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
";
    let of = |metadata: &str| {
        let worker = format!(
            "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {{name: worker{metadata}}}
spec: {{schedule: {OFFICE}, classRef: {{name: desks}}}}
{class}"
        );
        preview_of(&worker, view(Form::Text), CHRISTMAS)
    };
    let known = "\nWindows open and close 19m later than shown: its part of the jitter of \
                 ScheduledMachineClass desks.\n";
    let text = of(", uid: uid-820");
    assert!(text.contains(known), "{text}");
    let text = of("");
    assert!(
        text.contains("\nWindows open and close up to 30m later than shown"),
        "{text}"
    );
}

#[test]
fn a_calendar_that_is_missing_is_named_and_left_out() {
    let note = "ScheduleCalendar zurich was not found; its exceptions are left out.";
    let text = preview(NIGHTS, Form::Text, CHRISTMAS);
    assert!(text.contains(note), "{text}");
    assert!(!text.contains("exception holidays"), "{text}");
    for form in [Form::Json, Form::Yaml] {
        let printed = preview(NIGHTS, form, CHRISTMAS);
        let value: Value = serde_saphyr::from_str(&printed).unwrap();
        assert_eq!(value["items"][0]["missingCalendars"], json!(["zurich"]));
    }
    for form in [Form::Svg, Form::Html] {
        let picture = preview(NIGHTS, form, CHRISTMAS);
        assert!(picture.contains(note), "{picture}");
    }
    let documents = document::parse("worker.yaml", &machine("worker", NIGHTS)).unwrap();
    let forecasts = forecasts_of(&documents, view(Form::Text), CHRISTMAS).unwrap();
    for form in [Form::Ics, Form::Svg, Form::Html] {
        let warning = format!("default/worker: {note}");
        assert_eq!(form.warnings(&forecasts), [warning], "{form:?}");
    }
    let two = [machine("a", NIGHTS), machine("b", NIGHTS)].join("---\n");
    let text = preview_of(&two, view(Form::Text), CHRISTMAS);
    assert!(
        text.contains(&format!("default/a: {note}\ndefault/b: {note}")),
        "{text}"
    );
}

#[test]
fn one_machine_that_cannot_be_evaluated_is_one_row_and_fails_no_other() {
    let typo = "{cron: '0 9 * * *', timezone: Europe/Zurch}";
    let good = machine("good", "{cron: '0 9 * * *', timezone: UTC}");
    let both = [machine("typo", typo), good].join("---\n");
    let why = "default/typo: cannot be evaluated: ";
    let text = preview_of(&both, view(Form::Text), SPRING);
    assert!(
        text.contains(why) && text.contains("'Europe/Zurch'"),
        "{text}"
    );
    assert!(text.contains("good"), "{text}");
    let json = preview_of(&both, view(Form::Json), SPRING);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["name"], "good");
    assert_eq!(json["notEvaluated"][0]["name"], "typo");
    for form in [Form::Svg, Form::Html] {
        let picture = preview_of(&both, view(form), SPRING);
        assert!(picture.contains("typo") && picture.contains("cannot be evaluated"));
    }
    // Alone, it is the answer.
    let alone = preview_of(&machine("typo", typo), view(Form::Text), SPRING);
    assert!(alone.contains("spec.schedule.timezone"), "{alone}");
}

#[test]
fn a_killed_machine_is_never_wanted() {
    let schedule = "{cron: '0 9 * * *', timezone: UTC}\n  killSwitch: true";
    let text = preview_of(&machine("worker", schedule), view(Form::Text), SPRING);
    assert!(
        text.contains("Never wanted: the kill switch is set"),
        "{text}"
    );
    let json = preview_of(&machine("worker", schedule), view(Form::Json), SPRING);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["wantedSeconds"], 0);
}

#[test]
fn the_windows_of_a_machine_in_audit_mode_are_shown_and_marked() {
    let schedule = "{cron: '0 9 * * *', timezone: UTC}\n  enforcement: Audit";
    let text = preview_of(&machine("worker", schedule), view(Form::Text), SPRING);
    assert!(text.contains("In audit mode"), "{text}");
    assert!(text.contains("Wanted for"), "{text}");
    let json = preview_of(&machine("worker", schedule), view(Form::Json), SPRING);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["isAudited"], true);
    let picture = preview_of(&machine("worker", schedule), view(Form::Html), SPRING);
    assert!(picture.contains("audit; cron"), "{picture}");
}

#[test]
fn rates_add_what_the_machines_would_cost_compared_with_always_on_ones() {
    let rates = "\
currency: CHF
rates:
- {name: gpu, label: tier=gpu, pricePerHour: 2, watts: 1000}
- {name: desks, infrastructureKind: RemoteMachine, pricePerHour: 0.1, watts: 200}
";
    let rates = fivespot_usage::Rates::parse(rates).unwrap();
    let other = machine("metal", "{cron: 0 8 * * *, duration: 1h, timezone: UTC}")
        .replace("RemoteMachine", "Metal3Machine");
    let both = format!("{}---\n{other}", machine("worker", OFFICE));
    let documents = document::parse("worker.yaml", &both).unwrap();
    let view = view(Form::Text);
    let span = ("2026-03-02", "2026-03-09");
    let mut preview = forecasts_of(&documents, view, span).unwrap();
    preview.savings = Some(super::Savings::of(&preview.items, rates));
    let mut out = Vec::new();
    print(&mut out, view, &preview).unwrap();
    let text = String::from_utf8(out).unwrap();
    let (_, savings) = text.rsplit_once("\n\n").unwrap();
    assert_snapshot!(savings, @r"
                    USED     ALWAYS ON         SAVED
    hours          52.00        334.00        282.00
    CHF             4.50         16.70         12.20
    kWh             9.00         33.40         24.40
    kg CO2          0.00          0.00          0.00
    Without a rate, so not in the costs: 1 of 2
    ");
}

const WEB: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledCapacity
metadata: {name: web, namespace: default}
spec:
  schedule: {daysOfWeek: [mon-fri], hoursOfDay: [9-17], timezone: America/New_York}
  leadTime: 30m
  target: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: web}
  fields:
  - {field: minReplicas, activeValue: 5, inactiveValue: 1}
  - {field: maxReplicas, activeValue: 20, inactiveValue: 2}
";

#[test]
fn the_values_of_a_capacity_are_shown_with_the_instants_at_which_they_change() {
    assert_snapshot!(preview_of(WEB, view(Form::Text), SPRING), @r"
    default/web: HorizontalPodAutoscaler web, mon-fri 9-17 in America/New_York
    From 2026-03-06T21:30:00Z (minReplicas=5, maxReplicas=20) to 2026-03-10T04:00:00Z:
      Fri 2026-03-06 18:00:00 -05:00  2026-03-06T23:00:00Z  minReplicas=1, maxReplicas=2
      Sun 2026-03-08 03:00:00 -04:00  2026-03-08T07:00:00Z  clocks +1h
      Mon 2026-03-09 08:30:00 -04:00  2026-03-09T12:30:00Z  minReplicas=5, maxReplicas=20
      Mon 2026-03-09 18:00:00 -04:00  2026-03-09T22:00:00Z  minReplicas=1, maxReplicas=2
    ");
    let json = preview_of(WEB, view(Form::Json), SPRING);
    let json: Value = serde_json::from_str(&json).unwrap();
    let capacity = &json["capacities"][0];
    assert_eq!(capacity["activeAtFrom"], true);
    assert_eq!(
        capacity["valuesAtFrom"],
        json!({"minReplicas": 5, "maxReplicas": 20})
    );
    assert_eq!(
        capacity["changes"][1],
        json!({
            "time": "2026-03-09T12:30:00Z", "active": true,
            "values": {"minReplicas": 5, "maxReplicas": 20},
        })
    );
    let ics = preview_of(WEB, view(Form::Ics), SPRING);
    assert!(
        ics.contains("SUMMARY:default/scap/web minReplicas=5\\, maxReplicas=20"),
        "{ics}"
    );
}

#[test]
fn an_override_of_a_capacity_changes_its_values_and_those_of_no_machine() {
    let stop = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {name: closed, namespace: default}
spec:
  targetRef: {kind: ScheduledCapacity, name: web}
  mode: Stop
  endTime: 2026-03-09T16:00:00Z
";
    let machine = machine("web", OFFICE);
    let all = [WEB, stop, &machine].join("---\n");
    let json = preview_of(&all, view(Form::Json), SPRING);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["capacities"][0]["changes"][0]["time"],
        "2026-03-09T15:30:00Z"
    );
    assert_eq!(
        json["items"][0]["transitions"][1]["time"],
        "2026-03-09T13:00:00Z"
    );
}

#[test]
fn a_capacity_that_does_not_follow_its_schedule_says_why() {
    let killed = WEB.replace("  leadTime", "  killSwitch: true\n  leadTime");
    let shown = preview_of(&killed, view(Form::Text), SPRING);
    assert!(
        shown
            .ends_with("Always minReplicas=1, maxReplicas=2: spec.killSwitch is true.\n"),
        "{shown}"
    );
    let wrong = WEB.replace("minReplicas,", "a..b,");
    let shown = preview_of(&wrong, view(Form::Text), SPRING);
    assert!(
        shown.contains("ScheduledCapacity web, spec.fields[0].field"),
        "{shown}"
    );
}

#[test]
fn machines_and_capacities_are_a_line_each() {
    let all = [WEB, &machine("worker", OFFICE), &machine("night", OFFICE)].join("---\n");
    assert_snapshot!(preview_of(&all, view(Form::Text), SPRING), @r"
    Fri 2026-03-06 16:30 to Tue 2026-03-10 00:00, America/New_York, 2h a column
                        Sat 7       Sun 8       Mon 9
                                     ◆ clocks +1h
    worker           ▄······························▄████▄···
    night            ▄······························▄████▄···
    wanted, max 2    █                               █████
                     · not wanted  █ window
                     ▄ part of the time

    Fri 2026-03-06 16:30 to Tue 2026-03-10 00:00, America/New_York, 2h a column
                        Sat 7       Sun 8       Mon 9
                                     ◆ clocks +1h
    scap/web         ▄······························▄████▄···
    wanted, max 1    █                               █████
                     · not wanted  █ window
                     ▄ part of the time
    ");
}

#[test]
fn a_machine_that_a_reclaim_stops_says_when_it_is_back_as_the_operator_does() {
    let message = "override worker-5d1f1a52 stops the machine until 2026-03-07T12:00:00Z; back at \
                   2026-03-06T14:20:00Z if the host stays free";
    let stopped = |reclaim: &str| {
        format!(
            "{}  {reclaim}\nstatus:\n  conditions:\n  - {{type: Scheduled, status: 'False', reason: \
             OverrideStop, message: '{message}', lastTransitionTime: '2026-03-06T12:00:00Z'}}\n",
            machine("worker", OFFICE)
        )
    };
    let span = ("2026-03-06", "2026-03-07");
    let of = |reclaim: &str| preview_of(&stopped(reclaim), view(Form::Text), span);
    let printed = of("reclaim: {return: {after: 30m}}");
    assert!(printed.contains(message), "{printed}");
    // A person's override has its own line, and no return.
    assert!(!of("reclaim: {commands: [steam]}").contains(message));
}

#[test]
fn a_set_is_previewed_by_its_machines() {
    let set = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineSet
metadata: {name: desks, namespace: night}
spec:
  replicas: 2
  template:
    spec:
      schedule: {daysOfWeek: [mon-sun], hoursOfDay: [22-23]}
      classRef: {name: desks}
";
    let text = preview_of(set, view(Form::Text), ("2026-03-06", "2026-03-07"));
    for words in ["desks-0 ", "desks-1 ", "wanted, max 2 "] {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("desks-2"), "{text}");
}
