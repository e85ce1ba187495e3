use insta::assert_snapshot;

use super::{import, object_name};

fn calendar(events: &[&str]) -> String {
    let events: Vec<String> = events
        .iter()
        .map(|event| format!("BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n"))
        .collect();
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{}END:VCALENDAR\r\n",
        events.concat()
    )
}

fn printed(events: &[&str]) -> String {
    match import("holidays.ics", &calendar(events)) {
        Ok(events) => serde_saphyr::to_string(&events.dates).unwrap(),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn events_are_converted_to_dates_ranges_and_yearly_dates() {
    assert_snapshot!(printed(&[
        "SUMMARY:Weihnachten\r\nDTSTART;VALUE=DATE:20261225\r\nRRULE:FREQ=YEARLY",
        "SUMMARY:Betriebs\r\n ferien\r\nDTSTART;VALUE=DATE:20260701\r\nDTEND;VALUE=DATE:20260715",
        "SUMMARY:Ostermontag\r\nDTSTART;VALUE=DATE:20260406\r\nDTEND;VALUE=DATE:20260407",
        "SUMMARY:Ostermontag\r\nDTSTART:20270329T000000\r\nDTEND:20270329T235959",
    ]), @r#"
    - name: weihnachten
      date: 12-25
    - name: betriebsferien
      startDate: "2026-07-01"
      endDate: "2026-07-14"
    - name: ostermontag
      date: "2026-04-06"
    - name: ostermontag-2
      date: "2027-03-29"
    "#);
}

#[test]
fn a_length_a_plain_date_rule_and_quoted_parameters_are_read() {
    assert_snapshot!(printed(&[
        "SUMMARY:Length\r\nDTSTART;VALUE=DATE:20261224\r\nDURATION:P3D",
        "SUMMARY:Week\r\nDTSTART;VALUE=DATE:20261221\r\nDURATION:P1W",
        "SUMMARY:Hours\r\nDTSTART:20261224T180000\r\nDURATION:PT12H",
        "SUMMARY:Noon\r\nDTSTART:20261224T120000Z\r\nDURATION:PT12H",
        "SUMMARY:Rule\r\nDTSTART;VALUE=DATE:20260105\r\n\
         RRULE:FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=05;INTERVAL=1;WKST=MO",
        "SUMMARY:Quoted\r\nDTSTART;X=\"a:b\";VALUE=DATE:20261224",
    ]), @r#"
    - name: length
      startDate: "2026-12-24"
      endDate: "2026-12-26"
    - name: week
      startDate: "2026-12-21"
      endDate: "2026-12-27"
    - name: hours
      startDate: "2026-12-24"
      endDate: "2026-12-25"
    - name: noon
      date: "2026-12-24"
    - name: rule
      date: 01-05
    - name: quoted
      date: "2026-12-24"
    "#);
}

#[test]
fn the_properties_of_an_alarm_are_not_those_of_its_event() {
    assert_snapshot!(printed(&[
        "BEGIN:VALARM\r\nSUMMARY:Reminder\r\nDURATION:PT15M\r\nEND:VALARM\r\n\
         SUMMARY:Christmas\r\nDTSTART;VALUE=DATE:20261225",
    ]), @r#"
    - name: christmas
      date: "2026-12-25"
    "#);
}

#[test]
fn a_cancelled_event_is_left_out_and_named() {
    let event = |summary: &str, status: &str| {
        format!("SUMMARY:{summary}\r\nDTSTART;VALUE=DATE:20261224\r\nSTATUS:{status}")
    };
    let text = calendar(&[&event("Party", "CANCELLED"), &event("Eve", "CONFIRMED")]);
    let events = import("holidays.ics", &text).unwrap();
    let names: Vec<&str> = events.dates.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["eve"]);
    assert_eq!(events.cancelled, ["Party"]);
}

#[test]
fn an_unsupported_event_is_refused_with_its_line() {
    for (event, why) in [
        (
            "DTSTART:20260101\r\nRRULE:FREQ=WEEKLY;BYDAY=MO",
            "line 5: 'FREQ=WEEKLY;BYDAY=MO' is not yearly on the date of DTSTART",
        ),
        (
            "DTSTART:20261225\r\nRRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25,26",
            "line 5: 'FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25,26' is not yearly on the date of \
             DTSTART",
        ),
        (
            "DTSTART:20260101\r\nRRULE:FREQ=YEARLY;BYMONTHDAY=1",
            "line 5: 'FREQ=YEARLY;BYMONTHDAY=1' is not yearly on the date of DTSTART",
        ),
        (
            "DTSTART:20260101\r\nRRULE:FREQ=YEARLY;BYMONTH=1,5;BYMONTHDAY=1",
            "line 5: 'FREQ=YEARLY;BYMONTH=1,5;BYMONTHDAY=1' is not yearly on the date of DTSTART",
        ),
        (
            "RRULE:FREQ=YEARLY;BYMONTH=5\r\nDTSTART:20260101",
            "line 4: 'FREQ=YEARLY;BYMONTH=5' is not yearly on the date of DTSTART",
        ),
        (
            "DTSTART:20260101\r\nRRULE:FREQ=YEARLY\r\nRRULE:FREQ=YEARLY",
            "line 6: the event has another RRULE",
        ),
        (
            "DTSTART:20260101\r\nRECURRENCE-ID:20260101\r\nSTATUS:CANCELLED",
            "line 5: RECURRENCE-ID is not supported",
        ),
        (
            "DTSTART:20260101\r\nDTEND:20260102\r\nDURATION:P1D",
            "line 6: the event has DTEND and DURATION",
        ),
        (
            "DTSTART:20260101\r\nDURATION:3 days",
            "line 5: '3 days' is not a duration such as P3D",
        ),
        (
            "DTSTART:20260101\r\nDURATION:-P3D",
            "the event that ends in line 6 ends before it starts",
        ),
        (
            "DTSTART:tomorrow",
            "line 4: 'tomorrow' is not a date such as 20261225",
        ),
        ("SUMMARY:x", "the event that ends in line 5 has no DTSTART"),
        (
            "BEGIN:VALARM\r\nDTSTART:20260101",
            "line 6: nothing ends here",
        ),
    ] {
        let remedy = "correct the file, or write the dates by hand";
        assert_eq!(printed(&[event]), format!("holidays.ics: {why}; {remedy}"));
    }
    let cut = calendar(&["DTSTART:20260101"]);
    let cut = cut.split("END:VEVENT").next().unwrap();
    let cut = import("holidays.ics", cut).unwrap_err().to_string();
    assert!(cut.contains("line 3: the VEVENT does not end"), "{cut}");
    assert!(printed(&[]).contains("it has no events"));
    let text = import("notes.txt", "hello").unwrap_err().to_string();
    assert!(text.contains("BEGIN:VCALENDAR is missing"), "{text}");
}

#[test]
fn reading_ends_at_the_first_event_that_no_calendar_has_room_for() {
    let holiday = "SUMMARY:Holiday\r\nDTSTART;VALUE=DATE:20261225";
    let mut events = vec![holiday; 400];
    assert!(printed(&events).contains("- name: holiday-400\n"));
    // The last one is never looked at.
    events.extend([holiday, "SUMMARY:Without a date"]);
    assert_snapshot!(printed(&events));
}

#[test]
fn a_name_that_no_object_can_have_is_refused() {
    assert_eq!(object_name("zurich").as_deref(), Ok("zurich"));
    let refused = object_name("Bad Name").unwrap_err();
    assert!(
        refused.contains("lowercase RFC 1123 subdomain"),
        "{refused}"
    );
}
