//! `5spot calendar import`: from a file, and from standard input.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const HOLIDAYS: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n\
    BEGIN:VEVENT\r\nSUMMARY:New Year\r\nDTSTART;VALUE=DATE:20270101\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nSUMMARY:Outing\r\nDTSTART;VALUE=DATE:20270603\r\nSTATUS:CANCELLED\r\n\
    END:VEVENT\r\nEND:VCALENDAR\r\n";

const CALENDAR: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleCalendar
metadata:
  name: zurich
  namespace: team-a
spec:
  dates:
  - name: new-year
    date: \"2027-01-01\"
";

fn import(file: &str, text: &str) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_5spot"))
        .args([
            "calendar", "import", file, "--name", "zurich", "-n", "team-a",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that reads a file may have ended.
    let _ = process.stdin.take().unwrap().write_all(text.as_bytes());
    process.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn the_dates_of_a_file_and_of_standard_input_are_a_calendar() {
    let name = format!("5spot-calendar-{}.ics", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, HOLIDAYS).unwrap();
    let from_file = import(file.to_str().unwrap(), "");
    std::fs::remove_file(&file).unwrap();
    for output in [from_file, import("-", HOLIDAYS)] {
        assert_eq!(text(&output.stdout), CALENDAR);
        let note = "note: 'Outing' is cancelled and left out\n";
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), note)
        );
    }
}

#[test]
fn a_file_that_is_no_calendar_is_an_error_that_names_it() {
    for (file, input, error) in [
        (
            "none.ics",
            "",
            "error: reading none.ics: No such file or directory",
        ),
        ("-", "no calendar", "error: standard input"),
    ] {
        let output = import(file, input);
        let errors = text(&output.stderr);
        assert!(errors.starts_with(error), "{errors}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
    }
}
