use insta::assert_snapshot;

use super::{Forecast, Form, Span, print};
use crate::document;

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

/// The preview of a machine with that schedule, or what is said instead.
fn preview(schedule: &str, form: Form, span: (&str, &str)) -> String {
    let documents =
        document::parse("worker.yaml", &WORKER.replace("{SCHEDULE}", schedule)).unwrap();
    let now = "2026-03-01T00:00:00Z".parse().unwrap();
    let (from, to) = (span.0.parse().unwrap(), span.1.parse().unwrap());
    let span = Span::new(Some(from), Some(to), now).unwrap();
    match Forecast::of(&documents[0], None, span) {
        Err(failure) => failure.to_string(),
        Ok(forecast) => {
            let mut out = Vec::new();
            print(&mut out, form, &[forecast], now).unwrap();
            String::from_utf8(out).unwrap()
        }
    }
}

const SPRING: (&str, &str) = ("2026-03-06T21:30:00Z", "2026-03-10");

#[test]
fn people_see_a_week_and_every_change_of_schedule_and_clocks() {
    assert_snapshot!(preview(OFFICE, Form::Text, SPRING), @r"
    default/worker: mon-fri 9-17 in America/New_York

                    0     3     6     9     12    15    18    21
    Fri 2026-03-06  . . . . . . . . . # # # # # # # # # . . . . . .
    Sat 2026-03-07  . . . . . . . . . . . . . . . . . . . . . . . .
    Sun 2026-03-08  . . x . . . . . . . . . . . . . . . . . . . . .  clocks go forward from 02:00 to 03:00
    Mon 2026-03-09  . . . . . . . . . # # # # # # # # # . . . . . .
    Tue 2026-03-10  . . . . . . . . . # # # # # # # # # . . . . . .
    Wed 2026-03-11  . . . . . . . . . # # # # # # # # # . . . . . .
    Thu 2026-03-12  . . . . . . . . . # # # # # # # # # . . . . . .
                    # wanted  + part of the hour  . not wanted  x skipped by the clocks

    From 2026-03-06T21:30:00Z (wanted) to 2026-03-10T00:00:00Z:
      Fri 2026-03-06 18:00:00 -05:00  2026-03-06T23:00:00Z  closes
      Sun 2026-03-08 03:00:00 -04:00  2026-03-08T07:00:00Z  -- clocks go forward from 02:00 to 03:00 --
      Mon 2026-03-09 09:00:00 -04:00  2026-03-09T13:00:00Z  opens
      Mon 2026-03-09 18:00:00 -04:00  2026-03-09T22:00:00Z  closes
    Wanted for 10h 30m of 74h 30m.
    ");
}

#[test]
fn an_hour_that_the_clocks_repeat_is_wanted_twice() {
    let night = "{daysOfWeek: [sun], hoursOfDay: [1-2], timezone: America/New_York}";
    let autumn = ("2026-11-01", "2026-11-02");
    assert_snapshot!(preview(night, Form::Text, autumn), @r"
    default/worker: sun 1-2 in America/New_York

                    0     3     6     9     12    15    18    21
    Sat 2026-10-31  . . . . . . . . . . . . . . . . . . . . . . . .
    Sun 2026-11-01  . # # . . . . . . . . . . . . . . . . . . . . .  clocks go back from 02:00 to 01:00
    Mon 2026-11-02  . . . . . . . . . . . . . . . . . . . . . . . .
    Tue 2026-11-03  . . . . . . . . . . . . . . . . . . . . . . . .
    Wed 2026-11-04  . . . . . . . . . . . . . . . . . . . . . . . .
    Thu 2026-11-05  . . . . . . . . . . . . . . . . . . . . . . . .
    Fri 2026-11-06  . . . . . . . . . . . . . . . . . . . . . . . .
                    # wanted  + part of the hour  . not wanted

    From 2026-11-01T00:00:00Z (not wanted) to 2026-11-02T00:00:00Z:
      Sun 2026-11-01 01:00:00 -04:00  2026-11-01T05:00:00Z  opens
      Sun 2026-11-01 01:00:00 -05:00  2026-11-01T06:00:00Z  -- clocks go back from 02:00 to 01:00 --
      Sun 2026-11-01 03:00:00 -05:00  2026-11-01T08:00:00Z  closes
    Wanted for 3h of 24h.
    ");
}

#[test]
fn parts_of_an_hour_and_days_that_do_not_exist_are_marked() {
    let quarter = "{cron: '45 8 * * *', duration: 90m, timezone: Pacific/Apia}";
    let missing_friday = ("2011-12-29T12:00:00Z", "2011-12-31");
    assert_snapshot!(preview(quarter, Form::Text, missing_friday), @r"
    default/worker: cron '45 8 * * *' for 90m in Pacific/Apia

                    0     3     6     9     12    15    18    21
    Thu 2011-12-29  . . . . . . . . + # + . . . . . . . . . . . . .
    Fri 2011-12-30  x x x x x x x x x x x x x x x x x x x x x x x x  clocks go forward from 2011-12-30 00:00:00 to 2011-12-31 00:00:00
    Sat 2011-12-31  # + . . . . . . + # + . . . . . . . . . . . . .
    Sun 2012-01-01  . . . . . . . . + # + . . . . . . . . . . . . .
    Mon 2012-01-02  . . . . . . . . + # + . . . . . . . . . . . . .
    Tue 2012-01-03  . . . . . . . . + # + . . . . . . . . . . . . .
    Wed 2012-01-04  . . . . . . . . + # + . . . . . . . . . . . . .
                    # wanted  + part of the hour  . not wanted  x skipped by the clocks

    From 2011-12-29T12:00:00Z (not wanted) to 2011-12-31T00:00:00Z:
      Thu 2011-12-29 08:45:00 -10:00  2011-12-29T18:45:00Z  opens
      Thu 2011-12-29 10:15:00 -10:00  2011-12-29T20:15:00Z  closes
      Sat 2011-12-31 00:00:00 +14:00  2011-12-30T10:00:00Z  -- clocks go forward from 2011-12-30 00:00:00 to 2011-12-31 00:00:00 --
      Sat 2011-12-31 00:00:00 +14:00  2011-12-30T10:00:00Z  opens
      Sat 2011-12-31 01:30:00 +14:00  2011-12-30T11:30:00Z  closes
      Sat 2011-12-31 08:45:00 +14:00  2011-12-30T18:45:00Z  opens
      Sat 2011-12-31 10:15:00 +14:00  2011-12-30T20:15:00Z  closes
    Wanted for 4h 30m of 36h.
    ");
}

#[test]
fn programs_get_the_same_changes_as_json() {
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
              "wanted": false
            },
            {
              "time": "2026-03-09T13:00:00Z",
              "wanted": true
            },
            {
              "time": "2026-03-09T22:00:00Z",
              "wanted": false
            }
          ],
          "wantedSeconds": 37800
        }
      ]
    }
    "#);
}

#[test]
fn calendars_get_an_event_for_each_time_of_service() {
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
fn a_disabled_schedule_is_never_wanted_and_says_so() {
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
fn a_schedule_that_makes_no_sense_is_named_with_its_place() {
    for (schedule, field, why) in [
        (
            "{daysOfWeek: [mon, fry], hoursOfDay: ['9']}",
            "spec.schedule.daysOfWeek[1]",
            "expected a day (mon, tue, wed, thu, fri, sat or sun) at byte 0, found 'fry'",
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
    let documents = document::parse("worker.yaml", &text).unwrap();
    let now = "2026-03-09T00:00:00Z".parse().unwrap();
    let forecast =
        Forecast::of(&documents[0], None, Span::new(None, None, now).unwrap()).unwrap();
    let mut out = Vec::new();
    print(&mut out, Form::Ics, &[forecast], now).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.split("\r\n").all(|line| line.len() <= 75), "{out}");
    let unfolded = out.replace("\r\n ", "");
    assert!(unfolded.contains(&format!("SUMMARY:default/{} in service", "w".repeat(63))));
}
