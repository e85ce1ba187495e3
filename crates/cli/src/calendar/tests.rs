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
        Ok(dates) => serde_saphyr::to_string(&dates).unwrap(),
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
fn an_unsupported_event_is_refused_with_its_line() {
    for (event, why) in [
        (
            "SUMMARY:x\r\nDTSTART:20260101\r\nRRULE:FREQ=WEEKLY;BYDAY=MO",
            "holidays.ics: line 6: 'FREQ=WEEKLY;BYDAY=MO' is not a yearly date; correct the \
             file, or write the dates by hand",
        ),
        (
            "SUMMARY:x\r\nDTSTART:tomorrow",
            "holidays.ics: line 5: 'tomorrow' is not a date such as 20261225; correct the file, \
             or write the dates by hand",
        ),
        (
            "SUMMARY:x",
            "holidays.ics: the event that ends in line 5 has no DTSTART; correct the file, or \
             write the dates by hand",
        ),
    ] {
        assert_eq!(printed(&[event]), why);
    }
    assert!(printed(&[]).contains("it has 0 events"));
    let text = import("notes.txt", "hello").unwrap_err().to_string();
    assert!(text.contains("BEGIN:VCALENDAR is missing"), "{text}");
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
